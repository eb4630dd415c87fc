//! Views: the memtables, and the index below them, as readers see them.
//!
//! Commits go to the **active** memtable when the log has them durably. A checkpoint **freezes** it, applies it to the index
//! in small batches, and drops it. A reader asks the active memtable, then the frozen one, then the index; so a key whose
//! change is being applied is found in the frozen memtable, whatever the index has by then.
//!
//! A reader of several keys sees those up to one number. The index could hold later changes only if a memtable that was
//! active when the reader began had been frozen and applied since, so such a reader holds [`Views::stable`] while it looks
//! its keys up, which keeps memtables from being frozen.

mod erased;
mod iter;
mod memtable;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{RwLock, RwLockReadGuard};
use store::{BackendErrorKind, Intent, IntentId, Key, Prefix, StoreError};

pub(crate) use self::{
    iter::{Entries, live_below},
    memtable::{Latest, LatestChange, Memtable},
};
use crate::{
    error::IndexFailure,
    index::{Index, IndexError},
    keyspace::{INTENTS, Phase, Sweeps, intent_key, intent_of},
    record::{Location, Record},
};

/// The parts that readers look into. A new one is made whenever one of them is replaced.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Option<Arc<Memtable>>,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) sweeps: Arc<Sweeps>,
}

/// Gives views to readers, and replaces what they see.
pub(crate) struct Views {
    /// `None` after the store was closed.
    parts: RwLock<Option<Arc<Parts>>>,
    /// The number of the last change that is visible.
    visible: AtomicU64,
    /// Held for reading while several keys are looked up, and for writing while a memtable is frozen, or a sweep begins to move
    /// or moves some keys: an iterator that has passed their new place would not find them at the old one.
    gate: RwLock<()>,
    store_id: u64,
}

/// The store as of one number.
pub(crate) struct View {
    pub(crate) parts: Arc<Parts>,
    /// The number of the last change that it sees.
    pub(crate) at: u64,
    pub(crate) store_id: u64,
}

impl Views {
    pub(crate) fn new(parts: Parts, visible: u64, store_id: u64) -> Self {
        Self {
            parts: RwLock::new(Some(Arc::new(parts))),
            visible: AtomicU64::new(visible),
            gate: RwLock::new(()),
            store_id,
        }
    }

    /// The store as it is, for one look-up.
    pub(crate) fn now(&self) -> Result<View, StoreError> {
        let at = self.visible();
        let parts = self.parts.read().clone().ok_or(StoreError::Closed)?;
        Ok(View { parts, at, store_id: self.store_id })
    }

    /// The store as of its last commit, for several look-ups. Nothing must wait for anything else while the guard is held.
    pub(crate) fn stable(&self) -> Result<(View, RwLockReadGuard<'_, ()>), StoreError> {
        let guard = self.gate.read_recursive();
        let at = self.visible();
        let parts = self.parts.read().clone().ok_or(StoreError::Closed)?;
        Ok((View { parts, at, store_id: self.store_id }, guard))
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes all changes up to this number visible.
    pub(crate) fn publish(&self, number: u64) {
        self.visible.store(number, Ordering::Release);
    }

    /// The parts as they are.
    pub(crate) fn parts(&self) -> Result<Arc<Parts>, StoreError> {
        self.parts.read().clone().ok_or(StoreError::Closed)
    }

    /// Replaces some of the parts.
    pub(crate) fn replace(&self, change: impl FnOnce(&mut Parts)) {
        let mut current = self.parts.write();
        if let Some(parts) = &*current {
            let mut parts = Parts::clone(parts);
            change(&mut parts);
            *current = Some(Arc::new(parts));
        }
    }

    /// The same while no reader looks several keys up. Fails, with nothing changed, if one does.
    pub(crate) fn try_replace_when_stable(&self, change: impl FnOnce(&mut Parts)) -> bool {
        let Some(_gate) = self.gate.try_write() else { return false };
        self.replace(change);
        true
    }

    /// Does something that no reader of several keys may see the middle of. `None`, with nothing done, if there is one.
    pub(crate) fn try_when_stable<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let _gate = self.gate.try_write()?;
        Some(work())
    }

    /// Takes everything away: readers fail with [`StoreError::Closed`] from now on.
    pub(crate) fn close(&self) -> Option<Arc<Parts>> {
        self.parts.write().take()
    }
}

impl View {
    /// The record of a key.
    pub(crate) fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if let Some(latest) = self.latest(key.as_str()) {
            return self.decode_latest(key, latest);
        }
        let found = self.parts.sweeps.get(&*self.parts.index, key.as_bytes()).map_err(store_error)?;
        found.map(|bytes| self.decode(key, bytes)).transpose()
    }

    /// The entries from a key on, in order.
    pub(crate) fn entries(&self, prefix: &Prefix, from: &str) -> Result<Entries<'_>, StoreError> {
        Entries::new(self, prefix, from)
    }

    /// The first key below a prefix.
    pub(crate) fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
        Ok(self.entries(prefix, prefix.as_str())?.next()?.map(|(key, _)| key))
    }

    /// True if an intent is there.
    pub(crate) fn has_intent(&self, id: IntentId) -> Result<bool, StoreError> {
        match self.latest_intents().remove(&id) {
            Some(latest) => Ok(latest.is_some()),
            None => Ok(self.parts.index.get(&intent_key(id)).map_err(store_error)?.is_some()),
        }
    }

    /// All intents, in the order of their ids.
    pub(crate) fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        let mut records: BTreeMap<IntentId, Option<Bytes>> = BTreeMap::new();
        for entry in self.parts.index.iter(INTENTS).map_err(store_error)? {
            let (key, record) = entry.map_err(store_error)?;
            let Some(id) = intent_of(&key) else { break };
            records.insert(id, Some(record));
        }
        records.extend(self.latest_intents());
        let present = records.into_iter().filter_map(|(id, record)| Some((id, record?)));
        present.map(|(id, record)| self.decode_intent(id, record)).collect()
    }

    /// The changes of intents that the index may not have.
    fn latest_intents(&self) -> BTreeMap<IntentId, Option<Bytes>> {
        let mut latest = self.parts.frozen.as_ref().map(|frozen| frozen.intents(self.at)).unwrap_or_default();
        latest.extend(self.parts.active.intents(self.at));
        latest
    }

    fn decode_intent(&self, id: IntentId, record: Bytes) -> Result<Intent, StoreError> {
        match Record::decode(&intent_key(id), record, self.store_id).map(|record| record.location) {
            Some(Location::Inline(record)) => Ok(Intent { id, record }),
            Some(Location::File(_)) | None => Err(store_error(IndexError::Intent(id))),
        }
    }

    /// The last change of a key that the index may not have.
    pub(crate) fn latest(&self, key: &str) -> Option<Latest> {
        let latest = self.parts.active.latest(key, self.at);
        latest.or_else(|| self.parts.frozen.as_ref()?.latest(key, self.at))
    }

    /// True if a sweep's deleting phase decided the place at which a key was looked up: it may have begun to move since.
    pub(crate) fn depends_on_deleting_phase(&self, key: &Key) -> bool {
        self.parts.sweeps.covering(key.as_bytes()).is_some_and(|sweep| sweep.phase == Phase::Deleting)
    }

    fn decode_latest(&self, key: &Key, latest: Latest) -> Result<Option<Record>, StoreError> {
        match latest.change {
            LatestChange::Erased => Ok(None),
            LatestChange::Record(bytes) => self.decode(key, bytes).map(Some),
            LatestChange::InBulk(bulk, index) => bulk.record(key, index).map(Some),
        }
    }

    pub(crate) fn decode(&self, key: &Key, bytes: Bytes) -> Result<Record, StoreError> {
        let record = Record::decode(key.as_bytes(), bytes, self.store_id);
        record.ok_or_else(|| StoreError::corrupt(key.clone(), crate::ValueCorruption::Record))
    }
}

/// The time that opening an index again takes, nearly.
const REOPEN_RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn store_error(error: IndexError) -> StoreError {
    match error {
        IndexError::Reopening => StoreError::Busy { retry_after: Some(REOPEN_RETRY_AFTER) },
        error if error.is_out_of_space() => StoreError::Busy { retry_after: Some(REOPEN_RETRY_AFTER) },
        error => StoreError::backend(BackendErrorKind::Internal, IndexFailure(error)),
    }
}
