//! Directories that are opened, made durable and removed to change what is in them.

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, fsync, unlinkat},
    io::Errno,
};

use crate::{
    error::Failure,
    faults::Call,
    inner::Inner,
    writer::{DirectoryId, Durability, Writer},
};

/// The path above a path and the last name of it; the path of the store's directory is empty.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Makes the names in a directory durable, if changes are. A directory that was removed meanwhile is no longer one above
/// it: what is left is.
pub(super) fn sync(inner: &Inner, writer: &Writer, path: &str) -> Result<(), Failure> {
    if writer.options.durability == Durability::Unsynced {
        return Ok(());
    }
    let mut path = path;
    loop {
        match inner.root.open_unfollowed(&writer.folder, path) {
            Ok(directory) => return sync_open(inner, &directory),
            Err(Failure::File(Errno::NOENT)) if !path.is_empty() => path = split(path).0,
            Err(failure) => return Err(failure),
        }
    }
}

/// Makes the names in an open directory durable.
pub(super) fn sync_open(inner: &Inner, directory: &OwnedFd) -> Result<(), Failure> {
    inner.root.faults.call(Call::SyncDirectory)?;
    match fsync(directory) {
        // The directory was removed on the server of a network file system.
        Ok(()) | Err(Errno::STALE) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes the names of the directories on a path durable that are not known to be, whichever program made them.
pub(super) fn sync_path(inner: &Inner, writer: &Writer, path: &str) -> Result<(), Failure> {
    let mut path = path;
    while !path.is_empty() {
        let (above, _) = split(path);
        let changes = writer.durable.changes(path);
        let found = identify(inner, writer, path)?;
        if !found.is_some_and(|id| writer.durable.contains(path, id)) {
            sync(inner, writer, above)?;
            if let Some(id) = found {
                writer.durable.insert(path, id, changes);
            }
        }
        path = above;
    }
    Ok(())
}

/// Identifies the directory at a path; `None` if it was removed.
fn identify(inner: &Inner, writer: &Writer, path: &str) -> Result<Option<DirectoryId>, Failure> {
    let (above, name) = split(path);
    let found = inner
        .root
        .open_unfollowed(&writer.folder, above)
        .and_then(|directory| inner.root.attributes_unfollowed(&directory, name, AtFlags::empty()));
    match found {
        Ok(found) => Ok(Some(DirectoryId::new(&found))),
        Err(Failure::File(Errno::NOENT)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Removes a directory and all above it that are empty then; the directory of the store is never removed.
/// Returns the path of the one that is left.
pub(super) fn remove_empty<'p>(inner: &Inner, writer: &Writer, path: &'p str) -> &'p str {
    let mut path = path;
    while !path.is_empty() && remove(inner, writer, path) {
        path = split(path).0;
    }
    path
}

/// Removes a directory if it is empty; false if it is left.
pub(super) fn remove(inner: &Inner, writer: &Writer, path: &str) -> bool {
    let (above, name) = split(path);
    let removed = inner.root.open_unfollowed(&writer.folder, above).and_then(|directory| {
        inner.root.faults.call(Call::RemoveDirectory)?;
        Ok(unlinkat(&directory, name, AtFlags::REMOVEDIR)?)
    });
    match removed {
        Ok(()) => {
            writer.durable.remove(path);
            true
        }
        // Another change has removed it.
        Err(Failure::File(Errno::NOENT)) => true,
        Err(_) => false,
    }
}
