//! A store that fails.

use std::sync::Arc;

use async_trait::async_trait;
use server::Settings;
use store::{
    ByteRange, ByteStream, Change, ChangeOutcome, DirPage, GetResult, Intent, Key, KeyCount, KeyPage, ListableStore,
    PageRequest, Payload, Precondition, Prefix, PutResult, ReadableStore, Snapshot, Staged, StoreError,
    TransactionalStore, ValueMeta, Watermark, WriteableStore,
};

use super::Site;

/// A store whose every operation fails in one way.
pub struct Failing(pub fn(&Key) -> StoreError);

pub fn some_key() -> Key {
    Key::parse("some/key").expect("a key")
}

#[async_trait]
impl ReadableStore for Failing {
    async fn get(&self, key: &Key, _: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        Err((self.0)(key))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Err((self.0)(key))
    }
}

#[async_trait]
impl WriteableStore for Failing {
    async fn set(&self, key: &Key, _: Payload, _: Precondition) -> Result<PutResult, StoreError> {
        Err((self.0)(key))
    }

    async fn erase(&self, key: &Key, _: Precondition) -> Result<bool, StoreError> {
        Err((self.0)(key))
    }

    async fn erase_prefix(&self, _: &Prefix) -> Result<KeyCount, StoreError> {
        Err((self.0)(&some_key()))
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        Err((self.0)(&some_key()))
    }
}

#[async_trait]
impl ListableStore for Failing {
    async fn list_prefix(&self, _: &Prefix, _: PageRequest) -> Result<KeyPage, StoreError> {
        Err((self.0)(&some_key()))
    }

    async fn list_dir(&self, _: &Prefix, _: PageRequest) -> Result<DirPage, StoreError> {
        Err((self.0)(&some_key()))
    }
}

#[async_trait]
impl TransactionalStore for Failing {
    async fn stage(&self, key: &Key, _: Payload) -> Result<Staged, StoreError> {
        Err((self.0)(key))
    }

    async fn read_staged(&self, staged: &Staged, _: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        Err((self.0)(staged.key()))
    }

    async fn commit(&self, _: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        Err((self.0)(&some_key()))
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        Err((self.0)(&some_key()))
    }

    async fn watermark(&self) -> Result<Watermark, StoreError> {
        Err((self.0)(&some_key()))
    }

    async fn snapshot(&self, _: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        Err((self.0)(&some_key()))
    }
}

/// A site over such a store.
pub fn failing(how: fn(&Key) -> StoreError) -> Site {
    Site::over(Arc::new(Failing(how)), Settings::default())
}
