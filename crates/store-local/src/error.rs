//! Why a store does not open.

use std::{io, path::PathBuf};

use store::{BoxError, StoreError};

use crate::{IndexKind, index::IndexError};

/// Why a store does not open. Nothing in its directory has been changed then.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open.
    #[error("the store {} is in use{}", dir.display(), pid.map(|pid| format!(" by process {pid}")).unwrap_or_default())]
    Locked {
        /// The store's directory.
        dir: PathBuf,
        /// The process that holds it, where that could be read.
        pid: Option<u32>,
    },
    /// The directory has files in it, and is no store.
    #[error("{} is not empty and not a store", dir.display())]
    NotAStore {
        /// The directory.
        dir: PathBuf,
    },
    /// The store was to be filled and lacks some of what it is to have.
    #[error("{} was not filled to its end: a copy into it did not finish; remove it and make the copy again", dir.display())]
    Incomplete {
        /// The store's directory.
        dir: PathBuf,
    },
    /// A store that is there was to be filled, which only a new one may be.
    #[error("{} is a store already, and only a new one can be filled", dir.display())]
    AlreadyExists {
        /// The store's directory.
        dir: PathBuf,
    },
    /// The store has another index than was asked for.
    #[error("the store {} has a {found} index, not a {requested} one", dir.display())]
    IndexMismatch {
        /// The store's directory.
        dir: PathBuf,
        /// The index it has.
        found: IndexKind,
        /// The one that was asked for.
        requested: IndexKind,
    },
    /// The store was made by a later version.
    #[error("the store {} has format {found}, which this version does not know", dir.display())]
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
        /// What is wrong with it.
        #[source]
        cause: FileCorruption,
    },
    /// The index is older than the store.
    #[error(
        "{} is older than the store: it ends with commit {found}, but commit {expected} was acknowledged; \
         put back the index that belongs to the store, or restore the whole store from a copy",
        file.display()
    )]
    StaleIndex {
        /// The directory of the index.
        file: PathBuf,
        /// Its last commit.
        found: u64,
        /// The last commit that the store is known to have acknowledged.
        expected: u64,
    },
    /// The operating system failed an operation.
    #[error("could not {action} {}", path.display())]
    Io {
        /// What was tried, as it continues "could not".
        action: &'static str,
        /// The file or directory concerned.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// What is wrong with a file that keeps a store from opening.
#[derive(Debug, thiserror::Error)]
pub enum FileCorruption {
    /// It is missing.
    #[error("it is missing")]
    Missing,
    /// It is there, and was not when the store was closed.
    #[error("it was not there when the store was closed")]
    Unexpected,
    /// What the log has at an offset is not what was written, and more follows: so it is no torn end.
    #[error("it is damaged at byte {offset}")]
    CorruptFrame {
        /// Where, in bytes from the file's beginning.
        offset: u64,
    },
    /// Its content is not what was written.
    #[error("its content is not what was written")]
    ContentMismatch,
    /// Its text cannot be read.
    #[error("its text cannot be read")]
    InvalidText(#[source] serde_json::Error),
    /// The index could not read its own files.
    #[error("the index could not read it")]
    Index(#[source] BoxError),
    /// The index has a record that is damaged.
    #[error("the record of {key} is damaged")]
    CorruptRecord {
        /// The key, as far as it can be read.
        key: String,
    },
    /// The index does not have the keys that it had.
    #[error("it has {found} keys, of which some are missing, stale or not its own; it should have {expected}")]
    KeyCountMismatch {
        /// How many keys it has.
        found: u64,
        /// How many it says that it has.
        expected: u64,
    },
}

/// Damage of a stored value: the detail of a [`Corruption`](store::Corruption) that a
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
    /// The key's record in the index or the log fails its checksum or cannot be parsed.
    #[error("the record in the index is damaged")]
    Record,
}

/// A failed operation of the index: the source of a [`StoreError::Backend`](store::StoreError::Backend).
#[derive(Debug, thiserror::Error)]
#[error("the index of the store failed")]
pub(crate) struct IndexFailure(#[source] pub(crate) IndexError);

/// True if the error says that a value file does not exist.
pub(crate) fn is_missing_file(error: &StoreError) -> bool {
    let StoreError::Corrupt { cause, .. } = error else { return false };
    matches!(cause.downcast_ref(), Some(ValueCorruption::MissingFile { .. }))
}

impl OpenError {
    pub(crate) fn corrupt(file: impl Into<PathBuf>, cause: FileCorruption) -> Self {
        Self::Corrupt { file: file.into(), cause }
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
