//! A store that is read through the cache passes the suite.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tempfile::TempDir;
use zarrd_store::{
    CachedStore, Guarantees, Key, Keyed, MemoryStore, PieceStore, Pieces, Precondition, Recheck, SnapshotStore,
    WriteableStore,
};
use zarrd_store_testkit::{Foreign, ForeignData};

use crate::common::open;

/// A store in memory that others change, and whose pieces are cached on disk.
struct OnDisk {
    memory: MemoryStore,
    store: Arc<Keyed<PieceStore<CachedStore<MemoryStore>>>>,
    _dir: TempDir,
}

impl ForeignData for OnDisk {
    async fn create() -> Self {
        let (dir, memory) = (tempfile::tempdir().unwrap(), MemoryStore::new());
        let rechecked = CachedStore::new(memory.clone(), Recheck::After(Duration::from_millis(1)));
        let guarantees = rechecked.guarantees(Guarantees::READ_ONLY);
        let pieces = Pieces::new(Arc::new(open(dir.path()).await)).of_store("memory");
        let store = Arc::new(Keyed::new(PieceStore::new(rechecked, pieces), guarantees));
        Self { memory, store, _dir: dir }
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

zarrd_store_testkit::conformance_tests!(Foreign::<OnDisk>::new() => readable_writeable_listable, snapshots);
