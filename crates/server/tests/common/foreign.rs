//! Servers of data that other programs own.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use bytes::Bytes;
use zarrd_server::{App, Settings, router};
use zarrd_store::{
    ByteRange, GetResult, Guarantees, Key, Keyed, Listing, MemoryStore, Operation, Precondition, ReadableStore,
    ServedStore, StoreError, StoreWrapper, ValueMeta, WriteableStore,
};

use super::TestServer;

/// The data of other programs, as a store finds them.
#[derive(Clone)]
pub struct ForeignStore {
    memory: MemoryStore,
    listing: Listing,
    /// The values that other programs set after looks at keys, in their order.
    changes: Arc<Mutex<VecDeque<(Key, Bytes)>>>,
    /// True if each read finds that the value changed meanwhile.
    restless: bool,
}

impl ForeignStore {
    /// Data with listings.
    pub fn new(memory: MemoryStore) -> Self {
        Self { memory, listing: Listing::Sorted, changes: Arc::default(), restless: false }
    }

    /// Data without listings.
    pub fn unlisted(memory: MemoryStore) -> Self {
        Self { listing: Listing::None, ..Self::new(memory) }
    }

    /// Data that change whenever they are read.
    pub fn restless(memory: MemoryStore) -> Self {
        Self { restless: true, ..Self::new(memory) }
    }

    /// Sets a value after the next look at its key; after that, the next one.
    pub fn change_after_look(&self, key: &str, value: Vec<u8>) {
        self.changes.lock().unwrap().push_back((Key::parse(key).unwrap(), value.into()));
    }

    /// A server of the data, and these data as other programs see them.
    pub fn serve(self) -> TestServer {
        let store = Arc::new(self.memory.clone());
        let guarantees = Guarantees { listing: self.listing, ..Guarantees::READ_ONLY };
        let served = ServedStore::read_only(Arc::new(Keyed::new(self, guarantees)));
        TestServer { router: router(App::new(served, Settings::default())), store }
    }
}

#[async_trait]
impl StoreWrapper for ForeignStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.memory
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation {
            Operation::ListPrefix(_) | Operation::ListDir(_) if self.listing == Listing::None => {
                Err(StoreError::Unsupported { what: "listings" })
            }
            _ => Ok(()),
        }
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        let found = ReadableStore::head(&self.memory, key).await?;
        let change = self.changes.lock().unwrap().pop_front_if(|(changed, _)| changed == key);
        if let Some((key, value)) = change {
            self.memory.set(&key, value.into(), Precondition::none()).await?;
        }
        Ok(found)
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        match ReadableStore::get(&self.memory, key, range).await? {
            Some(_) if self.restless => Err(StoreError::Changed { key: key.clone() }),
            found => Ok(found),
        }
    }
}
