//! Errors of stores.

use std::{fmt, io, time::Duration};

use crate::{IntentError, Key, Precondition, Prefix, ValueMeta, Version};

/// An error of any type, as the source of another one.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// `ENFILE` and `EMFILE`, which are the same numbers on every Unix.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// Errors of store operations. A key without a value is not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A precondition does not hold; nothing was changed. Returned by `set`, `erase` and `commit`.
    #[error("precondition failed for {key}")]
    PreconditionFailed {
        /// The key.
        key: Key,
        /// The version of the key's value, if it has one and the store reports it.
        current: Option<Version>,
    },
    /// A commit requires a prefix to be empty ([`Change::CheckEmpty`](crate::Change::CheckEmpty)), and it is not;
    /// nothing was changed.
    #[error("the prefix {prefix:?} is not empty: it contains {key}")]
    NotEmpty {
        /// The prefix.
        prefix: Prefix,
        /// The first key below the prefix.
        key: Key,
    },
    /// A key cannot have a value while another key or prefix exists, since the store has one name for both: as a file
    /// system has for a file `a` and files below `a/`, and some have for `a` and `A`. Nothing was changed.
    #[error("{key} cannot be changed while {existing} exists: the store has one name for both")]
    NameConflict {
        /// The key.
        key: Key,
        /// The key, or the prefix with a `/` at its end, that exists.
        existing: String,
    },
    /// A read asks for a range that contains no byte of the value.
    #[error("the range contains no byte of a value of {} bytes", meta.size)]
    RangeNotSatisfiable {
        /// The metadata of the value.
        meta: ValueMeta,
    },
    /// The stored value, or its record, fails a check. The value is neither returned nor treated as missing. Returned
    /// by reads, by the stream of a read, and by listings.
    #[error("the stored value of {key} is damaged")]
    Corrupt {
        /// The key.
        key: Key,
        /// The damage that was found.
        #[source]
        cause: Corruption,
    },
    /// The file system, or the memory limit, has no space for the value; nothing was changed. Erasing still works.
    #[error("no space is left for values")]
    OutOfSpace,
    /// The store accepts no changes until it is opened again, because a write could not be made durable.
    #[error("the store is read-only until it is opened again, because a write could not be made durable")]
    ReadOnly,
    /// A commit has more than [`MAX_COMMIT_CHANGES`](crate::MAX_COMMIT_CHANGES) changes.
    #[error("a commit of {changes} changes exceeds the limit of {limit}")]
    TooManyChanges {
        /// The number of changes.
        changes: usize,
        /// The limit.
        limit: usize,
    },
    /// Two changes of a commit name one key.
    #[error("the commit changes {key} twice")]
    DuplicateKey {
        /// The key.
        key: Key,
    },
    /// A commit adds or removes an intent that it cannot.
    #[error(transparent)]
    Intent(#[from] IntentError),
    /// A batch failed after some of its keys were changed, in a store that is written key by key.
    #[error("{applied} of {of} keys were changed: {source}")]
    PartlyApplied {
        /// The number of keys that were changed.
        applied: u64,
        /// The number of keys that the batch changes.
        of: u64,
        /// The keys of chunks that were not changed, since their conditions did not hold.
        conflicts: Vec<Key>,
        /// The error of the first change that failed.
        source: Box<StoreError>,
    },
    /// A listing received a cursor that was not issued for it by this store.
    #[error("the cursor was not issued for this listing of this store")]
    InvalidCursor,
    /// The payload of a `set` or `stage` did not arrive as announced; nothing was changed.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// A commit, or `read_staged`, names a staged value of another store, or one that was committed before.
    #[error("the staged value belongs to another store or was committed before")]
    InvalidStaged,
    /// A snapshot was read for a key that it was not taken of.
    #[error("the snapshot was not taken of {key}")]
    NotInSnapshot {
        /// The key.
        key: Key,
    },
    /// A snapshot, or a value being read, made no progress for too long, and its resources were released.
    #[error("the snapshot expired: it was not read from for too long")]
    SnapshotExpired,
    /// A value was changed by another program while an answer was being read from it. The answer can be read again
    /// from the beginning.
    #[error("the value of {key} was changed by another program while it was read")]
    Changed {
        /// The key.
        key: Key,
    },
    /// A change of a key was sent to another server, its answer was lost, and what is stored does not say whether the
    /// change was made. It may still be made. Repeating it could undo a change that another client made since. Or a change
    /// of a file was made, and the disk failed to make it durable.
    #[error("it is not known whether {key} was changed")]
    OutcomeUnknown {
        /// The key.
        key: Key,
        /// The failure of the last request, or of the disk.
        #[source]
        source: BoxError,
    },
    /// The store cannot do this at all; nothing was changed.
    #[error("the store does not support {what}")]
    Unsupported {
        /// The operation, which continues "does not support".
        what: &'static str,
    },
    /// The store was closed.
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
    /// The store is busy or starting or stopping, or too many files are open. The operation can be retried.
    #[error("the store is busy")]
    Busy {
        /// The time after which to retry, if the store knows it.
        retry_after: Option<Duration>,
    },
    /// An error that is specific to the implementation, such as an index that cannot be read or a server that does not
    /// answer. `kind` tells callers how to handle it, `source` tells operators what happened.
    #[error("{kind}")]
    Backend {
        /// The class of the error.
        kind: BackendErrorKind,
        /// The implementation's error.
        #[source]
        source: BoxError,
    },
}

/// The failure of a store at a key or prefix: a source of [`StoreError::Backend`] that is shown as its own source.
#[derive(Debug)]
struct FailureAt {
    name: Option<String>,
    /// What clients are told of the source.
    reason: Option<String>,
    source: BoxError,
}

impl fmt::Display for FailureAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl std::error::Error for FailureAt {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}

/// The failure that a source is, or one of which no more is known.
fn failure(source: BoxError) -> FailureAt {
    match source.downcast::<FailureAt>() {
        Ok(failure) => *failure,
        Err(source) => FailureAt { name: None, reason: None, source },
    }
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
    /// The store did not answer within the time that its answer is waited for. A retry can succeed.
    #[error("the store did not answer in time")]
    Timeout,
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
    /// The implementation's error.
    pub detail: BoxError,
}

/// Errors of receiving a payload.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The payload exceeds the maximum size of a value.
    #[error("the value exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The payload is shorter or longer than announced.
    #[error("received {received} bytes of a payload announced with {announced}")]
    LengthMismatch {
        /// The length that was announced.
        announced: u64,
        /// The number of bytes received.
        received: u64,
    },
    /// The payload does not match its announced digest.
    #[error("the payload does not match its digest")]
    DigestMismatch,
    /// No data arrived within the timeout.
    #[error("no data of the payload arrived within the timeout")]
    TimedOut,
    /// The sender aborted the upload.
    #[error("the upload was aborted")]
    Aborted(#[source] BoxError),
}

impl Precondition {
    /// Fails with [`StoreError::PreconditionFailed`] if the condition does not hold for `key`, which is at version `current`.
    pub fn check(&self, key: &Key, current: Option<Version>) -> Result<(), StoreError> {
        match self.is_met_by(current) {
            true => Ok(()),
            false => Err(StoreError::PreconditionFailed { key: key.clone(), current }),
        }
    }
}

impl Corruption {
    /// Damage that `detail` describes.
    pub fn new(detail: impl Into<BoxError>) -> Self {
        Self { detail: detail.into() }
    }

    /// The detail, if it is of this type.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.detail.downcast_ref()
    }
}

impl StoreError {
    /// The error of the change that failed, also if it was one of a batch that was applied in part.
    pub fn of_change(&self) -> &Self {
        match self {
            Self::PartlyApplied { source, .. } => source.of_change(),
            error => error,
        }
    }

    /// A [`StoreError::Corrupt`] with this detail.
    pub fn corrupt(key: Key, detail: impl Into<BoxError>) -> Self {
        Self::Corrupt { key, cause: Corruption::new(detail) }
    }

    /// A [`StoreError::Backend`] of this class.
    pub fn backend(kind: BackendErrorKind, source: impl Into<BoxError>) -> Self {
        Self::Backend { kind, source: source.into() }
    }

    /// A [`StoreError::Backend`] with the key or prefix at which the store failed; any other error as it is.
    #[must_use]
    pub fn at(self, name: impl Into<String>) -> Self {
        match self {
            Self::Backend { kind, source } => {
                Self::backend(kind, FailureAt { name: Some(name.into()), ..failure(source) })
            }
            error => error,
        }
    }

    /// A [`StoreError::Backend`] with a reason that clients may be told, which has no secret and no path of the machine;
    /// any other error as it is.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        match self {
            Self::Backend { kind, source } => {
                Self::backend(kind, FailureAt { reason: Some(reason.into()), ..failure(source) })
            }
            error => error,
        }
    }

    /// The reason that clients may be told, if this is a [`StoreError::Backend`] that has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Backend { source, .. } => source.downcast_ref::<FailureAt>()?.reason.as_deref(),
            _ => None,
        }
    }

    /// The key or prefix at which the store failed, if this is a [`StoreError::Backend`] that has it.
    pub fn failed_at(&self) -> Option<&str> {
        match self {
            Self::Backend { source, .. } => source.downcast_ref::<FailureAt>()?.name.as_deref(),
            _ => None,
        }
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
            Self::Backend { source, .. } => {
                source.downcast_ref::<FailureAt>().map_or(source, |failure| &failure.source).downcast_ref()
            }
            _ => None,
        }
    }

    /// Wraps an error of the operating system. A full disk becomes [`StoreError::OutOfSpace`], and too many open files
    /// become [`StoreError::Busy`].
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
