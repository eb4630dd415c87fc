//! Changes of a commit, and their outcomes.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;

use crate::{
    Intent, IntentError, IntentFilter, IntentId, Key, MAX_INTENT_LEN, Precondition, Prefix, PutResult, Staged,
    StoreError,
};

/// The maximum number of changes in one commit.
pub const MAX_COMMIT_CHANGES: usize = 320_000;

/// The maximum number of keys that [`erase_prefix`](crate::WriteableStore::erase_prefix) counts.
pub const MAX_COUNTED_KEYS: usize = 100_000;

/// One change of a commit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Sets the key that the value was staged for.
    Set {
        /// The value.
        staged: Staged,
        /// The condition on the key.
        precondition: Precondition,
    },
    /// Sets a key to a value that is in memory. Many small values take much less memory than if they were staged; a
    /// large one should be [staged](crate::BatchStore::stage).
    Put {
        /// The key.
        key: Key,
        /// The value.
        value: Bytes,
        /// The condition on the key.
        precondition: Precondition,
    },
    /// Erases a key.
    Erase {
        /// The key.
        key: Key,
        /// The condition on the key.
        precondition: Precondition,
    },
    /// Changes nothing; the commit fails unless the precondition holds.
    Check {
        /// The key.
        key: Key,
        /// The condition on the key.
        precondition: Precondition,
    },
    /// Erases every key that is below a prefix when the commit is made, before the commit's other changes are applied.
    /// Counts as one change, however many keys exist.
    ErasePrefix {
        /// The prefix.
        prefix: Prefix,
    },
    /// Changes nothing; the commit fails with [`StoreError::NotEmpty`] if any key is below the prefix before it, even
    /// if the commit erases that key.
    CheckEmpty {
        /// The prefix.
        prefix: Prefix,
    },
    /// Adds an intent, which persists until it is removed.
    AddIntent {
        /// A new id; see [`IntentId::random`].
        id: IntentId,
        /// The record.
        record: Bytes,
    },
    /// Removes an intent. Fails with [`IntentError::NotFound`] if it does not exist, so only one of two concurrent
    /// removals succeeds.
    RemoveIntent {
        /// The id.
        id: IntentId,
    },
    /// Changes nothing; the commit fails with [`IntentError::NotFound`] unless the intent exists before it.
    CheckIntent {
        /// The id.
        id: IntentId,
    },
    /// Changes nothing; the commit fails with [`IntentError::Excludes`] if an intent exists before it that the filter
    /// matches.
    CheckNoIntent {
        /// The filter.
        filter: Arc<dyn IntentFilter>,
    },
}

/// A number of keys, counted up to [`MAX_COUNTED_KEYS`].
///
/// Erasing a prefix costs the same whatever is below it, so it does not count what it erases. The result of an erase is
/// the number of keys that were counted just before its commit: keys that others set or erase in between are erased as
/// well, and are not in the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCount {
    /// The number of keys that were counted.
    pub count: u64,
    /// True if all keys were counted; otherwise more than `count` exist.
    pub exact: bool,
}

/// The outcome of one change of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The key was set.
    Set(PutResult),
    /// The key was erased.
    Erased {
        /// True if it had a value before.
        existed: bool,
    },
    /// The precondition held, the prefix was empty, the intent existed, or none did.
    Checked,
    /// The keys below the prefix were erased.
    PrefixErased,
    /// The intent was added.
    IntentAdded,
    /// The intent was removed.
    IntentRemoved,
}

impl KeyCount {
    /// A complete count.
    pub fn exact(count: u64) -> Self {
        Self { count, exact: true }
    }

    /// The sum of two counts.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), exact: self.exact && other.exact }
    }
}

impl Change {
    /// The key that the change names, if it names one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Set { staged, .. } => Some(staged.key()),
            Self::Put { key, .. } | Self::Erase { key, .. } | Self::Check { key, .. } => Some(key),
            Self::ErasePrefix { .. } | Self::CheckEmpty { .. } | Self::AddIntent { .. } => None,
            Self::RemoveIntent { .. } | Self::CheckIntent { .. } | Self::CheckNoIntent { .. } => None,
        }
    }

    /// The intent that the change names, if it names one.
    pub fn intent(&self) -> Option<IntentId> {
        match self {
            Self::AddIntent { id, .. } | Self::RemoveIntent { id } | Self::CheckIntent { id } => Some(*id),
            Self::Set { .. } | Self::Put { .. } | Self::Erase { .. } | Self::Check { .. } => None,
            Self::ErasePrefix { .. } | Self::CheckEmpty { .. } | Self::CheckNoIntent { .. } => None,
        }
    }

    /// The condition on the key that the change names, if it names one.
    pub fn precondition(&self) -> Option<&Precondition> {
        match self {
            Self::Set { precondition, .. }
            | Self::Put { precondition, .. }
            | Self::Erase { precondition, .. }
            | Self::Check { precondition, .. } => Some(precondition),
            Self::ErasePrefix { .. } | Self::CheckEmpty { .. } => None,
            Self::AddIntent { .. } | Self::RemoveIntent { .. } => None,
            Self::CheckIntent { .. } | Self::CheckNoIntent { .. } => None,
        }
    }

    /// As [`precondition`](Self::precondition), to be changed.
    pub fn precondition_mut(&mut self) -> Option<&mut Precondition> {
        match self {
            Self::Set { precondition, .. }
            | Self::Put { precondition, .. }
            | Self::Erase { precondition, .. }
            | Self::Check { precondition, .. } => Some(precondition),
            Self::ErasePrefix { .. } | Self::CheckEmpty { .. } => None,
            Self::AddIntent { .. } | Self::RemoveIntent { .. } => None,
            Self::CheckIntent { .. } | Self::CheckNoIntent { .. } => None,
        }
    }

    /// True if it changes nothing and only checks a condition.
    pub fn is_check(&self) -> bool {
        match self {
            Self::Check { .. } | Self::CheckEmpty { .. } => true,
            Self::CheckIntent { .. } | Self::CheckNoIntent { .. } => true,
            Self::Set { .. } | Self::Put { .. } | Self::Erase { .. } | Self::ErasePrefix { .. } => false,
            Self::AddIntent { .. } | Self::RemoveIntent { .. } => false,
        }
    }

    /// The first of these intents that excludes the commit.
    pub fn excluding<'i>(&self, intents: &'i [Intent]) -> Option<&'i Intent> {
        match self {
            Self::CheckNoIntent { filter } => intents.iter().find(|intent| filter.matches(&intent.record)),
            _ => None,
        }
    }

    /// Rejects changes that cannot be committed to any store: too many, two of one key or intent, or a record of an
    /// intent that is too long. Implementations of [`TransactionalStore::commit`](crate::TransactionalStore::commit)
    /// call this first.
    pub fn validate<'c>(changes: impl IntoIterator<Item = &'c Self, IntoIter: Clone>) -> Result<(), StoreError> {
        let changes = changes.into_iter();
        let len = changes.clone().count();
        if len > MAX_COMMIT_CHANGES {
            return Err(StoreError::TooManyChanges { changes: len, limit: MAX_COMMIT_CHANGES });
        }
        let mut named = HashSet::with_capacity(len);
        if let Some(key) = changes.clone().filter_map(Self::key).find(|key| !named.insert(*key)) {
            return Err(StoreError::DuplicateKey { key: key.clone() });
        }
        let mut intents = HashSet::new();
        if let Some(id) = changes.clone().filter_map(Self::intent).find(|id| !intents.insert(*id)) {
            return Err(IntentError::Duplicate { id }.into());
        }
        let too_long = |change: &Self| match change {
            Self::AddIntent { record, .. } => Some(record.len()).filter(|len| *len > MAX_INTENT_LEN),
            _ => None,
        };
        match changes.filter_map(too_long).next() {
            Some(len) => Err(IntentError::TooLong { len, limit: MAX_INTENT_LEN }.into()),
            None => Ok(()),
        }
    }
}
