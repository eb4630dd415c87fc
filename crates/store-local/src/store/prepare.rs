//! Preparing large commits on the threads of their callers.

use store::StoreError;

use super::core::Core;
use crate::{
    commit::{Action, Bulk, Current, PlainChange, Visible, judge},
    log::{BulkWriter, PreparedBulk},
    record::now_millis,
};

/// Judges a large commit and writes it to its file. Blocks.
pub(super) fn prepare(core: &Core, changes: Vec<PlainChange>) -> Result<Bulk, StoreError> {
    // Before the file is written, so that what cannot be committed costs little, and after it, so that the committer has
    // little to judge again.
    judge_visible(core, &changes)?;
    let prepared = write(core, &changes)?;
    let watcher = core.recent.watch(|| core.views.visible());
    let current = judge_visible(core, &changes)?;
    Ok(Bulk::new(changes, current, prepared, watcher))
}

fn judge_visible(core: &Core, changes: &[PlainChange]) -> Result<Vec<Option<Current>>, StoreError> {
    let (view, _gate) = core.views.stable()?;
    judge(changes, &Visible(&view), core.store_id())
}

fn write(core: &Core, changes: &[PlainChange]) -> Result<PreparedBulk, StoreError> {
    let sorted = changes.iter().filter_map(|change| match change {
        PlainChange::Key { key, action: Action::Set(value), .. } => Some((key, Some(value))),
        PlainChange::Key { key, action: Action::Erase, .. } => Some((key, None)),
        PlainChange::Key { action: Action::Check, .. } | PlainChange::ErasePrefix(_) => None,
        PlainChange::CheckEmpty(_) | PlainChange::Intent { .. } => None,
    });
    let mut sorted: Vec<_> = sorted.collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    let bytes = sorted.iter().map(|(_, value)| value.map_or(0, |value| value.size().min(8192)).saturating_add(64));
    core.check_space(bytes.fold(0, u64::saturating_add))?;
    let io = |error| StoreError::io("write the file of a large commit", error);
    let mut writer = BulkWriter::create(&core.log_files, core.log_key, core.next_file_id().0).map_err(io)?;
    let modified = now_millis();
    for (key, value) in sorted {
        let location = value.map(|value| value.location()).transpose()?;
        writer.push(key, modified, location.as_ref()).map_err(io)?;
    }
    writer.finish(&core.log_files).map_err(io)
}
