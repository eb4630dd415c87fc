//! Snapshots of stores without commits.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    ByteRange, DirPage, GetResult, Guarantees, Key, KeyMap, KeyPage, KeySource, ListableStore, PageRequest, Peek,
    Prefix, ReadableStore, Snapshot, SnapshotStore, StoreError, ValueMeta, Version, Watermark,
};

/// A [`SnapshotStore`] over a store without commits, whose values other programs may change at any time. Clones share
/// one store.
///
/// A snapshot of it fixes the version of a key, or the absence of its value, when it first looks at that key. A later
/// read that finds another version fails with [`StoreError::Changed`], so that no answer is put together from two
/// values of one key. Values of different keys may be of different moments.
///
/// A snapshot remembers what it was taken of and what it saw there: its memory grows with the number of its keys.
pub struct Keyed<S> {
    store: Arc<S>,
    guarantees: Guarantees,
}

impl<S: ReadableStore + ListableStore + 'static> Keyed<S> {
    /// Wraps a store that has these guarantees.
    pub fn new(store: S, guarantees: Guarantees) -> Self {
        Self { store: Arc::new(store), guarantees }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    fn snapshot_with(&self, looks: KeyMap<Peek>) -> Box<dyn Snapshot> {
        Box::new(KeyedSnapshot { store: Arc::clone(&self.store), looks: Mutex::new(looks) })
    }
}

impl<S> Clone for Keyed<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), guarantees: self.guarantees }
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

    fn remembers(&self) -> bool {
        self.store.remembers()
    }

    fn recheck(&self) {
        self.store.recheck();
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
            *look = self.store.remembered(key);
        }
        Ok(*look)
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        match self.peek(key)? {
            Peek::Known(meta) => Ok(meta),
            Peek::Unknown => {
                let found = self.store.head(key).await?;
                self.look(key, found)
            }
        }
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let result = match self.peek(key)? {
            Peek::Known(None) => return Ok(None),
            Peek::Known(Some(meta)) => self.store.get_at(key, range, meta.version).await,
            Peek::Unknown => self.store.get(key, range).await,
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
