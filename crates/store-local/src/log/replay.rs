//! Reading the log when a store is opened.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    frame::{Operation, decode_frame, decode_payload, is_frame_start},
    segment::{HEADER_BYTES, Header, SPARE_PREFIX, id_of, name},
};
use crate::{FileCorruption, OpenError, log_key::LogKey, regular_file};

/// The content of a log.
pub(crate) struct Replayed {
    pub(crate) groups: Vec<ReplayedGroup>,
    /// The group that its first segment begins with.
    pub(crate) first_group: u64,
    pub(crate) next_group: u64,
    /// The latest epoch.
    pub(crate) epoch: u64,
    /// Segments before the last, each with the first group after it.
    pub(crate) closed: Vec<(u64, u64)>,
    /// The last segment and its end.
    pub(crate) last: (u64, u64),
    pub(crate) spares: Vec<PathBuf>,
    /// The files of bulk commits, including those that no group refers to.
    pub(crate) bulk: Vec<PathBuf>,
}

/// A group that was read back.
pub(crate) struct ReplayedGroup {
    pub(crate) group: u64,
    pub(crate) operations: Vec<Operation>,
    pub(crate) bytes: u64,
}

/// The file of a segment.
struct SegmentFile {
    path: PathBuf,
    header: Header,
    bytes: Bytes,
}

/// Reads all segments in a directory. A torn frame at the end is ignored; any other invalid frame is corruption.
pub(crate) fn replay(dir: &Path, key: LogKey) -> Result<Replayed, OpenError> {
    let (ids, spares, bulk) = list(dir)?;
    let mut replayed = Replayed {
        groups: Vec::new(),
        first_group: 0,
        next_group: 0,
        epoch: 0,
        closed: Vec::new(),
        last: (0, 0),
        spares,
        bulk,
    };
    let mut ids = ids.into_iter();
    let mut current = match ids.next() {
        Some(id) => read_segment(dir, id, key)?,
        None => return Err(OpenError::corrupt(dir.join(name(1)), FileCorruption::Missing)),
    };
    replayed.first_group = current.header.first_group;
    replayed.next_group = current.header.first_group;
    for id in ids {
        let next = read_segment(dir, id, key)?;
        if next.header.previous != current.header.id {
            return Err(OpenError::corrupt(dir.join(name(next.header.previous)), FileCorruption::Missing));
        }
        let end = read_frames(&current, key, &mut replayed, Some(next.header.previous_end))?;
        if end != next.header.previous_end || next.header.first_group != replayed.next_group {
            return Err(OpenError::corrupt(current.path, FileCorruption::CorruptFrame { offset: end }));
        }
        replayed.closed.push((current.header.id, replayed.next_group));
        current = next;
    }
    let end = read_frames(&current, key, &mut replayed, None)?;
    replayed.last = (current.header.id, end);
    replayed.epoch = current.header.epoch;
    Ok(replayed)
}

/// Rewrites the last segment's frames durably. Pages that a failed sync dropped look clean, and another sync would not
/// write them.
pub(crate) fn rewrite_tail(dir: &Path, (id, end): (u64, u64)) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(dir.join(name(id)))?;
    let mut bytes = vec![0; usize::try_from(end).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, 0)?;
    file.write_all_at(&bytes, 0)?;
    file.sync_all()
}

type LogDirectory = (Vec<u64>, Vec<PathBuf>, Vec<PathBuf>);

fn list(dir: &Path) -> Result<LogDirectory, OpenError> {
    let (mut ids, mut spares, mut bulk) = (Vec::new(), Vec::new(), Vec::new());
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::corrupt(dir, FileCorruption::Missing));
        }
        entries => entries.map_err(OpenError::io("list", dir))?,
    };
    for entry in entries {
        let entry = entry.map_err(OpenError::io("list", dir))?;
        let file_name = entry.file_name().to_string_lossy().into_owned();
        if let Some(id) = id_of(&file_name) {
            ids.push(id);
        } else if file_name.starts_with(SPARE_PREFIX) {
            spares.push(entry.path());
        } else if file_name.ends_with(".bulk") {
            bulk.push(entry.path());
        }
    }
    ids.sort_unstable();
    Ok((ids, spares, bulk))
}

fn read_segment(dir: &Path, id: u64, key: LogKey) -> Result<SegmentFile, OpenError> {
    let path = dir.join(name(id));
    let bytes = Bytes::from(regular_file::read_all(&path).map_err(OpenError::io("read", &path))?);
    let Some(header) = Header::decode(&bytes, key).filter(|header| header.id == id) else {
        return Err(OpenError::corrupt(path, FileCorruption::CorruptFrame { offset: 0 }));
    };
    let found = bytes.len() as u64;
    // What is missing may have been frames of acknowledged commits: their end looks like that of the log.
    match header.size_of(&bytes, key) {
        Some(expected) if found < expected => {
            Err(OpenError::corrupt(path, FileCorruption::CutShort { found, expected }))
        }
        _ => Ok(SegmentFile { path, header, bytes }),
    }
}

/// Reads the frames of a segment, up to `end` if it is known. Returns where they end.
fn read_frames(segment: &SegmentFile, key: LogKey, into: &mut Replayed, end: Option<u64>) -> Result<u64, OpenError> {
    let id = segment.header.id;
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(segment.bytes.len());
    let mut offset = HEADER_BYTES;
    while end.is_none_or(|end| offset < end) {
        let frame = decode_frame(key, id, &segment.bytes.slice(at(offset)..));
        let Some((group, payload, len)) = frame.filter(|(group, ..)| *group == into.next_group) else { break };
        let bytes = payload.len() as u64;
        let Some(operations) = decode_payload(payload) else {
            return Err(OpenError::corrupt(&segment.path, FileCorruption::CorruptFrame { offset }));
        };
        into.groups.push(ReplayedGroup { group, operations, bytes });
        into.next_group = group.saturating_add(1);
        offset = offset.saturating_add(len as u64);
    }
    // Frames are only written after their predecessors are synced, so a valid frame behind an invalid one was
    // acknowledged.
    let later = (at(offset)..segment.bytes.len()).step_by(8).skip(1);
    let later = later.filter(|position| segment.bytes.get(*position..).is_some_and(is_frame_start));
    let mut later = later.filter_map(|position| decode_frame(key, id, &segment.bytes.slice(position..)));
    if end.is_none() && later.any(|(group, ..)| group >= into.next_group) {
        return Err(OpenError::corrupt(&segment.path, FileCorruption::CorruptFrame { offset }));
    }
    Ok(offset)
}
