//! Reading many keys, or all below a prefix, as of one moment.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt, TryStreamExt,
    future::{self, BoxFuture, Either, Ready},
    stream,
};
use tokio::time::Instant;

use crate::{
    ByteRange, CachedMeta, GetResult, Guarantees, Intent, Key, ListableStore, PageRequest, Prefix, ReadableStore,
    Reads, ScrubStatus, StoreError, ValueMeta, ValuePage, WaitTimes, Watermark,
};

/// The number of concurrent requests for the metadata of the keys of a snapshot.
const CONCURRENT_STATS: usize = 64;

/// Reads many keys in a snapshot, with the guarantees that it declares.
#[async_trait]
pub trait SnapshotStore: ReadableStore + ListableStore {
    /// The guarantees of the store, which do not change: of several stores that are shown as one, what all of them
    /// guarantee.
    fn guarantees(&self) -> Guarantees;

    /// The guarantees of what is below a prefix, which are at least the store's.
    fn guarantees_below(&self, _prefix: &Prefix) -> Guarantees {
        self.guarantees()
    }

    /// The guarantees of each store that is shown, with the name below which it is mounted: that at the root first,
    /// which has none.
    fn parts(&self) -> Vec<(Option<String>, Guarantees)> {
        vec![(None, self.guarantees())]
    }

    /// Takes a snapshot of the values of `keys`: as of one commit, or each as of its first read
    /// ([`Guarantees::reads`]).
    ///
    /// The values stay readable as long as the snapshot is read from. One that makes no progress for too long fails
    /// with [`StoreError::SnapshotExpired`].
    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError>;

    /// Takes a snapshot like [`snapshot`](Self::snapshot), of keys that are listed instead of held in memory.
    ///
    /// By default the keys are collected.
    async fn snapshot_of(&self, keys: Arc<dyn KeySource>) -> Result<Box<dyn Snapshot>, StoreError> {
        let mut all = Vec::new();
        keys.for_each(&mut |key| all.push(key));
        self.snapshot(&all).await
    }

    /// Takes a snapshot of everything below `prefix` as of one commit, whatever is changed meanwhile. Memory does not grow
    /// with the number of keys as it does with [`snapshot`](Self::snapshot): a store with a disk writes their records
    /// there.
    ///
    /// By default it fails with [`StoreError::Unsupported`], as it must for a prefix without commits
    /// ([`Reads::Key`](crate::Reads::Key)).
    async fn snapshot_below(&self, _prefix: &Prefix) -> Result<Arc<dyn PrefixSnapshot>, StoreError> {
        Err(StoreError::Unsupported { what: "snapshots of a prefix" })
    }

    /// Returns a number that identifies the visible state. Every commit changes it, and no number is reused once
    /// something was committed, even if the store is closed and opened in between.
    ///
    /// - It is `None` if, and only if, the store has no commits ([`Reads::Key`](crate::Reads::Key)). Nothing can be
    ///   concluded from two calls that return `None`.
    /// - Of several stores that are shown as one, it is that of the store at the root.
    /// - The number belongs to some moment of the call. It includes every commit that a read saw which ended before the
    ///   call. Reads between two calls that return the same number have therefore seen one commit.
    /// - Without commits it does not change, except when the store is opened.
    /// - The call is cheap.
    async fn watermark(&self) -> Result<Option<Watermark>, StoreError>;

    /// Returns a number that identifies the visible state below a prefix, like [`watermark`](Self::watermark): `None`
    /// if not all of it is of one store with commits.
    async fn watermark_below(&self, prefix: &Prefix) -> Result<Option<Watermark>, StoreError> {
        match self.guarantees_below(prefix).reads {
            Reads::Commit => self.watermark().await,
            Reads::Key => Ok(None),
        }
    }

    /// The space of the file system to which values are written; `None` if the store has none of its own.
    fn disk_space(&self) -> Option<DiskSpace> {
        None
    }

    /// The state of the scrub; `None` if the store is not scrubbed.
    fn scrub(&self) -> Option<ScrubStatus> {
        None
    }

    /// The queues in which changes wait, by name, with the times of waits in each; empty for a store that has none.
    fn queues(&self) -> Vec<(&'static str, Arc<WaitTimes>)> {
        Vec::new()
    }
}

/// Some keys that are listed on demand, most of which have a common prefix: for snapshots in which the texts of the keys
/// would take much more memory than the rest.
pub trait KeySource: Send + Sync {
    /// The common prefix of most keys, which does not have to end in `/`.
    fn common_prefix(&self) -> &str;

    /// The number of keys, at most, if it is known without listing them. By default it is not.
    fn max_len(&self) -> Option<usize> {
        None
    }

    /// Calls a function with each key, in the same order each time. A key may be listed more than once.
    fn for_each(&self, visit: &mut dyn FnMut(Key));
}

/// The values of some keys: as of one commit, or each as of its first read in the snapshot.
///
/// Every method fails with [`StoreError::NotInSnapshot`] if the snapshot was not taken of the key.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// Returns the metadata of the value of `key` that the snapshot has or its store has cached. A snapshot as of one
    /// commit always has them; any other has those of the keys that were read in it.
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError>;

    /// Returns the metadata of the value of `key`, or `None` if it had no value.
    ///
    /// - Later calls return the same, even if the value was changed meanwhile.
    /// - With [`Prefetch::Value`] a request for the metadata may be one for the value, which the next
    ///   [`get`](Self::get) of all of it continues. All snapshots of a store together prefetch few values, and no bytes
    ///   of these before they are read.
    async fn stat(&self, key: &Key, prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError>;

    /// Reads a value of the snapshot like [`ReadableStore::get`].
    ///
    /// Fails with [`StoreError::Changed`] if the key was read in the snapshot before and has another value now. A
    /// snapshot as of one commit does not: it reads the value of that commit.
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError>;

    /// Adds the metadata of keys that follow each other in a listing, if the store has a
    /// [`MetadataReader`](crate::MetadataReader). Has no effect by default.
    fn load_cached(&self, _keys: &dyn KeySource) -> Result<(), StoreError> {
        Ok(())
    }

    /// Adds what a listing of the store, requested at `requested`, contains of `key`, unless the snapshot has its metadata.
    /// Has no effect by default, as in a snapshot as of one commit.
    fn insert_listed(&self, _key: &Key, _found: Option<ValueMeta>, _requested: Instant) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What [`Snapshot::stat`] requests in addition to the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetch {
    /// Nothing.
    Nothing,
    /// All of the value, which is read next.
    Value,
}

/// Everything below a prefix as of one commit: a store that can be read and listed, and does not change.
///
/// - Keys and listings are those of the store that it was taken of, with the same versions. A listing of a prefix that
///   contains more than the snapshot shows what the snapshot has of it.
/// - Reading a key outside of the prefix fails with [`StoreError::NotInSnapshot`].
/// - Values stay readable until the snapshot is dropped. If its store needs their space, the snapshot ends: then reading
///   values fails with [`StoreError::SnapshotExpired`].
#[async_trait]
pub trait PrefixSnapshot: ReadableStore + ListableStore + fmt::Debug {
    /// The prefix.
    fn prefix(&self) -> &Prefix;

    /// The watermark of the store after that commit.
    fn watermark(&self) -> Watermark;

    /// The number of keys.
    fn len(&self) -> u64;

    /// True if there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The intents of the store as of that commit, whichever keys they concern.
    fn intents(&self) -> &[Intent];

    /// False if the snapshot has ended, so that values cannot be read from it any more.
    fn is_valid(&self) -> bool;

    /// Returns a page of the keys below a prefix, as [`list_prefix`](ListableStore::list_prefix) does, of at most
    /// [`MAX_VALUE_PAGE_ENTRIES`](crate::MAX_VALUE_PAGE_ENTRIES), with their values of up to
    /// [`MAX_LISTED_VALUE_BYTES`](crate::MAX_LISTED_VALUE_BYTES). Others, and damaged ones, are read by their keys.
    async fn list_values(&self, prefix: &Prefix, page: PageRequest) -> Result<ValuePage, StoreError>;

    /// Fails with [`StoreError::NotInSnapshot`] if a key is outside of the prefix.
    fn check_key(&self, key: &Key) -> Result<(), StoreError> {
        match self.prefix().contains(key) {
            true => Ok(()),
            false => Err(StoreError::NotInSnapshot { key: key.clone() }),
        }
    }
}

impl dyn Snapshot + '_ {
    /// Returns the metadata of the value of `key`: cached ones without an allocation, others by [`Snapshot::stat`].
    pub async fn meta(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        match self.cached(key)? {
            CachedMeta::Known(meta) => Ok(meta),
            CachedMeta::Unknown => self.stat(key, Prefetch::Nothing).await,
        }
    }

    /// Requests the metadata of the keys that are not cached, a few at a time. Nothing is allocated if all are.
    pub fn stat_many<'a>(&'a self, keys: impl IntoIterator<Item = &'a Key>) -> StatMany<'a> {
        let mut unknown = Vec::new();
        for key in keys {
            match self.cached(key) {
                Ok(CachedMeta::Known(_)) => {}
                Ok(CachedMeta::Unknown) => unknown.push(self.stat(key, Prefetch::Nothing)),
                Err(error) => return Either::Left(future::ready(Err(error))),
            }
        }
        if unknown.is_empty() {
            return Either::Left(future::ready(Ok(())));
        }
        let requests = stream::iter(unknown).buffer_unordered(CONCURRENT_STATS);
        Either::Right(requests.try_for_each(|_| future::ready(Ok(()))).boxed())
    }
}

/// The requests of [`stat_many`](trait.Snapshot.html#method.stat_many).
pub type StatMany<'a> = Either<Ready<Result<(), StoreError>>, BoxFuture<'a, Result<(), StoreError>>>;

impl fmt::Debug for dyn SnapshotStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SnapshotStore").field(&self.guarantees()).finish()
    }
}

/// The space of a store's file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskSpace {
    /// The free bytes.
    pub free_bytes: u64,
    /// The bytes of value files that no key refers to, which are removed later.
    pub orphan_bytes: u64,
}
