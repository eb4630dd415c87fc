//! Stores with values of all sizes that were set, replaced, erased and staged, and a model of what they have.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use zarrd_store::{BatchStore, Change, Key, Payload, Precondition, Prefix, TransactionalStore, WriteableStore};
use zarrd_store_local::{IndexKind, LocalStore, Options};

use super::damage::Random;

/// How a store was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Closed,
    /// As after a crash of the process.
    Dropped,
    /// A copy that was made while it was open.
    HotCopy,
}

pub(super) struct Sample {
    pub(super) dir: TempDir,
    pub(super) model: BTreeMap<String, Vec<u8>>,
    kind: IndexKind,
}

impl Sample {
    pub(super) async fn create(kind: IndexKind, ending: Ending, keys: usize) -> Self {
        let mut sample = Self { dir: tempfile::tempdir().unwrap(), model: BTreeMap::new(), kind };
        let mut random = Random::new(keys as u64 + 7);
        let mut store = sample.open().await;
        for part in 0..4 {
            sample.fill(&store, &mut random, keys, part).await;
            if part == 1 {
                // Later parts are of another epoch, over an index that has the earlier ones.
                store.close().await.unwrap();
                store = sample.open().await;
            }
        }
        match ending {
            Ending::Closed => store.close().await.unwrap(),
            Ending::Dropped => {
                drop(store);
                wait_until_free(sample.dir.path());
                // Its threads may still remove files.
                let copied = tempfile::tempdir().unwrap();
                copy(sample.dir.path(), copied.path());
                sample.dir = copied;
            }
            Ending::HotCopy => {
                let copied = tempfile::tempdir().unwrap();
                copy(sample.dir.path(), copied.path());
                store.close().await.unwrap();
                sample.dir = copied;
            }
        }
        sample
    }

    pub(super) async fn open(&self) -> LocalStore {
        LocalStore::open(self.dir.path(), Options::new(self.kind)).await.unwrap()
    }

    /// Sets a quarter of the keys, and replaces and erases some of those before.
    async fn fill(&mut self, store: &LocalStore, random: &mut Random, keys: usize, part: usize) {
        let mut changes = Vec::new();
        for number in 0..keys / 4 {
            let name = format!("lab/array{}/c/{part}/{number}", number % 3);
            changes.push((name, Some(value(random))));
        }
        let before: Vec<String> = self.model.keys().cloned().collect();
        for name in before {
            match random.below(12) {
                0 => changes.push((name, Some(value(random)))),
                1 => changes.push((name, None)),
                _ => {}
            }
        }
        for batch in changes.chunks(40) {
            let mut commit = Vec::new();
            for (name, value) in batch {
                let key = Key::parse(name).unwrap();
                let precondition = Precondition::none();
                commit.push(match value {
                    Some(value) => {
                        let staged = store.stage(&key, Payload::from_bytes(value.clone())).await.unwrap();
                        self.model.insert(name.clone(), value.clone());
                        Change::Set { staged, precondition }
                    }
                    None => {
                        self.model.remove(name);
                        Change::Erase { key, precondition }
                    }
                });
            }
            store.commit(commit).await.unwrap();
        }
        if part == 2 {
            self.erase_and_replace(store).await;
        }
    }

    /// Erases a prefix, sets a key below it again, and makes a large commit.
    async fn erase_and_replace(&mut self, store: &LocalStore) {
        store.erase_prefix(&Prefix::parse("lab/array1/c/0/").unwrap()).await.unwrap();
        self.model.retain(|key, _| !key.starts_with("lab/array1/c/0/"));
        let again = "lab/array1/c/0/again";
        store.set(&Key::parse(again).unwrap(), Payload::from_bytes(vec![9; 300]), Precondition::none()).await.unwrap();
        self.model.insert(again.to_owned(), vec![9; 300]);
        let puts = (0..600).map(|number| {
            let (name, value) = (format!("bulk/{number}"), vec![7; 100]);
            self.model.insert(name.clone(), value.clone());
            Change::Put { key: Key::parse(&name).unwrap(), value: value.into(), precondition: Precondition::none() }
        });
        store.commit(puts.collect()).await.unwrap();
    }
}

/// A value of a random size: most are small, some have files, few have many blocks.
fn value(random: &mut Random) -> Vec<u8> {
    let size = match random.below(40) {
        0..24 => random.below(600),
        24..34 => random.below(4096),
        34..38 => 4097 + random.below(30_000),
        38 => 100_000 + random.below(60_000),
        _ => 300_000,
    };
    let mut bytes = vec![0; size];
    random.fill(&mut bytes);
    bytes
}

/// Waits until a store that was dropped has released its files.
fn wait_until_free(dir: &Path) {
    for name in ["lock", "index/db", "index/index.redb"] {
        let path = dir.join(name);
        // A store has the file of one kind of index.
        if !path.exists() {
            continue;
        }
        let file = fs::File::open(path).unwrap();
        let mut attempts = 0..1000;
        while file.try_lock().is_err() {
            attempts.next().expect("the store is still locked");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

pub(super) fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { waiting.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// All files with their sizes, times and inodes.
pub(super) fn contents(dir: &Path) -> Vec<(PathBuf, u64, i64, i64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let described = files(dir).into_iter().map(|path| {
        let metadata = fs::symlink_metadata(&path).unwrap();
        (path, metadata.len(), metadata.mtime(), metadata.mtime_nsec(), metadata.ino())
    });
    described.collect()
}

/// All files with their bytes.
pub(super) fn bytes(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(dir).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The file of a value.
pub(super) fn file_of(dir: &Path, value: &[u8]) -> PathBuf {
    let mut files = files(&dir.join("values")).into_iter();
    files.find(|file| fs::read(file).unwrap().starts_with(value)).unwrap()
}

pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let mut entries: Vec<PathBuf> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            match fs::copy(&path, &target) {
                // Files of a store that is open may be removed meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => _ = copied.unwrap(),
            }
        }
    }
}
