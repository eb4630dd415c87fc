//! Recovery of interrupted conversions: their remains are erased once, and nothing else is.

use serde_json::{Value, json};
use zarrd_array::{ConvertOptions, ExistingDocuments, LossPolicy, NodeError, SettledIntents};
use zarrd_meta::Dialect;
use zarrd_store::{Change, IntentId, MemoryLimits, MemoryStore, StoreError};

use crate::hierarchies::test_store::{TestStore, path, v3_array, v3_group};

/// A store with a group of one array and its chunks, and room for about `chunks` more.
async fn store_with_room(chunks: u64) -> TestStore {
    let total = 2 * 700 * 64 + 4_096 + chunks * 64;
    let limits = MemoryLimits { total_bytes: total, ..MemoryLimits::default() };
    let store = TestStore::on(std::sync::Arc::new(MemoryStore::with_limits(limits)));
    store.declare("/from", &v3_group(&json!({"a": v3_array(&[1_400])}))).await.unwrap();
    for number in 0..700 {
        store.set(&format!("from/a/c/{number}"), [7; 50]).await;
    }
    store
}

fn record(target: &str, extent: &str) -> Value {
    json!({"version": 1, "operation": {"kind": "copy", "target": target, "dialect": "v3", "extent": [extent]}})
}

impl TestStore {
    async fn intend(&self, record: impl Into<Vec<u8>>) -> IntentId {
        let id = IntentId::random();
        self.inner.commit(vec![Change::AddIntent { id, record: record.into().into() }]).await.unwrap();
        id
    }

    async fn intents(&self) -> Vec<IntentId> {
        self.inner.intents().await.unwrap().into_iter().map(|intent| intent.id).collect()
    }

    async fn count_below(&self, prefix: &str) -> usize {
        self.keys().await.iter().filter(|key| key.starts_with(prefix)).count()
    }
}

fn to(target: &str) -> ConvertOptions {
    ConvertOptions {
        dialect: Dialect::V2,
        target: Some(path(target)),
        losses: LossPolicy::Allow,
        existing: ExistingDocuments::Keep,
    }
}

#[tokio::test]
async fn failed_copy_leaves_nothing() {
    let store = store_with_room(0).await;
    // Fills most of the room, so that some batches are copied and the rest is not.
    store.set("other", vec![0; 20_000]).await;
    let failed = store.nodes.convert(&path("/from"), None, &to("/to")).await;
    assert!(matches!(failed, Err(NodeError::Store(StoreError::OutOfSpace))), "{failed:?}");
    assert_eq!((store.count_below("to/").await, store.intents().await), (0, vec![]));
    assert_eq!(store.count_below("from/").await, 702);
    store.inner.erase(&zarrd_store::Key::parse("other").unwrap(), zarrd_store::Precondition::none()).await.unwrap();
    let report = store.nodes.convert(&path("/from"), None, &to("/to")).await.unwrap();
    assert_eq!((report.chunks, store.count_below("to/").await, store.intents().await), (700, 702, vec![]));
}

#[tokio::test]
async fn cancelled_copy_leaves_nothing() {
    let mut dropped = 0;
    for polls in 0..60 {
        let store = store_with_room(1_000).await;
        let (nodes, conversion) = (store.nodes.clone(), to("/to"));
        let copy = tokio::spawn(async move { nodes.convert(&path("/from"), None, &conversion).await });
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        copy.abort();
        let ended = copy.await;
        // The rollback continues in the background.
        while !store.intents().await.is_empty() {
            tokio::task::yield_now().await;
        }
        match ended {
            Ok(copied) => assert_eq!((copied.unwrap().chunks, store.count_below("to/").await), (700, 702)),
            Err(_) => {
                dropped += 1;
                assert_eq!(store.count_below("to/").await, 0);
            }
        }
        assert_eq!(store.count_below("from/").await, 702);
    }
    assert!(dropped > 0, "no copy was dropped before its end");
}

#[tokio::test]
async fn interrupted_copy_is_erased_at_the_next_start() {
    let store = store_with_room(1_000).await;
    for key in ["to/a/0", "to/a/1", "tower/a/0"] {
        store.set(key, "chunk").await;
    }
    store.intend(record("/to", "to/").to_string()).await;
    let settled = store.nodes.settle_intents().await.unwrap();
    assert_eq!(settled, SettledIntents { undone: 1, ..SettledIntents::default() });
    assert_eq!(
        (store.count_below("to/").await, store.count_below("tower/").await, store.intents().await),
        (0, 1, vec![])
    );
    assert_eq!(store.nodes.settle_intents().await.unwrap(), SettledIntents::default());
    assert_eq!(store.nodes.convert(&path("/from"), None, &to("/to")).await.unwrap().chunks, 700);
    assert_eq!(store.nodes.settle_intents().await.unwrap(), SettledIntents::default());
    assert_eq!(store.count_below("to/").await, 702);
}

#[tokio::test]
async fn existing_node_is_not_erased_by_recovery() {
    for document in ["to/zarr.json", "to/.zarray", "to/.zgroup"] {
        let store = TestStore::new();
        store.set("to/a/0", "chunk").await;
        // The node need not be readable.
        store.set(document, "{").await;
        store.intend(record("/to", "to/").to_string()).await;
        let settled = store.nodes.settle_intents().await.unwrap();
        assert_eq!(settled, SettledIntents { left: 1, ..SettledIntents::default() });
        assert_eq!((store.count_below("to/").await, store.intents().await), (2, vec![]), "{document}");
    }
}

#[tokio::test]
async fn unreadable_intent_records_are_retained() {
    let store = TestStore::new();
    store.set("to/a/0", "chunk").await;
    let mut newer = record("/to", "to/");
    newer["version"] = json!(2);
    newer["operation"]["kind"] = json!("shrink");
    let mut other_kind = record("/to", "to/");
    other_kind["operation"]["kind"] = json!("shrink");
    let mut texts = vec!["".to_owned(), "{".to_owned(), "[1]".to_owned(), "{}".to_owned()];
    for invalid in [newer, other_kind, record("/to", "to"), record("to//a", "to/"), record("/to", "../")] {
        texts.push(invalid.to_string());
    }
    for text in &texts {
        store.intend(text.clone()).await;
    }
    store.intend(record("/other", "other/").to_string()).await;
    let settled = store.nodes.settle_intents().await.unwrap();
    assert_eq!(settled, SettledIntents { undone: 1, finished: 0, left: 0, unsettled: texts.len() as u64 });
    assert_eq!((store.intents().await.len(), store.count_below("to/").await), (texts.len(), 1));
}
