//! The cache of documents that walks have read and checked.

use std::sync::Arc;

use quick_cache::{Weighter, sync::Cache};
use zarrd_meta::NodePath;
use zarrd_store::Version;

use super::documents::Documents;

/// The capacity of the cache in bytes of memory: the documents of some 10,000 arrays.
const CAPACITY: u64 = 8 << 20;

/// The size of the documents of a node, in bytes, above which they are not cached, so that many others have room.
const MAX_SIZE: usize = 16 << 10;

/// The memory that a node takes in addition to its documents and its path.
const OVERHEAD: u64 = 512;

/// The versions of the documents of a node, in the order of [`NAMES`](crate::metadata::keys::NAMES); `None` for one that
/// does not exist.
pub(crate) type DocumentVersions = [Option<Version>; 4];

/// The documents of nodes by path, so that a tree that has not changed is read and checked once.
///
/// Entries do not expire: a caller has the versions that the documents have now.
#[derive(Debug)]
pub(crate) struct DocumentCache {
    nodes: Cache<NodePath, Arc<CachedDocuments>, ByteWeighter>,
}

#[derive(Debug)]
struct CachedDocuments {
    versions: DocumentVersions,
    documents: Documents,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl Default for DocumentCache {
    fn default() -> Self {
        Self { nodes: Cache::with_weighter(1024, CAPACITY, ByteWeighter) }
    }
}

impl DocumentCache {
    /// The documents at a path, if those that are cached have these versions.
    pub(crate) fn get(&self, path: &NodePath, versions: &DocumentVersions) -> Option<Documents> {
        let cached = self.nodes.get(path).filter(|cached| cached.versions == *versions)?;
        Some(cached.documents.clone())
    }

    /// Caches documents that exist and are small.
    pub(crate) fn insert(&self, path: &NodePath, versions: &DocumentVersions, documents: &Documents) {
        if versions.iter().any(Option::is_some) && documents.size() <= MAX_SIZE {
            let cached = CachedDocuments { versions: *versions, documents: documents.clone() };
            self.nodes.insert(path.clone(), Arc::new(cached));
        }
    }
}

impl Weighter<NodePath, Arc<CachedDocuments>> for ByteWeighter {
    fn weight(&self, path: &NodePath, cached: &Arc<CachedDocuments>) -> u64 {
        // The path is part of the keys, too.
        let paths = path.relative().len().saturating_mul(4) as u64;
        OVERHEAD.saturating_add(paths).saturating_add(cached.documents.size() as u64)
    }
}
