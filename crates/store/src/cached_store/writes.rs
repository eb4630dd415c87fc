//! Changes through the cache: what was cached of the changed keys is not used any more.

use async_trait::async_trait;
use tokio::time::Instant;

use super::{CachedStore, ValueCache};
use crate::{
    Key, KeyCount, Payload, Precondition, Prefix, PutResult, ReadableStore, ReceivingStore, StoreError, WriteableStore,
};

/// A change of a key, or of all below a prefix, that is being made. Once it is dropped, nothing that was requested before
/// is used any more: not after a failure either, since the key may have another value than was thought.
struct RunningChange<'c> {
    cache: &'c ValueCache,
    key: Option<&'c Key>,
}

impl Drop for RunningChange<'_> {
    fn drop(&mut self) {
        self.cache.changes.record(self.key, Instant::now());
        if let Some(key) = self.key {
            self.cache.entries.remove(key);
        }
    }
}

#[async_trait]
impl<S: ReadableStore + WriteableStore> WriteableStore for CachedStore<S> {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        let _running = RunningChange { cache: &self.cache, key: Some(key) };
        self.store.set(key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let _running = RunningChange { cache: &self.cache, key: Some(key) };
        self.store.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let _running = RunningChange { cache: &self.cache, key: None };
        self.store.erase_prefix(prefix).await
    }

    fn receiving(&self) -> Option<&dyn ReceivingStore> {
        self.store.receiving()
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.store.check_writable().await
    }
}
