//! Memtables: commits that are in the log and not yet in the index.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use crossbeam_skiplist::SkipMap;
use parking_lot::{RwLock, RwLockUpgradableReadGuard};
use zarrd_store::{IntentId, Key, Prefix};

use super::{
    bulk_index::{BulkIndex, Place},
    erased::ErasedPrefixes,
};
use crate::{
    gc::ReplacedFile,
    log::{BulkCommit, Operation},
};

/// The changes of some commit groups, each with its number, so that a reader sees those up to its own.
///
/// Entries are never removed or replaced: a later change of a key precedes the earlier ones. All changes are durable.
#[derive(Default)]
pub(crate) struct Memtable {
    changes: SkipMap<Versioned, Option<Bytes>>,
    ranges: RwLock<Ranges>,
    /// True if `ranges` is not empty, so that most lookups need no lock.
    has_ranges: AtomicBool,
    /// Changes of intents, in the order of their numbers.
    intents: RwLock<Vec<IntentChange>>,
    bytes: AtomicU64,
    /// The last group with changes in the memtable.
    last_group: AtomicU64,
}

/// Changes of many keys.
#[derive(Default)]
struct Ranges {
    erased: ErasedPrefixes,
    bulk: BulkIndex,
}

/// A change of an intent: its record, or `None` if it was removed.
struct IntentChange {
    number: u64,
    id: IntentId,
    record: Option<Bytes>,
}

/// A key and the number of one of its changes, ordered by key and then by descending number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Versioned {
    key: Arc<str>,
    number: Reverse<u64>,
}

/// The last change of a key.
#[derive(Clone)]
pub(crate) struct Latest {
    pub(crate) number: u64,
    pub(crate) change: LatestChange,
}

/// The effect of a key's last change.
#[derive(Clone)]
pub(crate) enum LatestChange {
    /// The key has this record.
    Record(Bytes),
    /// The key has the record at this index of a bulk commit.
    InBulk(Arc<BulkCommit>, usize),
    /// The key has no value.
    Erased,
}

/// The memory of an entry in addition to its key and record, in bytes; measured with keys of 40 bytes.
const ENTRY_OVERHEAD: u64 = 160;

impl Memtable {
    /// Inserts the operations of a frame. Erases of prefixes come last, so that no reader sees a prefix that is erased
    /// and not yet set again.
    pub(crate) fn insert_operations(&self, operations: &[Operation], bulk: Option<&Arc<BulkCommit>>) {
        for operation in operations {
            match operation {
                Operation::Set { key, number, record } => self.insert(key, *number, Some(record.clone())),
                Operation::Erase { key, number } => self.insert(key, *number, None),
                Operation::Bulk { .. } => {
                    if let Some(bulk) = bulk {
                        self.insert_bulk(Arc::clone(bulk));
                    }
                }
                Operation::Intent { id, number, record } => self.change_intent(*id, *number, record.clone()),
                Operation::ErasePrefix { .. } => {}
            }
        }
        for operation in operations {
            if let Operation::ErasePrefix { prefix, number } = operation {
                self.erase_prefix(prefix.clone(), *number);
            }
        }
    }

    /// Adds a change of a key: its new record, or `None` if it was erased.
    fn insert(&self, key: &Key, number: u64, record: Option<Bytes>) {
        let len = record.as_ref().map_or(0, Bytes::len) as u64;
        self.add_bytes((key.as_bytes().len() as u64).saturating_add(len).saturating_add(ENTRY_OVERHEAD));
        self.changes.insert(Versioned::new(key.as_str(), number), record);
    }

    fn erase_prefix(&self, prefix: Prefix, number: u64) {
        self.add_bytes((prefix.as_bytes().len() as u64).saturating_add(ENTRY_OVERHEAD));
        self.ranges.write().erased.add(number, prefix);
        self.has_ranges.store(true, Ordering::Release);
    }

    fn insert_bulk(&self, bulk: Arc<BulkCommit>) {
        self.add_bytes(bulk.memory_bytes());
        // Readers do not wait while runs are merged.
        let ranges = self.ranges.upgradable_read();
        let merged = ranges.bulk.with(bulk);
        RwLockUpgradableReadGuard::upgrade(ranges).bulk = merged;
        self.has_ranges.store(true, Ordering::Release);
    }

    fn change_intent(&self, id: IntentId, number: u64, record: Option<Bytes>) {
        self.add_bytes((record.as_ref().map_or(0, Bytes::len) as u64).saturating_add(ENTRY_OVERHEAD));
        self.intents.write().push(IntentChange { number, id, record });
    }

    pub(crate) fn finish_group(&self, group: u64) {
        self.last_group.store(group, Ordering::Release);
    }

    pub(crate) fn last_group(&self) -> u64 {
        self.last_group.load(Ordering::Acquire)
    }

    /// The approximate memory use, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.has_ranges.load(Ordering::Acquire) && self.intents.read().is_empty()
    }

    /// The last change of a key that is visible at `at`.
    pub(crate) fn latest(&self, key: &str, at: u64) -> Option<Latest> {
        let found = self.changes.lower_bound(Bound::Included(&Versioned::new(key, at)));
        let found = found.filter(|entry| &*entry.key().key == key).map(|entry| Latest {
            number: entry.key().number.0,
            change: entry.value().clone().map_or(LatestChange::Erased, LatestChange::Record),
        });
        if !self.has_ranges.load(Ordering::Acquire) {
            return found;
        }
        let ranges = self.ranges.read();
        let erased = ranges.erased.last_of(key, at).map(|number| Latest { number, change: LatestChange::Erased });
        let bulk = ranges.bulk.latest(key, at).map(Latest::of_bulk);
        found.into_iter().chain(erased).chain(bulk).max_by_key(|latest| latest.number)
    }

    /// The first key at or after `from` with any change, visible or not.
    pub(crate) fn next_key(&self, from: &str) -> Option<Arc<str>> {
        let change = self.changes.lower_bound(Bound::Included(&Versioned::new(from, u64::MAX)));
        let change = change.map(|entry| Arc::clone(&entry.key().key));
        if !self.has_ranges.load(Ordering::Acquire) {
            return change;
        }
        let ranges = self.ranges.read();
        let bulk = ranges.bulk.next_key(from).map(|key| Arc::from(key.as_str()));
        change.into_iter().chain(bulk).min()
    }

    /// The erased prefixes, with the numbers of their erases.
    pub(crate) fn erased(&self) -> Vec<(u64, Prefix)> {
        if !self.has_ranges.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.ranges.read().erased.iter().map(|(number, prefix)| (number, prefix.clone())).collect()
    }

    /// The numbers of all erases of a key.
    pub(crate) fn erases_of(&self, key: &str) -> Vec<u64> {
        if !self.has_ranges.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.ranges.read().erased.all_of(key)
    }

    /// The shortest prefix that was erased up to `at` and contains a key.
    pub(crate) fn erased_above(&self, key: &str, at: u64) -> Option<Prefix> {
        if !self.has_ranges.load(Ordering::Acquire) {
            return None;
        }
        self.ranges.read().erased.covering(key, at).cloned()
    }

    /// The intents that were changed up to `at`: their records, or `None` if they were removed.
    pub(crate) fn intents(&self, at: u64) -> BTreeMap<IntentId, Option<Bytes>> {
        let changes = self.intents.read();
        let visible = changes.iter().filter(|change| change.number <= at);
        visible.map(|change| (change.id, change.record.clone())).collect()
    }

    /// The changes of a key by bulk commits: their numbers, and the files that later ones replace.
    pub(crate) fn bulk_versions(&self, key: &str) -> Vec<(u64, Option<ReplacedFile>)> {
        self.ranges.read().bulk.all_of(key).map(|place| (place.number(), place.replaced_file())).collect()
    }

    /// The single changes of a key with their numbers, the latest first.
    pub(crate) fn versions(&self, key: &str) -> Vec<(u64, Option<Bytes>)> {
        let all = self.changes.range(Versioned::new(key, u64::MAX)..=Versioned::new(key, 0));
        all.map(|entry| (entry.key().number.0, entry.value().clone())).collect()
    }

    fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Latest {
    fn of_bulk(place: &Place) -> Self {
        let change = match place.is_set() {
            true => LatestChange::InBulk(Arc::clone(&place.commit), place.index()),
            false => LatestChange::Erased,
        };
        Self { number: place.number(), change }
    }
}

impl Versioned {
    fn new(key: &str, number: u64) -> Self {
        Self { key: key.into(), number: Reverse(number) }
    }
}
