//! Values that are received before they are set.

use std::sync::Arc;

use futures::TryStreamExt;
use zarrd_store::{
    Batch, BatchStore, Change, ChangeOutcome, Conditions, Guarantees, Keyed, Payload, Precondition, ReadableStore,
    ReceivedValue, Reception, StoreError, WriteableStore, Writes,
};
use zarrd_store_dir::DirStore;

use crate::{
    common::{Fixture, within},
    writing::{assert_becomes, key, names, set, writing},
};

const FOLDER: Guarantees = Guarantees {
    writes: Writes::Key,
    conditions: Conditions::ThisProcess,
    conditional_erase: true,
    ..Guarantees::READ_ONLY
};

async fn receive(store: &DirStore, at: &str, value: Vec<u8>) -> Arc<dyn ReceivedValue> {
    let receiving = WriteableStore::receiving(store).unwrap();
    match within(receiving.receive(&key(at), value.into())).await.unwrap() {
        Reception::Received(value) => value,
        Reception::Full(_) => panic!("no room for {at}"),
    }
}

async fn value(store: &DirStore, at: &str) -> Option<Vec<u8>> {
    let found = within(store.get(&key(at), None)).await.unwrap()?;
    Some(found.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn received_value_is_seen_once_it_is_set_and_moves_no_byte() {
    let Fixture { dir, store } = Fixture::with(writing()).await;
    let received = receive(&store, "a/b/c", vec![7; 100_000]).await;
    assert_eq!((value(&store, "a/b/c").await, received.size()), (None, 100_000));
    let [_, _, file] = &names(dir.path())[..] else { panic!("{:?}", names(dir.path())) };
    assert!(file.starts_with("a/b/.zarrd-"), "{file}");
    let inode = |path: &str| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(dir.path().join(path)).unwrap());
    let before = inode(file);
    let read: Vec<_> = Arc::clone(&received).read(99_998..100_005).try_collect().await.unwrap();
    assert_eq!(read.concat(), [7, 7]);
    let put = Payload::of_received(Arc::clone(&received));
    let done = within(store.set(&key("a/b/c"), put, Precondition::absent())).await.unwrap();
    assert!(!done.replaced);
    assert_eq!((names(dir.path()), inode("a/b/c")), (vec!["a/".into(), "a/b/".into(), "a/b/c".into()], before));
    assert_eq!(value(&store, "a/b/c").await, Some(vec![7; 100_000]));
    let again = within(store.set(&key("a/b/c"), Payload::of_received(received), Precondition::none())).await;
    assert!(matches!(again, Err(StoreError::InvalidStaged)), "{again:?}");
}

#[tokio::test]
async fn received_value_that_could_not_be_set_can_be_set_again_or_copied_to_another_key() {
    let Fixture { dir: _dir, store } = Fixture::with(writing()).await;
    let version = set(&store, "k", "old").await.unwrap();
    let received = receive(&store, "k", vec![8; 70_000]).await;
    let put = || Payload::of_received(Arc::clone(&received));
    let refused = within(store.set(&key("k"), put(), Precondition::absent())).await;
    assert!(matches!(refused, Err(StoreError::PreconditionFailed { .. })), "{refused:?}");
    within(store.set(&key("other"), put(), Precondition::none())).await.unwrap();
    assert_eq!(value(&store, "other").await, Some(vec![8; 70_000]));
    within(store.set(&key("k"), put(), Precondition::at(version))).await.unwrap();
    assert_eq!(value(&store, "k").await, Some(vec![8; 70_000]));
}

#[tokio::test]
async fn received_value_that_is_not_set_leaves_neither_file_nor_directory() {
    let Fixture { dir, store } = Fixture::with(writing()).await;
    drop(receive(&store, "a/b/c", vec![7; 100]).await);
    assert_becomes(dir.path(), &[]).await;
    // Of several values in directories that one of them made, and in one whose last value is erased meanwhile.
    set(&store, "a/old", "old").await.unwrap();
    let several = [receive(&store, "a/b/c", vec![7; 100]).await, receive(&store, "a/b/d", vec![7; 100]).await];
    within(store.erase(&key("a/old"), Precondition::none())).await.unwrap();
    for value in several {
        drop(value);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_becomes(dir.path(), &[]).await;
    let short = Payload { size: Some(9), ..Payload::from_bytes("short") };
    let failed = WriteableStore::receiving(&store).unwrap().receive(&key("a/b/c"), short).await;
    assert!(matches!(failed, Err(StoreError::Upload(_))));
    assert_becomes(dir.path(), &[]).await;
}

#[tokio::test]
async fn values_beyond_those_that_fit_are_staged_elsewhere() {
    let Fixture { dir, store } = Fixture::with(writing()).await;
    let mut received = Vec::new();
    let full = loop {
        let receiving = WriteableStore::receiving(&store).unwrap();
        match receiving.receive(&key(&format!("k{}", received.len())), "value".into()).await.unwrap() {
            Reception::Received(value) => received.push(value),
            Reception::Full(payload) => break payload,
        }
    };
    assert!((16..=512).contains(&received.len()), "{}", received.len());
    let bytes: Vec<_> = full.stream.try_collect().await.unwrap();
    assert_eq!(bytes.concat(), b"value", "nothing was read of it");
    // A batch is made whether its values were received or not.
    let keyed = Keyed::new(store.clone(), FOLDER);
    received.truncate(received.len() - 2);
    let mut changes = Vec::new();
    for number in 0..4_u8 {
        let staged = keyed.stage(&key(&format!("staged{number}")), vec![number; 50_000].into()).await.unwrap();
        let read: Vec<_> = keyed.read_staged(&staged, None).await.unwrap().try_collect().await.unwrap();
        assert_eq!(read.concat(), vec![number; 50_000]);
        changes.push(Change::Set { staged, precondition: Precondition::absent() });
    }
    let batch = Batch { chunks: changes, documents: Vec::new() };
    let outcomes = keyed.apply(batch).await.unwrap();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, ChangeOutcome::Set(_))), "{outcomes:?}");
    drop(received);
    assert_becomes(dir.path(), &["staged0", "staged1", "staged2", "staged3"]).await;
    for number in 0..4_u8 {
        assert_eq!(value(&store, &format!("staged{number}")).await, Some(vec![number; 50_000]));
    }
}
