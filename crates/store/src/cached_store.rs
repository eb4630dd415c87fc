//! Remembering what was read of data that other programs write.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;
use quick_cache::{Weighter, sync::Cache};
use tokio::time::Instant;

use crate::{
    ByteRange, DirPage, Entry, GetResult, Guarantees, Key, KeyPage, KeyTurns, ListableStore, PageRequest, Peek, Prefix,
    ReadableStore, Recall, Recheck, StoreError, ValueMeta, Version, freshness,
};

/// The memory for all that is remembered, in bytes.
const CAPACITY: u64 = 32 << 20;

/// The memory of an entry in addition to its key and bytes, in bytes.
const ENTRY_OVERHEAD: u64 = 192;

/// The size up to which the bytes of a document are remembered, and so are read before they are returned.
const MAX_DOCUMENT_LEN: u64 = 64 << 10;

/// A store that remembers what it read of another one, whose values other programs may change at any time: of a key its
/// version and size, or that it has no value, and of documents of up to 64 KiB the bytes as well.
///
/// - Within the time of [`Recheck`] it answers from memory, so it may miss the changes of that time. The time begins
///   when the request is sent.
/// - Afterwards it looks at the key again. Bytes that are remembered are returned if their version is still the same,
///   so an unchanged document costs a request without a body.
/// - Bytes are always returned with the version that they were read with.
/// - A read that finds another version than the one that is remembered replaces it, or removes it if it fails with
///   [`StoreError::Changed`]. All that was asked before is looked at again then, since a value seldom changes alone: so a
///   second attempt of a read that failed has the new values, however many there are.
/// - Those who look at a key at the same time wait for one request.
/// - A request may refuse what was asked before a time ([`not_before`](crate::not_before)): it looks at these keys again,
///   and nothing changes for the keys that it does not read.
/// - Listings are not remembered. The versions that they have are, unless something is known of the key.
/// - It takes at most 32 MiB.
///
/// With [`Recheck::Always`] nothing is remembered. Clones share what is remembered.
pub struct Rechecked<S> {
    store: Arc<S>,
    recheck: Recheck,
    memory: Arc<Memory>,
    looks: KeyTurns,
}

/// The remembered values, by key.
struct Memory {
    entries: Cache<Key, Remembered, ByteWeighter>,
    /// The last time at which a value was found to have changed before its time was over. What was asked before may
    /// have changed as well.
    changed: Mutex<Option<Instant>>,
}

/// A remembered value.
#[derive(Clone, Debug)]
struct Remembered {
    /// The metadata; `None` if it has no value.
    meta: Option<ValueMeta>,
    /// The bytes of a document.
    bytes: Option<Bytes>,
    /// The time of the last request that found it so.
    asked: Instant,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl<S: ReadableStore> Rechecked<S> {
    /// Wraps a store.
    pub fn new(store: S, recheck: Recheck) -> Self {
        let entries = Cache::with_weighter(4096, CAPACITY, ByteWeighter);
        Self {
            store: Arc::new(store),
            recheck,
            memory: Arc::new(Memory { entries, changed: Mutex::default() }),
            looks: KeyTurns::default(),
        }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// The guarantees of the store, given those of the wrapped one.
    pub fn guarantees(&self, inner: Guarantees) -> Guarantees {
        Guarantees { staleness: inner.staleness.saturating_add(self.recheck.staleness()), ..inner }
    }

    /// The remembered value of a key, if it need not be asked for again.
    fn fresh(&self, key: &Key) -> Option<Remembered> {
        self.memory.entries.get(key).filter(|found| self.is_fresh(found))
    }

    fn is_fresh(&self, found: &Remembered) -> bool {
        if self.memory.changed.lock().is_some_and(|changed| found.asked < changed) {
            return false;
        }
        if !freshness::allows(found.asked) {
            return false;
        }
        match self.recheck {
            Recheck::Always => false,
            Recheck::After(time) => found.asked.elapsed() < time,
            Recheck::Never => true,
        }
    }

    /// Remembers what a request found that was sent at `asked`.
    fn remember(&self, key: &Key, meta: Option<ValueMeta>, bytes: Option<Bytes>, asked: Instant) {
        if self.recheck != Recheck::Always {
            self.memory.put(key, Remembered { meta, bytes, asked });
        }
    }

    /// Asks for the metadata of a key.
    async fn look(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        let asked = Instant::now();
        let meta = self.store.head(key).await?;
        self.remember(key, meta, None, asked);
        Ok(meta)
    }

    /// Asks for a value, of which nothing current is remembered.
    async fn fetch(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let asked = Instant::now();
        let result = self.store.get(key, range).await;
        self.take(key, range, asked, result).await
    }

    /// Remembers the result of a read that was sent at `asked`. The bytes of a document are read first.
    async fn take(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        asked: Instant,
        result: Result<Option<GetResult>, StoreError>,
    ) -> Result<Option<GetResult>, StoreError> {
        let value = match result {
            Ok(Some(value)) => value,
            Ok(None) => {
                self.remember(key, None, None, asked);
                return Ok(None);
            }
            Err(error) => {
                match &error {
                    StoreError::Changed { .. } => self.memory.change(key),
                    StoreError::RangeNotSatisfiable { meta } => self.remember(key, Some(*meta), None, asked),
                    _ => {}
                }
                return Err(error);
            }
        };
        let (meta, bytes_range) = (value.meta, value.range.clone());
        if self.recheck == Recheck::Always {
            return Ok(Some(value));
        }
        if range.is_none() && meta.size <= MAX_DOCUMENT_LEN && is_document(key) {
            let bytes = value.bytes().await.inspect_err(|error| {
                if matches!(error, StoreError::Changed { .. }) {
                    self.memory.change(key);
                }
            })?;
            // A body that is not as long as the value says is passed on as it is.
            let complete = Some(bytes.clone()).filter(|bytes| bytes.len() as u64 == meta.size);
            self.remember(key, Some(meta), complete, asked);
            return Ok(Some(of_bytes(meta, bytes_range, bytes)));
        }
        self.remember(key, Some(meta), None, asked);
        let (memory, key) = (Arc::clone(&self.memory), key.clone());
        let stream = value.stream.inspect_err(move |error| {
            if matches!(error, StoreError::Changed { .. }) {
                memory.change(&key);
            }
        });
        Ok(Some(GetResult { meta, range: bytes_range, stream: stream.boxed() }))
    }

    /// The current value of a document from memory: what is remembered, if it is fresh or still has its version.
    async fn remembered_document(&self, key: &Key) -> Result<Option<GetResult>, StoreError> {
        let Some(found) = self.memory.entries.get(key) else { return Ok(None) };
        let is_fresh = self.is_fresh(&found);
        let Remembered { meta: Some(meta), bytes: Some(bytes), .. } = found else { return Ok(None) };
        if !is_fresh {
            let now = self.look(key).await?;
            if now.map(|now| now.version) != Some(meta.version) {
                return Ok(None);
            }
        }
        Ok(Some(of_bytes(meta, 0..meta.size, bytes)))
    }

    fn remember_listed<'e>(&self, entries: impl Iterator<Item = &'e Entry>, asked: Instant) {
        if self.recheck == Recheck::Always {
            return;
        }
        for Entry { key, meta } in entries {
            let known = self.memory.entries.get(key);
            // A listing of a bucket may be older than what a read of the key found.
            match known.filter(|known| known.meta.map(|known| known.version) != Some(meta.version)) {
                None => self.memory.put(key, Remembered { meta: Some(*meta), bytes: None, asked }),
                // A request that refuses what is known leaves nothing older for others than it has itself.
                Some(known) if !freshness::allows(known.asked) => {
                    self.memory.entries.remove(key);
                }
                Some(_) => {}
            }
        }
    }
}

impl Memory {
    /// Remembers what was found, unless a later request found something else. Bytes are kept as long as their version
    /// is the same.
    fn put(&self, key: &Key, mut found: Remembered) {
        if let Some(before) = self.entries.get(key) {
            let is_same = before.meta.map(|meta| meta.version) == found.meta.map(|meta| meta.version);
            if !is_same && before.asked > found.asked {
                return;
            }
            if is_same {
                found.bytes = found.bytes.or(before.bytes);
                found.asked = found.asked.max(before.asked);
            }
        }
        self.entries.insert(key.clone(), found);
    }

    /// Notes that a value has another version than the one that is remembered.
    fn change(&self, key: &Key) {
        self.entries.remove(key);
        *self.changed.lock() = Some(Instant::now());
    }
}

/// True for the names of metadata documents, which are read again and again.
fn is_document(key: &Key) -> bool {
    let name = key.name();
    name.starts_with(".z") || name.ends_with(".json")
}

/// A value whose bytes, or those of a range of it, are in memory.
fn of_bytes(meta: ValueMeta, range: std::ops::Range<u64>, bytes: Bytes) -> GetResult {
    let stream = stream::iter(Some(bytes).filter(|bytes| !bytes.is_empty()).map(Ok)).boxed();
    GetResult { meta, range, stream }
}

impl Weighter<Key, Remembered> for ByteWeighter {
    fn weight(&self, key: &Key, remembered: &Remembered) -> u64 {
        let bytes = remembered.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        ENTRY_OVERHEAD.saturating_add(key.as_str().len() as u64).saturating_add(bytes)
    }
}

impl<S> Clone for Rechecked<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            recheck: self.recheck,
            memory: Arc::clone(&self.memory),
            looks: self.looks.clone(),
        }
    }
}

impl<S> fmt::Debug for Rechecked<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rechecked").field("recheck", &self.recheck).finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: ReadableStore> ReadableStore for Rechecked<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        if self.recheck == Recheck::Always {
            return self.store.get(key, range).await;
        }
        if let Some(Remembered { meta: None, .. }) = self.fresh(key) {
            return Ok(None);
        }
        if range.is_some() || !is_document(key) {
            return self.fetch(key, range).await;
        }
        // Those who read a document at the same time wait for the first of them.
        let _turn = self.looks.take(key).await;
        match self.remembered_document(key).await? {
            Some(value) => Ok(Some(value)),
            None => match self.fresh(key) {
                Some(Remembered { meta: None, .. }) => Ok(None),
                _ => self.fetch(key, None).await,
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
        let _turn = self.looks.take(key).await;
        match self.fresh(key) {
            Some(found) => Ok(found.meta),
            None => self.look(key).await,
        }
    }

    async fn get_at(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        if self.recheck == Recheck::Always {
            return self.store.get_at(key, range, version).await;
        }
        // Bytes of this version are what is asked for, even if the value has another one by now.
        if range.is_none()
            && let Some(Remembered { meta: Some(meta), bytes: Some(bytes), .. }) = self.memory.entries.get(key)
            && meta.version == version
        {
            return Ok(Some(of_bytes(meta, 0..meta.size, bytes)));
        }
        let asked = Instant::now();
        let result = self.store.get_at(key, range, version).await;
        let has_changed = match &result {
            Ok(value) => value.as_ref().is_none_or(|value| value.meta.version != version),
            Err(StoreError::RangeNotSatisfiable { meta }) => meta.version != version,
            Err(_) => false,
        };
        if has_changed {
            self.memory.change(key);
        }
        self.take(key, range, asked, result).await
    }

    fn remembered(&self, key: &Key) -> Peek {
        self.fresh(key).map_or(Peek::Unknown, |found| Peek::Known(found.meta))
    }

    fn recall(&self) -> Option<Recall<'_>> {
        match self.recheck {
            // What the store itself recalls is current.
            Recheck::Always => self.store.recall(),
            Recheck::After(_) | Recheck::Never => None,
        }
    }

    fn remembers(&self) -> bool {
        self.recheck != Recheck::Always
    }

    fn note_absent(&self, key: &Key, asked: Instant) {
        if self.recheck == Recheck::Always {
            return;
        }
        // A listing of a bucket may be older than what a read of the key found.
        match self.memory.entries.get(key).filter(|known| known.meta.is_some()) {
            None => self.memory.put(key, Remembered { meta: None, bytes: None, asked }),
            Some(known) if !freshness::allows(known.asked) => {
                self.memory.entries.remove(key);
            }
            Some(_) => {}
        }
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore> ListableStore for Rechecked<S> {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let asked = Instant::now();
        let page = self.store.list_prefix(prefix, page).await?;
        self.remember_listed(page.keys.iter(), asked);
        Ok(page)
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let asked = Instant::now();
        let page = self.store.list_dir(prefix, page).await?;
        self.remember_listed(page.keys.iter(), asked);
        Ok(page)
    }
}
