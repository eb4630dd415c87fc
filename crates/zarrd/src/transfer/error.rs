//! What can go wrong while keys are moved, and whether it concerns one key or all of them.

use std::{io, num::NonZeroU64, path::PathBuf, time::Duration};

use store::{BackendErrorKind, Key, KeyError, Prefix, StoreError};

use crate::exit::Code;

/// Why something that was found cannot be moved, known before anything is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// Its name is not a key.
    #[error("this is not the name of a key")]
    NotAKey(#[from] KeyError),
    /// It is a symbolic link.
    #[error("this is a symbolic link, and links are not followed")]
    Symlink,
    /// It is a device, a socket or a pipe.
    #[error("this is neither a file nor a directory")]
    NotAFile,
    /// It cannot be looked at.
    #[error("this cannot be read")]
    Unreadable(#[source] io::Error),
    /// It has a segment that no file may be named.
    #[error("a file name has at most {limit} bytes")]
    SegmentTooLong {
        /// The limit.
        limit: usize,
    },
    /// It lies below another key.
    #[error("{key:?} is a key too, and no file is also a directory")]
    BelowKey {
        /// The other key.
        key: Key,
    },
}

/// Why a source fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// A file cannot be opened.
    #[error("cannot open the file")]
    Open(#[source] io::Error),
    /// The store that is read from fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name makes no key where it is.
    #[error(transparent)]
    Name(KeyError),
    /// The listing does not move on.
    #[error("the listing goes back to {key:?}")]
    Unsorted {
        /// The key.
        key: Key,
    },
    /// The listing does not end.
    #[error("there are more than {most} keys (--max-keys)")]
    TooManyKeys {
        /// How many there may be.
        most: NonZeroU64,
    },
}

/// Why a sink fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SinkError {
    /// The store that is written to fails, or the content does.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name makes no key where it is.
    #[error(transparent)]
    Name(KeyError),
    /// Something of that name is there, or a part of the name is a file.
    #[error("there is a file or directory in its place")]
    Occupied(#[source] io::Error),
    /// The file system takes no such name.
    #[error("the file system does not take the name")]
    BadName(#[source] io::Error),
    /// The file system fails.
    #[error("cannot {action}")]
    File {
        /// What was tried, as it continues "cannot".
        action: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Why one value was not moved.
#[derive(Debug, thiserror::Error)]
pub(super) enum MoveError {
    /// It could not be read, or its bytes did not come.
    #[error("reading it failed")]
    Source(#[source] SourceError),
    /// Its bytes did not come while it was being written.
    #[error("reading it failed")]
    Content(#[source] SinkError),
    /// It could not be written.
    #[error("writing it failed")]
    Sink(#[source] SinkError),
}

/// Why keys were not moved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransferError {
    /// There are names that cannot be moved.
    #[error("{count} names cannot be moved, so nothing was (--skip-invalid moves the others)")]
    Refused {
        /// How many.
        count: u64,
    },
    /// There is nothing to be moved where something was expected.
    #[error("there are no keys below {prefix}")]
    Nothing {
        /// Where.
        prefix: Prefix,
    },
    /// The source cannot be listed.
    #[error("cannot list what is to be moved")]
    List(#[source] SourceError),
    /// Some values were not moved.
    #[error("{failed} values were not moved, {damaged} of them since they are damaged")]
    Incomplete {
        /// How many.
        failed: u64,
        /// How many of them were found to be damaged.
        damaged: u64,
    },
    /// Something failed that lets no value be moved any more.
    #[error("stopped at {key:?}")]
    Stopped {
        /// The key that met it first.
        key: Key,
        /// What.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The directory is not there.
    #[error("{} is not a directory", directory.display())]
    NoDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory that is to be filled is not empty.
    #[error("{} is not empty; an export needs a new directory, or an empty one", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory and the store are in one another.
    #[error("{} is part of the store at {}", directory.display(), store.display())]
    InStore {
        /// The directory.
        directory: PathBuf,
        /// The store's.
        store: PathBuf,
    },
    /// The store is in what is to be imported.
    #[error("the store at {} lies in {} and would be imported into itself", store.display(), directory.display())]
    StoreInside {
        /// The directory.
        directory: PathBuf,
        /// The store's.
        store: PathBuf,
    },
    /// The directory cannot be made, listed or made durable.
    #[error("cannot {action} {}", directory.display())]
    Directory {
        /// What was tried, as it continues "cannot".
        action: &'static str,
        /// The directory.
        directory: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl TransferError {
    /// The exit code that tells this to scripts.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::NoDirectory { .. } | Self::NotEmpty { .. } | Self::InStore { .. } | Self::StoreInside { .. } => {
                Code::Usage
            }
            Self::Incomplete { damaged: 1.., .. } => Code::DamageFound,
            Self::Refused { .. }
            | Self::Nothing { .. }
            | Self::List(_)
            | Self::Incomplete { .. }
            | Self::Stopped { .. }
            | Self::Directory { .. } => Code::Failed,
        }
    }
}

impl SinkError {
    /// Tells apart what a file system says of one name from what it says of itself.
    pub(super) fn file(action: &'static str, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::DirectoryNotEmpty => Self::Occupied(source),
            io::ErrorKind::InvalidFilename => Self::BadName(source),
            _ => Self::File { action, source },
        }
    }
}

impl MoveError {
    /// Whether other values may still be moved.
    pub(super) fn is_of_one_key(&self) -> bool {
        match self {
            Self::Source(SourceError::Open(_) | SourceError::Name(_)) => true,
            Self::Source(SourceError::Unsorted { .. } | SourceError::TooManyKeys { .. }) => false,
            // What cannot be read from a disk is one file or value, what cannot be written to it is everything.
            Self::Source(SourceError::Store(error)) | Self::Content(SinkError::Store(error)) => {
                matches!(error, StoreError::Io { .. }) || is_of_one_value(error)
            }
            Self::Sink(SinkError::Store(error)) => is_of_one_value(error),
            Self::Content(error) | Self::Sink(error) => {
                matches!(error, SinkError::Occupied(_) | SinkError::BadName(_) | SinkError::Name(_))
            }
        }
    }

    /// Whether the value is damaged where it comes from.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self.store_error(), Some(StoreError::Corrupt { .. }))
    }

    /// Whether another try may succeed: the other machine is busy, or is starting again.
    pub(super) fn is_transient(&self) -> bool {
        matches!(
            self.store_error(),
            Some(StoreError::Busy { .. } | StoreError::Backend { kind: BackendErrorKind::Connection, .. })
        )
    }

    /// How long the other machine wants to be left alone.
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

fn is_of_one_value(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. }
            | StoreError::Upload(_)
            | StoreError::PreconditionFailed { .. }
            | StoreError::RangeNotSatisfiable { .. }
            | StoreError::SnapshotExpired
    )
}
