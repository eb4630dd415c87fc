//! The store in memory passes the suite, and so do one whose commits are hidden and one that caches what it reads.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use zarrd_store::{
    CachedStore, Guarantees, Key, Keyed, MemoryStore, PieceStore, Pieces, Precondition, Recheck, SnapshotStore,
    WriteableStore,
};
use zarrd_store_testkit::{Factory, Foreign, ForeignData};

use crate::pieces::MemoryPieces;

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

/// A store in memory that others change, and that caches what it reads.
struct Remembering {
    memory: MemoryStore,
    store: Arc<Keyed<CachedStore<MemoryStore>>>,
}

impl ForeignData for Remembering {
    async fn create() -> Self {
        let memory = MemoryStore::new();
        let rechecked = CachedStore::new(memory.clone(), Recheck::After(Duration::from_millis(1)));
        let guarantees = rechecked.guarantees(Guarantees::READ_ONLY);
        Self { store: Arc::new(Keyed::new(rechecked, guarantees)), memory }
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

/// A store in memory that others change, and that is read through pieces.
struct Pieced {
    memory: MemoryStore,
    store: Arc<Keyed<PieceStore<CachedStore<MemoryStore>>>>,
}

impl ForeignData for Pieced {
    async fn create() -> Self {
        let memory = MemoryStore::new();
        let rechecked = CachedStore::new(memory.clone(), Recheck::After(Duration::from_millis(1)));
        let guarantees = rechecked.guarantees(Guarantees::READ_ONLY);
        let pieces = Pieces::new(Arc::new(MemoryPieces::default())).of_store("memory");
        Self { store: Arc::new(Keyed::new(PieceStore::new(rechecked, pieces), guarantees)), memory }
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

zarrd_store_testkit::conformance_tests!(Memory => readable_writeable_listable, snapshots, transactional);

mod keyed {
    use super::*;

    zarrd_store_testkit::conformance_tests!(Foreign::<Changing>::new() => readable_writeable_listable, snapshots);
}

mod caching {
    use super::*;

    zarrd_store_testkit::conformance_tests!(Foreign::<Remembering>::new() => readable_writeable_listable, snapshots);
}

mod pieced {
    use super::*;

    zarrd_store_testkit::conformance_tests!(Foreign::<Pieced>::new() => readable_writeable_listable, snapshots);
}
