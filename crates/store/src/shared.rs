//! A shared store is a store.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::{
    ByteRange, DirPage, GetResult, Key, KeyPage, ListableStore, PageRequest, Peek, Prefix, ReadableStore, Recall,
    StoreError, ValueMeta, Version,
};

#[async_trait]
impl<S: ReadableStore + ?Sized> ReadableStore for Arc<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        (**self).get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        (**self).head(key).await
    }

    async fn get_at(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        (**self).get_at(key, range, version).await
    }

    fn remembered(&self, key: &Key) -> Peek {
        (**self).remembered(key)
    }

    fn recall(&self) -> Option<Recall<'_>> {
        (**self).recall()
    }

    fn remembers(&self) -> bool {
        (**self).remembers()
    }

    fn note_absent(&self, key: &Key, asked: Instant) {
        (**self).note_absent(key, asked);
    }
}

#[async_trait]
impl<S: ListableStore + ?Sized> ListableStore for Arc<S> {
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
