//! Erasing a value.

use std::sync::Arc;

use rustix::{
    fs::{AtFlags, unlinkat},
    io::Errno,
};
use zarrd_store::{Key, Precondition, StoreError, Version};

use super::{
    directories::{self, split},
    entry::{self, Entry, read_entry, settled},
    parent::Parent,
};
use crate::{
    error::{Failure, change_error, undurable_error},
    faults::Call,
    inner::Inner,
    names::is_visible,
    writer::Writer,
};

/// The action that fails if a value cannot be erased.
pub(super) const ACTION: &str = "erase a value";

/// The action that fails if an erase may not be durable.
const SYNC: &str = "make an erase durable";

/// Erases a value, and the directories that are empty then. Returns true if the key had one.
pub(crate) async fn erase(inner: &Arc<Inner>, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
    inner.writer()?;
    if !is_visible(key.as_str()) || key.is_hidden() {
        return entry::check(&precondition, key, Entry::Absent).map(|()| false);
    }
    let settled = settled(inner, key, &precondition).await?;
    let key = key.clone();
    inner.run(move |inner| erase_now(inner, &key, &precondition, settled)).await
}

fn erase_now(
    inner: &Inner,
    key: &Key,
    precondition: &Precondition,
    settled: Option<Version>,
) -> Result<bool, StoreError> {
    let failed = |failure| change_error(ACTION, key.as_str(), failure);
    let writer = inner.writer()?;
    let parent = {
        let _turn = writer.lock(key);
        writer.check(&inner.root).map_err(failed)?;
        let Some(parent) = Parent::open(inner, writer, key)? else {
            return entry::check(precondition, key, Entry::Absent).map(|()| false);
        };
        let found = read_entry(inner, writer, (key, &parent), settled)?;
        entry::check(precondition, key, found)?;
        if found.version().is_none() || !remove(inner, key, &parent).map_err(failed)? {
            return Ok(false);
        }
        parent
    };
    clean_up(inner, writer, &parent.path).map_err(|failure| undurable_error(SYNC, key, failure))?;
    Ok(true)
}

/// Removes the file of a key; false if it is missing by now.
fn remove(inner: &Inner, key: &Key, parent: &Parent) -> Result<bool, Failure> {
    let (_, name) = split(key.as_str());
    let name = &*inner.root.faults.spelling(&parent.file, name);
    match inner.root.faults.call(Call::RemoveFile).and_then(|()| unlinkat(&parent.file, name, AtFlags::empty())) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a directory from which something was removed, if it is empty, and those above it, and makes that durable.
pub(super) fn clean_up(inner: &Inner, writer: &Writer, path: &str) -> Result<(), Failure> {
    let left = directories::remove_empty(inner, writer, path);
    directories::sync(inner, writer, left)?;
    writer.check(&inner.root)
}
