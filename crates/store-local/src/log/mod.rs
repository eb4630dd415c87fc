//! The log, in which commits become durable.
//!
//! ```text
//! log/<id>.log     a segment: a header of 4 KiB, then frames
//! log/<id>.bulk    the changes of one large commit, written and synced before the frame that refers to it
//! log/spare-<id>   a segment that is not used yet, or no longer
//! ```
//!
//! A **commit group** is the commits that one sync makes durable. It is one frame, with a checksum over all of it.
//! Segments are filled with zeros, or recycled, before frames are written: a sync of a frame then writes data only and
//! no metadata of the file system. Each frame is written after the previous one was synced, so at most one frame can be
//! torn, at the end of the newest segment. Any other invalid frame is corruption, and the store does not open.
//!
//! Each start begins a new segment, whose header records the end of the previous one, so that a torn frame is ignored
//! for good. A segment is retired when the index has all of its groups durably.

mod bulk;
mod bytes_reader;
mod frame;
pub(crate) mod replay;
mod scan;
mod segment;

use std::{
    collections::{BTreeMap, VecDeque},
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

pub(crate) use self::{
    bulk::{BulkCommit, BulkEntry, BulkWriter, PreparedBulk},
    frame::Operation,
    replay::{Replayed, replay},
    scan::{ScannedSegment, scan_segment},
    segment::{id_of as segment_id, name as segment_name},
};
use self::{
    frame::encode_frame,
    segment::{HEADER_BYTES, Header, Segment},
};
use crate::{faults::SyncFault, index::is_out_of_space, lock::Place, log_key::LogKey, space::Ballast};

/// The size of the first segment of a new store, in bytes; later ones double up to the limit.
pub(crate) const FIRST_SEGMENT_BYTES: u64 = 1 << 20;
/// The size of the first segment after opening a store on a full disk, in bytes.
const MIN_SEGMENT_BYTES: u64 = 64 << 10;
/// The maximum number of spare segments.
const MAX_SPARE_SEGMENTS: usize = 4;

/// The end of the log, to which the committer appends frames.
pub(crate) struct Log {
    files: Arc<LogFiles>,
    key: LogKey,
    epoch: u64,
    current: Segment,
    next_group: u64,
}

/// The files of the log, which the committer creates and the checkpointer retires.
pub(crate) struct LogFiles {
    dir: PathBuf,
    max_segment_bytes: u64,
    state: Mutex<State>,
    ballast: Arc<Ballast>,
    place: Option<Place>,
    fault: SyncFault,
}

#[derive(Default)]
struct State {
    /// Full segments, each with the first group after it.
    closed: VecDeque<(u64, u64)>,
    spares: Vec<PathBuf>,
    next_spare: u64,
    /// Files of bulk commits, by the group that refers to them.
    bulk: BTreeMap<u64, Vec<Arc<BulkCommit>>>,
    /// The size of each group that is not yet in the index, in bytes.
    unapplied: BTreeMap<u64, u64>,
    unapplied_bytes: u64,
}

/// The point from which a log continues.
pub(crate) struct LogStart {
    pub(crate) key: LogKey,
    pub(crate) epoch: u64,
    pub(crate) next_group: u64,
    /// The last segment, and its end.
    pub(crate) last: Option<(u64, u64)>,
}

/// Errors of appending a group.
pub(crate) enum AppendError {
    /// No space is left, and the log has nothing of the group.
    OutOfSpace,
    /// The state of the disk is unknown, and the log accepts nothing more.
    Unknown(io::Error),
}

impl LogFiles {
    pub(crate) fn new(
        dir: PathBuf,
        max_segment_bytes: u64,
        ballast: Arc<Ballast>,
        place: Option<Place>,
        fault: SyncFault,
    ) -> Arc<Self> {
        Arc::new(Self { dir, max_segment_bytes, state: Mutex::default(), ballast, place, fault })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Restores the state after a start: full segments, each with the first group after it, and spare segments.
    pub(crate) fn restore(&self, closed: Vec<(u64, u64)>, spares: Vec<PathBuf>) {
        let mut state = self.state.lock();
        state.closed.extend(closed);
        let used = spares.iter().filter_map(|path| {
            let number = path.file_name()?.to_str()?.strip_prefix(segment::SPARE_PREFIX)?;
            u64::from_str_radix(number, 16).ok()
        });
        state.next_spare = used.max().unwrap_or_default();
        drop(state);
        // A spare may be partially filled, so it is not reused: with holes in it, each sync would write metadata as
        // well.
        for path in spares {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, file = ?path.file_name().unwrap_or_default(), "could not remove a spare segment of the log");
            }
        }
    }

    /// The size of the groups that are not yet in the index, in bytes.
    pub(crate) fn unapplied_bytes(&self) -> u64 {
        self.state.lock().unapplied_bytes
    }

    /// Records a group that was appended, and its bulk commit.
    pub(crate) fn record_group(&self, group: u64, bytes: u64, bulk: Option<Arc<BulkCommit>>) {
        let mut state = self.state.lock();
        let carried = bulk.as_ref().map_or(0, |bulk| bulk.file_bytes());
        let bytes = bytes.saturating_add(carried);
        state.unapplied.insert(group, bytes);
        state.unapplied_bytes = state.unapplied_bytes.saturating_add(bytes);
        if let Some(bulk) = bulk {
            state.bulk.entry(group).or_default().push(bulk);
        }
    }

    /// Retires files that contain only groups up to `applied`, which the index has durably.
    pub(crate) fn retire(&self, applied: u64) -> io::Result<()> {
        self.check_place()?;
        let mut state = self.state.lock();
        let later = state.unapplied.split_off(&applied.saturating_add(1));
        let applied_bytes = state.unapplied.values().sum::<u64>();
        state.unapplied_bytes = state.unapplied_bytes.saturating_sub(applied_bytes);
        state.unapplied = later;
        let later = state.bulk.split_off(&applied.saturating_add(1));
        let done = std::mem::replace(&mut state.bulk, later);
        let mut retired = Vec::new();
        while let Some((id, next_group)) = state.closed.front().copied()
            && next_group <= applied.saturating_add(1)
        {
            state.closed.pop_front();
            retired.push(id);
        }
        drop(state);
        for bulk in done.values().flatten() {
            bulk.remove()?;
        }
        for id in retired {
            self.recycle(id)?;
        }
        Ok(())
    }

    /// Creates the next segment in advance, so that the committer does not have to.
    pub(crate) fn prepare_spare(&self, size: u64) -> io::Result<()> {
        if !self.state.lock().spares.is_empty() {
            return Ok(());
        }
        let path = self.fill_spare(size)?;
        self.state.lock().spares.push(path);
        Ok(())
    }

    /// Turns a retired segment into a spare. A segment is renamed twice, with a sync of the directory after each, so
    /// that a header is never found under the name of another segment.
    fn recycle(&self, id: u64) -> io::Result<()> {
        let old = self.dir.join(segment::name(id));
        let len = fs::metadata(&old)?.len();
        if self.state.lock().spares.len() >= MAX_SPARE_SEGMENTS || len > self.max_segment_bytes {
            return fs::remove_file(old);
        }
        let spare = self.spare_path();
        fs::rename(&old, &spare)?;
        self.sync_dir()?;
        self.state.lock().spares.push(spare);
        Ok(())
    }

    fn spare_path(&self) -> PathBuf {
        let mut state = self.state.lock();
        state.next_spare = state.next_spare.saturating_add(1);
        self.dir.join(format!("{}{:016x}", segment::SPARE_PREFIX, state.next_spare))
    }

    fn fill_spare(&self, size: u64) -> io::Result<PathBuf> {
        let path = self.spare_path();
        segment::fill(&path, size).inspect_err(|_| {
            // A partial file would only take space.
            let _ = fs::remove_file(&path);
        })?;
        Ok(path)
    }

    /// Creates a segment that is needed now, in place of ballast if necessary.
    fn new_spare(&self, size: u64) -> io::Result<PathBuf> {
        self.ballast.free_space(size);
        self.ballast.retry(is_out_of_space, || self.fill_spare(size))
    }

    /// A segment of at least `needed` bytes; a new one has `size`.
    fn acquire_spare(&self, size: u64, needed: u64) -> io::Result<PathBuf> {
        loop {
            let Some(spare) = self.state.lock().spares.pop() else { return self.new_spare(size.max(needed)) };
            if fs::metadata(&spare)?.len() >= needed {
                return Ok(spare);
            }
            fs::remove_file(spare)?;
        }
    }

    /// The size of the first segment of a new store.
    fn first_size(&self) -> u64 {
        FIRST_SEGMENT_BYTES.min(self.max_segment_bytes)
    }

    /// Fails if the files are no longer those of this store.
    fn check_place(&self) -> io::Result<()> {
        self.place.as_ref().map_or(Ok(()), Place::check).map_err(io::Error::other)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

impl Log {
    /// Starts an epoch with a new segment, durably.
    pub(crate) fn create(files: Arc<LogFiles>, start: LogStart) -> io::Result<Self> {
        let LogStart { key, epoch, next_group, last } = start;
        let (previous, previous_end) = last.unwrap_or_default();
        let header = Header { id: previous.saturating_add(1), epoch, first_group: next_group, previous, previous_end };
        let current = match Self::new_segment(&files, key, header, files.first_size(), HEADER_BYTES) {
            // A full disk may have space for a small one.
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                let size = MIN_SEGMENT_BYTES.min(files.first_size());
                Self::new_segment(&files, key, header, size, HEADER_BYTES)?
            }
            current => current?,
        };
        if last.is_some() {
            files.state.lock().closed.push_back((previous, next_group));
        }
        Ok(Self { files, key, epoch, current, next_group })
    }

    /// The number of the next group.
    pub(crate) fn next_group(&self) -> u64 {
        self.next_group
    }

    pub(crate) fn segment_size(&self) -> u64 {
        self.current.size
    }

    /// Reserves space for a group in the current segment, or starts a new one. If it fails, nothing has changed.
    pub(crate) fn reserve(&mut self, payload_bytes: u64) -> io::Result<()> {
        if self.current.has_room(payload_bytes) {
            return Ok(());
        }
        let header = Header {
            id: self.current.header.id.saturating_add(1),
            epoch: self.epoch,
            first_group: self.next_group,
            previous: self.current.header.id,
            previous_end: self.current.end,
        };
        let needed = payload_bytes.saturating_add(HEADER_BYTES.saturating_mul(2));
        let size = self.current.size.saturating_mul(2).min(self.files.max_segment_bytes);
        let next = Self::new_segment(&self.files, self.key, header, size, needed)?;
        let previous = std::mem::replace(&mut self.current, next);
        self.files.state.lock().closed.push_back((previous.header.id, self.next_group));
        Ok(())
    }

    /// Appends a group and makes it durable.
    pub(crate) fn append(&mut self, payload: &[u8]) -> Result<u64, AppendError> {
        let group = self.next_group;
        let frame = encode_frame(self.key, self.current.header.id, group, payload);
        // File systems that copy on write need space to overwrite a segment.
        match self.files.ballast.retry(is_out_of_space, || self.current.write(&frame)) {
            Err(error) if is_out_of_space(&error) => {
                self.current.revoke(&frame).map_err(AppendError::Unknown)?;
                return Err(AppendError::OutOfSpace);
            }
            written => written.map_err(AppendError::Unknown)?,
        }
        self.current.sync(&frame, &self.files.fault).map_err(AppendError::Unknown)?;
        self.next_group = group.saturating_add(1);
        Ok(group)
    }

    fn new_segment(files: &LogFiles, key: LogKey, header: Header, size: u64, needed: u64) -> io::Result<Segment> {
        files.check_place()?;
        let spare = files.acquire_spare(size, needed)?;
        let segment = Segment::create(&spare, key, header)?;
        fs::rename(&spare, files.dir.join(segment::name(header.id)))?;
        // If this fails, the directory may refer to the segment, so the error must not look like a lack of space.
        files.sync_dir().map_err(io::Error::other)?;
        Ok(segment)
    }
}
