//! Preparing large commits on the threads of their callers.

use zarrd_store::{Attributes, StoreError};

use super::inner::StoreInner;
use crate::{
    commit::{Action, Bulk, PlainChange, VisibleState, check_changes, check_preconditions, key_order},
    log::{BulkWriter, PreparedBulk},
    record::{Location, now_millis},
};

/// Checks a large commit and writes it to its file. Blocks.
pub(super) fn prepare(inner: &StoreInner, mut changes: Vec<PlainChange>) -> Result<Bulk, StoreError> {
    // Check before writing, so that a commit that fails costs little, and after it, so that the committer has little to
    // check.
    {
        let (view, _gate) = inner.views.stable()?;
        check_preconditions(&changes, &VisibleState(&view), inner.store_id())?;
    }
    let order = key_order(&changes);
    let prepared = write(inner, &mut changes, &order)?;
    let watcher = inner.recent.watch(|| inner.views.visible());
    let (view, _gate) = inner.views.stable()?;
    let current = check_changes(&changes, &VisibleState(&view), inner.store_id())?;
    Ok(Bulk::new(changes, current, prepared, order, watcher))
}

/// Writes the changes of keys in this order. Values that are not staged are in the file only from then on.
fn write(inner: &StoreInner, changes: &mut [PlainChange], order: &[u32]) -> Result<PreparedBulk, StoreError> {
    let bytes = changes.iter().map(|change| match change {
        PlainChange::Key { action: Action::Set(value, _), .. } => value.size().min(8192).saturating_add(64),
        PlainChange::Key { action: Action::Put(value), .. } => (value.len() as u64).saturating_add(64),
        PlainChange::Key { action: Action::Erase, .. } => 64,
        _ => 0,
    });
    let bytes = bytes.fold(0, u64::saturating_add);
    let is_set =
        |change: &PlainChange| matches!(change, PlainChange::Key { action: Action::Set(..) | Action::Put(_), .. });
    if changes.iter().any(is_set) {
        inner.check_space(bytes)?;
        return write_file(inner, changes, order);
    }
    // Erasing frees space, so it may use the ballast.
    inner.ballast.free_space(bytes);
    let is_out_of_space = |error: &StoreError| matches!(error, StoreError::OutOfSpace);
    inner.ballast.retry(is_out_of_space, || write_file(inner, changes, order))
}

fn write_file(inner: &StoreInner, changes: &mut [PlainChange], order: &[u32]) -> Result<PreparedBulk, StoreError> {
    let io = |error| StoreError::io("write the file of a large commit", error);
    let id = inner.next_file_id().0;
    let is_entry = |change: &&PlainChange| {
        matches!(change, PlainChange::Key { action: Action::Set(..) | Action::Put(_) | Action::Erase, .. })
    };
    let entries = changes.iter().filter(is_entry).count();
    let mut writer = BulkWriter::create(&inner.log_files, inner.log_key, id, entries).map_err(io)?;
    let modified = now_millis();
    for index in order {
        let Some(PlainChange::Key { key, action, .. }) = changes.get_mut(*index as usize) else { continue };
        let value = match action {
            Action::Set(value, attributes) => Some((value.location()?, attributes.clone())),
            Action::Put(value) => Some((Location::Inline(std::mem::take(value)), Attributes::NONE)),
            Action::Erase => None,
            Action::Written | Action::Check => continue,
        };
        writer.push(key, modified, value.as_ref()).map_err(io)?;
        if matches!(action, Action::Put(_)) {
            *action = Action::Written;
        }
    }
    writer.finish(&inner.log_files).map_err(io)
}
