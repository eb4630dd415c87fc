//! Remembered results of reductions.

use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};
use zarrd_codec::Elements;

/// The memory of an entry in addition to its elements, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// The size of a typical result in bytes.
const TYPICAL_SIZE: u64 = 4 << 10;

/// An LRU cache of results.
#[derive(Debug)]
pub(crate) struct ResultCache {
    entries: Cache<ResultKey, Elements, ByteWeighter>,
    /// The maximum size of a cached result, in bytes.
    max_size: u64,
}

/// The identity of a result: a hash of the versions of all chunks and documents that it is made of, and one of what is
/// computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResultKey {
    pub(crate) input: u128,
    pub(crate) computation: u128,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl ResultCache {
    /// A cache of at most `capacity` bytes of memory.
    pub(crate) fn new(capacity: u64) -> Self {
        let entries = usize::try_from(capacity / TYPICAL_SIZE).unwrap_or(usize::MAX).clamp(16, 1 << 16);
        Self { entries: Cache::with_weighter(entries, capacity, ByteWeighter), max_size: capacity / 4 }
    }

    /// The memory of the results, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.entries.weight()
    }

    /// The memory of the results at most, in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.entries.capacity()
    }

    pub(crate) fn get(&self, key: &ResultKey) -> Option<Elements> {
        self.entries.get(key)
    }

    /// The maximum size of a cached result, in bytes.
    pub(crate) fn max_size(&self) -> u64 {
        self.max_size
    }

    /// Remembers a result, unless it is too large.
    pub(crate) fn insert(&self, key: ResultKey, result: Bytes) {
        if result.len() as u64 <= self.max_size {
            self.entries.insert(key, Elements::Fixed(result));
        }
    }
}

impl Weighter<ResultKey, Elements> for ByteWeighter {
    fn weight(&self, _key: &ResultKey, value: &Elements) -> u64 {
        value.memory_size().saturating_add(ENTRY_OVERHEAD)
    }
}
