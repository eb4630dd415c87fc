//! Errors of transfers, and their scope: one key or all of them.

use std::{
    io,
    num::NonZeroU64,
    path::{Path, PathBuf},
    time::Duration,
};

use zarrd_store::{BackendErrorKind, Key, KeyError, Prefix, StoreError};
use zarrd_store_dir::FileError;

/// Reason why a name of the source cannot be transferred, known before anything is written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SkipReason {
    /// The name is not a valid key.
    #[error("not a valid key")]
    NotAKey(#[from] KeyError),
    /// Symbolic links are not followed.
    #[error("symbolic links are not followed")]
    Symlink,
    /// A store, or another file or directory of zarrd itself.
    #[error("a store or another file of zarrd itself")]
    Own,
    /// A device, a socket or a pipe.
    #[error("neither a file nor a directory")]
    NotAFile,
    /// The file or directory cannot be read.
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    /// A segment of the key is too long for a file name.
    #[error("a file name has at most {limit} bytes")]
    SegmentTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The key lies below another key, which becomes a file.
    #[error("{key:?} is a key too, and a file cannot also be a directory")]
    BelowKey {
        /// The other key.
        key: Key,
    },
}

/// Errors of a source.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// A file cannot be opened.
    #[error("cannot open the file")]
    Open(#[source] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name, with the prefix of the source, is not a valid key.
    #[error(transparent)]
    Name(KeyError),
    /// The listing is not sorted.
    #[error("the listing goes back to {key:?}")]
    Unsorted {
        /// The key that is out of order.
        key: Key,
    },
    /// The listing exceeds the limit.
    #[error("the listing has more than {max_keys} keys (--max-keys)")]
    TooManyKeys {
        /// The limit.
        max_keys: NonZeroU64,
    },
}

/// Errors of a sink.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SinkError {
    /// The store or the content failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name, with the prefix of the sink, is not a valid key.
    #[error(transparent)]
    Name(KeyError),
    /// A file or directory of that name exists already, or a part of the name is a file.
    #[error("a file or directory of that name exists already")]
    AlreadyExists(#[source] io::Error),
    /// The file system does not support the name.
    #[error("the file system does not support the name")]
    InvalidName(#[source] io::Error),
    /// The file system failed.
    #[error("cannot {action}")]
    File {
        /// The operation, as a continuation of "cannot".
        action: &'static str,
        /// Reason.
        #[source]
        source: io::Error,
    },
}

/// Errors of copying one value.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    /// The value cannot be opened.
    #[error("reading failed")]
    Source(#[source] SourceError),
    /// The value cannot be read completely.
    #[error("reading failed")]
    Content(#[source] SinkError),
    /// The value cannot be written.
    #[error("writing failed")]
    Sink(#[source] SinkError),
}

/// Errors of a transfer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    /// Some names are not supported by the sink.
    #[error("{count} names cannot be transferred, so nothing was (--skip-invalid transfers the others)")]
    UnsupportedNames {
        /// Number of names.
        count: u64,
    },
    /// The source is a prefix without keys.
    #[error("no keys below {prefix}")]
    NoKeys {
        /// The prefix.
        prefix: Prefix,
    },
    /// The source cannot be listed.
    #[error("cannot list the source")]
    List(#[source] SourceError),
    /// Some values were not transferred.
    #[error("{failed} values were not transferred, {corrupt} of them because they are damaged")]
    Incomplete {
        /// Number of values that were not transferred.
        failed: u64,
        /// Number of them that are corrupt.
        corrupt: u64,
    },
    /// Nodes changed again and again while they were copied.
    #[error(
        "{} nodes changed while they were copied, so their elements may be those of several commits: {}; the server has no \
         snapshots for this caller",
        keys.len(), first_keys(keys)
    )]
    Changing {
        /// Their documents.
        keys: Vec<Key>,
    },
    /// An error that concerns all values.
    #[error("stopped at {key:?}")]
    Aborted {
        /// The first key that failed.
        key: Key,
        /// The error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The directory to be imported does not exist.
    #[error("{} is not a directory{}", directory.display(), importer(directory))]
    NotADirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// There are keys at the prefix to be imported into.
    #[error(
        "there are keys below {} already; choose another prefix, replace everything there with --overwrite, or add to it with --merge, which keeps the chunks of older data",
        shown(prefix)
    )]
    TargetNotEmpty {
        /// The prefix.
        prefix: Prefix,
    },
    /// The root is to be overwritten.
    #[error("an import does not overwrite all of a store; import into a new store, or name a prefix")]
    OverwriteRoot,
    /// The directory to be imported belongs to zarrd.
    #[error("{} is a store or an access directory of zarrd, or what remains of one ({part}); copy a store with `zarrd copy`, or export a prefix of it with `zarrd export`", directory.display())]
    OwnDirectory {
        /// The directory.
        directory: PathBuf,
        /// The entry by which it was recognized.
        part: String,
    },
    /// The imported values were not put in place.
    #[error("the imported data were not put in place at {prefix}; repeat the import")]
    Place {
        /// The prefix.
        prefix: Prefix,
        /// Reason.
        #[source]
        source: super::PlacementError,
    },
    /// The directory to be exported to is not empty.
    #[error("{} is not empty; an export needs a new or an empty directory", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory is the store's directory, or lies within it.
    #[error("{} is part of the store at {}", directory.display(), store.display())]
    InsideStore {
        /// The directory.
        directory: PathBuf,
        /// Directory of the store.
        store: PathBuf,
    },
    /// The directory to be imported contains the store.
    #[error("the store at {} lies in {} and would be imported into itself", store.display(), directory.display())]
    ContainsStore {
        /// The directory.
        directory: PathBuf,
        /// Directory of the store.
        store: PathBuf,
    },
    /// An operation on the directory failed.
    #[error("cannot {action} {}", directory.display())]
    Directory {
        /// The operation, as a continuation of "cannot".
        action: &'static str,
        /// The directory.
        directory: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
}

/// The extensions of files that the Python package imports.
const PYTHON_IMPORTS: [&str; 13] =
    ["nc", "nc4", "cdf", "netcdf", "h5", "hdf5", "he5", "grib", "grib2", "grb", "grb2", "csv", "tsv"];

/// What imports a file of this name in place of a directory, as the end of a message.
fn importer(path: &Path) -> String {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match PYTHON_IMPORTS.iter().any(|known| known.eq_ignore_ascii_case(extension)) {
        true => format!("; the Python package zarrd imports such files: `python -m zarrd import {}`", path.display()),
        false => String::new(),
    }
}

/// A prefix in a message.
fn shown(prefix: &Prefix) -> &str {
    if prefix.is_root() { "the root" } else { prefix.as_str() }
}

impl SinkError {
    /// Distinguishes errors that concern a name from those that concern the file system.
    pub(super) fn file(action: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::DirectoryNotEmpty => Self::AlreadyExists(source),
            io::ErrorKind::InvalidFilename => Self::InvalidName(source),
            _ => Self::File { action, source },
        }
    }
}

impl CopyError {
    /// True if the error concerns this value only, so that the transfer can continue.
    pub(super) fn concerns_one_key(&self) -> bool {
        match self {
            Self::Source(SourceError::Open(_) | SourceError::Name(_)) => true,
            Self::Source(SourceError::Unsorted { .. } | SourceError::TooManyKeys { .. }) => false,
            // A failed read from a disk concerns one file; a failed write concerns all of them.
            Self::Source(SourceError::Store(error)) | Self::Content(SinkError::Store(error)) => {
                is_failed_read(error) || concerns_one_value(error)
            }
            Self::Sink(SinkError::Store(error)) => concerns_one_value(error),
            Self::Content(error) | Self::Sink(error) => {
                matches!(error, SinkError::AlreadyExists(_) | SinkError::InvalidName(_) | SinkError::Name(_))
            }
        }
    }

    /// True if the value of the source is corrupt.
    pub(super) fn is_corruption(&self) -> bool {
        matches!(self.store_error(), Some(StoreError::Corrupt { .. }))
    }

    /// True if a retry may succeed: the server is busy or restarting, or another program changed the value.
    pub(super) fn is_transient(&self) -> bool {
        matches!(
            self.store_error(),
            Some(
                StoreError::Busy { .. }
                    | StoreError::Backend { kind: BackendErrorKind::Connection, .. }
                    | StoreError::Changed { .. }
            )
        )
    }

    /// The delay that the server asks for.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self.store_error() {
            Some(StoreError::Busy { retry_after }) => *retry_after,
            _ => None,
        }
    }

    fn store_error(&self) -> Option<&StoreError> {
        match self {
            Self::Source(SourceError::Store(error))
            | Self::Content(SinkError::Store(error))
            | Self::Sink(SinkError::Store(error)) => Some(error),
            _ => None,
        }
    }
}

/// True if a file could not be read.
fn is_failed_read(error: &StoreError) -> bool {
    let file = error.backend_source::<FileError>();
    matches!(error, StoreError::Io { .. }) || file.is_some_and(|file| !matches!(file, FileError::Root(_)))
}

fn concerns_one_value(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. }
            | StoreError::Upload(_)
            | StoreError::PreconditionFailed { .. }
            | StoreError::RangeNotSatisfiable { .. }
            | StoreError::SnapshotExpired
            | StoreError::Changed { .. }
    )
}

/// Some keys as text.
fn first_keys(keys: &[Key]) -> String {
    let shown: Vec<&str> = keys.iter().take(10).map(Key::as_str).collect();
    let more = if keys.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
