//! Snapshots of keys in several stores.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use super::place::{Mount, Place, place_of_key};
use crate::{ByteRange, CachedMeta, GetResult, Key, KeySource, Prefetch, ServedStore, Snapshot, StoreError, ValueMeta};

/// A snapshot of each store that has some of the keys.
struct Parts {
    mounts: Arc<[Mount]>,
    root: Option<Box<dyn Snapshot>>,
    /// For each mount.
    mounted: Vec<Option<Box<dyn Snapshot>>>,
}

/// The keys of one store among those of several.
struct Part {
    all: Arc<dyn KeySource>,
    mounts: Arc<[Mount]>,
    /// The prefix of the mount; `None` for the store at the root.
    mount: Option<usize>,
    common_prefix: String,
}

/// A [`Part`] of keys that are borrowed.
#[derive(Clone, Copy)]
struct KeysOfStore<'k> {
    all: &'k dyn KeySource,
    mounts: &'k [Mount],
    mount: Option<usize>,
}

/// Takes a snapshot of each store that has some of the keys.
pub(super) async fn snapshot_of_places(
    root: &ServedStore,
    mounts: &Arc<[Mount]>,
    keys: Arc<dyn KeySource>,
) -> Result<Box<dyn Snapshot>, StoreError> {
    let (mut in_root, mut in_mount) = (false, vec![false; mounts.len()]);
    keys.for_each(&mut |key| match index_of(mounts, &key) {
        Some(index) => in_mount.iter_mut().skip(index).take(1).for_each(|found| *found = true),
        None => in_root |= matches!(place_of_key(mounts, &key), Place::Root),
    });
    if in_mount.iter().all(|found| !found) && in_root {
        return root.reads().snapshot_of(keys).await;
    }
    let part = |mount| Arc::new(Part::new(&keys, mounts, mount));
    let of_root = match in_root {
        true => Some(root.reads().snapshot_of(part(None)).await?),
        false => None,
    };
    let mut mounted = Vec::with_capacity(mounts.len());
    for (index, (mount, found)) in mounts.iter().zip(in_mount).enumerate() {
        let snapshot = match found {
            true => Some(mount.in_time(mount.store.snapshot_of(part(Some(index)))).await?),
            false => None,
        };
        mounted.push(snapshot);
    }
    Ok(Box::new(Parts { mounts: Arc::clone(mounts), root: of_root, mounted }))
}

/// The mount that has a key, by its number.
fn index_of(mounts: &[Mount], key: &Key) -> Option<usize> {
    mounts.iter().position(|mount| mount.prefix.contains(key))
}

impl Part {
    fn new(all: &Arc<dyn KeySource>, mounts: &Arc<[Mount]>, mount: Option<usize>) -> Self {
        let common = all.common_prefix();
        let common_prefix = match mount.and_then(|index| mounts.get(index)) {
            Some(mount) => common.strip_prefix(mount.prefix.as_str()).unwrap_or_default(),
            None => common,
        };
        Self { common_prefix: common_prefix.to_owned(), all: Arc::clone(all), mounts: Arc::clone(mounts), mount }
    }
}

impl KeySource for Part {
    fn common_prefix(&self) -> &str {
        &self.common_prefix
    }

    fn max_len(&self) -> Option<usize> {
        self.all.max_len()
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        KeysOfStore { all: &*self.all, mounts: &self.mounts, mount: self.mount }.for_each(visit);
    }
}

impl KeySource for KeysOfStore<'_> {
    fn common_prefix(&self) -> &str {
        ""
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        let Self { all, mounts, mount } = *self;
        all.for_each(&mut |key| match place_of_key(mounts, &key) {
            Place::Root if mount.is_none() => visit(key),
            Place::Mounted(_, below) if index_of(mounts, &key) == mount => visit(below),
            Place::Root | Place::Mounted(..) | Place::Hidden => {}
        });
    }
}

impl KeySource for Vec<Key> {
    fn common_prefix(&self) -> &str {
        ""
    }

    fn max_len(&self) -> Option<usize> {
        Some(self.len())
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        self.iter().cloned().for_each(visit);
    }
}

/// A key of a snapshot of one store.
struct Located<'p> {
    snapshot: &'p dyn Snapshot,
    key: Key,
    /// The mount of the store; `None` for the one at the root.
    mount: Option<&'p Mount>,
}

impl Parts {
    /// The snapshots, each with the number of its mount; `None` for that of the store at the root.
    fn snapshots(&self) -> impl Iterator<Item = (Option<usize>, &dyn Snapshot)> {
        let mounted = self.mounted.iter().enumerate().map(|(index, snapshot)| (Some(index), snapshot));
        [(None, &self.root)]
            .into_iter()
            .chain(mounted)
            .filter_map(|(mount, snapshot)| Some((mount, snapshot.as_deref()?)))
    }

    /// The snapshot that has a key; `None` if the key has the name of a mount.
    fn locate(&self, key: &Key) -> Result<Option<Located<'_>>, StoreError> {
        let missing = || StoreError::NotInSnapshot { key: key.clone() };
        match place_of_key(&self.mounts, key) {
            Place::Hidden => Ok(None),
            Place::Root => {
                let snapshot = self.root.as_deref().ok_or_else(missing)?;
                Ok(Some(Located { snapshot, key: key.clone(), mount: None }))
            }
            Place::Mounted(mount, below) => {
                let snapshot = index_of(&self.mounts, key).and_then(|index| self.mounted.get(index));
                let snapshot = snapshot.and_then(Option::as_deref).ok_or_else(missing)?;
                Ok(Some(Located { snapshot, key: below, mount: Some(mount) }))
            }
        }
    }
}

/// The error of a store as users of all stores see it.
fn outward(mount: Option<&Mount>, error: StoreError) -> StoreError {
    match mount {
        Some(mount) => mount.error(error),
        None => error,
    }
}

impl Located<'_> {
    /// The error as users of all stores see it.
    fn error(&self, error: StoreError) -> StoreError {
        outward(self.mount, error)
    }
}

#[async_trait]
impl Snapshot for Parts {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        let Some(located) = self.locate(key)? else { return Ok(CachedMeta::Known(None)) };
        located.snapshot.cached(&located.key).map_err(|error| located.error(error))
    }

    async fn stat(&self, key: &Key, prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        let Some(located) = self.locate(key)? else { return Ok(None) };
        located.snapshot.stat(&located.key, prefetch).await.map_err(|error| located.error(error))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let Some(located) = self.locate(key)? else { return Ok(None) };
        let found = located.snapshot.get(&located.key, range).await.map_err(|error| located.error(error))?;
        Ok(match located.mount {
            Some(mount) => found.map(|value| mount.value(value)),
            None => found,
        })
    }

    fn load_cached(&self, keys: &dyn KeySource) -> Result<(), StoreError> {
        for (mount, snapshot) in self.snapshots() {
            let loaded = snapshot.load_cached(&KeysOfStore { all: keys, mounts: &self.mounts, mount });
            let mounted = mount.and_then(|index| self.mounts.get(index));
            loaded.map_err(|error| outward(mounted, error))?;
        }
        Ok(())
    }

    fn insert_listed(&self, key: &Key, found: Option<ValueMeta>, requested: Instant) -> Result<(), StoreError> {
        let Some(located) = self.locate(key)? else { return Ok(()) };
        located.snapshot.insert_listed(&located.key, found, requested).map_err(|error| located.error(error))
    }
}
