//! The times of changes through a cache.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Key;

/// The number of times of changes. Keys of one hash have one time.
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

    /// Records a change: of a key, or of many.
    pub(super) fn record(&self, key: Option<&Key>, at: Instant) {
        *key.and_then(|key| self.of_key(key)).unwrap_or(&self.of_all).lock() = Some(at);
    }

    fn of_key(&self, key: &Key) -> Option<&Mutex<Option<Instant>>> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        self.of_keys.get(usize::try_from(hash).unwrap_or(0) % STRIPES)
    }
}
