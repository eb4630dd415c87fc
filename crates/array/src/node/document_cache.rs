//! The cache of documents that have been read and checked.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};
use zarrd_meta::NodePath;
use zarrd_store::{Key, Version};

use super::documents::Documents;

/// The capacity for texts, and for nodes as well, in bytes of memory: enough for some 6,000 arrays.
const CAPACITY: u64 = 8 << 20;

/// The size of a document in bytes above which it is not cached, so that many others have room.
const MAX_SIZE: usize = 16 << 10;

/// The memory that a text takes in addition to itself and its key.
const TEXT_OVERHEAD: u64 = 256;

/// The memory that a node takes in addition to its documents and its path.
const NODE_OVERHEAD: u64 = 768;

/// The versions of the documents of a node, in the order of [`NAMES`](crate::metadata::keys::NAMES); `None` for one that
/// does not exist.
pub(crate) type DocumentVersions = [Option<Version>; 4];

/// Documents by key and, checked, by the path of their node, so that a tree that has not changed is read and checked once.
///
/// Entries do not expire: a caller has the versions that the documents have now.
#[derive(Debug)]
pub(crate) struct DocumentCache {
    texts: Cache<Key, CachedText, ByteWeighter>,
    nodes: Cache<NodePath, Arc<CachedNode>, ByteWeighter>,
}

/// The text of a document, in memory of its own.
#[derive(Clone, Debug)]
pub(crate) struct CachedText {
    pub(crate) version: Version,
    pub(crate) text: Bytes,
}

#[derive(Debug)]
struct CachedNode {
    versions: DocumentVersions,
    documents: Documents,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl Default for DocumentCache {
    fn default() -> Self {
        let [texts, nodes] = [ByteWeighter, ByteWeighter];
        Self { texts: Cache::with_weighter(1024, CAPACITY, texts), nodes: Cache::with_weighter(1024, CAPACITY, nodes) }
    }
}

impl DocumentCache {
    /// The text of a document that was last read, which may have changed since.
    pub(crate) fn text(&self, key: &Key) -> Option<CachedText> {
        self.texts.get(key)
    }

    /// Caches a text that is small, and returns it.
    pub(crate) fn insert_text(&self, key: &Key, version: Version, text: Bytes) -> Bytes {
        if text.len() > MAX_SIZE {
            return text;
        }
        // It may be a part of a larger buffer.
        let text = Bytes::copy_from_slice(&text);
        self.texts.insert(key.clone(), CachedText { version, text: text.clone() });
        text
    }

    /// The documents of the node at a path, if those that are cached have these versions.
    pub(crate) fn get(&self, path: &NodePath, versions: &DocumentVersions) -> Option<Documents> {
        let cached = self.nodes.get(path).filter(|cached| cached.versions == *versions)?;
        Some(cached.documents.clone())
    }

    /// Caches the documents of a node, if they exist and are small.
    pub(crate) fn insert(&self, path: &NodePath, versions: &DocumentVersions, documents: &Documents) {
        if versions.iter().any(Option::is_some) && documents.size() <= MAX_SIZE {
            let cached = CachedNode { versions: *versions, documents: documents.clone() };
            self.nodes.insert(path.clone(), Arc::new(cached));
        }
    }
}

impl Weighter<Key, CachedText> for ByteWeighter {
    fn weight(&self, key: &Key, cached: &CachedText) -> u64 {
        TEXT_OVERHEAD.saturating_add(key.as_str().len() as u64).saturating_add(cached.text.len() as u64)
    }
}

impl Weighter<NodePath, Arc<CachedNode>> for ByteWeighter {
    fn weight(&self, path: &NodePath, cached: &Arc<CachedNode>) -> u64 {
        // The path is part of the keys, too.
        let paths = path.relative().len().saturating_mul(3) as u64;
        NODE_OVERHEAD.saturating_add(paths).saturating_add(cached.documents.size() as u64)
    }
}
