//! Intents: durable records of operations that take several commits.

use std::fmt;

use bytes::Bytes;

use crate::random::random;

/// The maximum length of an intent's record, in bytes: enough for three keys of any length as JSON.
pub const MAX_INTENT_LEN: usize = 8 << 10;

/// The maximum number of intents that exist at a time.
pub const MAX_INTENTS: usize = 1024;

/// The id of an intent: random, and never reused. Its bytes are big-endian; a number would align each
/// [`Change`](crate::Change) to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntentId([u8; 16]);

/// A durable record of an operation that takes several commits.
///
/// Such an operation adds an intent in its first commit and removes it in its last. Its other commits check that the
/// intent still exists ([`Change::CheckIntent`](crate::Change::CheckIntent)), and commits that must not happen meanwhile
/// check that there is no such intent ([`Change::CheckNoIntent`](crate::Change::CheckNoIntent)). An intent whose record
/// names a [run](RunId) that [ended](crate::TransactionalStore::is_running) belongs to an interrupted operation, which
/// has to be finished or undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The id.
    pub id: IntentId,
    /// The record, whose format the program that added it defines.
    pub record: Bytes,
}

/// The id of a run: of the time for which a store is open for writing. Random, so that no two runs have the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunId(u64);

/// Intents that exclude a commit, by their records.
pub trait IntentFilter: fmt::Debug + Send + Sync {
    /// True if an intent with this record excludes the commit.
    fn matches(&self, record: &[u8]) -> bool;
}

/// Errors of adding, removing or checking an intent. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// The intent does not exist: it was removed, or never added.
    #[error("the intent {id} does not exist")]
    NotFound {
        /// The intent.
        id: IntentId,
    },
    /// An intent with this id exists.
    #[error("the intent {id} already exists")]
    AlreadyExists {
        /// The intent.
        id: IntentId,
    },
    /// The intent exists, and the commit [must not be made](crate::Change::CheckNoIntent) before it is removed.
    #[error("the unfinished operation {id} excludes the commit")]
    Excludes {
        /// The intent.
        id: IntentId,
    },
    /// Two changes of the commit name the intent.
    #[error("the commit changes the intent {id} twice")]
    Duplicate {
        /// The intent.
        id: IntentId,
    },
    /// The record is longer than [`MAX_INTENT_LEN`].
    #[error("an intent record of {len} bytes exceeds the limit of {limit}")]
    TooLong {
        /// The record's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The store has [`MAX_INTENTS`] intents.
    #[error("{limit} unfinished operations exist, which is the limit")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl IntentId {
    /// A new id.
    pub fn random() -> Self {
        Self::from_u128(u128::from(random()) << 64 | u128::from(random()))
    }

    /// The id with this number.
    pub const fn from_u128(number: u128) -> Self {
        Self(number.to_be_bytes())
    }

    /// The id as a number.
    pub const fn as_u128(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl RunId {
    /// A new id.
    pub fn random() -> Self {
        Self(random())
    }

    /// The id with this number.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The id as a number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.as_u128())
    }
}

impl fmt::Debug for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntentId({self})")
    }
}
