//! New directories as sinks.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use futures::TryStreamExt;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use tempfile::TempDir;
use zarrd_store::{Key, Payload, StoreError, UploadError};

use super::{NameCheck, Sink, SinkError, SkipReason, TransferError};
use crate::new_file::{NewFile, blocking};

/// Maximum length of a file name on common file systems, in bytes.
const MAX_FILE_NAME_BYTES: usize = 255;

/// A new directory in which every key becomes a file.
///
/// A file is written under a temporary name and renamed when it is complete. Nothing is written outside of the
/// directory: keys have no `..` and are never absolute, and the directory contains no links, since it was empty.
pub(crate) struct DirectorySink {
    root: PathBuf,
    /// Incomplete files, on the same file system as their targets.
    partial: TempDir,
    next: AtomicU64,
}

impl DirectorySink {
    /// Creates the directory, or uses an existing one that is empty.
    pub(crate) fn create(root: &Path) -> Result<Self, TransferError> {
        let fails = |action| move |source| TransferError::Directory { action, directory: root.to_owned(), source };
        fs::create_dir_all(root).map_err(fails("create the directory"))?;
        if fs::read_dir(root).map_err(fails("list"))?.next().is_some() {
            return Err(TransferError::NotEmpty { directory: root.to_owned() });
        }
        let partial = tempfile::Builder::new().prefix(".zarrd-partial-").tempdir_in(root);
        let partial = partial.map_err(fails("write to"))?;
        Ok(Self { root: root.to_owned(), partial, next: AtomicU64::new(0) })
    }

    /// Removes incomplete files, and makes all others durable.
    pub(crate) async fn finish(self) -> Result<(), TransferError> {
        let Self { root, partial, .. } = self;
        let directory = root.clone();
        let synced = blocking(move || {
            partial.close()?;
            sync(&root)
        });
        synced.await.map_err(|source| TransferError::Directory { action: "make durable", directory, source })
    }

    /// Writes a file that is complete once it is finished.
    async fn write(&self, path: &Path, mut content: Payload) -> Result<NewFile, SinkError> {
        let mut file = NewFile::new(path.to_owned());
        let mut received: u64 = 0;
        while let Some(bytes) = content.stream.try_next().await? {
            received = received.saturating_add(bytes.len() as u64);
            file.push(bytes).await.map_err(|source| SinkError::file("write a file", source))?;
        }
        if let Some(announced) = content.size.filter(|&size| size != received) {
            return Err(StoreError::from(UploadError::LengthMismatch { announced, received }).into());
        }
        Ok(file)
    }
}

#[async_trait]
impl Sink for DirectorySink {
    fn name_check(&self) -> NameCheck<'_> {
        // Keys that may be ancestors of the next one: a sorted listing has them before all keys that begin with them.
        let mut ancestors: Vec<Key> = Vec::new();
        Box::new(move |name| {
            while ancestors.last().is_some_and(|key| !name.as_str().starts_with(key.as_str())) {
                ancestors.pop();
            }
            if name.as_str().split('/').any(|segment| segment.len() > MAX_FILE_NAME_BYTES) {
                return Err(SkipReason::SegmentTooLong { limit: MAX_FILE_NAME_BYTES });
            }
            if let Some(key) = ancestors.iter().find(|key| is_below(name, key)) {
                return Err(SkipReason::BelowKey { key: (*key).clone() });
            }
            ancestors.push(name.clone());
            Ok(())
        })
    }

    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError> {
        let partial = self.partial.path().join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let target = self.root.join(name.as_str());
        let written = match self.write(&partial, content).await {
            Ok(file) => {
                let complete = partial.clone();
                let placed = file.finish(move || move_into_place(&complete, &target)).await;
                placed.map_err(|source| SinkError::file("write a file", source))
            }
            Err(error) => Err(error),
        };
        if written.is_err() {
            // It may not exist. If this fails, the file is removed with its directory.
            let _ = blocking(move || fs::remove_file(partial)).await;
        }
        written
    }
}

fn is_below(name: &Key, key: &Key) -> bool {
    name.as_str().strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// Renames a file to its target, which must not exist. It does on file systems that do not distinguish the names of two
/// keys.
fn move_into_place(partial: &Path, target: &Path) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    match renameat_with(CWD, partial, CWD, target, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_checked(partial, target),
        renamed => Ok(renamed?),
    }
}

/// Renames a file on file systems without an atomic check; no other process writes into the directory.
fn rename_checked(partial: &Path, target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(partial, target),
        Err(error) => Err(error),
    }
}

/// Makes everything written to the file system of `directory` durable.
fn sync(directory: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(fs::File::open(directory)?)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        rustix::fs::sync();
    }
    Ok(())
}
