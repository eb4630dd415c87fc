//! The conformance suite for a directory that a program changes as the atomic writers do: with temporary files and
//! renames.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use bytes::Bytes;
use tempfile::TempDir;
use zarrd_store::{Key, Keyed, SnapshotStore};
use zarrd_store_dir::{DirStore, Options};
use zarrd_store_testkit::{Foreign, ForeignData};

struct Directory {
    dir: TempDir,
    store: Arc<Keyed<DirStore>>,
    written: AtomicU64,
}

impl Directory {
    fn path(&self, key: &Key) -> PathBuf {
        self.dir.path().join(key.as_str())
    }
}

impl ForeignData for Directory {
    async fn create() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("dir:{}", dir.path().display());
        let store = DirStore::open(dir.path(), Options::new(name)).await.unwrap();
        let guarantees = store.guarantees();
        Self { dir, store: Arc::new(Keyed::new(store, guarantees)), written: AtomicU64::new(0) }
    }

    fn store(&self) -> Arc<dyn SnapshotStore> {
        self.store.clone()
    }

    async fn put(&self, key: &Key, value: Bytes) {
        let path = self.path(key);
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        zarrd_executor::spawn_blocking(move || {
            loop {
                match put(&path, number, &value) {
                    // The parent was removed in between, since it was empty.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    result => return result.unwrap(),
                }
            }
        })
        .await
        .unwrap();
    }

    async fn remove(&self, key: &Key) {
        let path = self.path(key);
        // Another remover may have been faster.
        if fs::remove_file(&path).is_err() {
            return;
        }
        for parent in path.ancestors().skip(1).take_while(|parent| *parent != self.dir.path()) {
            if fs::remove_dir(parent).is_err() {
                return;
            }
        }
    }
}

fn put(path: &Path, number: u64, value: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap();
    fs::create_dir_all(parent)?;
    let temporary = parent.join(format!("{number}.partial"));
    fs::write(&temporary, value)?;
    // As a writer that syncs its file: with times that differ, the store waits for less time.
    thread::sleep(Duration::from_millis(12));
    fs::rename(&temporary, path)
}

zarrd_store_testkit::conformance_tests!(Foreign::<Directory>::new() => readable_writeable_listable, snapshots);
