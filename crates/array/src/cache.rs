//! Decoded chunks that are kept for the next who asks.

use std::sync::Arc;

use codec::{Elements, ShardIndex};
use quick_cache::{Weighter, sync::Cache};
use store::{Key, Version};

/// The decoded chunks, and the indexes of shards. A chunk that several ask for at the same time is decoded once.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    entries: Cache<CacheKey, Cached, ByteWeighter>,
    capacity: u64,
}

/// What was decoded: which bytes of which version of a value, and by which metadata.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// The key of the chunk or the shard.
    pub(crate) key: Key,
    /// Its version.
    pub(crate) version: Version,
    /// Where in it the chunk or the index begins.
    pub(crate) start: u64,
    /// Which of the two it is.
    pub(crate) kind: CacheKind,
    /// Which metadata says how it is decoded.
    pub(crate) metadata: u128,
}

/// What is kept of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheKind {
    /// A chunk.
    Chunk,
    /// The index of a shard.
    Index,
}

/// What is kept.
#[derive(Clone, Debug)]
pub(crate) enum Cached {
    /// A chunk.
    Chunk(Elements),
    /// The index of a shard.
    Index(Arc<ShardIndex>),
}

#[derive(Clone, Debug)]
struct ByteWeighter;

/// What an entry costs beside its elements.
const ENTRY_OVERHEAD: u64 = 256;

/// How large a typical entry is; the cache prepares for as many as fit.
const TYPICAL_ENTRY_SIZE: u64 = 64 << 10;

impl ChunkCache {
    /// Keeps at most `capacity` bytes.
    pub(crate) fn new(capacity: u64) -> Self {
        let entries = usize::try_from(capacity / TYPICAL_ENTRY_SIZE).unwrap_or(usize::MAX).max(16);
        Self { entries: Cache::with_weighter(entries, capacity, ByteWeighter), capacity }
    }

    /// How many bytes it keeps at the most.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The bytes of its entries.
    pub(crate) fn used(&self) -> u64 {
        self.entries.weight()
    }

    /// What is kept.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Cached> {
        self.entries.get(key)
    }

    /// What is kept, or what `make` makes, which is kept. Whoever asks for the same at the same time waits for the one; so whoever calls this
    /// has to go on polling it, whatever becomes of their own reader.
    pub(crate) async fn get_or_insert_with<E>(
        &self,
        key: &CacheKey,
        make: impl Future<Output = Result<Cached, E>>,
    ) -> Result<Cached, E> {
        self.entries.get_or_insert_async(key, make).await
    }

    /// Keeps something.
    pub(crate) fn insert(&self, key: CacheKey, value: Cached) {
        self.entries.insert(key, value);
    }
}

impl Weighter<CacheKey, Cached> for ByteWeighter {
    fn weight(&self, key: &CacheKey, value: &Cached) -> u64 {
        let memory = match value {
            Cached::Chunk(elements) => elements.memory(),
            Cached::Index(index) => index.memory(),
        };
        memory.saturating_add(ENTRY_OVERHEAD).saturating_add(key.key.as_str().len() as u64)
    }
}
