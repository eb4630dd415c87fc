//! Bringing what the log has into memory.

use std::{collections::HashSet, fs, sync::Arc};

use crate::{
    OpenError,
    keys::LogKey,
    log::{BulkCommit, LogFiles, Operation, PreparedBulk, Replayed, replay::ReplayedRound},
    view::Memtable,
};

/// The rounds that the index does not have yet, as a memtable; and hands the log's files over to their owner. Removes files of
/// bulk commits that no such round names.
pub(super) fn replay_into(
    files: &LogFiles,
    key: LogKey,
    replayed: Replayed,
    applied: u64,
) -> Result<Memtable, OpenError> {
    let memtable = Memtable::default();
    let mut named = HashSet::new();
    for round in replayed.rounds.iter().filter(|round| round.round > applied) {
        let bulk = insert_round(files, key, round, &memtable)?;
        if let Some(bulk) = &bulk {
            named.insert(bulk.path().to_owned());
        }
        files.note_round(round.round, round.bytes, bulk);
    }
    for path in replayed.bulk.iter().filter(|path| !named.contains(*path)) {
        fs::remove_file(path).map_err(OpenError::io("remove", path))?;
    }
    files.adopt(replayed.closed, replayed.spares);
    Ok(memtable)
}

/// The same for a store that is only read.
pub(super) fn replay_read_only(
    files: &LogFiles,
    key: LogKey,
    replayed: &Replayed,
    applied: u64,
) -> Result<Memtable, OpenError> {
    let memtable = Memtable::default();
    for round in replayed.rounds.iter().filter(|round| round.round > applied) {
        insert_round(files, key, round, &memtable)?;
    }
    Ok(memtable)
}

fn insert_round(
    files: &LogFiles,
    key: LogKey,
    round: &ReplayedRound,
    memtable: &Memtable,
) -> Result<Option<Arc<BulkCommit>>, OpenError> {
    let bulk = round.operations.iter().find_map(|operation| match operation {
        Operation::Bulk { id, number, entries, checksum } => Some(
            PreparedBulk::read(files.dir(), key, *id, *entries, *checksum).map(|bulk| Arc::new(bulk.numbered(*number))),
        ),
        Operation::Set { .. } | Operation::Erase { .. } => None,
        Operation::ErasePrefix { .. } | Operation::Intent { .. } => None,
    });
    let bulk = bulk.transpose()?;
    memtable.insert_operations(&round.operations, bulk.as_ref());
    memtable.finish_round(round.round);
    Ok(bulk)
}
