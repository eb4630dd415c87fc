//! Preparing large commits on the threads of their callers.

use store::StoreError;

use super::inner::StoreInner;
use crate::{
    commit::{Action, Bulk, KeyState, PlainChange, VisibleState, check_changes},
    log::{BulkWriter, PreparedBulk},
    record::now_millis,
};

/// Checks a large commit and writes it to its file. Blocks.
pub(super) fn prepare(inner: &StoreInner, changes: Vec<PlainChange>) -> Result<Bulk, StoreError> {
    // Check before writing, so that a commit that fails costs little, and after it, so that the committer has little to
    // check.
    check_visible(inner, &changes)?;
    let prepared = write(inner, &changes)?;
    let watcher = inner.recent.watch(|| inner.views.visible());
    let current = check_visible(inner, &changes)?;
    Ok(Bulk::new(changes, current, prepared, watcher))
}

fn check_visible(inner: &StoreInner, changes: &[PlainChange]) -> Result<Vec<Option<KeyState>>, StoreError> {
    let (view, _gate) = inner.views.stable()?;
    check_changes(changes, &VisibleState(&view), inner.store_id())
}

fn write(inner: &StoreInner, changes: &[PlainChange]) -> Result<PreparedBulk, StoreError> {
    let sorted = changes.iter().filter_map(|change| match change {
        PlainChange::Key { key, action: Action::Set(value), .. } => Some((key, Some(value))),
        PlainChange::Key { key, action: Action::Erase, .. } => Some((key, None)),
        PlainChange::Key { action: Action::Check, .. } | PlainChange::ErasePrefix(_) => None,
        PlainChange::CheckEmpty(_) | PlainChange::Intent { .. } => None,
    });
    let mut sorted: Vec<_> = sorted.collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    let bytes = sorted.iter().map(|(_, value)| value.map_or(0, |value| value.size().min(8192)).saturating_add(64));
    inner.check_space(bytes.fold(0, u64::saturating_add))?;
    let io = |error| StoreError::io("write the file of a large commit", error);
    let mut writer = BulkWriter::create(&inner.log_files, inner.log_key, inner.next_file_id().0).map_err(io)?;
    let modified = now_millis();
    for (key, value) in sorted {
        let location = value.map(|value| value.location()).transpose()?;
        writer.push(key, modified, location.as_ref()).map_err(io)?;
    }
    writer.finish(&inner.log_files).map_err(io)
}
