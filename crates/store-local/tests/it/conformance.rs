//! The conformance suite for the embedded store, with each index.

use std::sync::Arc;

use tempfile::TempDir;
use zarrd_store::{Key, KeySource, Precondition, SnapshotStore, StoreError, WriteableStore};
use zarrd_store_local::{IndexKind, LocalStore, Options};
use zarrd_store_testkit::{Factory, Reopen};

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

/// Keys with a common prefix, and others.
struct Listed(Vec<Key>);

impl KeySource for Listed {
    fn common_prefix(&self) -> &str {
        "a/b"
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        self.0.iter().cloned().for_each(visit);
    }
}

#[tokio::test]
async fn snapshot_of_listed_keys_equals_that_of_a_slice() {
    let (store, _dir) = Local(IndexKind::Sled).create().await;
    let key = |text: &str| Key::parse(text).unwrap();
    for text in ["a/b", "a/b/c", "a/bc", "a/c", "b"] {
        store.set(&key(text), text.as_bytes().to_vec().into(), Precondition::none()).await.unwrap();
    }
    let keys: Vec<Key> = ["a/b", "a/b/c", "a/bc", "a/bd", "b", "c"].map(key).into();
    let [slice, listed] =
        [store.snapshot(&keys).await.unwrap(), store.snapshot_of(Arc::new(Listed(keys.clone()))).await.unwrap()];
    for key in &keys {
        assert_eq!(slice.cached(key).unwrap(), listed.cached(key).unwrap(), "{key}");
        let bytes = match listed.get(key, None).await.unwrap() {
            Some(value) => Some(value.bytes().await.unwrap()),
            None => None,
        };
        let expected = (!["a/bd", "c"].contains(&key.as_str())).then(|| key.as_str().as_bytes());
        assert_eq!(bytes.as_deref(), expected, "{key}");
    }
    for text in ["a/c", "a/bcd"] {
        assert!(matches!(listed.cached(&key(text)), Err(StoreError::NotInSnapshot { .. })), "{text}");
    }
}

#[tokio::test]
async fn waits_for_the_committer_are_timed() {
    let (store, _dir) = Local(IndexKind::Sled).create().await;
    let count = |name| store.queues().into_iter().find(|(queue, _)| *queue == name).unwrap().1.totals().count;
    let before = count("committer");
    for number in 0..3 {
        store.set(&Key::parse(&format!("a/{number}")).unwrap(), vec![7].into(), Precondition::none()).await.unwrap();
    }
    assert_eq!((count("committer") - before, count("commit_buffer")), (3, 0));
}

mod sled {
    use super::{IndexKind, Local};

    zarrd_store_testkit::conformance_tests!(Local(IndexKind::Sled) => readable_writeable_listable, snapshots, transactional, persistent, persistent_transactional);
}

mod redb {
    use super::{IndexKind, Local};

    zarrd_store_testkit::conformance_tests!(Local(IndexKind::Redb) => readable_writeable_listable, snapshots, transactional, persistent, persistent_transactional);
}
