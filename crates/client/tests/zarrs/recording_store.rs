//! A store that records reads, and simulates concurrent writes.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use store::{
    ByteRange, DirPage, GetResult, Key, KeyCount, KeyPage, ListableStore, MemoryStore, PageRequest, Payload,
    Precondition, Prefix, PutResult, ReadableStore, StoreError, ValueMeta, WriteableStore,
};

/// A key, and the requested range of its value.
type Get = (Key, Option<ByteRange>);

/// A store that records reads, and can simulate writes of another client after each read.
#[derive(Clone)]
pub(crate) struct RecordingStore {
    store: MemoryStore,
    gets: Arc<Mutex<Vec<Get>>>,
    concurrent_writes: Arc<Mutex<Vec<&'static str>>>,
}

impl RecordingStore {
    pub(crate) fn new() -> Self {
        Self { store: MemoryStore::new(), gets: Arc::default(), concurrent_writes: Arc::default() }
    }

    /// Takes the recorded reads.
    pub(crate) fn take_gets(&self) -> Vec<Get> {
        std::mem::take(&mut self.gets.lock().unwrap())
    }

    /// Writes the next of these values after each of the next reads.
    pub(crate) fn write_after_reads(&self, values: &[&'static str]) {
        self.concurrent_writes.lock().unwrap().extend(values.iter().rev());
    }

    /// The number of values that have not been written.
    pub(crate) fn pending_writes(&self) -> usize {
        self.concurrent_writes.lock().unwrap().len()
    }
}

#[async_trait]
impl ReadableStore for RecordingStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.gets.lock().unwrap().push((key.clone(), range));
        let value = self.store.get(key, range).await;
        let write = self.concurrent_writes.lock().unwrap().pop();
        if let Some(write) = write {
            self.store.set(key, write.into(), Precondition::none()).await?;
        }
        value
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.store.head(key).await
    }
}

#[async_trait]
impl WriteableStore for RecordingStore {
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
impl ListableStore for RecordingStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.store.list_dir(prefix, page).await
    }
}
