//! Views: the state that a reader sees, from the memtables and the index.
//!
//! Durable commits go to the **active** memtable. A checkpoint **freezes** it, applies it to the index in small
//! batches, and drops it. A lookup asks the active memtable, then the frozen one, then the index; a key whose change is
//! being applied is therefore found in the frozen memtable, whatever the index has.
//!
//! A reader of several keys sees the changes up to one number. The index could have later ones if a memtable was frozen
//! and applied after the reader began, so such a reader holds [`Views::stable`] during its lookups, which prevents
//! freezing. A pass over more keys than can be looked up at a time holds off freezing instead
//! ([`Views::hold_freezing`]).

mod bulk_index;
mod erased;
mod iter;
mod memtable;
mod pages;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use zarrd_store::{BackendErrorKind, Intent, IntentId, Key, Prefix, StoreError};

pub(crate) use self::{
    iter::{Entries, ViewEntry, live_below},
    memtable::{Latest, LatestChange, Memtable},
};
use crate::{
    ValueCorruption,
    damage::{KnownDamage, LostKeys, damage_of, gone_key, is_placeholder, lost_name},
    error::IndexFailure,
    index::{Index, IndexError},
    keyspace::{INTENTS, Phase, Sweeps, intent_key, intent_of},
    record::{Location, Record},
};

/// The sources of a view. They are replaced as a whole.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Option<Arc<Memtable>>,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) sweeps: Arc<Sweeps>,
    pub(crate) damage: Arc<KnownDamage>,
}

/// Creates views for readers, and replaces their sources.
pub(crate) struct Views {
    /// `None` after the store was closed.
    parts: RwLock<Option<Arc<Parts>>>,
    /// The number of the last visible change.
    visible: AtomicU64,
    /// Locked for reading while several keys are looked up. Locked for writing while a memtable is frozen, and while a
    /// sweep starts moving or moves keys, because an iterator that has passed their new location would not find them at
    /// the old one.
    gate: RwLock<()>,
    /// The ends of the times for which passes hold off freezing.
    holds: Mutex<Vec<Instant>>,
    store_id: u64,
}

/// Holds off freezing until it is dropped, for [`MAX_HOLD`] at most.
pub(crate) struct FreezeHold<'v> {
    views: &'v Views,
    until: Instant,
}

/// The state of the store at one number.
pub(crate) struct View {
    pub(crate) parts: Arc<Parts>,
    /// The number of the last change that the view sees.
    pub(crate) at: u64,
    pub(crate) store_id: u64,
}

impl Views {
    pub(crate) fn new(parts: Parts, visible: u64, store_id: u64) -> Self {
        Self {
            parts: RwLock::new(Some(Arc::new(parts))),
            visible: AtomicU64::new(visible),
            gate: RwLock::new(()),
            holds: Mutex::default(),
            store_id,
        }
    }

    /// The current state, for one lookup.
    pub(crate) fn now(&self) -> Result<View, StoreError> {
        let at = self.visible();
        let parts = self.parts.read().clone().ok_or(StoreError::Closed)?;
        Ok(View { parts, at, store_id: self.store_id })
    }

    /// The state after the last commit, for several lookups. Do not wait for anything while the guard is held.
    pub(crate) fn stable(&self) -> Result<(View, RwLockReadGuard<'_, ()>), StoreError> {
        let guard = self.gate.read_recursive();
        let at = self.visible();
        let parts = self.parts.read().clone().ok_or(StoreError::Closed)?;
        Ok((View { parts, at, store_id: self.store_id }, guard))
    }

    /// Asks for memtables not to be frozen, so that a pass of many steps can see the state after one commit. It is
    /// refused if writers would have to wait, so each step checks that the active memtable is still the same.
    pub(crate) fn hold_freezing(&self) -> FreezeHold<'_> {
        let now = Instant::now();
        let until = now.checked_add(MAX_HOLD).unwrap_or(now);
        self.holds.lock().push(until);
        FreezeHold { views: self, until }
    }

    /// True if a pass asked for memtables not to be frozen.
    pub(crate) fn holds_freezing(&self) -> bool {
        let now = Instant::now();
        self.holds.lock().iter().any(|until| *until > now)
    }

    /// True if several lookups would have to wait now.
    pub(crate) fn is_changing(&self) -> bool {
        self.gate.is_locked_exclusive()
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes all changes up to this number visible.
    pub(crate) fn publish(&self, number: u64) {
        self.visible.store(number, Ordering::Release);
    }

    /// The current sources.
    pub(crate) fn parts(&self) -> Result<Arc<Parts>, StoreError> {
        self.parts.read().clone().ok_or(StoreError::Closed)
    }

    /// Replaces some of the sources.
    pub(crate) fn replace(&self, change: impl FnOnce(&mut Parts)) {
        let mut current = self.parts.write();
        if let Some(parts) = &*current {
            let mut parts = Parts::clone(parts);
            change(&mut parts);
            *current = Some(Arc::new(parts));
        }
    }

    /// Replaces sources if no reader is looking up several keys. Returns false, without a change, otherwise.
    pub(crate) fn try_replace_when_stable(&self, change: impl FnOnce(&mut Parts)) -> bool {
        let Some(_gate) = self.gate.try_write() else { return false };
        self.replace(change);
        true
    }

    /// Runs `work` atomically to readers of several keys. Returns `None`, without running it, if there is such a
    /// reader.
    pub(crate) fn try_when_stable<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let _gate = self.gate.try_write()?;
        Some(work())
    }

    /// Closes the views: readers fail with [`StoreError::Closed`] from now on.
    pub(crate) fn close(&self) -> Option<Arc<Parts>> {
        self.parts.write().take()
    }
}

impl Drop for FreezeHold<'_> {
    fn drop(&mut self) {
        let mut holds = self.views.holds.lock();
        if let Some(index) = holds.iter().position(|until| *until == self.until) {
            holds.swap_remove(index);
        }
    }
}

impl View {
    /// Looks up the record of a key.
    pub(crate) fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if let Some(latest) = self.latest(key.as_str()) {
            return self.decode_latest(key, latest);
        }
        let found = self.parts.sweeps.get(&*self.parts.index, key.as_bytes());
        match found.map_err(|error| key_error(key, error))? {
            Some(bytes) => self.decode(key, bytes).map(Some),
            None => self.check_name(key).map(|()| None),
        }
    }

    /// Fails if a key without a record may be among those whose names are lost.
    pub(crate) fn check_name(&self, key: &Key) -> Result<(), StoreError> {
        for lost in self.parts.damage.of_key(key) {
            if self.has_placeholder(lost)? && !self.is_gone(key.as_str())? {
                return Err(StoreError::Corrupt { key: key.clone(), cause: lost_name(lost) });
            }
        }
        Ok(())
    }

    /// Fails with the key of a placeholder if keys below a prefix may be lost, and that placeholder is not below it.
    pub(crate) fn check_names_below(&self, prefix: &Prefix) -> Result<(), StoreError> {
        for lost in self.parts.damage.below(prefix).filter(|lost| !prefix.contains(&lost.placeholder)) {
            let mut tables = [Some(&self.parts.active), self.parts.frozen.as_ref()].into_iter().flatten();
            let is_erased = tables.any(|table| table.erased_above(prefix.as_str(), self.at).is_some());
            if !is_erased && self.has_placeholder(lost)? && !self.is_gone(prefix.as_str())? {
                return Err(StoreError::Corrupt { key: lost.placeholder.clone(), cause: lost_name(lost) });
            }
        }
        Ok(())
    }

    /// True if the placeholder of lost keys was neither erased nor set.
    fn has_placeholder(&self, lost: &LostKeys) -> Result<bool, StoreError> {
        if self.latest(lost.placeholder.as_str()).is_some() {
            return Ok(false);
        }
        let found = self.parts.sweeps.get(&*self.parts.index, lost.placeholder.as_bytes()).map_err(store_error)?;
        Ok(found.is_some_and(|entry| is_placeholder(&entry)))
    }

    /// True if a key or prefix, or one above it, was erased since names were lost.
    fn is_gone(&self, name: &str) -> Result<bool, StoreError> {
        let above = name.match_indices('/').filter_map(|(at, _)| name.get(..=at));
        for name in [""].into_iter().chain(above).chain([name]) {
            if self.parts.index.get(&gone_key(name.as_bytes())).map_err(store_error)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entries below a prefix, from a key on.
    pub(crate) fn entries(&self, prefix: &Prefix, from: &str) -> Result<Entries<'_>, StoreError> {
        Entries::new(self, prefix, from)
    }

    /// The first key below a prefix.
    pub(crate) fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
        match self.entries(prefix, prefix.as_str())?.next_entry()? {
            Some((key, _)) => Ok(Some(key)),
            None => self.check_names_below(prefix).map(|()| None),
        }
    }

    /// True if an intent exists.
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

    /// The changes of intents that may not be in the index.
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

    /// The last change of a key that may not be in the index.
    pub(crate) fn latest(&self, key: &str) -> Option<Latest> {
        let latest = self.parts.active.latest(key, self.at);
        latest.or_else(|| self.parts.frozen.as_ref()?.latest(key, self.at))
    }

    /// True if the lookup of a key depends on a sweep being in its deleting phase, which may have ended since.
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
        let record = Record::decode(key.as_bytes(), bytes.clone(), self.store_id);
        record.ok_or_else(|| StoreError::corrupt(key.clone(), damage_of(&bytes)))
    }
}

/// The maximum time for which a pass holds off freezing.
const MAX_HOLD: Duration = Duration::from_secs(60);
/// The approximate time of opening an index again.
const REOPEN_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The maximum time that a change waits for an index that is opened again.
pub(crate) const MAX_INDEX_WAIT: Duration = Duration::from_secs(10);
/// The interval at which such a change tries again.
pub(crate) const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The error of an index that is opened again, because it ran out of space.
pub(crate) fn index_unavailable() -> StoreError {
    StoreError::Busy { retry_after: Some(REOPEN_RETRY_AFTER) }
}

/// The error of an index that cannot look up a key.
fn key_error(key: &Key, error: IndexError) -> StoreError {
    match error {
        error if error.is_damage() => StoreError::corrupt(key.clone(), ValueCorruption::Index(error.into())),
        error => store_error(error).at(key.as_str()),
    }
}

pub(crate) fn store_error(error: IndexError) -> StoreError {
    match error {
        IndexError::Reopening => index_unavailable(),
        error if error.is_out_of_space() => index_unavailable(),
        error => StoreError::backend(BackendErrorKind::Internal, IndexFailure(error)),
    }
}
