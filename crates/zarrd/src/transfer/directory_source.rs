//! The files below a directory as a source.

use std::{
    fs::File,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use rustix::fs::OFlags;
use store::{Key, Payload, StoreError};
use tokio::{sync::mpsc, task};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::io::ReaderStream;
use walkdir::{DirEntry, WalkDir};

use super::{Found, Refused, Source, SourceError, TransferError};

/// Files up to this size are read at once, larger ones in pieces of it.
const PIECE: usize = 256 << 10;

/// How many names the walk may be ahead of who uses them.
const AHEAD: usize = 1024;

/// Every regular file below a directory. Links are not followed, since they may lead out of it.
pub(crate) struct DirectorySource {
    root: PathBuf,
}

impl DirectorySource {
    /// The files below `root`, which must be a directory.
    pub(crate) fn new(root: &Path) -> Result<Self, TransferError> {
        if !root.is_dir() {
            return Err(TransferError::NoDirectory { directory: root.to_owned() });
        }
        Ok(Self { root: root.to_owned() })
    }
}

#[async_trait]
impl Source for DirectorySource {
    fn list(&self) -> BoxStream<'_, Result<Found, SourceError>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let root = self.root.clone();
        // The walk ends when everything was found or nobody wants to know any more.
        task::spawn_blocking(move || {
            let found = WalkDir::new(&root).min_depth(1).into_iter().filter_map(|entry| found(&root, entry));
            found.map(Ok).try_for_each(|found| sender.blocking_send(found))
        });
        ReceiverStream::new(receiver).boxed()
    }

    async fn open(&self, name: &Key) -> Result<Option<Payload>, SourceError> {
        let path = self.root.join(name.as_str());
        let opened = blocking(move || open(&path)).await;
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(SourceError::Open),
        }
    }
}

fn found(root: &Path, entry: walkdir::Result<DirEntry>) -> Option<Found> {
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => {
            let name = format!("{:?}", error.path().unwrap_or(root));
            return Some(Found::Refused { name, reason: Refused::Unreadable(error.into()) });
        }
    };
    if entry.file_type().is_dir() {
        return None;
    }
    let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
    Some(name_and_size(path, &entry).unwrap_or_else(|reason| Found::Refused { name: format!("{path:?}"), reason }))
}

fn name_and_size(path: &Path, entry: &DirEntry) -> Result<Found, Refused> {
    if entry.file_type().is_symlink() {
        return Err(Refused::Symlink);
    }
    if !entry.file_type().is_file() {
        return Err(Refused::NotAFile);
    }
    let name = Key::from_bytes(path.as_os_str().as_bytes())?;
    let size = entry.metadata().map_err(|error| Refused::Unreadable(error.into()))?.len();
    Ok(Found::Value { name, size })
}

/// Opens a file that was regular when it was found, and must still be: what has become a link is not followed, and what has become
/// a pipe is not waited for.
fn open(path: &Path) -> io::Result<Payload> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file any more"));
    }
    // A file that grows or shrinks meanwhile yields another number of bytes, and fails by that.
    let size = metadata.len();
    if size <= PIECE as u64 {
        let mut bytes = Vec::with_capacity(PIECE.min(usize::try_from(size).unwrap_or(PIECE)) + 1);
        file.by_ref().take(size + 1).read_to_end(&mut bytes)?;
        let bytes = Bytes::from(bytes);
        return Ok(Payload { size: Some(size), stream: stream::once(async move { Ok(bytes) }).boxed() });
    }
    let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(file), PIECE);
    let pieces = pieces.map_err(|source| StoreError::Io { action: "read the file", source });
    Ok(Payload { size: Some(size), stream: pieces.boxed() })
}

/// Runs what blocks where that does no harm.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    task::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
