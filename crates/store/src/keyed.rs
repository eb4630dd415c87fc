//! Snapshots of stores without commits.

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    ByteRange, DirPage, GetResult, Guarantees, Key, KeyMap, KeyPage, KeySource, ListableStore, PageRequest, Peek,
    Prefix, ReadableStore, Recall, Snapshot, SnapshotStore, StoreError, ValueMeta, Version, Watermark, freshness,
    not_before,
};

/// A [`SnapshotStore`] over a store without commits, whose values other programs may change at any time. Clones share
/// one store.
///
/// A snapshot of it fixes the version of a key, or the absence of its value, when it first looks at that key. A later
/// read that finds another version fails with [`StoreError::Changed`], so that no answer is put together from two
/// values of one key. Values of different keys may be of different moments.
///
/// A snapshot remembers what it was taken of and what it saw there: its memory grows with the number of its keys.
/// [`Snapshot::begin`] begins to read a value, unless another snapshot has begun to or 32 others have been begun. What a
/// snapshot has begun serves any other that wants that version.
pub struct Keyed<S> {
    store: Arc<S>,
    guarantees: Guarantees,
    beginnings: Beginnings,
}

impl<S: ReadableStore + ListableStore + 'static> Keyed<S> {
    /// Wraps a store that has these guarantees.
    pub fn new(store: S, guarantees: Guarantees) -> Self {
        Self { store: Arc::new(store), guarantees, beginnings: Beginnings::default() }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn snapshot_with(&self, looks: KeyMap<Peek>) -> Box<dyn Snapshot> {
        Box::new(KeyedSnapshot {
            store: Arc::clone(&self.store),
            looks: Mutex::new(looks),
            beginnings: self.beginnings.clone(),
            begun: Mutex::default(),
            not_before: freshness::current(),
        })
    }
}

impl<S> Clone for Keyed<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), guarantees: self.guarantees, beginnings: self.beginnings.clone() }
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

    async fn get_at(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        self.store.get_at(key, range, version).await
    }

    fn remembered(&self, key: &Key) -> Peek {
        self.store.remembered(key)
    }

    fn recall(&self) -> Option<Recall<'_>> {
        self.store.recall()
    }

    fn remembers(&self) -> bool {
        self.store.remembers()
    }

    fn note_absent(&self, key: &Key, asked: Instant) {
        self.store.note_absent(key, asked);
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
        let mut looks = KeyMap::new("", keys.len());
        keys.iter().for_each(|key| looks.insert(key.clone(), Peek::Unknown));
        Ok(self.snapshot_with(looks))
    }

    async fn snapshot_of(&self, keys: Arc<dyn KeySource>) -> Result<Box<dyn Snapshot>, StoreError> {
        let mut looks = KeyMap::new(keys.common_prefix(), 0);
        keys.for_each(&mut |key| looks.insert(key, Peek::Unknown));
        Ok(self.snapshot_with(looks))
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        Ok(None)
    }
}

/// A snapshot of a [`Keyed`] store.
struct KeyedSnapshot<S> {
    store: Arc<S>,
    /// The keys of the snapshot, with what the first look at each found.
    looks: Mutex<KeyMap<Peek>>,
    beginnings: Beginnings,
    /// Those of this snapshot.
    begun: Mutex<Vec<Beginning>>,
    /// The time of the request that made the snapshot, before which no cached answer may have been asked for.
    not_before: Option<Instant>,
}

impl<S> KeyedSnapshot<S> {
    /// Remembers what a look at a key found, if it is the first one. Fails if it contradicts the first one.
    fn look(&self, key: &Key, found: Option<ValueMeta>) -> Result<Option<ValueMeta>, StoreError> {
        let mut looks = self.looks.lock();
        let look = looks.get_mut(key).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })?;
        match *look {
            Peek::Unknown => *look = Peek::Known(found),
            Peek::Known(first) if first.map(|meta| meta.version) == found.map(|meta| meta.version) => {}
            Peek::Known(_) => return Err(StoreError::Changed { key: key.clone() }),
        }
        Ok(found)
    }
}

#[async_trait]
impl<S: ReadableStore + 'static> Snapshot for KeyedSnapshot<S> {
    fn peek(&self, key: &Key) -> Result<Peek, StoreError> {
        let mut looks = self.looks.lock();
        let look = looks.get_mut(key).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })?;
        if *look == Peek::Unknown {
            // That the store remembers it counts as a look.
            *look = freshness::under(self.not_before, || self.store.remembered(key));
        }
        Ok(*look)
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        match self.peek(key)? {
            Peek::Known(meta) => Ok(meta),
            Peek::Unknown => {
                let found = not_before(self.not_before, self.store.head(key)).await?;
                self.look(key, found)
            }
        }
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let result = match self.peek(key)? {
            Peek::Known(None) => return Ok(None),
            Peek::Known(Some(meta)) => match self.beginnings.take(key, range, meta.version) {
                Some(value) => return Ok(Some(value)),
                None => not_before(self.not_before, self.store.get_at(key, range, meta.version)).await,
            },
            Peek::Unknown => not_before(self.not_before, self.store.get(key, range)).await,
        };
        match result {
            Ok(found) => {
                self.look(key, found.as_ref().map(|value| value.meta))?;
                Ok(found)
            }
            // A value that was replaced by a shorter one has changed, whatever was asked of it.
            Err(StoreError::RangeNotSatisfiable { meta }) => {
                self.look(key, Some(meta))?;
                Err(StoreError::RangeNotSatisfiable { meta })
            }
            Err(error) => Err(error),
        }
    }

    async fn begin(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        if let Peek::Known(meta) = self.peek(key)? {
            return Ok(meta);
        }
        let Some(beginning) = self.beginnings.begin(key) else { return self.head(key).await };
        let Some(value) = self.get(key, None).await? else { return Ok(None) };
        let meta = value.meta;
        beginning.hold(value);
        self.begun.lock().push(beginning);
        Ok(Some(meta))
    }

    fn recall(&self, keys: &dyn KeySource) -> Result<(), StoreError> {
        let Some(mut recall) = self.store.recall() else { return Ok(()) };
        let mut missing = None;
        keys.for_each(&mut |key| match self.looks.lock().get_mut(&key) {
            Some(look) if *look == Peek::Unknown => *look = recall(&key),
            Some(_) => {}
            None => missing = Some(key),
        });
        missing.map_or(Ok(()), |key| Err(StoreError::NotInSnapshot { key }))
    }

    fn note_listed(&self, key: &Key, found: Option<ValueMeta>, asked: Instant) -> Result<(), StoreError> {
        if self.peek(key)? == Peek::Unknown {
            self.look(key, found)?;
            if found.is_none() {
                self.store.note_absent(key, asked);
            }
        }
        Ok(())
    }
}

/// The most values that all snapshots of a store have begun to read: each has a connection.
const MAX_BEGUN: usize = 32;

/// The values that snapshots of a store have begun to read, by key.
#[derive(Clone, Default)]
struct Beginnings(Arc<Mutex<BegunValues>>);

#[derive(Default)]
struct BegunValues {
    next_id: u64,
    values: HashMap<Key, BegunValue>,
}

struct BegunValue {
    id: u64,
    /// The value; `None` while it is asked for, and while it is read.
    value: Option<GetResult>,
}

/// A value that a snapshot has begun to read, or that is being read: it is forgotten when the first of these is dropped.
struct Beginning {
    all: Beginnings,
    key: Key,
    id: u64,
}

impl Beginnings {
    /// Begins to read a value; `None` if that was begun already, or if too many are.
    fn begin(&self, key: &Key) -> Option<Beginning> {
        let mut begun = self.0.lock();
        if begun.values.len() >= MAX_BEGUN || begun.values.contains_key(key) {
            return None;
        }
        let id = begun.next_id;
        begun.next_id = id.wrapping_add(1);
        begun.values.insert(key.clone(), BegunValue { id, value: None });
        Some(Beginning { all: self.clone(), key: key.clone(), id })
    }

    /// Takes a value that was begun, if it has this version and the range is all of it.
    fn take(&self, key: &Key, range: Option<ByteRange>, version: Version) -> Option<GetResult> {
        let mut begun = self.0.lock();
        let BegunValue { id, value } = begun.values.get_mut(key)?;
        let is_wanted = |value: &mut GetResult| {
            let size = value.meta.size;
            value.meta.version == version && range.is_none_or(|range| range.resolve(size) == Some(0..size))
        };
        let value = value.take_if(is_wanted)?;
        let reading = Beginning { all: self.clone(), key: key.clone(), id: *id };
        let stream = value.stream.inspect(move |_| {
            let _held = &reading;
        });
        Some(GetResult { stream: stream.boxed(), ..value })
    }
}

impl Beginning {
    /// Keeps the value until a snapshot takes it.
    fn hold(&self, value: GetResult) {
        if let Some(begun) = self.all.0.lock().values.get_mut(&self.key).filter(|begun| begun.id == self.id) {
            begun.value = Some(value);
        }
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let mut begun = self.all.0.lock();
        if begun.values.get(&self.key).is_some_and(|begun| begun.id == self.id) {
            let forgotten = begun.values.remove(&self.key);
            // A connection is closed without the lock.
            drop((begun, forgotten));
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
    async fn value_that_was_begun_is_read_as_it_was() {
        let (memory, keyed, snapshot) = fixture(&["a".to_owned()]).await;
        let begun = snapshot.begin(&key("a")).await.unwrap().unwrap();
        assert_eq!(keyed.beginnings.0.lock().values.len(), 1);
        put(&memory, "a", "another").await;
        let part = snapshot.get(&key("a"), ByteRange::bounded(1, 3).ok()).await;
        assert!(matches!(part, Err(StoreError::Changed { .. })), "a part is asked for");
        let value = snapshot.get(&key("a"), ByteRange::bounded(0, 5).ok()).await.unwrap().unwrap();
        assert_eq!(value.meta, begun);
        assert_eq!(value.bytes().await.unwrap(), "value");
        assert!(keyed.beginnings.0.lock().values.is_empty(), "it has been read");
        assert!(matches!(snapshot.get(&key("a"), None).await, Err(StoreError::Changed { .. })), "it is read once");
    }

    #[tokio::test]
    async fn value_that_another_snapshot_began_is_read_if_it_is_the_same() {
        let (memory, keyed, snapshot) = fixture(&["a".to_owned()]).await;
        let begun = snapshot.begin(&key("a")).await.unwrap();
        let (same, unaware) = (keyed.snapshot(&[key("a")]).await.unwrap(), keyed.snapshot(&[key("a")]).await.unwrap());
        assert_eq!(same.begin(&key("a")).await.unwrap(), begun);
        put(&memory, "a", "another").await;
        let current = unaware.get(&key("a"), None).await.unwrap().unwrap();
        assert_eq!(current.bytes().await.unwrap(), "another", "it may be newer than what was begun");
        let value = same.get(&key("a"), None).await.unwrap().unwrap();
        drop(snapshot);
        assert_eq!((value.meta, value.bytes().await.unwrap()), (begun.unwrap(), "value".into()));
        assert!(keyed.beginnings.0.lock().values.is_empty());
    }

    #[tokio::test]
    async fn few_values_are_begun_and_each_once() {
        let names: Vec<String> = (0..MAX_BEGUN + 3).map(|number| format!("k/{number}")).collect();
        let (_, keyed, snapshot) = fixture(&names).await;
        let begin_all = async |snapshot: &dyn Snapshot| {
            for name in &names {
                assert_eq!(snapshot.begin(&key(name)).await.unwrap().unwrap().size, 5);
            }
            keyed.beginnings.0.lock().values.len()
        };
        assert_eq!(begin_all(&*snapshot).await, MAX_BEGUN);
        let other = keyed.snapshot(&names.iter().map(|name| key(name)).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(begin_all(&*other).await, MAX_BEGUN);
        drop(snapshot);
        assert!(keyed.beginnings.0.lock().values.is_empty(), "the other one has looked at them only");
    }

    #[tokio::test]
    async fn nothing_is_begun_of_what_is_absent_or_known() {
        let (memory, keyed, snapshot) = fixture(&["a".to_owned(), "b".to_owned()]).await;
        memory.erase(&key("b"), Precondition::none()).await.unwrap();
        assert_eq!(snapshot.begin(&key("b")).await.unwrap(), None);
        let known = snapshot.head(&key("a")).await.unwrap();
        assert_eq!(snapshot.begin(&key("a")).await.unwrap(), known);
        assert!(keyed.beginnings.0.lock().values.is_empty());
        assert!(matches!(snapshot.begin(&key("c")).await, Err(StoreError::NotInSnapshot { .. })));
    }
}
