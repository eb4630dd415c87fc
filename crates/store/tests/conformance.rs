//! The store in memory passes the suite, and so does one whose commits are hidden.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use bytes::Bytes;
use store::{
    Guarantees, Key, Keyed, MemoryStore, Precondition, SnapshotStore, WriteableStore,
    conformance::{Factory, Foreign, ForeignData},
};

struct Memory;

impl Factory for Memory {
    type Store = MemoryStore;
    type Fixture = ();

    async fn create(&self) -> (MemoryStore, ()) {
        (MemoryStore::new(), ())
    }
}

/// A store in memory that others change.
struct Changing {
    memory: MemoryStore,
    store: Arc<Keyed<MemoryStore>>,
}

impl ForeignData for Changing {
    async fn create() -> Self {
        let memory = MemoryStore::new();
        Self { store: Arc::new(Keyed::new(memory.clone(), Guarantees::READ_ONLY)), memory }
    }

    fn store(&self) -> Arc<dyn SnapshotStore> {
        self.store.clone()
    }

    async fn put(&self, key: &Key, value: Bytes) {
        self.memory.set(key, value.into(), Precondition::none()).await.expect("a set");
    }

    async fn remove(&self, key: &Key) {
        assert!(self.memory.erase(key, Precondition::none()).await.expect("an erase"), "{key} has no value");
    }
}

store::conformance_tests!(Memory => readable_writeable_listable, snapshots, transactional);

mod keyed {
    use super::*;

    store::conformance_tests!(Foreign::<Changing>::new() => readable_writeable_listable, snapshots);
}
