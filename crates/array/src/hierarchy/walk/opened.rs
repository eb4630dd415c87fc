//! Opening a document, of which as little is requested as is not known.

use zarrd_store::{CachedMeta, GetResult, Key, Prefetch, Snapshot, StoreError, Version};

use crate::node::document_cache::CachedText;

/// A document that has been opened.
pub(super) enum Opened {
    /// It has not changed since it was cached.
    Cached(CachedText),
    Value(GetResult),
}

impl Opened {
    /// The version, and the size in bytes.
    pub(super) fn version_and_size(&self) -> (Version, u64) {
        match self {
            Self::Cached(cached) => (cached.version, cached.text.len() as u64),
            Self::Value(value) => (value.meta.version, value.meta.size),
        }
    }
}

/// Opens a document, of which only the metadata are read if it is cached, and nothing if a scan has found its version.
pub(super) async fn open(
    snapshot: &dyn Snapshot,
    key: &Key,
    scanned: Option<Option<Version>>,
    cached: Option<CachedText>,
) -> Result<Option<Opened>, StoreError> {
    match (scanned, cached.as_ref().map(|cached| cached.version)) {
        (Some(None), _) => return Ok(None),
        (Some(scanned), known) if scanned == known => return Ok(cached.map(Opened::Cached)),
        _ => {}
    }
    if let CachedMeta::Known(None) = snapshot.cached(key)? {
        return Ok(None);
    }
    if let Some(cached) = cached {
        match snapshot.stat(key, Prefetch::Nothing).await? {
            None => return Ok(None),
            Some(meta) if meta.version == cached.version => return Ok(Some(Opened::Cached(cached))),
            Some(_) => {}
        }
    }
    Ok(snapshot.get(key, None).await?.map(Opened::Value))
}
