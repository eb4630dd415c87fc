//! Stores that are being filled do not open until they are complete.

use std::path::Path;

use zarrd_store::{Key, Precondition, ReadableStore, WriteableStore};
use zarrd_store_local::{Access, IndexKind, LocalStore, OpenError, Options, Purpose};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];

async fn open(dir: &Path, kind: IndexKind, purpose: Purpose) -> Result<LocalStore, OpenError> {
    LocalStore::open(dir, Options { purpose, ..Options::new(kind) }).await
}

#[tokio::test]
async fn an_incomplete_store_does_not_open() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let key = Key::parse("a").unwrap();
        let store = open(dir.path(), kind, Purpose::Fill(None)).await.unwrap();
        store.set(&key, "1".into(), Precondition::none()).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        for purpose in [Purpose::Use, Purpose::Fill(None)] {
            let rejected = open(dir.path(), kind, purpose).await;
            assert!(
                matches!(&rejected, Err(OpenError::Incomplete { dir: named }) if named == dir.path()),
                "{rejected:?}"
            );
        }

        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind, Purpose::Fill(None)).await.unwrap();
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
    let store = open(dir.path(), IndexKind::Sled, Purpose::Fill(None)).await.unwrap();
    let busy = open(dir.path(), IndexKind::Sled, Purpose::Use).await;
    assert!(matches!(busy, Err(OpenError::Locked { .. })), "{busy:?}");
    store.complete().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let rejected = open(dir.path(), IndexKind::Sled, Purpose::Fill(None)).await;
    assert!(matches!(rejected, Err(OpenError::AlreadyExists { .. })), "{rejected:?}");
    open(dir.path(), IndexKind::Sled, Purpose::Use).await.unwrap();
}

#[tokio::test]
async fn filling_resumes_from_the_same_state_of_the_same_store() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let (source, other, target) = (dir.path().join("source"), dir.path().join("other"), dir.path().join("target"));
        let key = Key::parse("a").unwrap();
        for path in [&source, &other] {
            let store = open(path, kind, Purpose::Use).await.unwrap();
            store.set(&key, "1".into(), Precondition::none()).await.unwrap();
            store.close().await.unwrap();
        }
        let state = async |path: &Path, access| {
            let options = Options { access, ..Options::new(kind) };
            let store = LocalStore::open(path, options).await.unwrap();
            let state = store.state().unwrap();
            store.close().await.unwrap();
            state
        };
        let of_source = state(&source, Access::ReadOnly).await;
        assert_eq!(state(&source, Access::ReadOnly).await, of_source);
        for purpose in [Purpose::Fill(Some(of_source)), Purpose::Resume(of_source), Purpose::Resume(of_source)] {
            let store = open(&target, kind, purpose).await.unwrap();
            store.set(&key, "1".into(), Precondition::none()).await.unwrap();
            store.close().await.unwrap();
        }
        for changed in [state(&other, Access::ReadOnly).await, state(&source, Access::ReadWrite).await] {
            let rejected = open(&target, kind, Purpose::Resume(changed)).await;
            assert!(
                matches!(&rejected, Err(OpenError::OtherSource { dir: named }) if named == &target),
                "{rejected:?}"
            );
        }
        std::fs::write(target.join("incomplete"), "store 00").unwrap();
        let rejected = open(&target, kind, Purpose::Resume(of_source)).await;
        assert!(matches!(rejected, Err(OpenError::OtherSource { .. })), "{rejected:?}");
        let rejected = open(&other, kind, Purpose::Resume(of_source)).await;
        assert!(matches!(rejected, Err(OpenError::AlreadyExists { .. })), "{rejected:?}");
    }
}
