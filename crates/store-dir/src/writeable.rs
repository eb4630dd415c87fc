//! The store trait of changes.

use async_trait::async_trait;
use zarrd_store::{
    Key, KeyCount, Payload, Precondition, Prefix, PutResult, ReceivingStore, Reception, StoreError, WriteableStore,
};

use crate::{
    change::{check_writable, erase, erase_prefix, receive, set},
    store::DirStore,
};

/// Changes files, if the store was opened for that ([`Options::writes`](crate::Options::writes)).
#[async_trait]
impl WriteableStore for DirStore {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        set(&self.inner, key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        erase(&self.inner, key, precondition).await
    }

    /// Erases the keys one by one: documents first, so that what is interrupted leaves no array without its chunks.
    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        erase_prefix(&self.inner, prefix).await
    }

    fn receiving(&self) -> Option<&dyn ReceivingStore> {
        Some(self)
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.inner.run(check_writable).await
    }
}

/// Receives values in temporary files in the directories of their keys, a few hundred at a time.
#[async_trait]
impl ReceivingStore for DirStore {
    async fn receive(&self, key: &Key, payload: Payload) -> Result<Reception, StoreError> {
        receive(&self.inner, key, payload).await
    }
}
