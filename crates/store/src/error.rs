//! Errors of stores.

use std::{io, time::Duration};

use crate::{IntentError, Key, Prefix, ValueMeta, Version};

/// An error of another crate, as the source of one of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// `ENFILE` and `EMFILE`, which are the same numbers on every Unix.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// An error of a store's operation. A key without a value is no error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A precondition does not hold; nothing was changed.
    #[error("the precondition on {key} does not hold")]
    PreconditionFailed {
        /// The key.
        key: Key,
        /// The version of its value, if it has one and the store returns it.
        current: Option<Version>,
    },
    /// A prefix that the commit requires to be empty is not; nothing was changed.
    #[error("the prefix {prefix:?} is not empty: {key} lies below it")]
    NotEmpty {
        /// The prefix.
        prefix: Prefix,
        /// The first key below it.
        key: Key,
    },
    /// The range contains no byte of the value.
    #[error("the range names no byte of a value of {} bytes", meta.size)]
    RangeNotSatisfiable {
        /// The metadata of the value.
        meta: ValueMeta,
    },
    /// The stored value is damaged. It is neither returned nor treated as missing.
    #[error("the stored value of {key} is damaged")]
    Corrupt {
        /// The key.
        key: Key,
        /// The damage.
        #[source]
        cause: Corruption,
    },
    /// There is no space for the value; nothing was changed, and erasing still works.
    #[error("there is no space left for values")]
    OutOfSpace,
    /// The store is read-only until it is opened again, since the system failed to make a change durable.
    #[error("the store is read-only until it is opened again, since a write could not be made durable")]
    ReadOnly,
    /// A commit has more changes than the limit.
    #[error("one commit has at most {limit} changes, this one has {changes}")]
    TooManyChanges {
        /// The number of changes.
        changes: usize,
        /// The limit.
        limit: usize,
    },
    /// A commit names a key twice.
    #[error("the commit names {key} twice")]
    DuplicateKey {
        /// The key.
        key: Key,
    },
    /// An intent cannot be added or settled.
    #[error(transparent)]
    Intent(#[from] IntentError),
    /// A cursor that was not issued for this listing of this store.
    #[error("the cursor was not issued for this listing")]
    InvalidCursor,
    /// The content of a value did not arrive as announced; nothing was changed.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// A staged value of another store, or one that was committed before.
    #[error("the staged value belongs to another store, or was committed before")]
    InvalidStaged,
    /// A key that the snapshot does not contain was read.
    #[error("the snapshot was not made of {key}")]
    NotInSnapshot {
        /// The key.
        key: Key,
    },
    /// A snapshot, or a value being read, made no progress for too long, and its resources were released.
    #[error("the snapshot was left without progress for too long")]
    SnapshotExpired,
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// The operating system failed an operation on a file of the store.
    #[error("could not {action}")]
    Io {
        /// The failed action, which continues "could not".
        action: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The store is busy or stopping, or too many files are open; the request can be retried.
    #[error("the store is busy")]
    Busy {
        /// The time after which to retry, if the store says so.
        retry_after: Option<Duration>,
    },
    /// The store failed in a way that only its implementation knows, such as an index that cannot be read or a server
    /// that does not answer. `kind` says what a caller can do about it, `source` what happened.
    #[error("{kind}")]
    Backend {
        /// The class of the error.
        kind: BackendErrorKind,
        /// The implementation's error.
        #[source]
        source: BoxError,
    },
}

/// The class of a [`StoreError::Backend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BackendErrorKind {
    /// The store requires credentials, or does not accept those that were sent.
    #[error("the store requires authentication")]
    Unauthenticated,
    /// The store denies the operation to this caller.
    #[error("the store denies this operation")]
    PermissionDenied,
    /// The connection to the store could not be made, or it broke. A change may or may not have been made; a retry can
    /// succeed.
    #[error("the connection to the store failed")]
    Connection,
    /// The store sent a response that violates its protocol.
    #[error("the store sent an invalid response")]
    InvalidResponse,
    /// The store failed in any other way.
    #[error("the store failed")]
    Internal,
}

/// The damage of a stored value, as the store that found it describes it.
///
/// Each implementation has its own error type for this; [`Corruption::detail`] can be downcast to it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Corruption {
    /// The description.
    pub detail: BoxError,
}

/// An error of receiving the content of a value.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// It is larger than a value may be.
    #[error("the value is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// It has another length than announced.
    #[error("{received} bytes came where {announced} were announced")]
    LengthMismatch {
        /// The length that was announced.
        announced: u64,
        /// The number of bytes received.
        received: u64,
    },
    /// It does not have the announced digest.
    #[error("the content does not match its digest")]
    DigestMismatch,
    /// No data arrived until the timeout.
    #[error("the content stopped coming")]
    TimedOut,
    /// The sender left, or stopped.
    #[error("the content broke off")]
    Aborted(#[source] BoxError),
}

impl Corruption {
    /// Damage that `detail` describes.
    pub fn new(detail: impl Into<BoxError>) -> Self {
        Self { detail: detail.into() }
    }

    /// The description as the error type of a store's implementation, if it is of that type.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.detail.downcast_ref()
    }
}

impl StoreError {
    /// Damage of the value of `key`.
    pub fn corrupt(key: Key, detail: impl Into<BoxError>) -> Self {
        Self::Corrupt { key, cause: Corruption::new(detail) }
    }

    /// An error that only the store's implementation knows.
    pub fn backend(kind: BackendErrorKind, source: impl Into<BoxError>) -> Self {
        Self::Backend { kind, source: source.into() }
    }

    /// The class of a [`StoreError::Backend`]; `None` for any other error.
    pub fn backend_kind(&self) -> Option<BackendErrorKind> {
        match self {
            Self::Backend { kind, .. } => Some(*kind),
            _ => None,
        }
    }

    /// The source of a [`StoreError::Backend`], if it is of this type.
    pub fn backend_source<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Backend { source, .. } => source.downcast_ref(),
            _ => None,
        }
    }

    /// Wraps an error of the operating system. A full disk and too many open files become errors of their own.
    pub fn io(action: &'static str, source: io::Error) -> Self {
        if source.raw_os_error().is_some_and(|error| TOO_MANY_FILES.contains(&error)) {
            return Self::Busy { retry_after: Some(Duration::from_secs(1)) };
        }
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::OutOfSpace,
            _ => Self::Io { action, source },
        }
    }
}
