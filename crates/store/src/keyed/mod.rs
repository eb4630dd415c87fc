//! Snapshots of stores without commits.

mod apply;
mod spool;
mod writes;

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::spool::Spool;
use crate::{
    ByteRange, CachedMeta, DirPage, GetResult, Guarantees, Key, KeyMap, KeyPage, KeySource, ListableStore,
    MetadataCache, PageRequest, Prefetch, Prefix, ReadableStore, Snapshot, SnapshotStore, StoreError, ValueMeta,
    Version, Watermark, freshness, not_before,
};

/// A [`SnapshotStore`] over a store without commits, whose values other programs may change at any time. Clones share
/// one store.
///
/// A snapshot of it fixes the version of a key, or the absence of its value, when the key is first read in it. A later
/// read that finds another version fails with [`StoreError::Changed`], so that no answer is put together from two
/// values of one key. Values of different keys may be of different moments.
///
/// If the store can be written, so can this one, as far as the guarantees say: it is a [`BatchStore`](crate::BatchStore)
/// whose batches are made key by key. Staged values are where the store [receives](crate::ReceivingStore) them, or in files
/// without names in the temporary directory of the system.
///
/// The memory of a snapshot grows with the number of its keys. [`Prefetch::Value`] requests a value, unless another
/// snapshot prefetches it or 32 others are prefetched. What one snapshot has prefetched serves any other that reads that
/// version.
pub struct Keyed<S> {
    store: Arc<S>,
    guarantees: Guarantees,
    prefetched: PrefetchedValues,
    /// The values that are staged.
    spool: Spool,
}

impl<S: ReadableStore + ListableStore + 'static> Keyed<S> {
    /// Wraps a store that has these guarantees.
    pub fn new(store: S, guarantees: Guarantees) -> Self {
        Self { store: Arc::new(store), guarantees, prefetched: PrefetchedValues::default(), spool: Spool::default() }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn snapshot_with(&self, known: KeyMap<CachedMeta>) -> Box<dyn Snapshot> {
        Box::new(KeyedSnapshot {
            store: Arc::clone(&self.store),
            known: Mutex::new(known),
            prefetched: self.prefetched.clone(),
            held: Mutex::default(),
            not_before: freshness::current(),
        })
    }
}

impl<S> Clone for Keyed<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            guarantees: self.guarantees,
            prefetched: self.prefetched.clone(),
            spool: self.spool.clone(),
        }
    }
}

impl<S> fmt::Debug for Keyed<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("guarantees", &self.guarantees).finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore + 'static> ReadableStore for Keyed<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.store.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.store.head(key).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        self.store.get_if_match(key, range, version).await
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        self.store.metadata_cache()
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore + 'static> ListableStore for Keyed<S> {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.store.list_dir(prefix, page).await
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore + 'static> SnapshotStore for Keyed<S> {
    fn guarantees(&self) -> Guarantees {
        self.guarantees
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let mut known = KeyMap::new("", keys.len());
        keys.iter().for_each(|key| known.insert(key.clone(), CachedMeta::Unknown));
        Ok(self.snapshot_with(known))
    }

    async fn snapshot_of(&self, keys: Arc<dyn KeySource>) -> Result<Box<dyn Snapshot>, StoreError> {
        let mut known = KeyMap::new(keys.common_prefix(), 0);
        keys.for_each(&mut |key| known.insert(key, CachedMeta::Unknown));
        Ok(self.snapshot_with(known))
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        Ok(None)
    }
}

/// A snapshot of a [`Keyed`] store.
struct KeyedSnapshot<S> {
    store: Arc<S>,
    /// The keys of the snapshot, with what the first read of each found.
    known: Mutex<KeyMap<CachedMeta>>,
    prefetched: PrefetchedValues,
    /// The values that this snapshot has prefetched.
    held: Mutex<Vec<PrefetchSlot>>,
    /// The time of the request that made the snapshot, before which no cached answer may have been requested.
    not_before: Option<Instant>,
}

impl<S> KeyedSnapshot<S> {
    /// Records what a read of a key found, if it is the first one. Fails if it contradicts the first one.
    fn record(&self, key: &Key, found: Option<ValueMeta>) -> Result<Option<ValueMeta>, StoreError> {
        let mut known = self.known.lock();
        let entry = known.get_mut(key).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })?;
        match &*entry {
            CachedMeta::Unknown => *entry = CachedMeta::Known(found.clone()),
            CachedMeta::Known(first) if version(first) == version(&found) => {}
            CachedMeta::Known(_) => return Err(StoreError::Changed { key: key.clone() }),
        }
        Ok(found)
    }
}

impl<S: ReadableStore> KeyedSnapshot<S> {
    /// Requests the value of a key, unless it is prefetched already or too many are, and keeps it for
    /// [`get`](Snapshot::get).
    async fn prefetch(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        let Some(slot) = self.prefetched.reserve(key) else { return self.head(key).await };
        let Some(value) = self.read(key, None).await? else { return Ok(None) };
        let meta = value.meta.clone();
        slot.fill(value);
        self.held.lock().push(slot);
        Ok(Some(meta))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        let found = not_before(self.not_before, self.store.head(key)).await?;
        self.record(key, found)
    }

    async fn read(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let result = match self.cached(key)? {
            CachedMeta::Known(None) => return Ok(None),
            CachedMeta::Known(Some(meta)) => match self.prefetched.take(key, range, meta.version) {
                Some(value) => return Ok(Some(value)),
                None => not_before(self.not_before, self.store.get_if_match(key, range, meta.version)).await,
            },
            CachedMeta::Unknown => not_before(self.not_before, self.store.get(key, range)).await,
        };
        match result {
            Ok(found) => {
                self.record(key, found.as_ref().map(|value| value.meta.clone()))?;
                Ok(found)
            }
            // A value that was replaced by a shorter one has changed, whatever range is read.
            Err(StoreError::RangeNotSatisfiable { meta }) => {
                self.record(key, Some(meta.clone()))?;
                Err(StoreError::RangeNotSatisfiable { meta })
            }
            Err(error) => Err(error),
        }
    }

    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        let mut known = self.known.lock();
        let entry = known.get_mut(key).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })?;
        if let (CachedMeta::Unknown, Some(cache)) = (&*entry, self.store.metadata_cache()) {
            // Cached metadata that the snapshot returns count as its first read.
            *entry = freshness::under(self.not_before, || cache.cached(key));
        }
        Ok(entry.clone())
    }
}

#[async_trait]
impl<S: ReadableStore + 'static> Snapshot for KeyedSnapshot<S> {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        self.cached(key)
    }

    async fn stat(&self, key: &Key, prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        match (self.cached(key)?, prefetch) {
            (CachedMeta::Known(meta), _) => Ok(meta),
            (CachedMeta::Unknown, Prefetch::Nothing) => self.head(key).await,
            (CachedMeta::Unknown, Prefetch::Value) => self.prefetch(key).await,
        }
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.read(key, range).await
    }

    fn load_cached(&self, keys: &dyn KeySource) -> Result<(), StoreError> {
        let Some(mut cached) = self.store.metadata_cache().and_then(MetadataCache::reader) else { return Ok(()) };
        let mut missing = None;
        keys.for_each(&mut |key| match self.known.lock().get_mut(&key) {
            Some(entry) if *entry == CachedMeta::Unknown => *entry = cached(&key),
            Some(_) => {}
            None => missing = Some(key),
        });
        missing.map_or(Ok(()), |key| Err(StoreError::NotInSnapshot { key }))
    }

    fn insert_listed(&self, key: &Key, found: Option<ValueMeta>, requested: Instant) -> Result<(), StoreError> {
        if self.cached(key)? == CachedMeta::Unknown {
            let is_absent = found.is_none();
            self.record(key, found)?;
            if let (true, Some(cache)) = (is_absent, self.store.metadata_cache()) {
                cache.insert_absent(key, requested);
            }
        }
        Ok(())
    }
}

/// The version of a value that a key has.
fn version(found: &Option<ValueMeta>) -> Option<Version> {
    found.as_ref().map(|meta| meta.version)
}

/// The maximum number of values that all snapshots of a store have prefetched: each has a connection.
const MAX_PREFETCHED: usize = 32;

/// The values that snapshots of a store have prefetched, by key.
#[derive(Clone, Default)]
struct PrefetchedValues(Arc<Mutex<Slots>>);

#[derive(Default)]
struct Slots {
    next_id: u64,
    values: HashMap<Key, Slot>,
}

struct Slot {
    id: u64,
    /// The value; `None` while it is requested, and while it is read.
    value: Option<GetResult>,
}

/// A value that a snapshot has prefetched, or that is being read. Dropping the first of these removes it.
struct PrefetchSlot {
    all: PrefetchedValues,
    key: Key,
    id: u64,
}

impl PrefetchedValues {
    /// Reserves the place of a value that is to be prefetched; `None` if it has one already, or if none is left.
    fn reserve(&self, key: &Key) -> Option<PrefetchSlot> {
        let mut slots = self.0.lock();
        if slots.values.len() >= MAX_PREFETCHED || slots.values.contains_key(key) {
            return None;
        }
        let id = slots.next_id;
        slots.next_id = id.wrapping_add(1);
        slots.values.insert(key.clone(), Slot { id, value: None });
        Some(PrefetchSlot { all: self.clone(), key: key.clone(), id })
    }

    /// Takes a prefetched value, if it has this version and the range is all of it.
    fn take(&self, key: &Key, range: Option<ByteRange>, version: Version) -> Option<GetResult> {
        let mut slots = self.0.lock();
        let Slot { id, value } = slots.values.get_mut(key)?;
        let is_wanted = |value: &mut GetResult| {
            let size = value.meta.size;
            value.meta.version == version && range.is_none_or(|range| range.resolve(size) == Some(0..size))
        };
        let value = value.take_if(is_wanted)?;
        let slot = PrefetchSlot { all: self.clone(), key: key.clone(), id: *id };
        let stream = value.stream.inspect(move |_| {
            let _held = &slot;
        });
        Some(GetResult { stream: stream.boxed(), ..value })
    }
}

impl PrefetchSlot {
    /// Holds the value until a snapshot takes it.
    fn fill(&self, value: GetResult) {
        if let Some(slot) = self.all.0.lock().values.get_mut(&self.key).filter(|slot| slot.id == self.id) {
            slot.value = Some(value);
        }
    }
}

impl Drop for PrefetchSlot {
    fn drop(&mut self) {
        let mut slots = self.all.0.lock();
        if slots.values.get(&self.key).is_some_and(|slot| slot.id == self.id) {
            let removed = slots.values.remove(&self.key);
            // A connection is closed without the lock.
            drop((slots, removed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, Precondition, WriteableStore};

    fn key(name: &str) -> Key {
        Key::parse(name).unwrap()
    }

    async fn put(memory: &MemoryStore, name: &str, value: &'static str) {
        memory.set(&key(name), value.into(), Precondition::none()).await.unwrap();
    }

    /// A store with some keys, and a snapshot of them.
    async fn fixture(names: &[String]) -> (MemoryStore, Keyed<MemoryStore>, Box<dyn Snapshot>) {
        let memory = MemoryStore::new();
        for name in names {
            put(&memory, name, "value").await;
        }
        let keyed = Keyed::new(memory.clone(), Guarantees::READ_ONLY);
        let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
        let snapshot = keyed.snapshot(&keys).await.unwrap();
        (memory, keyed, snapshot)
    }

    #[tokio::test]
    async fn prefetched_value_is_read_although_it_was_replaced() {
        let (memory, keyed, snapshot) = fixture(&["a".to_owned()]).await;
        let prefetched = snapshot.stat(&key("a"), Prefetch::Value).await.unwrap().unwrap();
        assert_eq!(keyed.prefetched.0.lock().values.len(), 1);
        put(&memory, "a", "another").await;
        let part = snapshot.get(&key("a"), ByteRange::bounded(1, 3).ok()).await;
        assert!(matches!(part, Err(StoreError::Changed { .. })), "a part is not prefetched");
        let value = snapshot.get(&key("a"), ByteRange::bounded(0, 5).ok()).await.unwrap().unwrap();
        assert_eq!(value.meta, prefetched);
        assert_eq!(value.bytes().await.unwrap(), "value");
        assert!(keyed.prefetched.0.lock().values.is_empty(), "it has been read");
        assert!(matches!(snapshot.get(&key("a"), None).await, Err(StoreError::Changed { .. })), "it is read once");
    }

    #[tokio::test]
    async fn prefetched_value_is_read_in_another_snapshot_of_the_same_version() {
        let (memory, keyed, snapshot) = fixture(&["a".to_owned()]).await;
        let prefetched = snapshot.stat(&key("a"), Prefetch::Value).await.unwrap();
        let (same, unaware) = (keyed.snapshot(&[key("a")]).await.unwrap(), keyed.snapshot(&[key("a")]).await.unwrap());
        assert_eq!(same.stat(&key("a"), Prefetch::Value).await.unwrap(), prefetched);
        put(&memory, "a", "another").await;
        let current = unaware.get(&key("a"), None).await.unwrap().unwrap();
        assert_eq!(current.bytes().await.unwrap(), "another", "it may be newer than the prefetched one");
        let value = same.get(&key("a"), None).await.unwrap().unwrap();
        drop(snapshot);
        assert_eq!((value.meta.clone(), value.bytes().await.unwrap()), (prefetched.unwrap(), "value".into()));
        assert!(keyed.prefetched.0.lock().values.is_empty());
    }

    #[tokio::test]
    async fn few_values_are_prefetched_and_each_once() {
        let names: Vec<String> = (0..MAX_PREFETCHED + 3).map(|number| format!("k/{number}")).collect();
        let (_, keyed, snapshot) = fixture(&names).await;
        let prefetch_all = async |snapshot: &dyn Snapshot| {
            for name in &names {
                assert_eq!(snapshot.stat(&key(name), Prefetch::Value).await.unwrap().unwrap().size, 5);
            }
            keyed.prefetched.0.lock().values.len()
        };
        assert_eq!(prefetch_all(&*snapshot).await, MAX_PREFETCHED);
        let other = keyed.snapshot(&names.iter().map(|name| key(name)).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(prefetch_all(&*other).await, MAX_PREFETCHED);
        drop(snapshot);
        assert!(keyed.prefetched.0.lock().values.is_empty(), "the other one has their metadata only");
    }

    #[tokio::test]
    async fn absent_and_known_values_are_not_prefetched() {
        let (memory, keyed, snapshot) = fixture(&["a".to_owned(), "b".to_owned()]).await;
        memory.erase(&key("b"), Precondition::none()).await.unwrap();
        assert_eq!(snapshot.stat(&key("b"), Prefetch::Value).await.unwrap(), None);
        let known = snapshot.meta(&key("a")).await.unwrap();
        assert_eq!(snapshot.stat(&key("a"), Prefetch::Value).await.unwrap(), known);
        assert!(keyed.prefetched.0.lock().values.is_empty());
        assert!(matches!(snapshot.stat(&key("c"), Prefetch::Value).await, Err(StoreError::NotInSnapshot { .. })));
    }
}
