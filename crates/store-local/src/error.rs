//! Errors of opening a store, and the details of corruption.

use std::{
    io,
    path::{Path, PathBuf},
};

use zarrd_store::{BoxError, Key, StoreError};

use crate::{
    IndexKind,
    index::{IndexError, is_out_of_space},
};

/// Errors of opening a store. The directory is unchanged, except as [`LocalStore::open`](crate::LocalStore::open)
/// states.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open.
    #[error("the store {} is in use{}", dir.display(), pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Locked {
        /// The store's directory.
        dir: PathBuf,
        /// The process that has locked it, if known.
        pid: Option<u32>,
    },
    /// The directory contains files and is not a store.
    #[error("{} is not empty and not a store", dir.display())]
    NotAStore {
        /// The directory.
        dir: PathBuf,
    },
    /// The store was opened with [`Purpose::Fill`](crate::Purpose::Fill) and never completed.
    #[error("the store {} is incomplete, because a copy into it did not finish; remove it and copy again, or resume the copy", dir.display())]
    Incomplete {
        /// The store's directory.
        dir: PathBuf,
    },
    /// The store was to be filled further, but from another store, or from another state of the same one.
    #[error(
        "the copy {} was begun of another store, or of this one before it was last opened for writing; remove it and copy again",
        dir.display()
    )]
    OtherSource {
        /// The copy's directory.
        dir: PathBuf,
    },
    /// The store was opened with [`Purpose::Fill`](crate::Purpose::Fill), but exists already.
    #[error("{} is a store; only a new store can be filled", dir.display())]
    AlreadyExists {
        /// The store's directory.
        dir: PathBuf,
    },
    /// The store has another kind of index than requested.
    #[error("the store {} has a {found} index, not a {requested} one", dir.display())]
    IndexMismatch {
        /// The store's directory.
        dir: PathBuf,
        /// The kind of its index.
        found: IndexKind,
        /// The requested kind.
        requested: IndexKind,
    },
    /// A later version created the store.
    #[error("the store {} has format {found}, which this version does not know; open it with the version of zarrd that wrote it, or a newer one", dir.display())]
    UnsupportedFormat {
        /// The store's directory.
        dir: PathBuf,
        /// The number of its format.
        found: u32,
    },
    /// A file of the store is damaged.
    #[error(
        "{} is damaged; restore the whole store from a copy, or move it aside and import its data again",
        file.display()
    )]
    Corrupt {
        /// The file, or the directory of the index.
        file: PathBuf,
        /// The damage.
        #[source]
        cause: FileCorruption,
    },
    /// The index and the log do not fit together: one of them is older, and commits in between are missing.
    #[error(
        "{} is older than the store: it ends with commit {found}, but commit {expected} was acknowledged; \
         put it back as it was with the rest of the store, or restore the whole store from a copy",
        file.display()
    )]
    StaleIndex {
        /// The directory that is older: that of the index or of the log.
        file: PathBuf,
        /// The last commit in the file.
        found: u64,
        /// The last commit that was acknowledged.
        expected: u64,
    },
    /// The operating system failed an operation.
    #[error("could not {action} {}", path.display())]
    Io {
        /// The failed action, which continues "could not".
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// Damage of a file that prevents a store from opening.
#[derive(Debug, thiserror::Error)]
pub enum FileCorruption {
    /// The file is missing.
    #[error("the file is missing")]
    Missing,
    /// A frame of the log fails its check, and later frames follow, so it is not the torn end of the log.
    #[error("damaged at byte {offset}")]
    CorruptFrame {
        /// The offset of the frame, in bytes.
        offset: u64,
    },
    /// A segment of the log is shorter than when it was created, so acknowledged commits may be missing.
    #[error("cut short: it has {found} bytes instead of {expected}, so acknowledged changes may be missing")]
    CutShort {
        /// The size of the file, in bytes.
        found: u64,
        /// The size that its header tells, in bytes.
        expected: u64,
    },
    /// The content fails its checksum.
    #[error("the content fails its checksum")]
    ContentMismatch,
    /// The text cannot be parsed.
    #[error("the text cannot be parsed")]
    InvalidText(#[source] serde_json::Error),
    /// The index cannot read its own files.
    #[error("the index could not read its files")]
    Index(#[source] BoxError),
    /// The index lacks entries, or has entries that it should not have.
    #[error("found {found} keys instead of {expected}, or some of them are stale or foreign")]
    KeyCountMismatch {
        /// The number of entries found.
        found: u64,
        /// The number of entries that the index recorded.
        expected: u64,
    },
}

/// Damage of a stored value: the detail of a [`Corruption`](zarrd_store::Corruption) that a
/// [`LocalStore`](crate::LocalStore) reports.
#[derive(Debug, thiserror::Error)]
pub enum ValueCorruption {
    /// The record refers to a value file that does not exist.
    #[error("the value file {file} is missing")]
    MissingFile {
        /// The file's path within the store.
        file: String,
    },
    /// The value file is shorter than its record says.
    #[error("the value file {file} has {found} bytes instead of {expected}")]
    Length {
        /// The file's path within the store.
        file: String,
        /// Its length according to the record, in bytes.
        expected: u64,
        /// Its length, in bytes.
        found: u64,
    },
    /// The trailer of the value file fails its checksum, or is that of another value.
    #[error("the trailer of the value file {file} is damaged")]
    Trailer {
        /// The file's path within the store.
        file: String,
    },
    /// A block of the value file fails its checksum.
    #[error("block {block} of the value file {file} fails its checksum")]
    Block {
        /// The file's path within the store.
        file: String,
        /// The block's number, from 0.
        block: u64,
    },
    /// The value file exists, and the operating system cannot open or read it: a sector of the disk is unreadable, or it
    /// is not a file.
    #[error("the value file {file} cannot be read")]
    Unreadable {
        /// The file's path within the store.
        file: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The key's record in the index or the log fails its checksum or cannot be parsed.
    #[error("the record in the index is damaged")]
    Record,
    /// The index has the record in a part that a search for the key does not reach.
    #[error("the record in the index is not where its key belongs, so that look-ups miss it")]
    Misplaced,
    /// The record was in a part of the index that is lost.
    #[error("the record was lost with a damaged part of the index: {cause}")]
    Lost {
        /// The damaged part.
        cause: String,
    },
    /// The key may be among those whose names were lost with a part of the index.
    #[error("whether the key exists was lost with a damaged part of the index, for which {placeholder:?} is listed")]
    LostName {
        /// The key that is listed in place of those that were lost.
        placeholder: String,
    },
    /// The index cannot read the part that has the key's record.
    #[error("the part of the index that has the record is damaged")]
    Index(#[source] BoxError),
}

/// A failed operation of the index: the source of a [`StoreError::Backend`].
#[derive(Debug, thiserror::Error)]
#[error("the index of the store failed")]
pub(crate) struct IndexFailure(#[source] pub(crate) IndexError);

/// The error of a value whose file does not exist, by its path in the directory of values.
pub(crate) fn missing_file(key: &Key, path: &str) -> StoreError {
    StoreError::corrupt(key.clone(), ValueCorruption::MissingFile { file: format!("values/{path}") })
}

/// True if the error says that a value file does not exist, or that the directory of a joined value is being removed.
pub(crate) fn is_missing_file(error: &StoreError) -> bool {
    let StoreError::Corrupt { cause, .. } = error else { return false };
    match cause.downcast_ref() {
        Some(ValueCorruption::MissingFile { .. }) => true,
        Some(ValueCorruption::Unreadable { source, .. }) => source.kind() == std::io::ErrorKind::IsADirectory,
        _ => false,
    }
}

impl OpenError {
    /// True if the file system, or the owner's quota, is full.
    pub(crate) fn is_out_of_space(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_out_of_space(source))
    }

    /// The same error with other paths.
    pub(crate) fn map_paths(mut self, map: impl Fn(&Path) -> PathBuf) -> Self {
        match &mut self {
            Self::Locked { dir: path, .. }
            | Self::NotAStore { dir: path }
            | Self::Incomplete { dir: path }
            | Self::OtherSource { dir: path }
            | Self::AlreadyExists { dir: path }
            | Self::IndexMismatch { dir: path, .. }
            | Self::UnsupportedFormat { dir: path, .. }
            | Self::Corrupt { file: path, .. }
            | Self::StaleIndex { file: path, .. }
            | Self::Io { path, .. } => *path = map(path),
        }
        self
    }

    pub(crate) fn corrupt(file: impl Into<PathBuf>, cause: FileCorruption) -> Self {
        Self::Corrupt { file: file.into(), cause }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
