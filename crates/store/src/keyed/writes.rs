//! Changes of stores that are written key by key.

use async_trait::async_trait;
use futures::StreamExt;

use super::{Keyed, apply, spool::Spooled};
use crate::{
    Batch, BatchStore, ByteRange, ByteStream, ChangeOutcome, Key, KeyCount, ListableStore, Payload, Precondition,
    Prefix, PutResult, ReadableStore, Staged, StoreError, Version, WriteableStore, Writes,
    batch::{ConditionalChange, check_condition},
    stage_copy_of_parts,
};

impl<S> Keyed<S> {
    fn check_writes(&self) -> Result<(), StoreError> {
        match self.guarantees.writes {
            Writes::None => Err(StoreError::Unsupported { what: "changes" }),
            Writes::Key | Writes::Commit => Ok(()),
        }
    }

    /// A value that was staged for this store.
    pub(super) fn spooled(&self, staged: &Staged) -> Result<std::sync::Arc<Spooled>, StoreError> {
        let value = staged.data::<Spooled>()?;
        match self.spool.owns(&value) {
            true => Ok(value),
            false => Err(StoreError::InvalidStaged),
        }
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore + WriteableStore + 'static> WriteableStore for Keyed<S> {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.check_writes()?;
        check_condition(&self.guarantees, &precondition, ConditionalChange::Set)?;
        self.store.set(key, payload, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.check_writes()?;
        check_condition(&self.guarantees, &precondition, ConditionalChange::Erase)?;
        self.store.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.check_writes()?;
        self.store.erase_prefix(prefix).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.check_writes()?;
        self.store.check_writable().await
    }
}

#[async_trait]
impl<S: ReadableStore + ListableStore + WriteableStore + 'static> BatchStore for Keyed<S> {
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError> {
        self.check_writes()?;
        let attributes = payload.attributes.clone();
        let value = self.spool.receive(self.store.receiving(), key, payload).await?;
        Ok(Staged::new(key.clone(), value.len(), attributes, value))
    }

    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError> {
        stage_copy_of_parts(self, key, parts).await
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        let value = self.spooled(staged)?;
        let range = range.map_or(Some(0..value.len()), |range| range.resolve(value.len()));
        Ok(range.map_or_else(|| futures::stream::empty().boxed(), |range| value.stream(range)))
    }

    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.check_writes()?;
        apply::apply(self, batch).await
    }
}
