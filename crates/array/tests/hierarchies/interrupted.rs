//! Conversions that are interrupted: what they leave is erased, once, and nothing else is.

use array::{ConvertOptions, NodeError, SettledIntents};
use meta::Dialect;
use serde_json::{Value, json};
use store::{Change, IntentId, MemoryLimits, MemoryStore, StoreError};

use crate::lab::{Lab, path, v3_array, v3_group};

/// A store with a group of one array and its chunks, in which something else has room for about `chunks` more.
async fn lab(chunks: u64) -> Lab {
    let total = 2 * 700 * 64 + 4_096 + chunks * 64;
    let limits = MemoryLimits { total, ..MemoryLimits::default() };
    let lab = Lab::over(std::sync::Arc::new(MemoryStore::with_limits(limits)));
    lab.declare("/from", &v3_group(&json!({"a": v3_array(&[1_400])}))).await.unwrap();
    for number in 0..700 {
        lab.set(&format!("from/a/c/{number}"), [7; 50]).await;
    }
    lab
}

fn record(target: &str, extent: &str) -> Value {
    json!({"version": 1, "operation": {"kind": "copy", "target": target, "dialect": "v3", "extent": [extent]}})
}

impl Lab {
    async fn intend(&self, record: impl Into<Vec<u8>>) -> IntentId {
        let id = IntentId::random();
        self.store.commit(vec![Change::Intend { id, record: record.into().into() }]).await.unwrap();
        id
    }

    async fn intents(&self) -> Vec<IntentId> {
        self.store.intents().await.unwrap().into_iter().map(|intent| intent.id).collect()
    }

    async fn below(&self, prefix: &str) -> usize {
        self.keys().await.iter().filter(|key| key.starts_with(prefix)).count()
    }
}

fn to(target: &str) -> ConvertOptions {
    ConvertOptions { dialect: Dialect::V2, target: Some(path(target)) }
}

#[tokio::test]
async fn failed_copy_leaves_nothing() {
    let lab = lab(0).await;
    // Something takes the room, so that some batches are copied and the rest is not.
    lab.set("other", vec![0; 20_000]).await;
    let failed = lab.nodes.convert(&path("/from"), None, &to("/to")).await;
    assert!(matches!(failed, Err(NodeError::Store(StoreError::OutOfSpace))), "{failed:?}");
    assert_eq!((lab.below("to/").await, lab.intents().await), (0, vec![]));
    assert_eq!(lab.below("from/").await, 702);
    lab.store.erase(&store::Key::parse("other").unwrap(), store::Precondition::none()).await.unwrap();
    let report = lab.nodes.convert(&path("/from"), None, &to("/to")).await.unwrap();
    assert_eq!((report.chunks, lab.below("to/").await, lab.intents().await), (700, 702, vec![]));
}

#[tokio::test]
async fn cancelled_copy_leaves_nothing() {
    let mut dropped = 0;
    for polls in 0..60 {
        let lab = lab(1_000).await;
        let (nodes, conversion) = (lab.nodes.clone(), to("/to"));
        let copy = tokio::spawn(async move { nodes.convert(&path("/from"), None, &conversion).await });
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        copy.abort();
        let ended = copy.await;
        // The undoing goes on by itself.
        while !lab.intents().await.is_empty() {
            tokio::task::yield_now().await;
        }
        match ended {
            Ok(copied) => assert_eq!((copied.unwrap().chunks, lab.below("to/").await), (700, 702)),
            Err(_) => {
                dropped += 1;
                assert_eq!(lab.below("to/").await, 0);
            }
        }
        assert_eq!(lab.below("from/").await, 702);
    }
    assert!(dropped > 0, "no copy was dropped before its end");
}

#[tokio::test]
async fn interrupted_copy_is_erased_at_the_next_start() {
    let lab = lab(1_000).await;
    for key in ["to/a/0", "to/a/1", "tower/a/0"] {
        lab.set(key, "chunk").await;
    }
    lab.intend(record("/to", "to/").to_string()).await;
    let settled = lab.nodes.settle_intents().await.unwrap();
    assert_eq!(settled, SettledIntents { undone: 1, ..SettledIntents::default() });
    assert_eq!((lab.below("to/").await, lab.below("tower/").await, lab.intents().await), (0, 1, vec![]));
    assert_eq!(lab.nodes.settle_intents().await.unwrap(), SettledIntents::default());
    assert_eq!(lab.nodes.convert(&path("/from"), None, &to("/to")).await.unwrap().chunks, 700);
    assert_eq!(lab.nodes.settle_intents().await.unwrap(), SettledIntents::default());
    assert_eq!(lab.below("to/").await, 702);
}

#[tokio::test]
async fn existing_node_is_not_erased_by_recovery() {
    for document in ["to/zarr.json", "to/.zarray", "to/.zgroup"] {
        let lab = Lab::new();
        lab.set("to/a/0", "chunk").await;
        // It need not be one that can be read.
        lab.set(document, "{").await;
        lab.intend(record("/to", "to/").to_string()).await;
        let settled = lab.nodes.settle_intents().await.unwrap();
        assert_eq!(settled, SettledIntents { left: 1, ..SettledIntents::default() });
        assert_eq!((lab.below("to/").await, lab.intents().await), (2, vec![]), "{document}");
    }
}

#[tokio::test]
async fn unreadable_intent_records_are_retained() {
    let lab = Lab::new();
    lab.set("to/a/0", "chunk").await;
    let mut newer = record("/to", "to/");
    newer["version"] = json!(2);
    newer["operation"]["kind"] = json!("shrink");
    let mut other_kind = record("/to", "to/");
    other_kind["operation"]["kind"] = json!("shrink");
    let mut texts = vec!["".to_owned(), "{".to_owned(), "[1]".to_owned(), "{}".to_owned()];
    for wrong in [newer, other_kind, record("/to", "to"), record("to//a", "to/"), record("/to", "../")] {
        texts.push(wrong.to_string());
    }
    for text in &texts {
        lab.intend(text.clone()).await;
    }
    lab.intend(record("/other", "other/").to_string()).await;
    let settled = lab.nodes.settle_intents().await.unwrap();
    assert_eq!(settled, SettledIntents { undone: 1, finished: 0, left: 0, unsettled: texts.len() as u64 });
    assert_eq!((lab.intents().await.len(), lab.below("to/").await), (texts.len(), 1));
}
