//! The cache of decoded chunks.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};
use xxhash_rust::xxh3::xxh3_64;
use zarrd_codec::{Elements, ShardIndex};
use zarrd_store::{Key, Version};

/// A cache of decoded chunks and shard indexes that evicts what was used once before what was used again. Concurrent requests for one entry decode it once.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    entries: Cache<CacheKey, Cached, ByteWeighter>,
    /// The version in which each chunk was cached last, by the hash of its key: a hint, for chunks of distant stores.
    latest: Cache<u64, Version>,
    capacity: u64,
}

/// The identity of a cached entry: the bytes of one version of a value, and the metadata they are decoded by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// The key of the chunk or the shard.
    pub(crate) key: Key,
    /// Its version.
    pub(crate) version: Version,
    /// The offset of the chunk or the index in the value, in bytes.
    pub(crate) start: u64,
    /// Distinguishes a chunk from an index that begins at the same offset.
    pub(crate) kind: CacheKind,
    /// The hash of the metadata that the chunk is decoded by.
    pub(crate) metadata: u128,
}

/// The kind of a cached entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CacheKind {
    /// A chunk.
    Chunk,
    /// The index of a shard.
    Index,
}

/// A cached entry.
#[derive(Clone, Debug)]
pub(crate) enum Cached {
    /// A chunk.
    Chunk(Elements),
    /// The index of a shard.
    Index(Arc<ShardIndex>),
}

#[derive(Clone, Debug)]
struct ByteWeighter;

/// The memory of an entry in addition to its elements, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// The size of a typical entry in bytes; the cache allocates its table for as many as fit.
const TYPICAL_ENTRY_SIZE: u64 = 64 << 10;

/// The number of keys whose versions are cached.
const LATEST_VERSIONS: usize = 1 << 16;

impl ChunkCache {
    /// A cache of at most `capacity` bytes of memory.
    pub(crate) fn new(capacity: u64) -> Self {
        let entries = usize::try_from(capacity / TYPICAL_ENTRY_SIZE).unwrap_or(usize::MAX).max(16);
        let latest = Cache::new(LATEST_VERSIONS);
        Self { entries: Cache::with_weighter(entries, capacity, ByteWeighter), latest, capacity }
    }

    /// The capacity in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The decoded chunks of a read that are cached, in bytes, at most.
    ///
    /// Entries that were used again stay when others are read once, so this bound does not protect them. But if a read
    /// takes more than is left beside them, each of its chunks is evicted before it is read again.
    pub(crate) fn largest_read(&self) -> u64 {
        self.capacity / 2
    }

    /// The memory of all entries, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.entries.weight()
    }

    /// The cached entry.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<Cached> {
        self.entries.get(key)
    }

    /// The cached entry, or the result of `make`, which is cached. Concurrent callers with the same key wait for one
    /// `make`, so a caller must poll this to its end even if its own client has left.
    pub(crate) async fn get_or_insert_with<E>(
        &self,
        key: &CacheKey,
        make: impl Future<Output = Result<Cached, E>>,
    ) -> Result<Cached, E> {
        self.entries.get_or_insert_async(key, make).await
    }

    /// Takes note that an entry is cached of a chunk whose versions are not known without asking its store.
    pub(crate) fn note_latest(&self, key: &CacheKey) {
        self.latest.insert(hash(&key.key), key.version);
    }

    /// True if the version of a chunk that was noted last is cached.
    pub(crate) fn has_latest(&self, key: &Key, metadata: u128) -> bool {
        let Some(version) = self.latest.get(&hash(key)) else { return false };
        let of = CacheKey { key: key.clone(), version, start: 0, kind: CacheKind::Chunk, metadata };
        self.entries.peek(&of).is_some()
    }

    /// Caches an entry.
    pub(crate) fn insert(&self, key: CacheKey, value: Cached) {
        self.entries.insert(key, value);
    }
}

fn hash(key: &Key) -> u64 {
    xxh3_64(key.as_str().as_bytes())
}

impl Weighter<CacheKey, Cached> for ByteWeighter {
    fn weight(&self, key: &CacheKey, value: &Cached) -> u64 {
        let memory = match value {
            Cached::Chunk(elements) => elements.memory_size(),
            Cached::Index(index) => index.memory_size(),
        };
        memory.saturating_add(ENTRY_OVERHEAD).saturating_add(key.key.as_str().len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const CAPACITY: u64 = 192 << 20;
    const ENTRY: usize = 64 << 10;

    fn key(array: &str, number: u64) -> CacheKey {
        let key = Key::parse(&format!("{array}/{number}")).unwrap();
        CacheKey { key, version: Version::from_u128(1), start: 0, kind: CacheKind::Chunk, metadata: 0 }
    }

    /// Reads an array of so many bytes; returns the number of entries that were cached, and of all.
    fn read(cache: &ChunkCache, array: &str, bytes: u64) -> (u64, u64) {
        // All entries share one buffer.
        let chunk = Cached::Chunk(Elements::Fixed(Bytes::from(vec![0; ENTRY])));
        let all = bytes / ENTRY as u64;
        let mut found = 0;
        for key in (0..all).map(|number| key(array, number)) {
            match cache.get(&key) {
                Some(_) => found += 1,
                None => cache.insert(key, chunk.clone()),
            }
        }
        (found, all)
    }

    #[test]
    fn latest_version_is_known_as_long_as_it_is_cached() {
        let cache = ChunkCache::new(CAPACITY);
        let (first, chunk) = (key("a", 0), Cached::Chunk(Elements::Fixed(Bytes::from(vec![0; ENTRY]))));
        let second = CacheKey { version: Version::from_u128(2), ..first.clone() };
        assert!(!cache.has_latest(&first.key, 0));
        cache.insert(first.clone(), chunk.clone());
        cache.note_latest(&first);
        assert_eq!([0, 1].map(|metadata| cache.has_latest(&first.key, metadata)), [true, false]);
        cache.note_latest(&second);
        assert!(!cache.has_latest(&first.key, 0), "another version is the latest");
        cache.insert(second.clone(), chunk);
        assert!(cache.has_latest(&first.key, 0));
        cache.entries.remove(&second);
        assert!(!cache.has_latest(&first.key, 0), "it is cached no longer");
    }

    /// Hashes are random, so that the shards of a cache may be filled unevenly: the entries of several are counted.
    #[test]
    fn what_was_read_again_stays_when_others_are_read_once() {
        let mut counts = [(0, 0); 2];
        let mut count = |at: usize, (found, all): (u64, u64)| {
            counts[at].0 += found;
            counts[at].1 += all;
        };
        for _ in 0..8 {
            let cache = ChunkCache::new(CAPACITY);
            for _ in 0..3 {
                read(&cache, "again", CAPACITY / 2);
            }
            for once in 0..20 {
                read(&cache, &format!("once{once}"), cache.largest_read());
            }
            count(0, read(&cache, "again", CAPACITY / 2));
            for _ in 0..5 {
                read(&cache, "again too", cache.largest_read());
            }
            count(1, read(&cache, "again too", cache.largest_read()));
            assert!(cache.used() <= CAPACITY);
        }
        let [(again, all), (again_too, all_too)] = counts;
        assert!(again > all * 3 / 4, "{again} of {all}");
        assert!(again_too > all_too / 2, "{again_too} of {all_too}");
    }
}
