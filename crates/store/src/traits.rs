//! The capabilities of a store, and their contract.
//!
//! What holds for all of them:
//!
//! - A read sees the whole of a value that was set, or the whole of its successor; never a mixture, never part of a
//!   value, never bytes that fail their checksum.
//! - Reads see every change that was acknowledged before they began.
//! - Every method may be called from many tasks at once. A future that is dropped leaves the store as it was, or with
//!   the whole of the change made; nothing else remains of it.

use std::fmt;

use async_trait::async_trait;

use crate::{
    ByteRange, ByteStream, Change, ChangeOutcome, DirPage, GetResult, Intent, Key, KeyCount, KeyPage, PageRequest,
    Payload, Precondition, Prefix, PutResult, Staged, StoreError, ValueMeta, Watermark,
};

/// Reading values.
#[async_trait]
pub trait ReadableStore: Send + Sync {
    /// The value of `key`, or a range of it.
    ///
    /// - `Ok(None)` where the key has no value, also where it is only a prefix of other keys.
    /// - The answer's size and version are those of the value that the stream yields, whatever is set meanwhile.
    /// - Fails with [`StoreError::RangeNotSatisfiable`] where the range names no byte of the value
    ///   (see [`ByteRange::resolve`]), and with [`StoreError::Corrupt`] where what is stored is damaged. The stream
    ///   may still fail with the latter: bytes are checked before they are yielded.
    /// - Memory does not grow with the value's size.
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError>;

    /// The size, version and time of the value of `key`, or `Ok(None)` where it has none.
    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError>;
}

/// Setting and erasing values.
#[async_trait]
pub trait WriteableStore: Send + Sync {
    /// Sets the value of `key`, replacing one that is there.
    ///
    /// - When it returns, the value is durable: it survives loss of power (a store in memory survives nothing, and
    ///   says so).
    /// - The precondition is judged atomically with the write, after the content has arrived; it may be judged before
    ///   as well, to fail early with [`StoreError::PreconditionFailed`].
    /// - Of two sets of one key at the same time, one comes after the other.
    /// - Where the content fails to arrive ([`StoreError::Upload`], or any error its stream yields), or there is no
    ///   space ([`StoreError::OutOfSpace`]), the key keeps the value it had.
    /// - Memory does not grow with the value's size.
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError>;

    /// Erases the value of `key`; whether there was one. Erasing what is not there succeeds, where the precondition
    /// holds. Durable when it returns.
    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError>;

    /// Erases all keys below `prefix` in one commit, however many there are, and gives their number as [`KeyCount`]
    /// defines it. Durable when it returns.
    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError>;

    /// True if a set would be taken now: fails with [`StoreError::ReadOnly`], [`StoreError::OutOfSpace`] or
    /// [`StoreError::Closed`], or with what keeps a remote store from being reached.
    async fn check_writable(&self) -> Result<(), StoreError>;
}

/// Listing keys.
///
/// Listings are sorted by bytes and come in pages. A key that is there, unchanged, from the first page to the last
/// is listed exactly once, whatever other writers do; one that is set or erased meanwhile is listed once or not at all.
/// A prefix without keys lists as empty. A cursor that this store did not issue for the same listing fails with
/// [`StoreError::InvalidCursor`].
#[async_trait]
pub trait ListableStore: Send + Sync {
    /// The keys below `prefix`, at any depth.
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError>;

    /// The keys and prefixes directly below `prefix`. Costs what it returns, not what lies below.
    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError>;

    /// All keys.
    async fn list(&self, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.list_prefix(&Prefix::root(), page).await
    }
}

/// Changing many keys in one commit, and reading many as of one commit.
#[async_trait]
pub trait TransactionalStore: ReadableStore + WriteableStore + ListableStore {
    /// Writes a value for `key` without making it visible. Fails as [`WriteableStore::set`] does.
    ///
    /// A staged value of which the last clone is dropped, or that is not committed before the store is closed, is discarded.
    async fn stage(&self, key: &Key, content: Payload) -> Result<Staged, StoreError>;

    /// The bytes of a staged value, or a range of them, for whoever holds it: it has no version, and no time. They are checked as those of visible values are.
    ///
    /// Fails with [`StoreError::InvalidStaged`] where another store staged it or it was committed. A range that names no byte of it gives an
    /// empty stream.
    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError>;

    /// Makes all the changes, or none of them, visible and durable together.
    ///
    /// - The outcomes stand in the order of the changes. They speak of the state before the commit: of a set and of an
    ///   erase of one key they say whether the key had a value there, also where it lies below a prefix that the same
    ///   commit erases.
    /// - All preconditions, those of [`Change::CheckEmpty`] included, are judged against the state before the commit,
    ///   atomically with making it. Where one does not hold, the commit fails for the first such change: with
    ///   [`StoreError::PreconditionFailed`], or [`StoreError::NotEmpty`] where it is a [`Change::CheckEmpty`].
    /// - [`Change::ErasePrefix`] erases every key below its prefix that is there when the commit is made. Erases of
    ///   prefixes are applied before the other changes of the commit, wherever they stand among them: a commit that
    ///   erases a prefix and sets keys below it replaces all that was there, and nobody sees anything in between.
    ///   It counts as one change and costs the commit the same whatever lies below.
    /// - Snapshots that were taken before the commit keep what they hold.
    /// - More than [`MAX_COMMIT_CHANGES`] changes fail with [`StoreError::TooManyChanges`], a key that two changes name
    ///   with [`StoreError::DuplicateKey`]. A prefix may be named more than once, and prefixes may lie within each
    ///   other; keys below a prefix that is erased or checked may be named as any others.
    /// - A value that another store staged, or that was committed before, fails with [`StoreError::InvalidStaged`].
    ///
    /// - [`Change::AddIntent`] and [`Change::RemoveIntent`] are made with the other changes of the commit, or not at all. An id that
    ///   is there already, one that is not there to be settled, a record longer than [`MAX_INTENT_LEN`] and one intent more
    ///   than [`MAX_INTENTS`](crate::MAX_INTENTS) fail with [`StoreError::Intent`], and so does an id that two changes name.
    ///
    /// A commit that fails in one of these ways changes nothing, and leaves its staged values as they were: clones of
    /// them can be committed again.
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError>;

    /// The intents that were added and not settled, in the order of their ids.
    ///
    /// They are no values: no listing has them, no count and no erase of a prefix concerns them, and they are not read by
    /// any key.
    async fn intents(&self) -> Result<Vec<Intent>, StoreError>;

    /// A number for what is visible, another one after every commit, also where the store was closed and opened in between: one that was
    /// given is not given again once something was committed.
    ///
    /// - It is that of what was visible at some moment of the call, and every commit that a read saw which ended before the call began is
    ///   counted in it. So what is read between two calls that give the same number is of one commit.
    /// - As long as nothing is committed it stays the same, but for an opening, which may change it.
    /// - It costs next to nothing.
    async fn watermark(&self) -> Result<Watermark, StoreError>;

    /// The values of `keys` as of one commit.
    ///
    /// What the snapshot holds stays readable while it is read from; one that is left without progress for too long fails with
    /// [`StoreError::SnapshotExpired`].
    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError>;
}

/// The values of some keys as of one commit.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// What is known of the value of `key`, or `Ok(None)` where it had none. Fails with
    /// [`StoreError::NotInSnapshot`] for a key that the snapshot was not made of.
    fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError>;

    /// As [`ReadableStore::get`], of the snapshot's values.
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError>;
}

impl fmt::Debug for dyn TransactionalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransactionalStore")
    }
}
