//! Changes through the cache: what was cached of the changed keys is not used any more.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{CachedStore, ValueCache};
use crate::{Key, KeyCount, Payload, Precondition, Prefix, PutResult, ReadableStore, StoreError, WriteableStore};

/// The number of times of changes that are kept. Keys of one hash have one time.
const STRIPES: usize = 1024;

/// The times at which keys were last changed through the cache, by the hash of the key: a request that was sent before
/// may have found the value before.
#[derive(Debug)]
pub(super) struct ChangeTimes {
    of_keys: Box<[Mutex<Option<Instant>>]>,
    /// The last time at which a prefix was erased.
    of_all: Mutex<Option<Instant>>,
}

impl Default for ChangeTimes {
    fn default() -> Self {
        Self { of_keys: (0..STRIPES).map(|_| Mutex::default()).collect(), of_all: Mutex::default() }
    }
}

impl ChangeTimes {
    /// True if what a request found of a key may be from before a change of it.
    pub(super) fn exclude(&self, key: &Key, requested: Instant) -> bool {
        let is_before = |time: &Mutex<Option<Instant>>| time.lock().is_some_and(|changed| requested <= changed);
        is_before(&self.of_all) || self.of_key(key).is_some_and(is_before)
    }

    fn of_key(&self, key: &Key) -> Option<&Mutex<Option<Instant>>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        self.of_keys.get(usize::try_from(hash).unwrap_or(0) % STRIPES)
    }
}

/// A change of a key, or of all below a prefix, that is being made. Once it is dropped, nothing that was requested before
/// is used any more: not after a failure either, since the key may have another value than was thought.
struct RunningChange<'c> {
    cache: &'c ValueCache,
    key: Option<&'c Key>,
}

impl Drop for RunningChange<'_> {
    fn drop(&mut self) {
        let times = &self.cache.changes;
        let time = self.key.and_then(|key| times.of_key(key)).unwrap_or(&times.of_all);
        *time.lock() = Some(Instant::now());
        if let Some(key) = self.key {
            self.cache.entries.remove(key);
        }
    }
}

#[async_trait]
impl<S: ReadableStore + WriteableStore> WriteableStore for CachedStore<S> {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        let _running = RunningChange { cache: &self.cache, key: Some(key) };
        self.store.set(key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let _running = RunningChange { cache: &self.cache, key: Some(key) };
        self.store.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let _running = RunningChange { cache: &self.cache, key: None };
        self.store.erase_prefix(prefix).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.store.check_writable().await
    }
}
