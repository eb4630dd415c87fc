//! What one commit changes.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use bytes::Bytes;
use meta::documents::write::StoredNode;
use store::{Change, IntentId, Key, MAX_COMMIT_CHANGES, Precondition, Prefix, TransactionalStore, Version};

use super::error::NodeError;
use crate::node::read_set::{NodeVersions, ReadSet};

/// What one commit changes, and what it depends on. No key is named twice.
#[derive(Debug, Default)]
pub(crate) struct ChangeSet {
    keys: BTreeMap<Key, PendingChange>,
    /// Prefixes below which everything is erased before the keys are changed.
    erased: BTreeSet<Prefix>,
    /// Prefixes below which there must be no key before.
    empty: BTreeSet<Prefix>,
    /// The intent that it settles.
    settled: Option<IntentId>,
}

#[derive(Debug, Default)]
struct PendingChange {
    /// The version that the key had when it was looked at, if it was.
    seen: Option<Option<Version>>,
    action: Action,
}

#[derive(Debug, Default)]
enum Action {
    #[default]
    Check,
    Set(Bytes),
    Erase,
}

/// What is to become of a key.
pub(crate) enum PendingState<'a> {
    /// It stays as it is.
    Kept,
    /// It is set to this.
    Set(&'a Bytes),
    /// It is erased.
    Erased,
}

impl ChangeSet {
    /// The commit depends on this key having this version. What was seen first counts.
    pub(crate) fn record_read(&mut self, key: &Key, version: Option<Version>) {
        match self.keys.entry(key.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(PendingChange { seen: Some(version), action: Action::Check });
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().seen.get_or_insert(version);
            }
        }
    }

    /// The commit depends on all these documents.
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

    /// The commit depends on there being no key below a prefix.
    pub(crate) fn check_empty(&mut self, prefix: Prefix) {
        self.empty.insert(prefix);
    }

    /// Settles an intent.
    pub(crate) fn settle(&mut self, id: IntentId) {
        self.settled = Some(id);
    }

    /// Sets the documents of a node, whose keys are those of `own`, where they differ from those `before`. Whether anything changes.
    pub(crate) fn rewrite(&mut self, own: &NodeVersions, before: Option<&StoredNode>, after: &StoredNode) -> bool {
        if before == Some(after) {
            return false;
        }
        let NodeVersions(own) = own;
        if let Some((key, _)) = own.first()
            && before.is_none_or(|before| before.document != after.document)
        {
            self.set(key.clone(), after.document.to_whole());
        }
        if let Some((key, version)) = own.get(1)
            && before.is_none_or(|before| before.attributes != after.attributes)
        {
            match &after.attributes {
                Some(attributes) => self.set(key.clone(), attributes.to_whole()),
                None if version.is_some() => self.erase(key.clone()),
                None => {}
            }
        }
        true
    }

    /// What is to become of a key.
    pub(crate) fn pending(&self, key: &Key) -> PendingState<'_> {
        match self.keys.get(key).map(|edit| &edit.action) {
            None | Some(Action::Check) if self.erased.iter().any(|prefix| prefix.contains(key)) => PendingState::Erased,
            None | Some(Action::Check) => PendingState::Kept,
            Some(Action::Set(value)) => PendingState::Set(value),
            Some(Action::Erase) => PendingState::Erased,
        }
    }

    /// Whether a key was seen to be there and stays as it is.
    pub(crate) fn keeps(&self, key: &Key) -> bool {
        let is_there = |edit: &PendingChange| matches!(edit.seen, Some(Some(_)));
        self.keys.get(key).is_some_and(is_there) && matches!(self.pending(key), PendingState::Kept)
    }

    /// The keys that it names, in the order of the changes that it becomes; everything else comes behind them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.keys()
    }

    /// How many changes it becomes.
    pub(crate) fn len(&self) -> usize {
        let prefixes = self.erased.len().saturating_add(self.empty.len());
        self.keys.len().saturating_add(prefixes).saturating_add(usize::from(self.settled.is_some()))
    }

    /// Whether it changes anything.
    pub(crate) fn changes_anything(&self) -> bool {
        !self.erased.is_empty() || self.keys.values().any(|edit| !matches!(edit.action, Action::Check))
    }

    /// Stages what is set. Fails where it is more than one commit has.
    pub(crate) async fn stage(self, store: &dyn TransactionalStore) -> Result<Vec<Change>, NodeError> {
        if self.len() > MAX_COMMIT_CHANGES {
            return Err(NodeError::TooManyChanges { changes: self.len() as u64, limit: MAX_COMMIT_CHANGES });
        }
        let mut changes = Vec::with_capacity(self.len());
        for (key, PendingChange { seen, action }) in self.keys {
            let precondition = seen.map_or_else(Precondition::none, Precondition::unchanged);
            changes.push(match action {
                Action::Check => Change::Check { key, precondition },
                Action::Erase => Change::Erase { key, precondition },
                Action::Set(value) => Change::Set { staged: store.stage(&key, value.into()).await?, precondition },
            });
        }
        changes.extend(self.erased.into_iter().map(|prefix| Change::ErasePrefix { prefix }));
        changes.extend(self.empty.into_iter().map(|prefix| Change::CheckEmpty { prefix }));
        changes.extend(self.settled.map(|id| Change::Settle { id }));
        Ok(changes)
    }
}
