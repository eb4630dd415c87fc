//! Stores that wrap another store and change some of its operations.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    Batch, BatchStore, ByteRange, ByteStream, Change, ChangeOutcome, DirPage, DiskSpace, GetResult, Guarantees, Intent,
    Key, KeyCount, KeyPage, ListableStore, PageRequest, Payload, Precondition, Prefix, PrefixSnapshot, PutResult,
    ReadableStore, RunId, Scan, ScanPage, ScrubStatus, Snapshot, SnapshotStore, Staged, StoreError, TransactionalStore,
    ValueMeta, Version, WaitTimes, Watermark, WriteableStore,
};

/// A store that passes its operations to another store, except those that it overrides.
///
/// A type that implements this trait has all six store traits. Only [`inner`](Self::inner) is required. Each operation
/// first calls [`before`](Self::before), which can observe it, delay it or fail it, and then the method of the same
/// name, which calls the wrapped store unless it is overridden. An override reaches the wrapped store through `inner`.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// use async_trait::async_trait;
/// use zarrd_store::{Key, MemoryStore, Operation, ReadableStore, StoreError, StoreWrapper};
///
/// /// Counts reads and rejects writes.
/// struct ReadOnly {
///     inner: MemoryStore,
///     reads: AtomicUsize,
/// }
///
/// #[async_trait]
/// impl StoreWrapper for ReadOnly {
///     type Inner = MemoryStore;
///
///     fn inner(&self) -> &MemoryStore {
///         &self.inner
///     }
///
///     async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
///         if operation.is_write() {
///             return Err(StoreError::ReadOnly);
///         }
///         self.reads.fetch_add(1, Ordering::Relaxed);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = ReadOnly { inner: MemoryStore::new(), reads: AtomicUsize::new(0) };
/// let key = Key::parse("lab/zarr.json")?;
/// assert!(ReadableStore::get(&store, &key, None).await?.is_none());
/// assert_eq!(store.reads.load(Ordering::Relaxed), 1);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait StoreWrapper: Send + Sync {
    /// The type of the wrapped store.
    type Inner: TransactionalStore + ?Sized;

    /// The wrapped store.
    fn inner(&self) -> &Self::Inner;

    /// Runs before each operation. An error fails the operation, which then does not reach the wrapped store.
    async fn before(&self, _operation: Operation<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Implements [`ReadableStore::get`].
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.inner().get(key, range).await
    }

    /// Implements [`ReadableStore::head`].
    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.inner().head(key).await
    }

    /// Implements [`WriteableStore::set`].
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.inner().set(key, payload, precondition).await
    }

    /// Implements [`WriteableStore::erase`].
    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.inner().erase(key, precondition).await
    }

    /// Implements [`WriteableStore::erase_prefix`].
    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.inner().erase_prefix(prefix).await
    }

    /// Implements [`WriteableStore::check_writable`].
    async fn check_writable(&self) -> Result<(), StoreError> {
        self.inner().check_writable().await
    }

    /// Implements [`ListableStore::list_prefix`], and so [`ListableStore::list`].
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.inner().list_prefix(prefix, page).await
    }

    /// Implements [`ListableStore::list_dir`].
    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.inner().list_dir(prefix, page).await
    }

    /// Implements [`ListableStore::scan`].
    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        self.inner().scan(scan).await
    }

    /// Implements [`BatchStore::stage`].
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError> {
        self.inner().stage(key, payload).await
    }

    /// Implements [`BatchStore::stage_joined`].
    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError> {
        self.inner().stage_joined(key, parts).await
    }

    /// Implements [`BatchStore::read_staged`].
    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        self.inner().read_staged(staged, range).await
    }

    /// Implements [`TransactionalStore::commit`], and so [`BatchStore::apply`].
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.inner().commit(changes).await
    }

    /// Implements [`TransactionalStore::intents`].
    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        self.inner().intents().await
    }

    /// Implements [`TransactionalStore::run`].
    fn run(&self) -> Result<RunId, StoreError> {
        self.inner().run()
    }

    /// Implements [`TransactionalStore::is_running`].
    fn is_running(&self, run: RunId) -> bool {
        self.inner().is_running(run)
    }

    /// Implements [`SnapshotStore::guarantees`].
    fn guarantees(&self) -> Guarantees {
        self.inner().guarantees()
    }

    /// Implements [`SnapshotStore::guarantees_below`].
    fn guarantees_below(&self, prefix: &Prefix) -> Guarantees {
        self.inner().guarantees_below(prefix)
    }

    /// Implements [`SnapshotStore::watermark`].
    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        self.inner().watermark().await
    }

    /// Implements [`SnapshotStore::snapshot`], and so [`SnapshotStore::snapshot_of`].
    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        self.inner().snapshot(keys).await
    }
}

/// An operation of a store, as [`StoreWrapper::before`] receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'o> {
    /// [`ReadableStore::get`].
    Get(&'o Key),
    /// [`ReadableStore::head`].
    Head(&'o Key),
    /// [`WriteableStore::set`].
    Set(&'o Key),
    /// [`WriteableStore::erase`].
    Erase(&'o Key),
    /// [`WriteableStore::erase_prefix`].
    ErasePrefix(&'o Prefix),
    /// [`WriteableStore::check_writable`].
    CheckWritable,
    /// [`ListableStore::list_prefix`].
    ListPrefix(&'o Prefix),
    /// [`ListableStore::list_dir`].
    ListDir(&'o Prefix),
    /// [`ListableStore::scan`].
    Scan(&'o Scan),
    /// [`BatchStore::stage`].
    Stage(&'o Key),
    /// [`BatchStore::read_staged`] of a value that was staged for this key.
    ReadStaged(&'o Key),
    /// [`TransactionalStore::commit`].
    Commit,
    /// [`TransactionalStore::intents`].
    Intents,
    /// [`SnapshotStore::watermark`].
    Watermark,
    /// [`SnapshotStore::snapshot`] of these keys.
    Snapshot(&'o [Key]),
    /// [`SnapshotStore::snapshot_below`].
    SnapshotBelow(&'o Prefix),
}

impl<'o> Operation<'o> {
    /// The key that the operation concerns, if it is a single one.
    pub fn key(self) -> Option<&'o Key> {
        match self {
            Self::Get(key) | Self::Head(key) | Self::Set(key) | Self::Erase(key) => Some(key),
            Self::Stage(key) | Self::ReadStaged(key) => Some(key),
            _ => None,
        }
    }

    /// True if the operation changes the store, prepares a change, or asks if the store can be changed.
    pub fn is_write(self) -> bool {
        match self {
            Self::Set(_) | Self::Erase(_) | Self::ErasePrefix(_) | Self::CheckWritable => true,
            Self::Stage(_) | Self::Commit => true,
            Self::Get(_) | Self::Head(_) | Self::ListPrefix(_) | Self::ListDir(_) | Self::Scan(_) => false,
            Self::ReadStaged(_) | Self::Intents | Self::Watermark => false,
            Self::Snapshot(_) | Self::SnapshotBelow(_) => false,
        }
    }
}

#[async_trait]
impl<W: StoreWrapper> ReadableStore for W {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.before(Operation::Get(key)).await?;
        StoreWrapper::get(self, key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.before(Operation::Head(key)).await?;
        StoreWrapper::head(self, key).await
    }
}

#[async_trait]
impl<W: StoreWrapper> WriteableStore for W {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.before(Operation::Set(key)).await?;
        StoreWrapper::set(self, key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.before(Operation::Erase(key)).await?;
        StoreWrapper::erase(self, key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.before(Operation::ErasePrefix(prefix)).await?;
        StoreWrapper::erase_prefix(self, prefix).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.before(Operation::CheckWritable).await?;
        StoreWrapper::check_writable(self).await
    }
}

#[async_trait]
impl<W: StoreWrapper> ListableStore for W {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.before(Operation::ListPrefix(prefix)).await?;
        StoreWrapper::list_prefix(self, prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.before(Operation::ListDir(prefix)).await?;
        StoreWrapper::list_dir(self, prefix, page).await
    }

    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        self.before(Operation::Scan(scan)).await?;
        StoreWrapper::scan(self, scan).await
    }
}

#[async_trait]
impl<W: StoreWrapper> SnapshotStore for W {
    fn guarantees(&self) -> Guarantees {
        StoreWrapper::guarantees(self)
    }

    fn guarantees_below(&self, prefix: &Prefix) -> Guarantees {
        StoreWrapper::guarantees_below(self, prefix)
    }

    fn parts(&self) -> Vec<(Option<String>, Guarantees)> {
        self.inner().parts()
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        self.before(Operation::Snapshot(keys)).await?;
        StoreWrapper::snapshot(self, keys).await
    }

    async fn snapshot_below(&self, prefix: &Prefix) -> Result<Arc<dyn PrefixSnapshot>, StoreError> {
        self.before(Operation::SnapshotBelow(prefix)).await?;
        self.inner().snapshot_below(prefix).await
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        self.before(Operation::Watermark).await?;
        StoreWrapper::watermark(self).await
    }

    fn disk_space(&self) -> Option<DiskSpace> {
        self.inner().disk_space()
    }

    fn scrub(&self) -> Option<ScrubStatus> {
        self.inner().scrub()
    }

    fn queues(&self) -> Vec<(&'static str, Arc<WaitTimes>)> {
        self.inner().queues()
    }
}

#[async_trait]
impl<W: StoreWrapper> BatchStore for W {
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError> {
        self.before(Operation::Stage(key)).await?;
        StoreWrapper::stage(self, key, payload).await
    }

    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError> {
        self.before(Operation::Stage(key)).await?;
        StoreWrapper::stage_joined(self, key, parts).await
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        self.before(Operation::ReadStaged(staged.key())).await?;
        StoreWrapper::read_staged(self, staged, range).await
    }

    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError> {
        TransactionalStore::commit(self, batch.into_changes()).await
    }
}

#[async_trait]
impl<W: StoreWrapper> TransactionalStore for W {
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.before(Operation::Commit).await?;
        StoreWrapper::commit(self, changes).await
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        self.before(Operation::Intents).await?;
        StoreWrapper::intents(self).await
    }

    fn run(&self) -> Result<RunId, StoreError> {
        StoreWrapper::run(self)
    }

    fn is_running(&self, run: RunId) -> bool {
        StoreWrapper::is_running(self, run)
    }
}
