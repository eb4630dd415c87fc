//! Changes of a commit, and their outcomes.

use std::collections::HashSet;

use bytes::Bytes;

use crate::{IntentError, IntentId, Key, MAX_INTENT_LEN, Precondition, Prefix, PutResult, Staged, StoreError};

/// The most changes that one commit has.
pub const MAX_COMMIT_CHANGES: usize = 320_000;

/// The most keys that [`erase_prefix`](WriteableStore::erase_prefix) counts.
pub const MAX_COUNTED_KEYS: usize = 100_000;

/// One change of a commit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Sets the key that the value was staged for.
    Set {
        /// The value.
        staged: Staged,
        /// What must hold of the key.
        precondition: Precondition,
    },
    /// Erases a key.
    Erase {
        /// The key.
        key: Key,
        /// What must hold of it.
        precondition: Precondition,
    },
    /// Changes nothing, but the commit is made only if this holds.
    Check {
        /// The key.
        key: Key,
        /// What must hold of it.
        precondition: Precondition,
    },
    /// Erases every key below a prefix that is there when the commit is made, before the commit's other changes are
    /// applied. One change, however many keys that are.
    ErasePrefix {
        /// The prefix.
        prefix: Prefix,
    },
    /// Changes nothing, but the commit is made only if no key is below the prefix before it, whatever it sets or erases
    /// there. Fails with [`StoreError::NotEmpty`].
    CheckEmpty {
        /// The prefix.
        prefix: Prefix,
    },
    /// Adds an intent, which stays until it is settled.
    AddIntent {
        /// Its id, which none has had before: see [`IntentId::random`].
        id: IntentId,
        /// What it says.
        record: Bytes,
    },
    /// Removes an intent. Fails with [`IntentError::NotFound`] where it is not there, so of two that settle it one succeeds.
    RemoveIntent {
        /// Its id.
        id: IntentId,
    },
}

/// The number of keys that an erase of a prefix found.
///
/// An erase of a prefix costs the same whatever lies below it, so it cannot count what it erases. This is the number of
/// keys below the prefix that were counted just before the commit: keys that others set or erase in between are
/// erased all the same, and make it differ. Counting stops at [`MAX_COUNTED_KEYS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCount {
    /// The number of keys that were counted.
    pub count: u64,
    /// True where all of them were counted; otherwise there were more than `count`.
    pub exact: bool,
}

/// What one change of a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The key was set.
    Set(PutResult),
    /// The key was erased.
    Erased {
        /// True if it had a value before.
        existed: bool,
    },
    /// The precondition held, or the prefix was empty.
    Checked,
    /// What was below the prefix was erased.
    PrefixErased,
    /// The intent was added.
    IntentAdded,
    /// It was removed.
    IntentRemoved,
}

impl KeyCount {
    /// A count that came to its end.
    pub fn exact(count: u64) -> Self {
        Self { count, exact: true }
    }

    /// The keys of two erases together.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), exact: self.exact && other.exact }
    }
}

impl Change {
    /// The key concerned, where it is one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Set { staged, .. } => Some(staged.key()),
            Self::Erase { key, .. } | Self::Check { key, .. } => Some(key),
            Self::ErasePrefix { .. } | Self::CheckEmpty { .. } | Self::AddIntent { .. } | Self::RemoveIntent { .. } => {
                None
            }
        }
    }

    /// The intent concerned, where it is one.
    pub fn intent(&self) -> Option<IntentId> {
        match self {
            Self::AddIntent { id, .. } | Self::RemoveIntent { id } => Some(*id),
            Self::Set { .. } | Self::Erase { .. } | Self::Check { .. } => None,
            Self::ErasePrefix { .. } | Self::CheckEmpty { .. } => None,
        }
    }

    /// Fails where the changes do not make a commit, whatever the store holds: there are too many, a key or an
    /// intent is named twice, or the record of an intent is too long. Implementations of [`TransactionalStore::commit`] begin with this.
    pub fn validate(changes: &[Self]) -> Result<(), StoreError> {
        if changes.len() > MAX_COMMIT_CHANGES {
            return Err(StoreError::TooManyChanges { changes: changes.len(), limit: MAX_COMMIT_CHANGES });
        }
        let mut named = HashSet::with_capacity(changes.len());
        if let Some(key) = changes.iter().filter_map(Self::key).find(|key| !named.insert(*key)) {
            return Err(StoreError::DuplicateKey { key: key.clone() });
        }
        let mut intents = HashSet::new();
        if let Some(id) = changes.iter().filter_map(Self::intent).find(|id| !intents.insert(*id)) {
            return Err(IntentError::Duplicate { id }.into());
        }
        let too_long = |change: &Self| match change {
            Self::AddIntent { record, .. } => Some(record.len()).filter(|len| *len > MAX_INTENT_LEN),
            _ => None,
        };
        match changes.iter().find_map(too_long) {
            Some(len) => Err(IntentError::TooLong { len, limit: MAX_INTENT_LEN }.into()),
            None => Ok(()),
        }
    }
}
