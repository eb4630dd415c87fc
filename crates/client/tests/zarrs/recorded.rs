//! A store that remembers what was read.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use store::{
    ByteRange, DirPage, GetResult, Key, KeyCount, KeyPage, ListableStore, MemoryStore, PageRequest, Payload,
    Precondition, Prefix, PutResult, ReadableStore, StoreError, ValueMeta, WriteableStore,
};

/// A key, and the range of its value that was asked for.
type Get = (Key, Option<ByteRange>);

/// A store that remembers what was read, and can be told to be written by somebody else.
#[derive(Clone)]
pub(crate) struct Recorded {
    store: MemoryStore,
    gets: Arc<Mutex<Vec<Get>>>,
    others: Arc<Mutex<Vec<&'static str>>>,
}

impl Recorded {
    pub(crate) fn new() -> Self {
        Self { store: MemoryStore::new(), gets: Arc::default(), others: Arc::default() }
    }

    /// What was read since this was called last.
    pub(crate) fn gets(&self) -> Vec<Get> {
        std::mem::take(&mut self.gets.lock().unwrap())
    }

    /// After each of the next reads, somebody else sets the key to the next of these values.
    pub(crate) fn disturb(&self, values: &[&'static str]) {
        self.others.lock().unwrap().extend(values.iter().rev());
    }

    /// How many of them are left.
    pub(crate) fn undisturbed(&self) -> usize {
        self.others.lock().unwrap().len()
    }
}

#[async_trait]
impl ReadableStore for Recorded {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.gets.lock().unwrap().push((key.clone(), range));
        let found = self.store.get(key, range).await;
        let other = self.others.lock().unwrap().pop();
        if let Some(other) = other {
            self.store.set(key, other.into(), Precondition::none()).await?;
        }
        found
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.store.head(key).await
    }
}

#[async_trait]
impl WriteableStore for Recorded {
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.store.set(key, content, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.store.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.store.erase_prefix(prefix).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.store.check_writable().await
    }
}

#[async_trait]
impl ListableStore for Recorded {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.store.list_dir(prefix, page).await
    }
}
