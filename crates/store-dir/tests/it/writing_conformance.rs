//! The conformance suite for directories that the store writes itself, on the file systems of this machine.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;
use zarrd_store::Guarantees;
use zarrd_store_dir::{DirStore, Durability, OpenError, Options, WriteOptions};
use zarrd_store_testkit::{Factory, Reopen};

/// The time for which a store that was closed may still have work under way.
const CLOSING: Duration = Duration::from_secs(20);

/// Creates stores in directories of a file system.
struct Written {
    /// Where directories are made.
    place: fn() -> Place,
    durability: Durability,
}

/// A directory that lives as long as a store.
struct Place {
    path: PathBuf,
    /// A mount that ends first.
    _overlay: Option<Overlay>,
    _dir: TempDir,
}

/// A mounted overlay of two empty directories.
struct Overlay(PathBuf);

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

impl Place {
    fn in_directory(parent: &str) -> Self {
        let dir = tempfile::tempdir_in(parent).unwrap();
        Self { path: dir.path().to_owned(), _overlay: None, _dir: dir }
    }

    fn ext4() -> Self {
        Self::in_directory(std::env::temp_dir().to_str().unwrap())
    }

    fn tmpfs() -> Self {
        Self::in_directory("/dev/shm")
    }

    /// An overlay, or a directory without one where none can be mounted.
    fn overlay() -> Self {
        let mut place = Self::tmpfs();
        let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| place.path.join(name));
        for directory in [&lower, &upper, &work, &merged] {
            std::fs::create_dir(directory).unwrap();
        }
        let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let mount = Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(&merged).status();
        if mount.is_ok_and(|status| status.success()) {
            place.path.clone_from(&merged);
            place._overlay = Some(Overlay(merged));
        }
        place
    }
}

async fn open(path: &Path, durability: Durability) -> DirStore {
    let deadline = std::time::Instant::now() + CLOSING;
    loop {
        let options =
            Options::new(format!("dir:{}", path.display())).writes(WriteOptions::default().durability(durability));
        match DirStore::open(path, options).await {
            Err(OpenError::Locked { .. }) if std::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            opened => return opened.unwrap(),
        }
    }
}

impl Factory for Written {
    type Store = DirStore;
    type Fixture = Place;

    async fn create(&self) -> (DirStore, Place) {
        let place = (self.place)();
        (open(&place.path, self.durability).await, place)
    }

    fn guarantees(&self, store: &DirStore) -> Guarantees {
        store.guarantees()
    }
}

impl Reopen for Written {
    async fn reopen(&self, store: DirStore, place: Place) -> (DirStore, Place) {
        drop(store);
        (open(&place.path, self.durability).await, place)
    }
}

mod ext4 {
    use super::*;

    zarrd_store_testkit::conformance_tests!(
        Written { place: Place::ext4, durability: Durability::Synced } => readable_writeable_listable, persistent
    );
}

mod tmpfs {
    use super::*;

    zarrd_store_testkit::conformance_tests!(
        Written { place: Place::tmpfs, durability: Durability::Unsynced } => readable_writeable_listable, persistent
    );
}

mod overlay {
    use super::*;

    zarrd_store_testkit::conformance_tests!(
        Written { place: Place::overlay, durability: Durability::Synced } => readable_writeable_listable, persistent
    );
}
