//! A cache of metadata and documents that other programs write.

mod change_times;
mod writes;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use quick_cache::{Weighter, sync::Cache};
use tokio::time::Instant;

use self::change_times::ChangeTimes;
use crate::{
    ByteRange, CachedMeta, DirPage, Entry, GetResult, Guarantees, Key, KeyPage, KeyTurns, ListableStore, MetadataCache,
    MetadataReader, PageRequest, Prefix, ReadableStore, Recheck, StoreError, ValueMeta, Version, freshness,
};

/// The capacity of the cache, in bytes.
const CAPACITY: u64 = 32 << 20;

/// The memory of an entry in addition to its key and bytes, in bytes.
const ENTRY_OVERHEAD: u64 = 192;

/// The maximum size of a document whose bytes are cached, and so are read before they are returned.
const MAX_DOCUMENT_LEN: u64 = 64 << 10;

/// A store that caches what it reads of another one, whose values other programs may change at any time: of a key its
/// version and size, or that it has no value, and of documents of up to 64 KiB the bytes as well.
///
/// - Entries are used for the time of [`Recheck`], so reads may miss the changes of that time. It begins when the request
///   is sent.
/// - An older entry is revalidated. Its bytes are returned if their version is still the same, so an unchanged document
///   costs a request without a body.
/// - Bytes are always returned with the version that they were read with.
/// - A read that finds another version than the cached one replaces the entry, or removes it if it fails with
///   [`StoreError::Changed`]. All older entries are revalidated then, since a value seldom changes alone: so a second
///   attempt of a read that failed has the new values, however many they are.
/// - Concurrent requests for the metadata of a key become one.
/// - A request may refuse what was requested before a time ([`not_before`](crate::not_before)): its keys are revalidated,
///   and nothing changes for the keys that it does not read.
/// - Listings are not cached. The versions in them are, unless the key has an entry.
/// - Changes that are made through it are seen at once.
/// - It takes at most 32 MiB.
///
/// With [`Recheck::Always`] nothing is cached. Clones share the cache.
pub struct CachedStore<S> {
    store: Arc<S>,
    recheck: Recheck,
    cache: Arc<ValueCache>,
    /// The requests under way.
    turns: KeyTurns,
}

/// The entries, by key.
struct ValueCache {
    entries: Cache<Key, CacheEntry, ByteWeighter>,
    /// The last time at which a value was found to have changed before its time was over. What was requested before may
    /// have changed as well.
    changed: Mutex<Option<Instant>>,
    /// The changes that were made through the cache.
    changes: ChangeTimes,
}

#[derive(Clone, Debug)]
struct CacheEntry {
    /// The metadata; `None` if the key has no value.
    meta: Option<ValueMeta>,
    /// The bytes of a document.
    bytes: Option<Bytes>,
    /// The time of the last request that found it so.
    requested: Instant,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl<S: ReadableStore> CachedStore<S> {
    /// Wraps a store.
    pub fn new(store: S, recheck: Recheck) -> Self {
        let entries = Cache::with_weighter(4096, CAPACITY, ByteWeighter);
        Self {
            store: Arc::new(store),
            recheck,
            cache: Arc::new(ValueCache { entries, changed: Mutex::default(), changes: ChangeTimes::default() }),
            turns: KeyTurns::default(),
        }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// The guarantees of the store, given the guarantees of the wrapped one.
    pub fn guarantees(&self, inner: Guarantees) -> Guarantees {
        Guarantees { staleness: inner.staleness.saturating_add(self.recheck.staleness()), ..inner }
    }

    /// The entry of a key, if it need not be revalidated.
    fn fresh(&self, key: &Key) -> Option<CacheEntry> {
        self.cache.entries.get(key).filter(|found| self.is_fresh(key, found))
    }

    fn is_fresh(&self, key: &Key, found: &CacheEntry) -> bool {
        if self.cache.changes.exclude(key, found.requested) {
            return false;
        }
        if self.cache.changed.lock().is_some_and(|changed| found.requested < changed) {
            return false;
        }
        if !freshness::allows(found.requested) {
            return false;
        }
        match self.recheck {
            Recheck::Always => false,
            Recheck::After(time) => found.requested.elapsed() < time,
            Recheck::Never => true,
        }
    }

    /// Caches what a request found that was sent at `requested`.
    fn insert(&self, key: &Key, meta: Option<ValueMeta>, bytes: Option<Bytes>, requested: Instant) {
        if self.recheck != Recheck::Always {
            self.cache.put(key, CacheEntry { meta, bytes, requested });
        }
    }

    /// Requests the metadata of a key.
    async fn request_head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        let requested = Instant::now();
        let meta = self.store.head(key).await?;
        self.insert(key, meta.clone(), None, requested);
        Ok(meta)
    }

    /// Requests a value.
    async fn request(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let requested = Instant::now();
        let result = self.store.get(key, range).await;
        self.insert_result(key, range, requested, result).await
    }

    /// Caches the result of a read that was sent at `requested`. The bytes of a document are read first.
    async fn insert_result(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        requested: Instant,
        result: Result<Option<GetResult>, StoreError>,
    ) -> Result<Option<GetResult>, StoreError> {
        let value = match result {
            Ok(Some(value)) => value,
            Ok(None) => {
                self.insert(key, None, None, requested);
                return Ok(None);
            }
            Err(error) => {
                match &error {
                    StoreError::Changed { .. } => self.cache.invalidate(key),
                    StoreError::RangeNotSatisfiable { meta } => self.insert(key, Some(meta.clone()), None, requested),
                    _ => {}
                }
                return Err(error);
            }
        };
        let (meta, bytes_range) = (value.meta.clone(), value.range.clone());
        if self.recheck == Recheck::Always {
            return Ok(Some(value));
        }
        if range.is_none() && meta.size <= MAX_DOCUMENT_LEN && is_document(key) {
            let bytes = value.bytes().await.inspect_err(|error| {
                if matches!(error, StoreError::Changed { .. }) {
                    self.cache.invalidate(key);
                }
            })?;
            // A body that is not as long as the value says is passed on as it is.
            let complete = Some(bytes.clone()).filter(|bytes| bytes.len() as u64 == meta.size);
            self.insert(key, Some(meta.clone()), complete, requested);
            return Ok(Some(of_bytes(meta, bytes_range, bytes)));
        }
        self.insert(key, Some(meta.clone()), None, requested);
        let (cache, key) = (Arc::clone(&self.cache), key.clone());
        let stream = value.stream.inspect_err(move |error| {
            if matches!(error, StoreError::Changed { .. }) {
                cache.invalidate(&key);
            }
        });
        Ok(Some(GetResult { meta, range: bytes_range, stream: stream.boxed() }))
    }

    /// The cached value of a document, if it is fresh or still has its version.
    async fn cached_document(&self, key: &Key) -> Result<Option<GetResult>, StoreError> {
        let Some(found) = self.cache.entries.get(key) else { return Ok(None) };
        let is_fresh = self.is_fresh(key, &found);
        let CacheEntry { meta: Some(meta), bytes: Some(bytes), .. } = found else { return Ok(None) };
        if !is_fresh {
            let now = self.request_head(key).await?;
            if now.map(|now| now.version) != Some(meta.version) {
                return Ok(None);
            }
        }
        let range = 0..meta.size;
        Ok(Some(of_bytes(meta, range, bytes)))
    }

    fn insert_listed<'e>(&self, entries: impl Iterator<Item = &'e Entry>, requested: Instant) {
        if self.recheck == Recheck::Always {
            return;
        }
        for Entry { key, meta, .. } in entries.filter(|entry| !entry.is_damaged) {
            let known = self.cache.entries.get(key);
            // A listing of a bucket may be older than what a read of the key found.
            match known.filter(|known| known.meta.as_ref().map(|known| known.version) != Some(meta.version)) {
                None => self.cache.put(key, CacheEntry { meta: Some(meta.clone()), bytes: None, requested }),
                // A request that refuses the entry leaves nothing older for others than it has itself.
                Some(known) if !freshness::allows(known.requested) => {
                    self.cache.entries.remove(key);
                }
                Some(_) => {}
            }
        }
    }
}

impl ValueCache {
    /// Inserts what was found, unless a later request found something else, or it may be from before a change. Bytes stay as
    /// long as their version is the same.
    fn put(&self, key: &Key, mut found: CacheEntry) {
        if self.changes.exclude(key, found.requested) {
            return;
        }
        if let Some(before) = self.entries.get(key) {
            let version = |entry: &CacheEntry| entry.meta.as_ref().map(|meta| meta.version);
            let is_same = version(&before) == version(&found);
            if !is_same && before.requested > found.requested {
                return;
            }
            if is_same {
                found.bytes = found.bytes.or(before.bytes);
                found.requested = found.requested.max(before.requested);
            }
        }
        self.entries.insert(key.clone(), found);
    }

    /// Removes an entry whose value has another version, and has all older entries revalidated.
    fn invalidate(&self, key: &Key) {
        self.entries.remove(key);
        *self.changed.lock() = Some(Instant::now());
    }
}

/// True for the names of metadata documents, which are read again and again.
pub(crate) fn is_document(key: &Key) -> bool {
    let name = key.name();
    name.starts_with(".z") || name.ends_with(".json")
}

/// A value, or a range of one, whose bytes are in memory.
fn of_bytes(meta: ValueMeta, range: std::ops::Range<u64>, bytes: Bytes) -> GetResult {
    let stream = stream::iter(Some(bytes).filter(|bytes| !bytes.is_empty()).map(Ok)).boxed();
    GetResult { meta, range, stream }
}

impl Weighter<Key, CacheEntry> for ByteWeighter {
    fn weight(&self, key: &Key, entry: &CacheEntry) -> u64 {
        let bytes = entry.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        ENTRY_OVERHEAD.saturating_add(key.as_str().len() as u64).saturating_add(bytes)
    }
}

impl<S> Clone for CachedStore<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            recheck: self.recheck,
            cache: Arc::clone(&self.cache),
            turns: self.turns.clone(),
        }
    }
}

impl<S> fmt::Debug for CachedStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStore").field("recheck", &self.recheck).finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: ReadableStore> ReadableStore for CachedStore<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        if self.recheck == Recheck::Always {
            return self.store.get(key, range).await;
        }
        if let Some(CacheEntry { meta: None, .. }) = self.fresh(key) {
            return Ok(None);
        }
        if range.is_some() || !is_document(key) {
            return self.request(key, range).await;
        }
        // Concurrent reads of a document wait for the first of them.
        let _turn = self.turns.take(key).await;
        match self.cached_document(key).await? {
            Some(value) => Ok(Some(value)),
            None => match self.fresh(key) {
                Some(CacheEntry { meta: None, .. }) => Ok(None),
                _ => self.request(key, None).await,
            },
        }
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        if self.recheck == Recheck::Always {
            return self.store.head(key).await;
        }
        if let Some(found) = self.fresh(key) {
            return Ok(found.meta);
        }
        let _turn = self.turns.take(key).await;
        match self.fresh(key) {
            Some(found) => Ok(found.meta),
            None => self.request_head(key).await,
        }
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        if self.recheck == Recheck::Always {
            return self.store.get_if_match(key, range, version).await;
        }
        // Bytes of this version are wanted, even if the value has another one by now.
        if range.is_none()
            && let Some(CacheEntry { meta: Some(meta), bytes: Some(bytes), .. }) = self.cache.entries.get(key)
            && meta.version == version
        {
            let range = 0..meta.size;
            return Ok(Some(of_bytes(meta, range, bytes)));
        }
        let requested = Instant::now();
        let result = self.store.get_if_match(key, range, version).await;
        let has_changed = match &result {
            Ok(value) => value.as_ref().is_none_or(|value| value.meta.version != version),
            Err(StoreError::RangeNotSatisfiable { meta }) => meta.version != version,
            Err(_) => false,
        };
        if has_changed {
            self.cache.invalidate(key);
        }
        self.insert_result(key, range, requested, result).await
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        Some(self)
    }
}

impl<S: ReadableStore> MetadataCache for CachedStore<S> {
    fn cached(&self, key: &Key) -> CachedMeta {
        self.fresh(key).map_or(CachedMeta::Unknown, |found| CachedMeta::Known(found.meta))
    }

    fn reader(&self) -> Option<MetadataReader<'_>> {
        match self.recheck {
            // The reader of the store itself is current.
            Recheck::Always => self.store.metadata_cache()?.reader(),
            Recheck::After(_) | Recheck::Never => None,
        }
    }

    fn is_filled_by_requests(&self) -> bool {
        self.recheck != Recheck::Always
    }

    fn insert_absent(&self, key: &Key, requested: Instant) {
        if self.recheck == Recheck::Always {
            return;
        }
        // A listing of a bucket may be older than what a read of the key found.
        match self.cache.entries.get(key).filter(|known| known.meta.is_some()) {
            None => self.cache.put(key, CacheEntry { meta: None, bytes: None, requested }),
            Some(known) if !freshness::allows(known.requested) => {
                self.cache.entries.remove(key);
            }
            Some(_) => {}
        }
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore> ListableStore for CachedStore<S> {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let requested = Instant::now();
        let page = self.store.list_prefix(prefix, page).await?;
        self.insert_listed(page.keys.iter(), requested);
        Ok(page)
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let requested = Instant::now();
        let page = self.store.list_dir(prefix, page).await?;
        self.insert_listed(page.keys.iter(), requested);
        Ok(page)
    }
}
