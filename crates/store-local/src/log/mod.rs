//! The log: where commits become durable.
//!
//! ```text
//! log/<id>.log     a segment: a header of 4 KiB, then frames
//! log/<id>.bulk    what one large commit carries, written and synced before the frame that names it
//! log/spare-<id>   a segment that is not used yet, or no more
//! ```
//!
//! A **round** is the commits that one sync makes durable; it is one frame, with a checksum over all of it. Segments are
//! filled with zeros, or used again, before frames are written into them: then a sync of a frame writes data only and no
//! metadata of the file system. The next frame is written only after the last one was synced, so at most one frame is torn, at
//! the end of the newest segment; anything else that does not read is damage, and refused.
//!
//! Each start begins a new segment, whose header says where the one before it ends: a torn frame there stays behind that end
//! for good. A segment is retired when the index durably has all of its rounds.

mod bulk;
mod bytes_reader;
mod frame;
pub(crate) mod replay;
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
};
use self::{
    frame::encode_frame,
    segment::{HEADER_BYTES, Header, Segment},
};
use crate::{faults::SyncFault, log_key::LogKey, space::Ballast};

/// The size of a new store's first segment, in bytes; later ones double up to the limit.
pub(crate) const FIRST_SEGMENT_BYTES: u64 = 1 << 20;
/// The size of a start's first segment if there is no space for one of the usual size.
const MIN_SEGMENT_BYTES: u64 = 64 << 10;
/// The most segments that wait to be used again.
const MAX_SPARE_SEGMENTS: usize = 4;

/// The end of the log, which frames are appended to. Used by the committer only.
pub(crate) struct Log {
    files: Arc<LogFiles>,
    key: LogKey,
    epoch: u64,
    current: Segment,
    next_group: u64,
}

/// The log's files, which the committer makes and the checkpointer retires.
pub(crate) struct LogFiles {
    dir: PathBuf,
    max_segment_bytes: u64,
    state: Mutex<State>,
    ballast: Arc<Ballast>,
    fault: SyncFault,
}

#[derive(Default)]
struct State {
    /// Segments that are full, with the first round after each.
    closed: VecDeque<(u64, u64)>,
    spares: Vec<PathBuf>,
    next_spare: u64,
    /// Files of bulk commits, by the round that names them.
    bulk: BTreeMap<u64, Vec<Arc<BulkCommit>>>,
    /// The bytes of each round that the index does not have yet.
    unapplied: BTreeMap<u64, u64>,
    unapplied_bytes: u64,
}

/// The point at which a log goes on.
pub(crate) struct LogStart {
    pub(crate) key: LogKey,
    pub(crate) epoch: u64,
    pub(crate) next_group: u64,
    /// The last segment, and where it ends.
    pub(crate) last: Option<(u64, u64)>,
}

impl LogFiles {
    pub(crate) fn new(dir: PathBuf, max_segment_bytes: u64, ballast: Arc<Ballast>, fault: SyncFault) -> Arc<Self> {
        Arc::new(Self { dir, max_segment_bytes, state: Mutex::default(), ballast, fault })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes over what a start found: full segments, with the first round after each, and segments that wait to be used.
    pub(crate) fn restore(&self, closed: Vec<(u64, u64)>, spares: Vec<PathBuf>) {
        let mut state = self.state.lock();
        state.closed.extend(closed);
        let used = spares.iter().filter_map(|path| {
            let number = path.file_name()?.to_str()?.strip_prefix(segment::SPARE_PREFIX)?;
            u64::from_str_radix(number, 16).ok()
        });
        state.next_spare = used.max().unwrap_or_default();
        drop(state);
        // A spare may be half filled, so it is not used: with holes in it, each sync would have to write metadata too.
        for path in spares {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(%error, path = %path.display(), "could not remove an unused segment of the log");
            }
        }
    }

    /// The bytes that the log has and the index does not have yet.
    pub(crate) fn unapplied_bytes(&self) -> u64 {
        self.state.lock().unapplied_bytes
    }

    /// Notes a round that the log has, and what it carries outside of its frame.
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

    /// Lets go of what holds only rounds up to `applied`, which the index durably has.
    pub(crate) fn retire(&self, applied: u64) -> io::Result<()> {
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

    /// Makes the segment that will be needed next, so that the committer does not have to.
    pub(crate) fn prepare_spare(&self, size: u64) -> io::Result<()> {
        if !self.state.lock().spares.is_empty() {
            return Ok(());
        }
        let path = self.new_spare(size)?;
        self.state.lock().spares.push(path);
        Ok(())
    }

    /// A segment is renamed twice, with a sync of the directory after each, so that a header never stands under another
    /// segment's name.
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

    fn new_spare(&self, size: u64) -> io::Result<PathBuf> {
        let path = self.spare_path();
        self.ballast.free_space(size);
        segment::fill(&path, size).inspect_err(|_| {
            // What is left of it would only take space.
            let _ = fs::remove_file(&path);
        })?;
        Ok(path)
    }

    /// A segment that has at least `needed` bytes; one that has to be made has `size`.
    fn acquire_spare(&self, size: u64, needed: u64) -> io::Result<PathBuf> {
        loop {
            let Some(spare) = self.state.lock().spares.pop() else { return self.new_spare(size.max(needed)) };
            if fs::metadata(&spare)?.len() >= needed {
                return Ok(spare);
            }
            fs::remove_file(spare)?;
        }
    }

    /// The size of a new store's first segment.
    fn first_size(&self) -> u64 {
        FIRST_SEGMENT_BYTES.min(self.max_segment_bytes)
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

impl Log {
    /// Begins an epoch with a new segment, durably.
    pub(crate) fn create(files: Arc<LogFiles>, start: LogStart) -> io::Result<Self> {
        let LogStart { key, epoch, next_group, last } = start;
        let (previous, previous_end) = last.unwrap_or_default();
        let header = Header { id: previous.saturating_add(1), epoch, first_group: next_group, previous, previous_end };
        let current = match Self::new_segment(&files, key, header, files.first_size(), HEADER_BYTES) {
            // A full disk may have room for a small one.
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

    /// The number of the next round.
    pub(crate) fn next_group(&self) -> u64 {
        self.next_group
    }

    pub(crate) fn segment_size(&self) -> u64 {
        self.current.size
    }

    /// Makes room for a round in the current segment, beginning a new one if there is too little. Fails with nothing changed.
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

    /// Appends a round and makes it durable. After an error the log takes nothing more: it is unknown what the disk has.
    pub(crate) fn append(&mut self, payload: &[u8]) -> io::Result<u64> {
        let group = self.next_group;
        let frame = encode_frame(self.key, self.current.header.id, group, payload);
        self.current.append(&frame, &self.files.fault)?;
        self.next_group = group.saturating_add(1);
        Ok(group)
    }

    fn new_segment(files: &LogFiles, key: LogKey, header: Header, size: u64, needed: u64) -> io::Result<Segment> {
        let spare = files.acquire_spare(size, needed)?;
        let segment = Segment::create(&spare, key, header)?;
        fs::rename(&spare, files.dir.join(segment::name(header.id)))?;
        // A segment that the directory may name must be gone on with, so this must not pass for a lack of space.
        files.sync_dir().map_err(io::Error::other)?;
        Ok(segment)
    }
}
