//! The cache of decoded coordinates.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};
use zarrd_cf::Coordinate;

/// The capacity of the cache in bytes of memory.
const CAPACITY: u64 = 32 << 20;

/// The memory of a coordinate up to which it is cached, in bytes.
pub(crate) const MAX_CACHED: u64 = CAPACITY / 4;

/// An LRU cache of coordinates by the [fingerprint](crate::ArrayRead::fingerprint) of the read of all their elements,
/// which differs for each version, so that entries never expire.
#[derive(Debug)]
pub(crate) struct CoordinateCache(Cache<u128, Arc<Coordinate>, ByteWeighter>);

#[derive(Clone, Debug)]
struct ByteWeighter;

impl Default for CoordinateCache {
    fn default() -> Self {
        Self(Cache::with_weighter(256, CAPACITY, ByteWeighter))
    }
}

impl CoordinateCache {
    /// The coordinate of a fingerprint.
    pub(crate) fn get(&self, fingerprint: u128) -> Option<Arc<Coordinate>> {
        self.0.get(&fingerprint)
    }

    /// Caches a coordinate, unless it would take more than a quarter of the cache.
    pub(crate) fn insert(&self, fingerprint: u128, coordinate: Arc<Coordinate>) {
        if coordinate.memory_size() <= MAX_CACHED {
            self.0.insert(fingerprint, coordinate);
        }
    }
}

impl Weighter<u128, Arc<Coordinate>> for ByteWeighter {
    fn weight(&self, _: &u128, coordinate: &Arc<Coordinate>) -> u64 {
        coordinate.memory_size()
    }
}
