//! Stores that are being filled do not open until they are complete.

use std::path::Path;

use zarrd_store::{Key, Precondition, ReadableStore, WriteableStore};
use zarrd_store_local::{IndexKind, LocalStore, OpenError, Options, Purpose};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];

async fn open(dir: &Path, kind: IndexKind, purpose: Purpose) -> Result<LocalStore, OpenError> {
    LocalStore::open(dir, Options { purpose, ..Options::new(kind) }).await
}

#[tokio::test]
async fn an_incomplete_store_does_not_open() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::parse("a").unwrap();
        let store = open(dir.path(), kind, Purpose::Fill).await.unwrap();
        store.set(&key, "1".into(), Precondition::none()).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        for purpose in [Purpose::Use, Purpose::Fill] {
            let rejected = open(dir.path(), kind, purpose).await;
            assert!(
                matches!(&rejected, Err(OpenError::Incomplete { dir: named }) if named == dir.path()),
                "{rejected:?}"
            );
        }

        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind, Purpose::Fill).await.unwrap();
        store.set(&key, "1".into(), Precondition::none()).await.unwrap();
        store.complete().await.unwrap();
        store.complete().await.unwrap();
        store.close().await.unwrap();
        drop(store);
        let store = open(dir.path(), kind, Purpose::Use).await.unwrap();
        assert!(store.head(&key).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn filling_requires_a_new_store_and_locks_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled, Purpose::Fill).await.unwrap();
    let busy = open(dir.path(), IndexKind::Sled, Purpose::Use).await;
    assert!(matches!(busy, Err(OpenError::Locked { .. })), "{busy:?}");
    store.complete().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let rejected = open(dir.path(), IndexKind::Sled, Purpose::Fill).await;
    assert!(matches!(rejected, Err(OpenError::AlreadyExists { .. })), "{rejected:?}");
    open(dir.path(), IndexKind::Sled, Purpose::Use).await.unwrap();
}
