//! Stores that read what other programs write.

use std::{fmt, future::Future, marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;

use super::Factory;
use zarrd_store::{
    ByteRange, DirPage, GetResult, Guarantees, Key, KeyCount, KeyPage, KeySource, ListableStore, PageRequest, Payload,
    Precondition, Prefix, PutResult, ReadableStore, Snapshot, SnapshotStore, StoreError, ValueMeta, Watermark,
    WriteableStore, list_all,
};

/// A store under test that reads, and the means by which other programs change what it reads.
pub trait ForeignData: Send + Sync + 'static {
    /// New data without any value, independent of all others.
    fn create() -> impl Future<Output = Self>;

    /// The store that reads the data: the same one each time.
    fn store(&self) -> Arc<dyn SnapshotStore>;

    /// Sets a value, replacing an existing one, as another program does.
    fn put(&self, key: &Key, value: Bytes) -> impl Future<Output = ()> + Send;

    /// Removes a value that exists, as another program does.
    fn remove(&self, key: &Key) -> impl Future<Output = ()> + Send;
}

/// A [`Factory`] of stores that read what other programs write. Checks that write do so in place of such a program.
pub struct Foreign<D>(PhantomData<fn() -> D>);

/// The store of [`ForeignData`]. Its changes are those of another program, so they have no preconditions.
pub struct ForeignStore<D>(Arc<D>);

impl<D> Foreign<D> {
    /// Creates stores of new data.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<D> Default for Foreign<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> fmt::Debug for Foreign<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Foreign")
    }
}

impl<D> Clone for ForeignStore<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D> fmt::Debug for ForeignStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeignStore")
    }
}

impl<D: ForeignData> Factory for Foreign<D> {
    type Store = ForeignStore<D>;
    type Fixture = ();

    fn guarantees(&self, store: &ForeignStore<D>) -> Guarantees {
        store.guarantees()
    }

    async fn create(&self) -> (ForeignStore<D>, ()) {
        (ForeignStore(Arc::new(D::create().await)), ())
    }
}

impl<D: ForeignData> ForeignStore<D> {
    /// Waits until the store sees what was changed.
    async fn settle(&self) {
        let staleness = self.guarantees().staleness;
        if !staleness.is_zero() {
            tokio::time::sleep(staleness).await;
        }
    }
}

#[async_trait]
impl<D: ForeignData> ReadableStore for ForeignStore<D> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.0.store().get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.0.store().head(key).await
    }
}

#[async_trait]
impl<D: ForeignData> ListableStore for ForeignStore<D> {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.0.store().list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.0.store().list_dir(prefix, page).await
    }
}

#[async_trait]
impl<D: ForeignData> SnapshotStore for ForeignStore<D> {
    fn guarantees(&self) -> Guarantees {
        self.0.store().guarantees()
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        self.0.store().snapshot(keys).await
    }

    async fn snapshot_of(&self, keys: Arc<dyn KeySource>) -> Result<Box<dyn Snapshot>, StoreError> {
        self.0.store().snapshot_of(keys).await
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        self.0.store().watermark().await
    }
}

#[async_trait]
impl<D: ForeignData> WriteableStore for ForeignStore<D> {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        check_unconditional(&precondition)?;
        let replaced = self.head(key).await?.is_some();
        let value: Vec<Bytes> = payload.stream.try_collect().await?;
        self.0.put(key, value.concat().into()).await;
        self.settle().await;
        let meta = self.head(key).await?.unwrap_or_else(|| panic!("{key} was put and is not seen"));
        Ok(PutResult { version: meta.version, replaced })
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        check_unconditional(&precondition)?;
        let existed = self.head(key).await?.is_some();
        if existed {
            self.0.remove(key).await;
            self.settle().await;
        }
        Ok(existed)
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let entries: Vec<_> = list_all(&*self.0.store(), prefix).try_collect().await?;
        for entry in &entries {
            self.0.remove(&entry.key).await;
        }
        self.settle().await;
        Ok(KeyCount::exact(entries.len() as u64))
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn check_unconditional(precondition: &Precondition) -> Result<(), StoreError> {
    if *precondition == Precondition::none() {
        return Ok(());
    }
    Err(StoreError::Unsupported { what: "preconditions" })
}
