//! What can go wrong in a store.

use std::{io, time::Duration};

use crate::{Info, IntentError, Key, Prefix, Version};

/// An error of another crate, kept as the source of one of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// `ENFILE` and `EMFILE`, which are the same numbers on every Unix.
const TOO_MANY_FILES: [i32; 2] = [23, 24];

/// Why an operation of a store failed. That a key has no value is not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A precondition does not hold; nothing was changed.
    #[error("the precondition on {key} does not hold")]
    PreconditionFailed {
        /// The key concerned.
        key: Key,
        /// The version it has, where it has a value and the store tells.
        current: Option<Version>,
    },
    /// A prefix that a commit takes for empty is not; nothing was changed.
    #[error("the prefix {prefix:?} is not empty: {key} lies below it")]
    NotEmpty {
        /// The prefix concerned.
        prefix: Prefix,
        /// The first key below it.
        key: Key,
    },
    /// The range names no byte of the value.
    #[error("the range names no byte of a value of {} bytes", info.size)]
    RangeNotSatisfiable {
        /// The value it was asked of.
        info: Info,
    },
    /// What is stored for the key is not what was written. It is never served, nor taken for absent.
    #[error("the stored value of {key} is damaged")]
    Corrupt {
        /// The key concerned.
        key: Key,
        /// What is wrong with it.
        #[source]
        cause: Corruption,
    },
    /// There is no space for the value; nothing was changed, and erasing still works.
    #[error("there is no space left for values")]
    OutOfSpace,
    /// The store takes no changes until it is opened again, since the system failed to make one durable.
    #[error("the store is read-only until it is opened again, since a write could not be made durable")]
    ReadOnly,
    /// A commit has more changes than one may have.
    #[error("one commit has at most {limit} changes, this one has {changes}")]
    TooManyChanges {
        /// How many it has.
        changes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// A commit names a key twice.
    #[error("the commit names {key} twice")]
    RepeatedKey {
        /// The key concerned.
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
    ForeignStaged,
    /// A snapshot was asked for a key that it was not made of.
    #[error("the snapshot was not made of {key}")]
    NotInSnapshot {
        /// The key concerned.
        key: Key,
    },
    /// A snapshot, or a value being read, was left without progress for too long, and what it held is gone.
    #[error("the snapshot was left without progress for too long")]
    SnapshotExpired,
    /// The store has been closed.
    #[error("the store is closed")]
    Closed,
    /// The operating system failed an operation on a file of the store.
    #[error("could not {action}")]
    Io {
        /// What was tried, as it continues "could not".
        action: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The index failed.
    #[error("the index of the store failed")]
    Index(#[source] BoxError),
    /// The remote store wants to know who asks.
    #[error("the remote store asks for a token")]
    Unauthorized,
    /// The remote store does not allow this to whoever asks.
    #[error("the remote store does not allow this: {detail}")]
    Forbidden {
        /// What it said.
        detail: String,
    },
    /// The store is busy or stopping, or as many files are open as may be; the request can be made again.
    #[error("the store is busy")]
    Busy {
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The remote store failed, and told only that.
    #[error("the remote store failed (status {status}, request {request})")]
    Remote {
        /// The HTTP status.
        status: u16,
        /// The request's id, to be found in the remote log.
        request: String,
    },
    /// The remote store answered what its contract does not allow.
    #[error("the remote store gave an answer that cannot be understood: {detail}")]
    Protocol {
        /// What is wrong with it.
        detail: String,
    },
    /// The connection to a remote store failed.
    #[error("the connection to the remote store failed")]
    Transport(#[source] BoxError),
}

/// What is wrong with a stored value.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The index names a file that is not there.
    #[error("the value file {file} is missing")]
    MissingFile {
        /// The file's path within the store.
        file: String,
    },
    /// The file is shorter or longer than the index says.
    #[error("the value file {file} has {found} bytes instead of {expected}")]
    Length {
        /// The file's path within the store.
        file: String,
        /// Its size according to the index.
        expected: u64,
        /// Its size.
        found: u64,
    },
    /// The file's own description, at its end, fails its checksum or names another value.
    #[error("the trailer of the value file {file} is damaged")]
    Trailer {
        /// The file's path within the store.
        file: String,
    },
    /// A block of the file fails its checksum.
    #[error("block {block} of the value file {file} fails its checksum")]
    Block {
        /// The file's path within the store.
        file: String,
        /// The block's number, from 0.
        block: u64,
    },
    /// The key's record in the index fails its checksum or cannot be read.
    #[error("the record in the index is damaged")]
    Record,
    /// A remote store says so, and its log says more.
    #[error("the remote store found it damaged (request {request})")]
    Remote {
        /// The request's id, to be found in the remote log.
        request: String,
    },
}

/// How the content of a value failed to arrive.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// It is larger than a value may be.
    #[error("the value is larger than the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// It has another length than was announced.
    #[error("{received} bytes came where {announced} were announced")]
    Length {
        /// The length that was announced.
        announced: u64,
        /// How many bytes came.
        received: u64,
    },
    /// It does not have the digest that was announced.
    #[error("the content does not match its digest")]
    Digest,
    /// It stopped coming for longer than is waited for.
    #[error("the content stopped coming")]
    TimedOut,
    /// Whoever sent it went away, or broke off.
    #[error("the content broke off")]
    Aborted(#[source] BoxError),
}

impl StoreError {
    /// Wraps an error of the operating system. No space, and as many open files as there may be, become errors of their own.
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
