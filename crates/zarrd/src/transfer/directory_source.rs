//! Directories as sources.

use std::{
    collections::HashSet,
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use rustix::fs::OFlags;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::io::ReaderStream;
use walkdir::{DirEntry, WalkDir};
use zarrd_executor::spawn_blocking;
use zarrd_store::{Key, Payload, StoreError};

use super::{SkipReason, Source, SourceError, SourceItem, TransferError};
use crate::new_file::blocking;

/// Size of the read buffer, in bytes. Smaller files are read at once.
const READ_BUFFER_BYTES: usize = 256 << 10;

/// Number of items that are listed in advance.
const LISTING_QUEUE_LEN: usize = 1024;

/// The regular files below a directory. Symbolic links are not followed, since they may lead out of it.
pub(crate) struct DirectorySource {
    root: PathBuf,
    /// The files and directories of zarrd itself.
    private: Vec<PathBuf>,
}

/// A file among all of the machine.
type FileId = (u64, u64);

impl DirectorySource {
    /// Creates a source of the files below `root`, which must be a directory.
    /// What is at the `private` paths, however it is reached, is not transferred.
    pub(crate) fn new(root: &Path, private: Vec<PathBuf>) -> Result<Self, TransferError> {
        if !root.is_dir() {
            return Err(TransferError::NotADirectory { directory: root.to_owned() });
        }
        Ok(Self { root: root.to_owned(), private })
    }
}

#[async_trait]
impl Source for DirectorySource {
    fn list(&self) -> BoxStream<'_, Result<SourceItem, SourceError>> {
        let (sender, receiver) = mpsc::channel(LISTING_QUEUE_LEN);
        let (root, private) = (self.root.clone(), self.private.clone());
        // The walk ends early if the receiver is dropped.
        spawn_blocking(move || {
            let private: HashSet<FileId> = private.iter().filter_map(|path| id(&path.metadata().ok()?)).collect();
            let mut entries = WalkDir::new(&root).min_depth(1).into_iter();
            while let Some(entry) = entries.next() {
                let is_own = entry.as_ref().is_ok_and(|entry| is_own(entry, &private));
                if is_own && entry.as_ref().is_ok_and(|entry| entry.file_type().is_dir()) {
                    entries.skip_current_dir();
                }
                let item = match &entry {
                    Ok(entry) if is_own => {
                        let path = entry.path().strip_prefix(&root).unwrap_or(entry.path());
                        Some(SourceItem::Unsupported { name: format!("{path:?}"), reason: SkipReason::Own })
                    }
                    _ => source_item(&root, entry),
                };
                if item.is_some_and(|item| sender.blocking_send(Ok(item)).is_err()) {
                    return;
                }
            }
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

/// True for files and directories of zarrd itself: those that are known, and other stores.
fn is_own(entry: &DirEntry, private: &HashSet<FileId>) -> bool {
    let is_store = || entry.file_type().is_dir() && entry.path().join("zarrd.json").is_file();
    let is_known = || entry.metadata().ok().and_then(|metadata| id(&metadata)).is_some_and(|id| private.contains(&id));
    is_known() || is_store()
}

fn id(metadata: &Metadata) -> Option<FileId> {
    Some((metadata.dev(), metadata.ino()))
}

fn source_item(root: &Path, entry: walkdir::Result<DirEntry>) -> Option<SourceItem> {
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => {
            let name = format!("{:?}", error.path().unwrap_or(root));
            return Some(SourceItem::Unsupported { name, reason: SkipReason::Unreadable(error.into()) });
        }
    };
    if entry.file_type().is_dir() {
        return None;
    }
    let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
    Some(
        name_and_size(path, &entry)
            .unwrap_or_else(|reason| SourceItem::Unsupported { name: format!("{path:?}"), reason }),
    )
}

fn name_and_size(path: &Path, entry: &DirEntry) -> Result<SourceItem, SkipReason> {
    if entry.file_type().is_symlink() {
        return Err(SkipReason::Symlink);
    }
    if !entry.file_type().is_file() {
        return Err(SkipReason::NotAFile);
    }
    let name = Key::from_bytes(path.as_os_str().as_bytes())?;
    let metadata = entry.metadata().map_err(|error| SkipReason::Unreadable(error.into()))?;
    Ok(SourceItem::Value {
        name,
        size: metadata.len(),
        version: None,
        modified: metadata.modified().ok(),
        content: None,
    })
}

/// Opens a file that was regular when it was listed, and must still be: if it was replaced by a link or a pipe, it is
/// neither followed nor waited for.
fn open(path: &Path) -> io::Result<Payload> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no longer a regular file"));
    }
    // A file whose size changes while it is read fails, since the number of bytes no longer matches.
    let size = metadata.len();
    if size <= READ_BUFFER_BYTES as u64 {
        let mut bytes =
            Vec::with_capacity(READ_BUFFER_BYTES.min(usize::try_from(size).unwrap_or(READ_BUFFER_BYTES)) + 1);
        file.by_ref().take(size + 1).read_to_end(&mut bytes)?;
        let bytes = Bytes::from(bytes);
        return Ok(Payload::sized(size, stream::once(async move { Ok(bytes) })));
    }
    let stream = ReaderStream::with_capacity(tokio::fs::File::from_std(file), READ_BUFFER_BYTES);
    let stream = stream.map_err(|source| StoreError::Io { action: "read the file", source });
    Ok(Payload::sized(size, stream))
}
