//! The changes of one commit.

use std::{collections::BTreeSet, iter::once, sync::Arc};

use bytes::Bytes;
use zarrd_meta::{documents::write::StoredNode, limits::MAX_DOCUMENT_SIZE};
use zarrd_operations::NodeRejection;
use zarrd_store::{BatchStore, Change, IntentId, Key, MAX_COMMIT_CHANGES, Precondition, Prefix, Version, stage_put};

use super::{copy_update::ConsolidatedUpdate, error::NodeError, intent_record::Excluded};
use crate::node::read_set::{NodeVersions, ReadSet};

/// The number of changes up to which all values are staged.
const MAX_STAGED: usize = 512;
/// The size up to which the values of more changes are not staged, in bytes: a staged value takes more memory than a
/// small document.
const MAX_UNSTAGED_SIZE: usize = 4 << 10;

/// The changes of one commit, and the versions that they depend on.
#[derive(Debug, Default)]
pub(crate) struct ChangeSet {
    /// A set is a put, and only a check has no other effect. A key may occur again after those that are sorted.
    keys: Vec<Change>,
    /// The number of changes at the beginning that are in the order of their keys, each key once.
    sorted: usize,
    /// Prefixes to erase before keys are changed.
    erased: BTreeSet<Prefix>,
    /// Prefixes below which no key may exist.
    empty: BTreeSet<Prefix>,
    /// The intent to settle.
    settled: Option<IntentId>,
    /// What unfinished operations must not exclude.
    exclusions: Vec<Excluded>,
    /// The update of consolidated metadata, if it can be repeated.
    consolidated: Option<Arc<ConsolidatedUpdate>>,
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
    /// Makes room for changes of this many keys, and some more, since a vector that is full doubles.
    pub(crate) fn reserve(&mut self, keys: usize) {
        self.keys.reserve_exact(keys.saturating_add(keys / 16));
    }

    /// Makes the commit depend on a key having this version. The first record of a key counts.
    pub(crate) fn record_read(&mut self, key: &Key, version: Option<Version>) {
        self.add(Change::Check { key: key.clone(), precondition: Precondition::unchanged(version) });
    }

    /// Makes the commit depend on all documents of a read set.
    pub(crate) fn record_reads(&mut self, documents: &ReadSet) {
        for (key, version) in documents.versions() {
            self.record_read(key, *version);
        }
    }

    /// Sets a key.
    pub(crate) fn set(&mut self, key: Key, value: Bytes) {
        self.add(Change::Put { key, value, precondition: Precondition::none() });
    }

    /// Erases a key.
    pub(crate) fn erase(&mut self, key: Key) {
        self.add(Change::Erase { key, precondition: Precondition::none() });
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

    /// Makes the commit depend on there being no unfinished operation that excludes this.
    pub(crate) fn check_not_excluded(&mut self, excluded: Excluded) {
        self.exclusions.push(excluded);
    }

    /// What unfinished operations must not exclude.
    pub(crate) fn exclusions(&self) -> &[Excluded] {
        &self.exclusions
    }

    /// Adds the update of consolidated metadata that some of the changes make.
    pub(crate) fn update_consolidated(&mut self, update: Arc<ConsolidatedUpdate>) {
        self.consolidated = Some(update);
    }

    /// The update of consolidated metadata that some of the changes make, if it can be repeated.
    pub(crate) fn consolidated(&self) -> Option<Arc<ConsolidatedUpdate>> {
        self.consolidated.clone()
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
        match self.changes_of(key).filter(|change| !change.is_check()).last() {
            Some(Change::Put { value, .. }) => PendingState::Set(value),
            Some(_) => PendingState::Erased,
            None if self.is_below_erased(key) => PendingState::Erased,
            None => PendingState::Kept,
        }
    }

    /// True if a key was read, exists, and stays unchanged.
    pub(crate) fn stays_unchanged(&self, key: &Key) -> bool {
        let read = self.changes_of(key).filter_map(Change::precondition).find(|read| **read != Precondition::none());
        read.is_some_and(|read| read.if_match.is_some()) && matches!(self.pending(key), PendingState::Kept)
    }

    /// The index of the change of a key, once they are [sorted](Self::sort).
    pub(crate) fn position(&self, key: &Key) -> Option<usize> {
        let sorted = self.keys.get(..self.sorted).unwrap_or_default();
        sorted.binary_search_by(|change| change.key().cmp(&Some(key))).ok()
    }

    /// The number of changes; rather too large than too small until they are [sorted](Self::sort).
    pub(crate) fn len(&self) -> usize {
        let prefixes = self.erased.len().saturating_add(self.empty.len());
        let intents = self.exclusions.len().saturating_add(usize::from(self.settled.is_some()));
        self.keys.len().saturating_add(prefixes).saturating_add(intents)
    }

    /// The number of keys that it changes, once they are [sorted](Self::sort).
    pub(crate) fn changed_keys(&self) -> usize {
        self.keys.iter().filter(|change| !change.is_check()).count()
    }

    /// True if it changes anything.
    pub(crate) fn changes_anything(&self) -> bool {
        !self.erased.is_empty() || self.keys.iter().any(|change| !change.is_check())
    }

    /// Puts the changes into the order of their keys, and merges those of the same key. Without this, each lookup of a
    /// key takes a pass over all changes that were added since.
    pub(crate) fn sort(&mut self) {
        if self.sorted == self.keys.len() {
            return;
        }
        if !self.keys.is_sorted_by(|one, next| one.key() < next.key()) {
            sort_in_place(&mut self.keys);
            self.keys.dedup_by(|later, earlier| {
                let is_same = later.key() == earlier.key();
                if is_same {
                    merge(earlier, later);
                }
                is_same
            });
        }
        self.sorted = self.keys.len();
    }

    /// The changes in their order, of keys first, with all values staged except for many small ones, and for consolidated
    /// metadata, which the commit may edit anew for several writers. Fails if there are more changes than one commit can
    /// have, or if a document could not be read afterwards.
    pub(crate) async fn stage(mut self, store: &dyn BatchStore) -> Result<Vec<Change>, NodeError> {
        self.sort();
        if self.len() > MAX_COMMIT_CHANGES {
            return Err(NodeError::Rejected(NodeRejection::TooManyChanges {
                changes: self.len() as u64,
                limit: MAX_COMMIT_CHANGES as u64,
            }));
        }
        let max_unstaged = if self.len() > MAX_STAGED { Some(MAX_UNSTAGED_SIZE) } else { None };
        let mut changes = self.keys;
        let consolidated = self.consolidated.as_ref().map_or(&[][..], |update| &update.copies);
        for change in &mut changes {
            if let Change::Put { key, value, .. } = &*change
                && value.len() > MAX_DOCUMENT_SIZE
            {
                return Err(NodeError::DocumentTooLarge { key: key.clone(), size: value.len() });
            }
            let is_small = |value: &Bytes| max_unstaged.is_some_and(|max| value.len() <= max);
            let is_edited_anew = |key: &Key| consolidated.iter().any(|copy| copy.key == *key);
            if matches!(&*change, Change::Put { key, value, .. } if !is_small(value) && !is_edited_anew(key)) {
                stage_put(store, change).await?;
            }
        }
        changes.extend(self.erased.into_iter().map(|prefix| Change::ErasePrefix { prefix }));
        changes.extend(self.empty.into_iter().map(|prefix| Change::CheckEmpty { prefix }));
        changes.extend(self.settled.map(|id| Change::RemoveIntent { id }));
        let exclusions = self.exclusions.into_iter();
        changes.extend(exclusions.map(|excluded| Change::CheckNoIntent { filter: Arc::new(excluded) }));
        Ok(changes)
    }

    /// True if a key is below one of the erased prefixes.
    fn is_below_erased(&self, key: &Key) -> bool {
        let key = key.as_str();
        let prefixes = key.match_indices('/').filter_map(|(slash, _)| key.get(..=slash));
        !self.erased.is_empty() && once("").chain(prefixes).any(|prefix| self.erased.contains(prefix))
    }

    /// Adds a change, or merges it with the last one if that has the same key.
    fn add(&mut self, mut change: Change) {
        match self.keys.last_mut() {
            Some(last) if last.key() == change.key() => merge(last, &mut change),
            _ => self.keys.push(change),
        }
    }

    /// The changes of a key in the order in which they were added.
    fn changes_of<'a, 'k>(&'a self, key: &'k Key) -> impl Iterator<Item = &'a Change> + use<'a, 'k> {
        let sorted = self.position(key).and_then(|index| self.keys.get(index));
        let added = self.keys.get(self.sorted..).unwrap_or_default();
        sorted.into_iter().chain(added.iter().filter(move |change| change.key() == Some(key)))
    }
}

/// Merges a change with a later one of the same key: the first condition and the last effect count.
fn merge(earlier: &mut Change, later: &mut Change) {
    let (Some(first), Some(second)) = (earlier.precondition_mut(), later.precondition_mut()) else { return };
    let condition = std::mem::take(if *first == Precondition::none() { second } else { first });
    if !matches!(later, Change::Check { .. }) {
        std::mem::swap(earlier, later);
    }
    if let Some(merged) = earlier.precondition_mut() {
        *merged = condition;
    }
}

/// Sorts changes by their keys, those of one key in their order, with four bytes of additional memory for each.
fn sort_in_place(changes: &mut [Change]) {
    let key = |index: &u32| changes.get(*index as usize).and_then(Change::key);
    // A change set has fewer than 2³² changes: each takes more than 4 bytes.
    let mut order: Vec<u32> = (0..u32::try_from(changes.len()).unwrap_or(u32::MAX)).collect();
    order.sort_unstable_by(|one, other| key(one).cmp(&key(other)).then(one.cmp(other)));
    // Moves each change to its place, cycle by cycle.
    for start in 0..order.len() {
        let mut at = start;
        while let Some(from) = order.get_mut(at).map(|from| std::mem::replace(from, u32::MAX) as usize)
            && from < changes.len()
        {
            if from == start {
                break;
            }
            changes.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use zarrd_store::MemoryStore;

    use super::*;

    /// The version that was read, and the effect: a value, or `None` for an erase.
    type Expected = (Option<Option<Version>>, Option<Option<Bytes>>);

    /// An addition to a change set.
    #[derive(Clone, Debug)]
    enum Addition {
        Read(Option<u8>),
        Set(u8),
        Erase,
        Sort,
    }

    fn additions() -> impl Strategy<Value = Vec<(u8, Addition)>> {
        let addition = prop_oneof![
            any::<Option<u8>>().prop_map(Addition::Read),
            any::<u8>().prop_map(Addition::Set),
            Just(Addition::Erase),
            Just(Addition::Sort),
        ];
        prop::collection::vec((0..12_u8, addition), 0..40)
    }

    fn key(number: u8) -> Key {
        Key::parse(&format!("k{number}")).unwrap()
    }

    fn version(number: Option<u8>) -> Option<Version> {
        number.map(|number| Version::from_u128(number.into()))
    }

    proptest! {
        #[test]
        fn first_read_and_last_effect_of_each_key_count(additions in additions()) {
            let mut model: BTreeMap<Key, Expected> = BTreeMap::new();
            let mut change_set = ChangeSet::default();
            for (number, addition) in additions {
                let key = key(number);
                match addition {
                    Addition::Read(read) => {
                        model.entry(key.clone()).or_default().0.get_or_insert(version(read));
                        change_set.record_read(&key, version(read));
                    }
                    Addition::Set(value) => {
                        let value = Bytes::from(vec![value]);
                        model.entry(key.clone()).or_default().1 = Some(Some(value.clone()));
                        change_set.set(key, value);
                    }
                    Addition::Erase => {
                        model.entry(key.clone()).or_default().1 = Some(None);
                        change_set.erase(key);
                    }
                    Addition::Sort => change_set.sort(),
                }
            }
            for number in 0..12 {
                let key = key(number);
                let (read, effect) = model.get(&key).cloned().unwrap_or_default();
                let pending = match change_set.pending(&key) {
                    PendingState::Kept => None,
                    PendingState::Erased => Some(None),
                    PendingState::Set(value) => Some(Some(value.clone())),
                };
                prop_assert_eq!(&pending, &effect);
                let stays = matches!(read, Some(Some(_))) && effect.is_none();
                prop_assert_eq!(change_set.stays_unchanged(&key), stays);
            }
            change_set.sort();
            prop_assert_eq!(change_set.len(), model.len());
            for (index, (key, (read, effect))) in model.iter().enumerate() {
                prop_assert_eq!(change_set.position(key), Some(index));
                let change = &change_set.keys[index];
                let expected = read.map_or_else(Precondition::none, Precondition::unchanged);
                prop_assert_eq!(change.precondition(), Some(&expected));
                let found = match change {
                    Change::Put { value, .. } => Some(Some(value.clone())),
                    Change::Erase { .. } => Some(None),
                    _ => None,
                };
                prop_assert_eq!(&found, effect);
            }
        }
    }

    #[test]
    fn keys_below_erased_prefixes_are_erased() {
        let mut change_set = ChangeSet::default();
        change_set.erase_prefix(Prefix::parse("a/b/").unwrap());
        let is_erased = |change_set: &ChangeSet, key: &str| {
            matches!(change_set.pending(&Key::parse(key).unwrap()), PendingState::Erased)
        };
        for (key, erased) in [("a/b/c", true), ("a/b/c/d", true), ("a/b", false), ("a/bc/d", false), ("a/c", false)] {
            assert_eq!(is_erased(&change_set, key), erased, "{key}");
        }
        change_set.erase_prefix(Prefix::root());
        assert!(is_erased(&change_set, "c"));
    }

    #[tokio::test]
    async fn only_many_small_values_are_not_staged() {
        for (count, staged) in [(MAX_STAGED, [true, true]), (MAX_STAGED + 1, [true, false])] {
            let mut change_set = ChangeSet::default();
            change_set.set(key(0), vec![0; MAX_UNSTAGED_SIZE + 1].into());
            for number in 1..count {
                change_set.set(Key::parse(&format!("n{number}")).unwrap(), vec![0; MAX_UNSTAGED_SIZE].into());
            }
            let changes = change_set.stage(&MemoryStore::new()).await.unwrap();
            let found = [0, 1].map(|index| matches!(changes[index], Change::Set { .. }));
            assert_eq!(found, staged, "{count}");
        }
    }
}
