//! Opening a store for writing.

use std::sync::Arc;

use rustix::fs::{StatVfsMountFlags, fstatvfs};
use zarrd_store::StoreError;

use super::{spool::Spool, sweep::sweep_leftovers};
use crate::{error::change_error, inner::Inner};

/// Fails if nothing can be written into the directory of a store, and starts to remove what killed writers left there. A
/// full file system is no failure: something may be erased. Blocks.
pub(crate) fn start(inner: &Arc<Inner>) -> Result<(), StoreError> {
    match Spool::probe(inner) {
        Err(StoreError::OutOfSpace) => tracing::warn!("the file system of a directory that is written into is full"),
        probed => probed?,
    }
    let inner = Arc::clone(inner);
    drop(zarrd_executor::spawn_blocking(move || sweep_leftovers(&inner)));
    Ok(())
}

/// Succeeds if files can be made at the moment, as far as the file system says. Blocks.
pub(crate) fn check_writable(inner: &Inner) -> Result<(), StoreError> {
    let failed = |failure| change_error("inspect the directory of the store", "", failure);
    let writer = inner.writer()?;
    writer.check(&inner.root).map_err(failed)?;
    let found = fstatvfs(&writer.folder.file).map_err(|error| failed(error.into()))?;
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(StoreError::ReadOnly);
    }
    // A file system without a fixed number of inodes has none.
    let is_full = found.f_bavail == 0 || (found.f_files > 0 && found.f_favail == 0);
    if is_full { Err(StoreError::OutOfSpace) } else { Ok(()) }
}
