//! The log, as far as it can be read.
//!
//! Each frame has a checksum that binds it to its segment and store, so frames are found behind damaged ones too. Groups
//! are numbered without gaps, so that a missing one is noticed, except at the end of the log. There, the rest of a frame is
//! of a commit that a crash interrupted, or of a damaged one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::Arc,
};

use bytes::Bytes;

use crate::{
    index_pages::read_part,
    log::{BulkCommit, Operation, PreparedBulk, ScannedSegment, scan_segment, segment_id},
    log_key::LogKey,
    regular_file,
};

/// The largest segment that is read: many times what one can have.
const MAX_SEGMENT_BYTES: u64 = 8 << 30;

/// The groups of a log, as far as they can be read.
#[derive(Default)]
pub(super) struct LogScan {
    pub(super) groups: BTreeMap<u64, Vec<LoggedChange>>,
    /// Groups that are damaged, or whose large commit is.
    pub(super) damaged: BTreeSet<u64>,
    /// True if the log begins with the first group of the store.
    pub(super) from_start: bool,
    /// The last group before one that a segment begins with.
    before_segments: u64,
    /// The latest epoch.
    pub(super) epoch: u64,
    /// True if there may be groups behind the last one.
    pub(super) open_end: bool,
    /// What is damaged, in words.
    pub(super) damage: Vec<String>,
    /// The damaged files of large commits, by their groups. A file is removed when the index has its group.
    pub(super) damaged_commits: Vec<(u64, String)>,
}

/// A change in a log.
pub(super) enum LoggedChange {
    Operation(Operation),
    Bulk(Arc<BulkCommit>),
}

/// Reads all segments of a log.
pub(super) fn scan(dir: &Path, key: LogKey) -> LogScan {
    let mut scan = LogScan::default();
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            scan.open_end = true;
            scan.damage.push(format!("log: {error}"));
            return scan;
        }
    };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut ids: Vec<u64> = names.filter_map(|name| segment_id(&name)).collect();
    ids.sort_unstable();
    scan.open_end = ids.is_empty();
    let last = ids.last().copied();
    let mut previous = None;
    for id in ids {
        if let Some(previous) = previous.filter(|previous: &u64| previous.saturating_add(1) != id) {
            scan.damage.push(format!("log: the segments between {previous} and {id} are missing"));
        }
        previous = Some(id);
        scan.add_segment(dir, key, id, last == Some(id));
    }
    scan
}

impl LogScan {
    /// The last group that is known.
    pub(super) fn last_group(&self) -> u64 {
        let groups = self.groups.keys().next_back().into_iter().chain(self.damaged.last());
        groups.copied().max().unwrap_or_default().max(self.before_segments)
    }

    /// The groups after one, up to the last, that cannot be read.
    pub(super) fn missing_after(&self, applied: u64) -> Option<(u64, u64)> {
        let last = self.last_group();
        let mut wanted = applied.saturating_add(1);
        let mut missing: Option<(u64, u64)> = None;
        let mut note = |from: u64, to: u64| {
            missing = Some(missing.map_or((from, to), |(first, _)| (first, to)));
        };
        for group in self.groups.range(wanted..).map(|(group, _)| *group) {
            if group > wanted {
                note(wanted, group.saturating_sub(1));
            }
            if self.damaged.contains(&group) {
                note(group, group);
            }
            wanted = group.saturating_add(1);
        }
        if wanted <= last {
            note(wanted, last);
        }
        missing
    }

    fn add_segment(&mut self, dir: &Path, key: LogKey, id: u64, is_last: bool) {
        let path = dir.join(crate::log::segment_name(id));
        let read = regular_file::open(&path).and_then(|file| {
            let len = file.metadata()?.len();
            if len > MAX_SEGMENT_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(read_part(&file, 0, usize::try_from(len).unwrap_or(usize::MAX)))
        });
        let part = match read {
            Ok(part) => part,
            Err(error) => {
                self.open_end |= is_last;
                self.damage.push(format!("log/{}: {error}", crate::log::segment_name(id)));
                return;
            }
        };
        let is_unreadable = part.error.is_some();
        let ScannedSegment { header, cut_short, frames, damaged, torn } =
            scan_segment(key, id, Bytes::from(part.bytes));
        if let Some((epoch, first_group)) = header {
            self.epoch = self.epoch.max(epoch);
            // A store is created with the first segment, and first opened with the second one. That of a store that was
            // upgraded from the format without a log begins in a later epoch.
            self.from_start |= first_group == 1 && matches!((id, epoch), (1, 0) | (2, 1));
            self.before_segments = self.before_segments.max(first_group.saturating_sub(1));
        }
        if is_last && (header.is_none() || cut_short || is_unreadable || torn) {
            self.open_end = true;
        }
        if is_last && torn {
            let segment = crate::log::segment_name(id);
            self.damage.push(format!("log/{segment}: its last commit is not whole, and may have been acknowledged"));
        }
        if header.is_none() || cut_short || is_unreadable || damaged {
            let what = match (header.is_none(), cut_short) {
                (true, _) => "its header is damaged",
                (false, true) => "cut short",
                (false, false) => "a part of it is damaged",
            };
            self.damage.push(format!("log/{}: {what}", crate::log::segment_name(id)));
        }
        for (group, operations) in frames {
            self.add_group(dir, key, group, operations);
        }
    }

    fn add_group(&mut self, dir: &Path, key: LogKey, group: u64, operations: Vec<Operation>) {
        let mut changes = Vec::with_capacity(operations.len());
        for operation in operations {
            let Operation::Bulk { id, number, entries, checksum } = operation else {
                changes.push(LoggedChange::Operation(operation));
                continue;
            };
            match PreparedBulk::read(dir, key, id, entries, checksum) {
                Ok(bulk) => changes.push(LoggedChange::Bulk(Arc::new(bulk.with_number(number)))),
                Err(_) => {
                    self.damaged.insert(group);
                    self.damaged_commits.push((group, format!("log/{id:016x}.bulk: it is damaged or missing")));
                }
            }
        }
        self.groups.insert(group, changes);
    }
}
