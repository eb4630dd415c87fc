//! A store that records reads, and simulates concurrent writes.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use zarrd_store::{
    ByteRange, GetResult, Key, MemoryStore, Precondition, ReadableStore, StoreError, StoreWrapper, WriteableStore,
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
impl StoreWrapper for RecordingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.gets.lock().unwrap().push((key.clone(), range));
        let value = self.store.get(key, range).await;
        let write = self.concurrent_writes.lock().unwrap().pop();
        if let Some(write) = write {
            self.store.set(key, write.into(), Precondition::none()).await?;
        }
        value
    }
}
