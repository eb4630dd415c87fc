//! A shared store is a store.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    ByteRange, DirPage, GetResult, Key, KeyCount, KeyPage, ListableStore, MetadataCache, PageRequest, Payload,
    Precondition, Prefix, PutResult, ReadableStore, ReceivingStore, Scan, ScanPage, StoreError, ValueMeta, Version,
    WriteableStore,
};

#[async_trait]
impl<S: ReadableStore + ?Sized> ReadableStore for Arc<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        (**self).get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        (**self).head(key).await
    }

    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        (**self).get_if_match(key, range, version).await
    }

    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        (**self).metadata_cache()
    }
}

#[async_trait]
impl<S: ListableStore + ?Sized> ListableStore for Arc<S> {
    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        (**self).scan(scan).await
    }

    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        (**self).list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        (**self).list_dir(prefix, page).await
    }

    async fn list(&self, page: PageRequest) -> Result<KeyPage, StoreError> {
        (**self).list(page).await
    }
}

#[async_trait]
impl<S: WriteableStore + ?Sized> WriteableStore for Arc<S> {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        (**self).set(key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        (**self).erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        (**self).erase_prefix(prefix).await
    }

    fn receiving(&self) -> Option<&dyn ReceivingStore> {
        (**self).receiving()
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        (**self).check_writable().await
    }
}
