//! Intents: durable records of operations that take several commits.

use std::fmt;

use bytes::Bytes;

use crate::random::random;

/// The longest record of an intent, in bytes: three keys of any length in JSON fit, and a page of an index of 16 such
/// records is still a small one.
pub const MAX_INTENT_LEN: usize = 8 << 10;

/// The most intents that a store has at a time.
pub const MAX_INTENTS: usize = 1024;

/// The id of an intent: random, so that none is ever used twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntentId(u128);

/// An operation that has started and is not settled.
///
/// An operation that takes several commits first commits an intent, and settles it in the last of them. An intent that
/// is found when a store is opened belongs to an interrupted operation, which has to be finished or undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Its id.
    pub id: IntentId,
    /// The record, for the program that committed it.
    pub record: Bytes,
}

/// An error of adding or settling an intent. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// It was settled before, or never existed.
    #[error("there is no intent {id}")]
    NotFound {
        /// The intent.
        id: IntentId,
    },
    /// There is one with this id.
    #[error("there is an intent {id} already")]
    AlreadyExists {
        /// The intent.
        id: IntentId,
    },
    /// The commit names it twice.
    #[error("the commit names the intent {id} twice")]
    Duplicate {
        /// The intent.
        id: IntentId,
    },
    /// Its record is too long.
    #[error("the record of an intent has at most {limit} bytes, this one has {len}")]
    TooLong {
        /// The record's length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The store has as many intents as it can.
    #[error("there are at most {limit} unfinished operations at a time")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl IntentId {
    /// A new id.
    pub fn random() -> Self {
        Self(u128::from(random()) << 64 | u128::from(random()))
    }

    /// The id with this number.
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
