//! Removing what killed writers left.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, unlinkat},
};
use zarrd_store::StoreError;

use super::{
    directories,
    tree::{Contents, File, Visitor, walk},
};
use crate::{attributes::Kind, inner::Inner, names::is_own_temporary, writer::Writer};

/// The time after its last write after which a temporary file of another process is taken for one that was left: another
/// server may write into a directory below, or above, this one.
const AGE: Duration = Duration::from_secs(3600);

struct Sweep<'s> {
    inner: &'s Arc<Inner>,
    writer: &'s Writer,
    removed: u64,
}

/// Removes the temporary files of other processes that were not written for an hour, until the store is closed. Blocks.
pub(crate) fn sweep_leftovers(inner: &Arc<Inner>) {
    let Ok(writer) = inner.writer() else { return };
    let mut sweep = Sweep { inner, writer, removed: 0 };
    let result = walk(inner, writer, "", &mut sweep);
    let removed = sweep.removed;
    if removed > 0 {
        tracing::info!(removed, "removed temporary files that interrupted writes had left");
    }
    if let Err(error) = result {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(
            error,
            "could not look for temporary files that interrupted writes had left; the next start retries"
        );
    }
}

impl Visitor for Sweep<'_> {
    /// True if nothing else uses the store.
    fn is_stopped(&self) -> bool {
        Arc::strong_count(self.inner) == 1
    }

    fn visit(&mut self, directory: &OwnedFd, _: &str, file: File<'_>) -> Result<bool, StoreError> {
        if file.kind != Kind::Regular || !is_own_temporary(file.name) || self.writer.has_temporary(file.name) {
            return Ok(false);
        }
        let Ok(found) = self.inner.root.attributes_unfollowed(directory, file.name, AtFlags::empty()) else {
            return Ok(false);
        };
        let age = SystemTime::now().duration_since(found.modified.system()).unwrap_or_default();
        let is_removed = age >= AGE && unlinkat(directory, file.name, AtFlags::empty()).is_ok();
        self.removed = self.removed.saturating_add(u64::from(is_removed));
        Ok(is_removed)
    }

    /// Removes the directory if nothing but temporary files was in it.
    fn leave(&mut self, path: &str, contents: Contents) -> Result<bool, StoreError> {
        let Some(path) = path.strip_suffix('/').filter(|_| contents == Contents::Changed) else { return Ok(false) };
        Ok(directories::remove(self.inner, self.writer, path))
    }
}
