//! Listings while the entries below an erased prefix are being removed.

use std::time::{Duration, Instant};

use zarrd_store::{
    BatchStore, Change, Key, ListableStore, PageRequest, Payload, Precondition, Prefix, StoreError, TransactionalStore,
    WriteableStore,
};
use zarrd_store_local::{IndexKind, LocalStore, Options};

/// More keys than are erased directly, and more than fit into a batch.
const KEYS: usize = 4000;

async fn fill(store: &LocalStore) {
    let mut changes = Vec::new();
    for number in 0..KEYS {
        let key = Key::parse(&format!("a/k{number:04}")).unwrap();
        let staged = store.stage(&key, Payload::from_bytes(vec![7; 20])).await.unwrap();
        changes.push(Change::Set { staged, precondition: Precondition::none() });
    }
    store.commit(changes).await.unwrap();
}

async fn assert_listings_are_complete_while_keys_are_moved(index: IndexKind) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { commit_buffer_bytes: Some(64 << 10), ..Options::new(index) };
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    let prefix = Prefix::parse("a/").unwrap();
    fill(&store).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        store.erase_prefix(&prefix).await.unwrap();
        fill(&store).await;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1500) {
            let listed = store.list_prefix(&Prefix::root(), PageRequest::first(KEYS + 1)).await.unwrap();
            assert_eq!(listed.keys.len(), KEYS, "after {:?}", began.elapsed());
            let check = store.commit(vec![Change::CheckEmpty { prefix: prefix.clone() }]).await;
            assert!(matches!(check, Err(StoreError::NotEmpty { .. })), "{check:?}");
            // Give the sweep time between listings.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_complete_while_a_sweep_moves_keys_in_sled() {
    assert_listings_are_complete_while_keys_are_moved(IndexKind::Sled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_complete_while_a_sweep_moves_keys_in_redb() {
    assert_listings_are_complete_while_keys_are_moved(IndexKind::Redb).await;
}
