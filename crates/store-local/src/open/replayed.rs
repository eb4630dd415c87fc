//! Loading the log into a memtable.

use std::{collections::HashSet, fs, sync::Arc};

use crate::{
    OpenError,
    log::{BulkCommit, LogFiles, Operation, PreparedBulk, Replayed, replay::ReplayedGroup},
    log_key::LogKey,
    view::Memtable,
};

/// Loads the groups that are not yet in the index into a memtable, and registers the log's files. Removes files of bulk
/// commits that no such group refers to.
pub(super) fn replay_into(
    files: &LogFiles,
    key: LogKey,
    replayed: Replayed,
    applied: u64,
) -> Result<Memtable, OpenError> {
    let memtable = Memtable::default();
    let mut named = HashSet::new();
    for group in replayed.groups.iter().filter(|group| group.group > applied) {
        let bulk = insert_group(files, key, group, &memtable)?;
        if let Some(bulk) = &bulk {
            named.insert(bulk.path().to_owned());
        }
        files.record_group(group.group, group.bytes, bulk);
    }
    for path in replayed.bulk.iter().filter(|path| !named.contains(*path)) {
        fs::remove_file(path).map_err(OpenError::io("remove", path))?;
    }
    files.restore(replayed.closed, replayed.spares);
    Ok(memtable)
}

/// Loads the groups of a store that is opened read-only.
pub(super) fn replay_read_only(
    files: &LogFiles,
    key: LogKey,
    replayed: &Replayed,
    applied: u64,
) -> Result<Memtable, OpenError> {
    let memtable = Memtable::default();
    for group in replayed.groups.iter().filter(|group| group.group > applied) {
        insert_group(files, key, group, &memtable)?;
    }
    Ok(memtable)
}

fn insert_group(
    files: &LogFiles,
    key: LogKey,
    group: &ReplayedGroup,
    memtable: &Memtable,
) -> Result<Option<Arc<BulkCommit>>, OpenError> {
    let bulk = group.operations.iter().find_map(|operation| match operation {
        Operation::Bulk { id, number, entries, checksum } => Some(
            PreparedBulk::read(files.dir(), key, *id, *entries, *checksum)
                .map(|bulk| Arc::new(bulk.with_number(*number))),
        ),
        Operation::Set { .. } | Operation::Erase { .. } => None,
        Operation::ErasePrefix { .. } | Operation::Intent { .. } => None,
    });
    let bulk = bulk.transpose()?;
    memtable.insert_operations(&group.operations, bulk.as_ref());
    memtable.finish_group(group.group);
    Ok(bulk)
}
