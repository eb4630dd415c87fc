//! A new directory as a sink.

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
use store::{Key, Payload, StoreError, UploadError};
use tempfile::TempDir;
use tokio::io::{AsyncWriteExt, BufWriter};

use super::{Admission, Refused, Sink, SinkError, TransferError, directory_source::blocking};

/// The longest file name of the usual file systems, in bytes.
const MAX_NAME: usize = 255;

/// A directory that was empty at the beginning, in which every key becomes a file.
///
/// A file is written under another name and moved to its own when it is whole. Keys have no `..` and are never absolute, and nobody
/// but us has put anything, such as a link, into the directory: nothing is written outside of it.
pub(crate) struct DirectorySink {
    root: PathBuf,
    /// Files that are not whole yet; on the same file system as their places.
    partial: TempDir,
    next: AtomicU64,
}

impl DirectorySink {
    /// Makes the directory, or takes it where it is there and empty.
    pub(crate) fn create(root: &Path) -> Result<Self, TransferError> {
        let fails = |action| move |source| TransferError::Directory { action, directory: root.to_owned(), source };
        fs::create_dir_all(root).map_err(fails("make the directory"))?;
        if fs::read_dir(root).map_err(fails("list"))?.next().is_some() {
            return Err(TransferError::NotEmpty { directory: root.to_owned() });
        }
        let partial = tempfile::Builder::new().prefix(".zarrd-partial-").tempdir_in(root);
        let partial = partial.map_err(fails("write to"))?;
        Ok(Self { root: root.to_owned(), partial, next: AtomicU64::new(0) })
    }

    /// Removes what is left of files that were not whole, and makes all others durable.
    pub(crate) async fn finish(self) -> Result<(), TransferError> {
        let Self { root, partial, .. } = self;
        let directory = root.clone();
        let synced = blocking(move || {
            partial.close()?;
            sync(&root)
        });
        synced.await.map_err(|source| TransferError::Directory { action: "make durable", directory, source })
    }

    async fn write(&self, path: &Path, mut content: Payload) -> Result<(), SinkError> {
        let fails = |source| SinkError::file("write a file", source);
        let mut file = BufWriter::with_capacity(256 << 10, tokio::fs::File::create_new(path).await.map_err(fails)?);
        let mut received: u64 = 0;
        while let Some(piece) = content.stream.try_next().await? {
            received = received.saturating_add(piece.len() as u64);
            file.write_all(&piece).await.map_err(fails)?;
        }
        if let Some(announced) = content.size.filter(|&size| size != received) {
            return Err(StoreError::from(UploadError::LengthMismatch { announced, received }).into());
        }
        file.flush().await.map_err(fails)
    }
}

#[async_trait]
impl Sink for DirectorySink {
    fn admission(&self) -> Admission<'_> {
        // The keys that the next one may lie below. In a sorted listing they stand before all that begin with them.
        let mut above: Vec<Key> = Vec::new();
        Box::new(move |name| {
            while above.last().is_some_and(|key| !name.as_str().starts_with(key.as_str())) {
                above.pop();
            }
            if name.as_str().split('/').any(|segment| segment.len() > MAX_NAME) {
                return Err(Refused::SegmentTooLong { limit: MAX_NAME });
            }
            if let Some(key) = above.iter().find(|key| is_below(name, key)) {
                return Err(Refused::BelowKey { key: (*key).clone() });
            }
            above.push(name.clone());
            Ok(())
        })
    }

    async fn put(&self, name: &Key, content: Payload) -> Result<(), SinkError> {
        let partial = self.partial.path().join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        let written = self.write(&partial, content).await;
        let target = self.root.join(name.as_str());
        let placed = blocking(move || match written {
            Ok(()) => place(&partial, &target).inspect_err(|_| discard(&partial)).map(Ok),
            Err(error) => {
                discard(&partial);
                Ok(Err(error))
            }
        });
        placed.await.map_err(|source| SinkError::file("put a file in its place", source))?
    }
}

fn is_below(name: &Key, key: &Key) -> bool {
    name.as_str().strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// Moves a file to its place, which must be free. It is not on file systems that take two keys for the same name.
fn place(partial: &Path, target: &Path) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    match renameat_with(CWD, partial, CWD, target, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_checked(partial, target),
        renamed => Ok(renamed?),
    }
}

/// The same where the file system cannot do it in one step; nobody else writes here.
fn rename_checked(partial: &Path, target: &Path) -> io::Result<()> {
    match fs::symlink_metadata(target) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(partial, target),
        Err(error) => Err(error),
    }
}

/// Gives the space back. What stays behind all the same goes with the directory it is in.
fn discard(partial: &Path) {
    let _ = fs::remove_file(partial);
}

/// Makes everything that was written to the file system of `directory` durable.
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
