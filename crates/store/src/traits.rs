//! The traits of a store, and their contract.
//!
//! All operations share these guarantees:
//!
//! - A read returns one complete value: never a mixture of two, never a part, never bytes that fail their checksum.
//! - A read sees every change that was acknowledged before it began. One of data that other programs change may miss
//!   their changes of the last [`Guarantees::staleness`].
//! - Every method may be called concurrently. A future that is dropped leaves either no change or the complete one.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::{
    FutureExt, StreamExt, TryStreamExt,
    future::{self, BoxFuture, Either, Ready},
    stream,
};
use tokio::time::Instant;

use crate::{
    Batch, ByteRange, ByteStream, CachedMeta, Change, ChangeOutcome, DirPage, GetResult, Guarantees, Intent, Key,
    KeyCount, KeyPage, MAX_PAGE_ENTRIES, MetadataCache, PageRequest, Payload, Precondition, Prefix, PutResult, Reads,
    ReceivingStore, RunId, Scan, ScanPage, Scanned, ScrubStatus, Staged, StoreError, ValueMeta, ValuePage, Version,
    WaitTimes, Watermark,
};

/// The number of concurrent requests for the metadata of the keys of a snapshot.
const CONCURRENT_STATS: usize = 64;

/// Reads values.
#[async_trait]
pub trait ReadableStore: Send + Sync {
    /// Returns the value of `key`, or a byte range of it; `None` if the key has no value, even if it is a prefix of
    /// others.
    ///
    /// - The size and version of the result belong to the value that its stream yields, whatever is set meanwhile.
    ///   Where another program can change the value in its place, the stream fails with [`StoreError::Changed`] instead
    ///   of yielding bytes of two values.
    /// - Memory does not grow with the size of the value.
    ///
    /// # Errors
    ///
    /// - [`StoreError::RangeNotSatisfiable`] if the range contains no byte of the value (see [`ByteRange::resolve`]).
    /// - [`StoreError::Corrupt`] if the stored value is damaged. The stream can fail with it as well: bytes are checked
    ///   before they are yielded.
    /// - [`StoreError::Changed`] if another program changes the value again and again while it is opened.
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError>;

    /// Returns the metadata of the value of `key`, or `None` if it has no value.
    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError>;

    /// Returns the value of `key` like [`get`](Self::get), for a caller that can only use it at this version.
    ///
    /// If the value has another version, the store may fail with [`StoreError::Changed`], which saves reading it. It
    /// may as well return the value: callers compare the version. By default it is that of `get`.
    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        _version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        self.get(key, range).await
    }

    /// Returns the metadata that the store can return at once. None by default.
    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        None
    }
}

/// Sets and erases values.
#[async_trait]
pub trait WriteableStore: Send + Sync {
    /// Sets the value of `key`, replacing an existing one.
    ///
    /// - The value is durable on return: it survives a loss of power (except in a store in memory).
    /// - The precondition is checked atomically with the write, after the payload has arrived. It may be checked before
    ///   as well, to fail early.
    /// - Concurrent sets of one key are serialized.
    /// - Memory does not grow with the size of the value.
    ///
    /// # Errors
    ///
    /// The key keeps its value if this fails.
    ///
    /// - [`StoreError::PreconditionFailed`] if the precondition does not hold.
    /// - [`StoreError::Upload`], or any error that the payload's stream yields, if the payload does not arrive
    ///   completely.
    /// - [`StoreError::OutOfSpace`] if the value does not fit.
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError>;

    /// Erases the value of `key` and returns true if it had one. Erasing a key without a value succeeds if the
    /// precondition holds. Durable on return.
    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError>;

    /// Erases all keys below `prefix` in one commit, however many exist, and returns their number as [`KeyCount`]
    /// defines it. Durable on return.
    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError>;

    /// The means to receive values that are set later. None by default.
    fn receiving(&self) -> Option<&dyn ReceivingStore> {
        None
    }

    /// Succeeds if the store accepts sets at the moment. Fails with [`StoreError::ReadOnly`],
    /// [`StoreError::OutOfSpace`], [`StoreError::Closed`], or the error of reaching a remote store.
    async fn check_writable(&self) -> Result<(), StoreError>;
}

/// Lists keys.
///
/// Listings are sorted by bytes and returned in pages. A key that exists unchanged from the first page to the last is
/// listed exactly once, whatever other writers do; one that is set or erased meanwhile is listed at most once. A prefix
/// without keys has an empty listing.
///
/// Every method fails with [`StoreError::InvalidCursor`] if the cursor was not issued by this store for the same
/// listing, and with [`StoreError::Unsupported`] if the store has no listings
/// ([`Listing::None`](crate::Listing::None)).
#[async_trait]
pub trait ListableStore: Send + Sync {
    /// Lists the keys below `prefix`, at any depth.
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError>;

    /// Lists the keys and prefixes directly below `prefix`. The cost depends on what is returned, not on what is below.
    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError>;

    /// Lists the keys that begin with a text, after another one, with those that have a `/` after it folded if
    /// [asked](crate::Fold).
    ///
    /// Pages are as consistent as those of the other listings. They begin at any text, so that none has a cursor. By
    /// default all keys below the parent prefix of the text are listed up to the end of the page; a store that can seek
    /// does so.
    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        scan_by_pages(self, scan).await
    }

    /// Lists all keys.
    async fn list(&self, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.list_prefix(&Prefix::root(), page).await
    }
}

/// A page of a scan from the listing of all keys below its parent prefix, of those before the page too.
pub(crate) async fn scan_by_pages<S: ListableStore + ?Sized>(store: &S, scan: &Scan) -> Result<ScanPage, StoreError> {
    let (mut page, mut from) = (ScanPage::default(), scan.start());
    let Some(parent) = scan.parent() else { return Ok(page) };
    let mut request = PageRequest::first(MAX_PAGE_ENTRIES);
    loop {
        let KeyPage { keys, cursor } = store.list_prefix(&parent, request).await?;
        for entry in keys {
            if entry.key.as_str() < from.as_str() {
                continue;
            }
            if !scan.contains(&entry.key) {
                return Ok(page);
            }
            if page.entries.len() == scan.limit() {
                page.more = true;
                return Ok(page);
            }
            match scan.folded(entry.key.as_str()) {
                Some(prefix) => {
                    from = prefix.upper_bound().unwrap_or_default();
                    page.entries.push(Scanned::Prefix(prefix));
                }
                None => page.entries.push(Scanned::Key(entry)),
            }
        }
        let Some(cursor) = cursor else { return Ok(page) };
        request = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
    }
}

/// Reads many keys in a snapshot, with the guarantees that it declares.
#[async_trait]
pub trait SnapshotStore: ReadableStore + ListableStore {
    /// The guarantees of the store, which do not change: of several stores that are shown as one, what all of them
    /// guarantee.
    fn guarantees(&self) -> Guarantees;

    /// The guarantees of what is below a prefix, which are at least those of the store.
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

/// Changes many keys: in one commit, or else key by key.
///
/// Every [`TransactionalStore`] is one, and so is [`Keyed`](crate::Keyed) of a store that can
/// be written.
#[async_trait]
pub trait BatchStore: SnapshotStore + WriteableStore {
    /// Writes a value for `key` without making it visible. Fails like [`WriteableStore::set`].
    ///
    /// The staged value is discarded when its last clone is dropped, or when the store is closed before it is
    /// committed.
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError>;

    /// Stages the values of other keys, one after the other, as one value without attributes. The keys may be changed or erased
    /// afterwards. A store that has no way to do so without [copies their bytes](crate::stage_copy_of_parts).
    ///
    /// Fails with [`StoreError::PreconditionFailed`] for the first key whose value has another version, or which has none, and
    /// like [`WriteableStore::set`].
    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError>;

    /// Returns the bytes of a staged value, or a range of them, checked like those of visible values. A range that
    /// contains no byte of the value yields an empty stream.
    ///
    /// Fails with [`StoreError::InvalidStaged`] if another store staged the value, or if it was committed.
    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError>;

    /// Makes the changes of a batch: where keys change in [commits](crate::Writes::Commit), as one commit of all of them; where
    /// each key changes by itself, one after the other.
    ///
    /// - Outcomes are in the order of the documents, and then of the chunks.
    ///
    /// Where each key changes by itself ([`Writes::Key`](crate::Writes::Key)):
    ///
    /// - The conditions of checks are looked at first, and those of documents too if there is more than one change. If
    ///   one does not hold, nothing is changed.
    /// - Then the chunks are changed, several at a time. A chunk whose condition does not hold keeps its value, and the
    ///   others are changed nevertheless.
    /// - If all of them are, the documents are changed in their order.
    /// - Finally the checks are looked at again. So all of it was done while they held, or the batch fails.
    /// - A batch that has begun is finished even if the future is dropped.
    /// - Conditions hold as [`Guarantees::conditions`] says. Those that the store does not
    ///   have fail with [`StoreError::Unsupported`] before anything is changed, as do intents, since there are none.
    ///
    /// # Errors
    ///
    /// Those of [`TransactionalStore::commit`], with nothing changed; [`StoreError::OutcomeUnknown`] if at most one key was,
    /// whose answer was lost; and [`StoreError::PartlyApplied`] if some keys were changed before the batch failed.
    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError>;
}

/// Changes many keys in one commit, and reads many keys as of one commit.
///
/// Its guarantees are those of [`Guarantees::COMMITS`], except that a store may leave values unchecked: in particular,
/// its [watermark](SnapshotStore::watermark) is never `None`. Of several stores that are shown as one, this is true
/// below each prefix where [`SnapshotStore::guarantees_below`] says so; what names or covers anything else fails with
/// [`StoreError::Unsupported`], and changes nothing.
#[async_trait]
pub trait TransactionalStore: BatchStore {
    /// Makes all changes visible and durable together, or none of them.
    ///
    /// - Outcomes are in the order of the changes. They describe the state before the commit: a set or an erase reports
    ///   whether its key had a value then, even if the key is below a prefix that the same commit erases.
    /// - All preconditions, including [`Change::CheckEmpty`], are checked against the state before the commit,
    ///   atomically with it.
    /// - [`Change::ErasePrefix`] erases every key that is below its prefix when the commit is made. It is applied
    ///   before all other changes of the commit, wherever it is in the list, so that a commit can replace everything
    ///   below a prefix. It counts as one change, and its cost does not depend on the number of keys.
    /// - Prefixes may be repeated and nested, and keys below them may be changed in the same commit.
    /// - Existing snapshots are not affected.
    ///
    /// # Errors
    ///
    /// A commit that fails changes nothing and leaves its staged values unchanged: their clones can be committed again.
    ///
    /// - [`StoreError::PreconditionFailed`] or [`StoreError::NotEmpty`] for the first change whose condition does not
    ///   hold.
    /// - [`StoreError::TooManyChanges`] if there are more than
    ///   [`MAX_COMMIT_CHANGES`](crate::MAX_COMMIT_CHANGES) changes.
    /// - [`StoreError::DuplicateKey`] if two changes name one key.
    /// - [`StoreError::InvalidStaged`] if another store staged a value, or if it was committed before.
    /// - [`StoreError::Intent`] if an intent cannot be added or removed, or is not as the commit needs it; see
    ///   [`IntentError`](crate::IntentError).
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError>;

    /// Returns the intents that were added and not removed, in the order of their ids.
    ///
    /// Intents are not values: they are not listed, counted, read by a key, or erased with a prefix.
    async fn intents(&self) -> Result<Vec<Intent>, StoreError>;

    /// The run of this store, which begins when it is opened for writing. Fails if it is not.
    fn run(&self) -> Result<RunId, StoreError>;

    /// True if the run of an operation may go on, so that the operation is not interrupted. By default that is the run of
    /// this store and no other, since one process at a time has a store open for writing.
    fn is_running(&self, run: RunId) -> bool {
        self.run().is_ok_and(|own| own == run)
    }
}

/// Some keys that are listed on demand, most of which have a common prefix: for snapshots of so many keys that their
/// texts would take much more memory than the rest of the snapshot.
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

impl fmt::Debug for dyn BatchStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BatchStore").field(&self.guarantees()).finish()
    }
}

impl fmt::Debug for dyn TransactionalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransactionalStore")
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
