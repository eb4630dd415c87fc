//! Several stores as one: a store at the root, and others below names.
//!
//! ```text
//!   lab/exp1/c/0 ── first segment is a mount ──► that store, by the key exp1/c/0
//!        │
//!        └── otherwise ──► the store at the root, by the same key
//!
//!   "" (the root prefix) ──► both: the names of the mounts among those of the store at the root
//! ```
//!
//! A mount hides what the store at the root has under its name. Changes go to the store that has their keys: a batch is of
//! one store, and what covers several fails with [`StoreError::Unsupported`] before anything is changed, as do changes of
//! a mount that cannot be written. A mount is written key by key; [commits](crate::TransactionalStore) are of the store at the
//! root.
//!
//! A step of a listing of a mount that takes longer than [`MAX_MOUNT_WAIT`] fails with [`BackendErrorKind::Timeout`],
//! so that a store that does not answer holds up those who list all of them for no longer.
//!
//! [`BackendErrorKind::Timeout`]: crate::BackendErrorKind::Timeout

mod listing;
mod name;
mod place;
mod snapshot;
mod writes;

use std::{collections::BTreeMap, fmt, sync::Arc};

use async_trait::async_trait;
use tokio::time::Instant;

pub use self::{
    name::{MountName, MountNameError},
    place::{MAX_MOUNT_WAIT, MountFailure},
};
use self::{
    place::{Mount, Place, place_of_key},
    snapshot::snapshot_of_places,
};
use crate::{
    ByteRange, CachedMeta, Consolidated, CursorSigner, DirPage, DiskSpace, GetResult, Guarantees, Key, KeyPage,
    KeySource, ListableStore, MetadataCache, PageRequest, Prefix, PrefixSnapshot, ReadableStore, Reads, Scan, ScanPage,
    ScrubStatus, ServedStore, Snapshot, SnapshotStore, StoreError, ValueMeta, Version, VersionHash, WaitTimes,
    Watermark, traits::scan_by_pages,
};

/// A store at the root, with others mounted below names.
///
/// A snapshot of keys in several stores is one of each: values of different stores may be of different moments.
pub struct Mounts {
    root: ServedStore,
    /// In the order of their prefixes.
    mounts: Arc<[Mount]>,
    cursors: CursorSigner,
}

impl Mounts {
    /// Mounts stores below names.
    ///
    /// `identity` tells all of them together from others, such as by their URLs. It is the secret of the cursors of the
    /// root: servers that have the same stores continue the listings of each other.
    pub fn new(identity: &str, root: ServedStore, mounts: BTreeMap<MountName, impl Into<ServedStore>>) -> Self {
        let mounts = mounts.into_iter();
        let mounts: Arc<[Mount]> =
            mounts.map(|(name, store)| Mount { prefix: name.into_prefix(), store: store.into() }).collect();
        Self { root, mounts, cursors: VersionHash::new(identity).cursors() }
    }

    /// The store to be served, which can be written where the store at the root or a mount can.
    pub fn served(self) -> ServedStore {
        let is_writable = self.root.is_writable() || self.mounts.iter().any(|mount| mount.store.is_writable());
        match self.root.commits() {
            Ok(_) => Arc::new(self).into(),
            Err(_) if is_writable => ServedStore::key_by_key(Arc::new(self)),
            Err(_) => ServedStore::read_only(Arc::new(self)),
        }
    }

    fn place_of_key(&self, key: &Key) -> Place<'_, Key> {
        place_of_key(&self.mounts, key)
    }

    fn place_of_prefix(&self, prefix: &Prefix) -> Place<'_, Prefix> {
        let Some(mount) = self.mounts.iter().find(|mount| prefix.as_str().starts_with(mount.prefix.as_str())) else {
            return Place::Root;
        };
        let below = prefix.as_str().strip_prefix(mount.prefix.as_str()).and_then(|below| Prefix::parse(below).ok());
        below.map_or(Place::Hidden, |below| Place::Mounted(mount, below))
    }
}

impl fmt::Debug for Mounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.mounts.iter().map(|mount| mount.prefix.as_str()).collect();
        f.debug_struct("Mounts").field("root", &self.root).field("mounts", &names).finish_non_exhaustive()
    }
}

#[async_trait]
impl ReadableStore for Mounts {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        match self.place_of_key(key) {
            Place::Root => self.root.reads().get(key, range).await,
            Place::Hidden => Ok(None),
            Place::Mounted(mount, below) => {
                let found = mount.store.get(&below, range).await.map_err(|error| mount.error(error))?;
                Ok(found.map(|value| mount.value(value)))
            }
        }
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        match self.place_of_key(key) {
            Place::Root => self.root.reads().head(key).await,
            Place::Hidden => Ok(None),
            Place::Mounted(mount, below) => mount.store.head(&below).await.map_err(|error| mount.error(error)),
        }
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        match self.place_of_key(key) {
            Place::Root => self.root.reads().get_if_match(key, range, version).await,
            Place::Hidden => Ok(None),
            Place::Mounted(mount, below) => {
                let found =
                    mount.store.get_if_match(&below, range, version).await.map_err(|error| mount.error(error))?;
                Ok(found.map(|value| mount.value(value)))
            }
        }
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        Some(self)
    }
}

impl MetadataCache for Mounts {
    fn cached(&self, key: &Key) -> CachedMeta {
        match self.place_of_key(key) {
            Place::Root => cached_in(&**self.root.reads(), key),
            Place::Hidden => CachedMeta::Known(None),
            Place::Mounted(mount, below) => cached_in(&*mount.store, &below),
        }
    }

    fn is_filled_by_requests(&self) -> bool {
        let mut stores = self.mounts.iter().map(|mount| mount.store.reads()).chain([self.root.reads()]);
        stores.any(|store| store.metadata_cache().is_some_and(MetadataCache::is_filled_by_requests))
    }

    fn insert_absent(&self, key: &Key, requested: Instant) {
        let (cache, key) = match self.place_of_key(key) {
            Place::Root => (self.root.reads().metadata_cache(), key.clone()),
            Place::Hidden => return,
            Place::Mounted(mount, below) => (mount.store.metadata_cache(), below),
        };
        if let Some(cache) = cache {
            cache.insert_absent(&key, requested);
        }
    }
}

fn cached_in(store: &dyn SnapshotStore, key: &Key) -> CachedMeta {
    store.metadata_cache().map_or(CachedMeta::Unknown, |cache| cache.cached(key))
}

#[async_trait]
impl ListableStore for Mounts {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        match self.place_of_prefix(prefix) {
            Place::Root if prefix.is_root() => self.list_all(page).await,
            Place::Root => self.root.reads().list_prefix(prefix, page).await,
            Place::Hidden => Ok(KeyPage::new(Vec::new(), None)),
            Place::Mounted(mount, below) => mount.list_prefix(&below, page).await,
        }
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        match self.place_of_prefix(prefix) {
            Place::Root if prefix.is_root() => self.list_top(page).await,
            Place::Root => self.root.reads().list_dir(prefix, page).await,
            Place::Hidden => Ok(DirPage { keys: Vec::new(), prefixes: Vec::new(), cursor: None }),
            Place::Mounted(mount, below) => mount.list_dir(&below, page).await,
        }
    }

    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        let parent = scan.parent();
        let is_of_root = |parent: &Prefix| {
            matches!(self.place_of_prefix(parent), Place::Root) && (self.mounts.is_empty() || !parent.is_root())
        };
        match parent.is_some_and(|parent| is_of_root(&parent)) {
            true => self.root.reads().scan(scan).await,
            false => scan_by_pages(self, scan).await,
        }
    }
}

#[async_trait]
impl SnapshotStore for Mounts {
    fn guarantees(&self) -> Guarantees {
        let root = self.root.reads().guarantees();
        let all = self.mounts.iter().fold(root, |all, mount| all.weaker(mount.guarantees(&Prefix::root())));
        match self.mounts.is_empty() {
            true => all,
            // The nodes below the root are not of one store, so no metadata there are those of all.
            false => Guarantees { reads: Reads::Key, consolidated: Consolidated::Ignored, ..all },
        }
    }

    fn guarantees_below(&self, prefix: &Prefix) -> Guarantees {
        match self.place_of_prefix(prefix) {
            Place::Root if prefix.is_root() => self.guarantees(),
            Place::Root | Place::Hidden => self.root.reads().guarantees_below(prefix),
            Place::Mounted(mount, below) => mount.guarantees(&below),
        }
    }

    fn parts(&self) -> Vec<(Option<String>, Guarantees)> {
        let mounted = self
            .mounts
            .iter()
            .map(|mount| (Some(mount.prefix.name().to_owned()), self.guarantees_below(&mount.prefix)));
        std::iter::once((None, self.root.reads().guarantees())).chain(mounted).collect()
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        if keys.iter().all(|key| matches!(self.place_of_key(key), Place::Root)) {
            return self.root.reads().snapshot(keys).await;
        }
        snapshot_of_places(&self.root, &self.mounts, Arc::new(keys.to_vec())).await
    }

    async fn snapshot_of(&self, keys: Arc<dyn KeySource>) -> Result<Box<dyn Snapshot>, StoreError> {
        snapshot_of_places(&self.root, &self.mounts, keys).await
    }

    async fn snapshot_below(&self, prefix: &Prefix) -> Result<Arc<dyn PrefixSnapshot>, StoreError> {
        match self.place_of_prefix(prefix) {
            Place::Root if prefix.is_root() && !self.mounts.is_empty() => {
                Err(StoreError::Unsupported { what: "snapshots across mounted stores" })
            }
            Place::Root => self.root.reads().snapshot_below(prefix).await,
            Place::Hidden | Place::Mounted(..) => Err(StoreError::Unsupported { what: "snapshots of a mounted store" }),
        }
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        self.root.reads().watermark().await
    }

    async fn watermark_below(&self, prefix: &Prefix) -> Result<Option<Watermark>, StoreError> {
        match self.place_of_prefix(prefix) {
            Place::Root if prefix.is_root() && !self.mounts.is_empty() => Ok(None),
            Place::Root | Place::Hidden => self.watermark().await,
            Place::Mounted(mount, below) => mount.store.watermark_below(&below).await,
        }
    }

    fn disk_space(&self) -> Option<DiskSpace> {
        self.root.reads().disk_space()
    }

    fn scrub(&self) -> Option<ScrubStatus> {
        self.root.reads().scrub()
    }

    fn queues(&self) -> Vec<(&'static str, Arc<WaitTimes>)> {
        self.root.reads().queues()
    }
}
