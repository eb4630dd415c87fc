//! The conformance suite for the embedded store, with each index.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use store::conformance::{Factory, Reopen};
use store_local::{IndexKind, LocalStore, Options};
use tempfile::TempDir;

struct Local(IndexKind);

impl Local {
    async fn open(&self, dir: &TempDir) -> LocalStore {
        LocalStore::open(dir.path(), Options::new(self.0)).await.unwrap()
    }
}

impl Factory for Local {
    type Store = LocalStore;
    type Fixture = TempDir;

    async fn create(&self) -> (LocalStore, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (self.open(&dir).await, dir)
    }
}

impl Reopen for Local {
    async fn reopen(&self, store: LocalStore, dir: TempDir) -> (LocalStore, TempDir) {
        store.close().await.unwrap();
        drop(store);
        (self.open(&dir).await, dir)
    }
}

mod sled {
    use super::{IndexKind, Local};

    store::conformance_tests!(Local(IndexKind::Sled) => readable_writeable_listable, transactional, persistent, persistent_transactional);
}

mod redb {
    use super::{IndexKind, Local};

    store::conformance_tests!(Local(IndexKind::Redb) => readable_writeable_listable, transactional, persistent, persistent_transactional);
}
