//! Intents: durable records of operations that take several commits.

use std::fmt;

use bytes::Bytes;

/// The longest record of an intent, in bytes: three keys of any length in JSON fit, and a page of an index of 16 such
/// records is still a small one.
pub const MAX_INTENT_LEN: usize = 8 << 10;

/// The most intents that a store has at a time.
pub const MAX_INTENTS: usize = 1024;

/// The id of an intent: random, so that none is ever used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntentId(u128);

/// An operation that has begun and is not settled.
///
/// Whoever begins an operation that takes several commits commits an intent first, and settles it in the last of them. One
/// that is found when a store is opened was interrupted, and is finished or undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Its id.
    pub id: IntentId,
    /// What it says, to whoever committed it.
    pub record: Bytes,
}

/// Why a commit that adds or settles an intent fails. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// It was settled before, or never there.
    #[error("there is no intent {id}")]
    Missing {
        /// The intent.
        id: IntentId,
    },
    /// There is one with this id.
    #[error("there is an intent {id} already")]
    Exists {
        /// The intent.
        id: IntentId,
    },
    /// The commit names it twice.
    #[error("the commit names the intent {id} twice")]
    Repeated {
        /// The intent.
        id: IntentId,
    },
    /// Its record is too long.
    #[error("the record of an intent has at most {limit} bytes, this one has {len}")]
    TooLong {
        /// The record's length in bytes.
        len: usize,
        /// How long it may be.
        limit: usize,
    },
    /// There are as many as there may be.
    #[error("there are at most {limit} unfinished operations at a time")]
    TooMany {
        /// How many there may be.
        limit: usize,
    },
}

impl IntentId {
    /// A new id.
    pub fn random() -> Self {
        Self(u128::from(crate::memory::random()) << 64 | u128::from(crate::memory::random()))
    }

    /// The id of this number.
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntentId({self})")
    }
}
