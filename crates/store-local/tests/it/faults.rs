//! The embedded store on a slow or failing disk, with each index.

use tempfile::TempDir;
use zarrd_store_local::{IndexKind, LocalStore, Options, SyncFault};
use zarrd_store_testkit::{Factory, FaultInjection, Reopen};

struct Local(IndexKind);

impl Factory for Local {
    type Store = LocalStore;
    type Fixture = (TempDir, SyncFault);

    async fn create(&self) -> (LocalStore, (TempDir, SyncFault)) {
        self.open(tempfile::tempdir().unwrap()).await
    }
}

impl Local {
    async fn open(&self, dir: TempDir) -> (LocalStore, (TempDir, SyncFault)) {
        let fault = SyncFault::default();
        let options = Options { sync_fault: fault.clone(), ..Options::new(self.0) };
        (LocalStore::open(dir.path(), options).await.unwrap(), (dir, fault))
    }
}

impl Reopen for Local {
    async fn reopen(&self, store: LocalStore, (dir, _): (TempDir, SyncFault)) -> (LocalStore, (TempDir, SyncFault)) {
        // Closing a read-only store fails.
        let _ = store.close().await;
        drop(store);
        self.open(dir).await
    }
}

impl FaultInjection for Local {
    fn pause_syncs(&self, (_, fault): &(TempDir, SyncFault)) {
        fault.pause();
    }

    fn allow_one_sync(&self, (_, fault): &(TempDir, SyncFault)) {
        fault.allow_one();
    }

    fn resume_syncs(&self, (_, fault): &(TempDir, SyncFault)) {
        fault.resume();
    }

    fn fail_syncs(&self, (_, fault): &(TempDir, SyncFault)) {
        fault.fail();
    }
}

mod sled {
    use super::{IndexKind, Local};

    zarrd_store_testkit::conformance_tests!(Local(IndexKind::Sled) => faulty);
}

mod redb {
    use super::{IndexKind, Local};

    zarrd_store_testkit::conformance_tests!(Local(IndexKind::Redb) => faulty);
}
