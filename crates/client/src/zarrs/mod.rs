//! Adapter of stores for the `zarrs` crate (feature `zarrs`).
//!
//! ```no_run
//! use std::sync::Arc;
//! use zarrd_client::{BaseUrl, HttpStore, zarrs::ZarrsStore};
//! use zarrs_storage::AsyncReadableWritableListableStorage;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = HttpStore::new(BaseUrl::parse("http://127.0.0.1:8000")?)?;
//! let storage: AsyncReadableWritableListableStorage = Arc::new(ZarrsStore::new(store));
//! // zarrs::array::Array::async_open(storage, "/lab/exp1/foo").await?
//! # Ok(())
//! # }
//! ```

mod ranges;

use std::{io, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_store::{
    Key, ListableStore, MAX_PAGE_ENTRIES, PageRequest, Precondition, Prefix, ReadableStore, StoreError, WriteableStore,
    list_all,
};
use zarrs_storage::{
    AsyncListableStorageTraits, AsyncMaybeBytesIterator, AsyncReadableStorageTraits, AsyncWritableStorageTraits,
    MaybeBytes, OffsetBytesIterator, StorageError, StoreKey, StoreKeys, StoreKeysPrefixes, StorePrefix,
    byte_range::ByteRangeIterator,
};

/// Maximum number of concurrent requests of one call.
const MAX_CONCURRENT_REQUESTS: usize = 8;
/// Maximum number of attempts of an operation that conflicts with other writers.
const MAX_ATTEMPTS: usize = 8;

/// Adapter from a store to the storage traits of the `zarrs` crate.
///
/// All ranges that one call reads are of one version of the value, and a partial write never overwrites a concurrent
/// one: both are repeated after a conflict. Different calls may see different versions, such as those with which
/// `zarrs` reads the index of a shard and then its chunks.
#[derive(Clone, Debug)]
pub struct ZarrsStore<S> {
    store: S,
}

impl<S> ZarrsStore<S> {
    /// Wraps a store.
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.store
    }
}

#[async_trait]
impl<S: ReadableStore> AsyncReadableStorageTraits for ZarrsStore<S> {
    async fn get(&self, key: &StoreKey) -> Result<MaybeBytes, StorageError> {
        match self.store.get(&to_key(key)?, None).await.map_err(storage_error)? {
            Some(value) => value.bytes().await.map(Some).map_err(storage_error),
            None => Ok(None),
        }
    }

    async fn get_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        byte_ranges: ByteRangeIterator<'a>,
    ) -> Result<AsyncMaybeBytesIterator<'a>, StorageError> {
        let (key, byte_ranges) = (to_key(key)?, byte_ranges.collect::<Vec<_>>());
        let bytes = ranges::read(&self.store, &key, &byte_ranges).await?;
        Ok(bytes.map(|bytes| stream::iter(bytes).boxed()))
    }

    async fn size_key(&self, key: &StoreKey) -> Result<Option<u64>, StorageError> {
        let info = self.store.head(&to_key(key)?).await.map_err(storage_error)?;
        Ok(info.map(|info| info.size))
    }

    fn supports_get_partial(&self) -> bool {
        true
    }
}

#[async_trait]
impl<S: ReadableStore + WriteableStore> AsyncWritableStorageTraits for ZarrsStore<S> {
    async fn set(&self, key: &StoreKey, value: Bytes) -> Result<(), StorageError> {
        let set = self.store.set(&to_key(key)?, value.into(), Precondition::none()).await;
        set.map(drop).map_err(storage_error)
    }

    async fn set_partial_many<'a>(
        &'a self,
        key: &StoreKey,
        offset_values: OffsetBytesIterator<'a>,
    ) -> Result<(), StorageError> {
        let (key, changes) = (to_key(key)?, offset_values.collect::<Vec<_>>());
        for _ in 1..MAX_ATTEMPTS {
            match update(&self.store, &key, &changes).await {
                Err(StoreError::PreconditionFailed { .. }) => {}
                result => return result.map_err(storage_error),
            }
        }
        update(&self.store, &key, &changes).await.map_err(storage_error)
    }

    async fn erase(&self, key: &StoreKey) -> Result<(), StorageError> {
        self.store.erase(&to_key(key)?, Precondition::none()).await.map(drop).map_err(storage_error)
    }

    async fn erase_many(&self, keys: &[StoreKey]) -> Result<(), StorageError> {
        let keys: Vec<Key> = keys.iter().map(to_key).collect::<Result<_, _>>()?;
        let erasures = stream::iter(keys).map(|key| async move { self.store.erase(&key, Precondition::none()).await });
        erasures
            .buffer_unordered(MAX_CONCURRENT_REQUESTS)
            .try_for_each(|_| async { Ok(()) })
            .await
            .map_err(storage_error)
    }

    async fn erase_prefix(&self, prefix: &StorePrefix) -> Result<(), StorageError> {
        self.store.erase_prefix(&to_prefix(prefix)?).await.map(drop).map_err(storage_error)
    }

    /// A partial write rewrites the full value, so `zarrs` should encode chunks itself.
    fn supports_set_partial(&self) -> bool {
        false
    }
}

#[async_trait]
impl<S: ListableStore> AsyncListableStorageTraits for ZarrsStore<S> {
    async fn list(&self) -> Result<StoreKeys, StorageError> {
        self.list_prefix(&StorePrefix::root()).await
    }

    async fn list_prefix(&self, prefix: &StorePrefix) -> Result<StoreKeys, StorageError> {
        let prefix = to_prefix(prefix)?;
        let keys = list_all(&self.store, &prefix)
            .map_err(storage_error)
            .and_then(|entry| async move { to_zarrs_key(&entry.key) });
        keys.try_collect().await
    }

    async fn list_dir(&self, prefix: &StorePrefix) -> Result<StoreKeysPrefixes, StorageError> {
        let prefix = to_prefix(prefix)?;
        let (mut keys, mut prefixes, mut next) = (Vec::new(), Vec::new(), Some(PageRequest::first(MAX_PAGE_ENTRIES)));
        while let Some(page) = next {
            let listing = self.store.list_dir(&prefix, page).await.map_err(storage_error)?;
            for entry in &listing.keys {
                keys.push(to_zarrs_key(&entry.key)?);
            }
            for prefix in &listing.prefixes {
                prefixes.push(StorePrefix::new(prefix.as_str())?);
            }
            next = listing.cursor.map(|cursor| PageRequest::after(MAX_PAGE_ENTRIES, cursor));
        }
        Ok(StoreKeysPrefixes::new(keys, prefixes))
    }

    async fn size_prefix(&self, prefix: &StorePrefix) -> Result<u64, StorageError> {
        let prefix = to_prefix(prefix)?;
        let sizes = list_all(&self.store, &prefix).map_ok(|entry| entry.meta.size);
        sizes.try_fold(0_u64, |sum, size| async move { Ok(sum.saturating_add(size)) }).await.map_err(storage_error)
    }
}

/// Applies the changes to the current value, unless it changes concurrently.
async fn update<S>(store: &S, key: &Key, changes: &[(u64, Bytes)]) -> Result<(), StoreError>
where
    S: ReadableStore + WriteableStore,
{
    let (mut bytes, version) = match store.get(key, None).await? {
        Some(value) => {
            let version = value.meta.version;
            (Vec::from(value.bytes().await?), Some(version))
        }
        None => (Vec::new(), None),
    };
    for (offset, update) in changes {
        overlay(&mut bytes, *offset, update)?;
    }
    store.set(key, bytes.into(), Precondition::unchanged(version)).await.map(drop)
}

/// Overwrites the bytes from `offset` on. A gap after the previous end is filled with zeros.
fn overlay(bytes: &mut Vec<u8>, offset: u64, update: &[u8]) -> Result<(), StoreError> {
    let too_large =
        || StoreError::Io { action: "allocate memory for the value", source: io::ErrorKind::OutOfMemory.into() };
    let start = usize::try_from(offset).map_err(|_| too_large())?;
    let end = start.checked_add(update.len()).ok_or_else(too_large)?;
    if let Some(additional) = end.checked_sub(bytes.len()) {
        bytes.try_reserve_exact(additional).map_err(|_| too_large())?;
        bytes.resize(end, 0);
    }
    if let Some(target) = bytes.get_mut(start..end) {
        target.copy_from_slice(update);
    }
    Ok(())
}

fn to_key(key: &StoreKey) -> Result<Key, StorageError> {
    Key::parse(key.as_str()).map_err(|error| invalid(error, key.as_str()))
}

fn to_prefix(prefix: &StorePrefix) -> Result<Prefix, StorageError> {
    Prefix::parse(prefix.as_str()).map_err(|error| invalid(error, prefix.as_str()))
}

fn to_zarrs_key(key: &Key) -> Result<StoreKey, StorageError> {
    Ok(StoreKey::new(key.as_str())?)
}

fn invalid(error: zarrd_store::KeyError, text: &str) -> StorageError {
    StorageError::Unsupported(format!("invalid key or prefix {text:?}: {error}"))
}

/// Wraps an error in an I/O error, the only variant that can contain another error.
fn storage_error(error: StoreError) -> StorageError {
    match error {
        StoreError::ReadOnly => StorageError::ReadOnly,
        error => StorageError::IOError(Arc::new(io::Error::other(error))),
    }
}
