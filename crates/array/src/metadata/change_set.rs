//! The changes of one commit.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use bytes::Bytes;
use meta::documents::write::StoredNode;
use operations::NodeRejection;
use store::{Change, IntentId, Key, MAX_COMMIT_CHANGES, Precondition, Prefix, TransactionalStore, Version};

use super::error::NodeError;
use crate::node::read_set::{NodeVersions, ReadSet};

/// The changes of one commit, and the versions that they depend on. No key occurs twice.
#[derive(Debug, Default)]
pub(crate) struct ChangeSet {
    keys: BTreeMap<Key, PendingChange>,
    /// Prefixes to erase before keys are changed.
    erased: BTreeSet<Prefix>,
    /// Prefixes below which no key may exist.
    empty: BTreeSet<Prefix>,
    /// The intent to settle.
    settled: Option<IntentId>,
}

#[derive(Debug, Default)]
struct PendingChange {
    /// The version of the key when it was read, if it was.
    version_read: Option<Option<Version>>,
    action: Action,
}

#[derive(Debug, Default)]
enum Action {
    #[default]
    Check,
    Set(Bytes),
    Erase,
}

/// The pending state of a key.
pub(crate) enum PendingState<'a> {
    /// Unchanged.
    Kept,
    /// Set to this value.
    Set(&'a Bytes),
    /// Erased.
    Erased,
}

impl ChangeSet {
    /// Makes the commit depend on a key having this version. The first record of a key counts.
    pub(crate) fn record_read(&mut self, key: &Key, version: Option<Version>) {
        match self.keys.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(PendingChange { version_read: Some(version), action: Action::Check });
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().version_read.get_or_insert(version);
            }
        }
    }

    /// Makes the commit depend on all documents of a read set.
    pub(crate) fn record_reads(&mut self, documents: &ReadSet) {
        for (key, version) in documents.versions() {
            self.record_read(key, *version);
        }
    }

    /// Sets a key.
    pub(crate) fn set(&mut self, key: Key, value: Bytes) {
        self.keys.entry(key).or_default().action = Action::Set(value);
    }

    /// Erases a key.
    pub(crate) fn erase(&mut self, key: Key) {
        self.keys.entry(key).or_default().action = Action::Erase;
    }

    /// Erases all keys below a prefix, however many there are.
    pub(crate) fn erase_prefix(&mut self, prefix: Prefix) {
        self.erased.insert(prefix);
    }

    /// Makes the commit depend on there being no key below a prefix.
    pub(crate) fn check_empty(&mut self, prefix: Prefix) {
        self.empty.insert(prefix);
    }

    /// Settles an intent.
    pub(crate) fn settle(&mut self, id: IntentId) {
        self.settled = Some(id);
    }

    /// Sets the documents of a node, at the keys of `own`, where they differ from `before`; returns whether anything
    /// changes.
    pub(crate) fn rewrite(&mut self, own: &NodeVersions, before: Option<&StoredNode>, after: &StoredNode) -> bool {
        if before == Some(after) {
            return false;
        }
        let NodeVersions(own) = own;
        if let Some((key, _)) = own.first()
            && before.is_none_or(|before| before.document != after.document)
        {
            self.set(key.clone(), after.document.to_padded_bytes());
        }
        if let Some((key, version)) = own.get(1)
            && before.is_none_or(|before| before.attributes != after.attributes)
        {
            match &after.attributes {
                Some(attributes) => self.set(key.clone(), attributes.to_padded_bytes()),
                None if version.is_some() => self.erase(key.clone()),
                None => {}
            }
        }
        true
    }

    /// The pending state of a key.
    pub(crate) fn pending(&self, key: &Key) -> PendingState<'_> {
        match self.keys.get(key).map(|edit| &edit.action) {
            None | Some(Action::Check) if self.erased.iter().any(|prefix| prefix.contains(key)) => PendingState::Erased,
            None | Some(Action::Check) => PendingState::Kept,
            Some(Action::Set(value)) => PendingState::Set(value),
            Some(Action::Erase) => PendingState::Erased,
        }
    }

    /// True if a key was read, exists, and stays unchanged.
    pub(crate) fn stays_unchanged(&self, key: &Key) -> bool {
        let existed = |edit: &PendingChange| matches!(edit.version_read, Some(Some(_)));
        self.keys.get(key).is_some_and(existed) && matches!(self.pending(key), PendingState::Kept)
    }

    /// The changed keys, in the order of their changes; checks come after these.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.keys()
    }

    /// The number of changes.
    pub(crate) fn len(&self) -> usize {
        let prefixes = self.erased.len().saturating_add(self.empty.len());
        self.keys.len().saturating_add(prefixes).saturating_add(usize::from(self.settled.is_some()))
    }

    /// True if it changes anything.
    pub(crate) fn changes_anything(&self) -> bool {
        !self.erased.is_empty() || self.keys.values().any(|edit| !matches!(edit.action, Action::Check))
    }

    /// Stages all values. Fails if there are more changes than one commit can have.
    pub(crate) async fn stage(self, store: &dyn TransactionalStore) -> Result<Vec<Change>, NodeError> {
        if self.len() > MAX_COMMIT_CHANGES {
            return Err(NodeError::Rejected(NodeRejection::TooManyChanges {
                changes: self.len() as u64,
                limit: MAX_COMMIT_CHANGES as u64,
            }));
        }
        let mut changes = Vec::with_capacity(self.len());
        for (key, PendingChange { version_read, action }) in self.keys {
            let precondition = version_read.map_or_else(Precondition::none, Precondition::unchanged);
            changes.push(match action {
                Action::Check => Change::Check { key, precondition },
                Action::Erase => Change::Erase { key, precondition },
                Action::Set(value) => Change::Set { staged: store.stage(&key, value.into()).await?, precondition },
            });
        }
        changes.extend(self.erased.into_iter().map(|prefix| Change::ErasePrefix { prefix }));
        changes.extend(self.empty.into_iter().map(|prefix| Change::CheckEmpty { prefix }));
        changes.extend(self.settled.map(|id| Change::RemoveIntent { id }));
        Ok(changes)
    }
}
