//! A shared store is a store.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    ByteRange, DirPage, GetResult, Key, KeyPage, ListableStore, MetadataCache, PageRequest, Prefix, ReadableStore,
    Scan, ScanPage, StoreError, ValueMeta, Version,
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
