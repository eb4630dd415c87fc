//! Errors.

use std::{io, path::PathBuf, time::Duration};

use rustix::io::Errno;
use zarrd_store::{BackendErrorKind, Key, StoreError};

/// The time after which to retry what the kernel could not do because of concurrent renames.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The reason why a directory cannot be opened as a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path is missing, not a directory, or not accessible.
    #[error("could not open the directory {path}", path = path.display())]
    Directory {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The directory contains files of the server itself.
    #[error("{path} contains {private}, which is never served; move one of them", path = path.display(), private = private.display())]
    ContainsPrivate {
        /// The path.
        path: PathBuf,
        /// The path of the server's file or directory.
        private: PathBuf,
    },
    /// The directory is one of the server itself, or lies in one.
    #[error("{path} is {private}, or lies in it, which is never served", path = path.display(), private = private.display())]
    InsidePrivate {
        /// The path.
        path: PathBuf,
        /// The path of the server's directory.
        private: PathBuf,
    },
    /// Another process writes into the directory, or this one by another store.
    #[error("{path} is written by another zarrd{holder}; stop it first, or leave out `writes=yes`", path = path.display())]
    Locked {
        /// The path.
        path: PathBuf,
        /// The process, after a comma, if it is known.
        holder: String,
    },
    /// The directory cannot be locked.
    #[error("could not lock the directory {path}", path = path.display())]
    Lock {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Nothing can be written into the directory.
    #[error("could not write into the directory {path}", path = path.display())]
    NotWritable {
        /// The path.
        path: PathBuf,
        /// The error.
        #[source]
        source: StoreError,
    },
    /// The kernel cannot open files without leaving a directory.
    #[error("the kernel has no openat2, which needs Linux 5.6 and a sandbox that allows it")]
    NoOpenat2(#[source] io::Error),
}

/// The reason why a file or directory of the store cannot be read: the source of a [`StoreError::Backend`].
///
/// Its text has the key or prefix, and nothing of the path that leads to the directory of the store.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The directory of the store is not there, or not accessible.
    #[error("could not open the directory of the store")]
    Root(#[source] io::Error),
    /// A symbolic link leads out of the directory, or has an absolute target.
    #[error(
        "{path:?} is, or is below, a symbolic link that leads out of the directory of the store or has an absolute target; `?symlinks=follow` in the store's URL allows that"
    )]
    OutsideOfDirectory {
        /// The key or prefix.
        path: String,
    },
    /// A symbolic link leads to nothing.
    #[error("{path:?} is, or is below, a symbolic link that leads to nothing")]
    LinkToNothing {
        /// The key or prefix.
        path: String,
    },
    /// A FIFO, a socket or a device is where a file or directory should be.
    #[error("{path:?} is, or is below, a FIFO, a socket or a device")]
    Special {
        /// The key or prefix.
        path: String,
    },
    /// The file belongs to the server itself.
    #[error("{path:?} is, or is below, a file or directory of the server itself")]
    Private {
        /// The key or prefix.
        path: String,
    },
    /// The directory of the store was replaced by another one, or its lock was removed.
    #[error(
        "the directory of the store, or its lock, was replaced; nothing is written into it until the server is restarted"
    )]
    Replaced,
    /// A symbolic link is on the way to a file that is to be written or removed.
    #[error("{path:?} is below a symbolic link, and none is followed for writing")]
    LinkOnTheWay {
        /// The key or prefix.
        path: String,
    },
    /// The file system keeps times too coarsely.
    #[error("the file system of {path:?} does not keep times to the microsecond, which tell two writes apart")]
    CoarseTimes {
        /// The key or prefix.
        path: String,
    },
    /// The operating system failed.
    #[error("could not {action}: {path:?}")]
    System {
        /// The failed action, which continues "could not".
        action: &'static str,
        /// The key or prefix.
        path: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// The error of a call that opens or reads something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The directory of the store is not there.
    Root(Errno),
    /// The directory, or a file in it, cannot be opened or read.
    File(Errno),
    /// A symbolic link on the way, or at the end of it, leads to nothing.
    LinkToNothing,
    /// A FIFO, a socket or a device is on the way, or at the end of it.
    Special,
    /// A file or directory of the server itself is on the way, or at the end of it.
    Private,
    /// The directory of the store is not the one that was opened for writing.
    Replaced,
    /// A symbolic link is on the way to what is to be changed.
    LinkOnTheWay,
    /// The file system did not keep the time that a file was given.
    CoarseTimes,
    /// The operation may have to wait for a disk or another machine, and must not.
    WouldBlock,
}

/// The reason why a step of an operation did not succeed.
#[derive(Debug)]
pub(crate) enum StepError {
    /// It may have to wait for a disk or another machine, and must not.
    WouldBlock,
    Failed(StoreError),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::File(error)
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Root(error) | Failure::File(error) => error.into(),
            failure => Self::other(format!("{failure:?}")),
        }
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<StepError> for StoreError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Failed(error) => error,
            // Not the error of a step that may wait.
            StepError::WouldBlock => Self::Busy { retry_after: Some(RETRY_AFTER) },
        }
    }
}

/// The error of a step of an action on the file or directory of a key or prefix.
pub(crate) fn step_error(action: &'static str, path: &str, failure: Failure) -> StepError {
    match failure {
        Failure::WouldBlock => StepError::WouldBlock,
        failure => StepError::Failed(file_error(action, path, failure)),
    }
}

/// The error of an action on the file or directory of a key or prefix.
pub(crate) fn file_error(action: &'static str, path: &str, failure: Failure) -> StoreError {
    let name = path.to_owned();
    let (kind, error) = match failure {
        Failure::WouldBlock => return StepError::WouldBlock.into(),
        // The machine is short of something, which concerns no file.
        Failure::Root(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM))
        | Failure::File(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            return StoreError::io(action, error.into());
        }
        Failure::File(Errno::AGAIN) => return StoreError::Busy { retry_after: Some(RETRY_AFTER) },
        // It is replaced or mounted at the moment, or will be again.
        Failure::Root(error @ (Errno::NOENT | Errno::NOTDIR)) => {
            (BackendErrorKind::Connection, FileError::Root(error.into()))
        }
        Failure::Root(error) => (kind_of(error), FileError::Root(error.into())),
        Failure::File(Errno::XDEV) => (BackendErrorKind::Internal, FileError::OutsideOfDirectory { path: name }),
        Failure::LinkToNothing => (BackendErrorKind::Internal, FileError::LinkToNothing { path: name }),
        Failure::Special => (BackendErrorKind::Internal, FileError::Special { path: name }),
        Failure::Private => (BackendErrorKind::PermissionDenied, FileError::Private { path: name }),
        Failure::Replaced => (BackendErrorKind::Connection, FileError::Replaced),
        Failure::LinkOnTheWay => (BackendErrorKind::PermissionDenied, FileError::LinkOnTheWay { path: name }),
        Failure::CoarseTimes => (BackendErrorKind::Internal, FileError::CoarseTimes { path: name }),
        Failure::File(error) => (kind_of(error), FileError::System { action, path: name, source: error.into() }),
    };
    let reason = error.to_string();
    StoreError::backend(kind, error).at(path).because(reason)
}

/// The error of an action that changes the file or directory of a key or prefix.
pub(crate) fn change_error(action: &'static str, path: &str, failure: Failure) -> StoreError {
    match failure {
        Failure::File(Errno::NOSPC | Errno::DQUOT) => StoreError::OutOfSpace,
        Failure::File(Errno::ROFS) => StoreError::ReadOnly,
        Failure::File(Errno::NAMETOOLONG) => {
            StoreError::Unsupported { what: "keys with a segment that is too long for a file name" }
        }
        failure => file_error(action, path, failure),
    }
}

/// The error of a change that other programs see already, and that a loss of power may undo.
pub(crate) fn undurable_error(action: &'static str, key: &Key, failure: Failure) -> StoreError {
    StoreError::OutcomeUnknown { key: key.clone(), source: change_error(action, key.as_str(), failure).into() }
}

/// The class of an error of the system.
fn kind_of(error: Errno) -> BackendErrorKind {
    match error {
        Errno::ACCESS | Errno::PERM => BackendErrorKind::PermissionDenied,
        // The server of a network file system, or the program behind a mount, does not answer.
        Errno::NOTCONN
        | Errno::CONNREFUSED
        | Errno::CONNRESET
        | Errno::CONNABORTED
        | Errno::TIMEDOUT
        | Errno::HOSTDOWN
        | Errno::HOSTUNREACH
        | Errno::NETDOWN
        | Errno::NETUNREACH
        | Errno::STALE => BackendErrorKind::Connection,
        _ => BackendErrorKind::Internal,
    }
}
