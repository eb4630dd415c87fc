//! The cache of resolved arrays.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};
use zarrd_meta::{Dialect, NodePath};

use super::resolved::ResolvedArray;

/// The capacity of the cache in bytes of memory.
const CAPACITY: u64 = 64 << 20;

/// The memory that a node takes in addition to its documents.
const NODE_OVERHEAD: u64 = 4 << 10;

/// The memory of a parsed document, as a multiple of its size as text: an estimate from above.
pub(crate) const PARSED_SIZE_FACTOR: u64 = 8;

/// An LRU cache of resolved arrays by path and requested dialect, so that documents are parsed once for each version.
///
/// Entries do not expire: a caller has to check that the [read set](ResolvedArray::read_set) of what it gets is still
/// current.
#[derive(Debug)]
pub(crate) struct NodeCache {
    arrays: Cache<(NodePath, Option<Dialect>), Arc<ResolvedArray>, ByteWeighter>,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl Default for NodeCache {
    fn default() -> Self {
        Self { arrays: Cache::with_weighter(1024, CAPACITY, ByteWeighter) }
    }
}

impl NodeCache {
    /// The array that was last resolved at a path, which may have changed since.
    pub(crate) fn get(&self, path: &NodePath, dialect: Option<Dialect>) -> Option<Arc<ResolvedArray>> {
        self.arrays.get(&(path.clone(), dialect))
    }

    /// Caches an array.
    pub(crate) fn insert(&self, path: &NodePath, dialect: Option<Dialect>, resolved: Arc<ResolvedArray>) {
        self.arrays.insert((path.clone(), dialect), resolved);
    }
}

impl Weighter<(NodePath, Option<Dialect>), Arc<ResolvedArray>> for ByteWeighter {
    fn weight(&self, (path, _): &(NodePath, Option<Dialect>), resolved: &Arc<ResolvedArray>) -> u64 {
        let fill = resolved.array.model().fill_value.len() as u64;
        let documents = resolved.read_set.bytes().saturating_mul(PARSED_SIZE_FACTOR);
        documents.saturating_add(fill.saturating_mul(2)).saturating_add(NODE_OVERHEAD + path.relative().len() as u64)
    }
}
