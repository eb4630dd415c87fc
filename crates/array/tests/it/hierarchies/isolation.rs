//! Element writes concurrent with structural changes: erased data does not return, and a copy reflects one commit.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::StreamExt;
use serde_json::{Value, json};
use zarrd_array::{
    Arrays, ConvertOptions, CreateOptions, ElementSource, ExistingDocuments, IfExists, LossPolicy, NodeError,
    NodeRejection, Options, SettledIntents,
};
use zarrd_codec::Elements;
use zarrd_meta::{
    Dialect,
    selection::{ReadRequest, Selection},
};
use zarrd_store::{Change, IntentId, MemoryStore, Precondition};

use crate::hierarchies::{
    concurrency::InterferingStore,
    test_store::{TestStore, draft_array, entry_point, path, v2_array, v3_array, v3_group, zom},
};

async fn write(arrays: &Arrays, at: &str, select: &str, value: u8) -> Result<(), zarrd_array::WriteError> {
    let selection = Selection::parse(select).unwrap();
    let write = arrays.write(&path(at), None, &selection, Precondition::none()).await?;
    write.execute(ElementSource::Scalar(vec![value])).await.map(|_| ())
}

async fn read(arrays: &Arrays, at: &str) -> Vec<u8> {
    let request = ReadRequest::Select(Selection::default());
    let reading = arrays.read(&path(at), None, &request, u64::MAX).await.unwrap();
    let mut parts = std::pin::pin!(reading.into_stream());
    let mut all = Vec::new();
    while let Some(part) = parts.next().await {
        match part.unwrap() {
            Elements::Fixed(bytes) => all.extend_from_slice(&bytes),
            Elements::Variable(_) => panic!("the elements have a fixed size"),
        }
    }
    all
}

#[tokio::test]
async fn chunk_written_during_a_shrink_does_not_return() {
    for document in [v3_array(&[8]), v2_array(&[8])] {
        let (store, interference) = InterferingStore::create();
        store.declare("/a", &document).await.unwrap();
        let chunk = if document.get("node_type").is_some() { "a/c/3" } else { "a/3" };
        // The last chunk is set after everything that the shrink has read before its commit.
        interference.write_before_commit(chunk, json!(1));
        store.patch("/a", &json!({"shape": [3]})).await.unwrap();
        assert!(!store.keys().await.contains(&chunk.to_owned()));
        assert_eq!(store.inner.intents().await.unwrap(), []);
        store.patch("/a", &json!({"shape": [8]})).await.unwrap();
        assert_eq!(read(&store.arrays, "/a").await, [0; 8]);
    }
}

#[tokio::test]
async fn edge_chunks_and_other_keys_survive_a_shrink() {
    let store = TestStore::new();
    store.declare("/a", &v3_array(&[8, 4])).await.unwrap();
    for key in ["c/0/0", "c/1/1", "c/2/0", "c/3/1", "c/x", "c/2/0/0", "notes"] {
        store.set(&format!("a/{key}"), [1; 4]).await;
    }
    store.patch("/a", &json!({"shape": [3, 4]})).await.unwrap();
    assert_eq!(store.keys().await, ["a/c/0/0", "a/c/1/1", "a/c/2/0/0", "a/c/x", "a/notes", "a/zarr.json"]);
}

#[tokio::test]
async fn shrink_erases_more_chunks_than_a_commit_allows() {
    let store = TestStore::new();
    store.declare("/a", &v3_array(&[20_000])).await.unwrap();
    write(&store.arrays, "/a", "...", 1).await.unwrap();
    store.patch("/a", &json!({"shape": [1]})).await.unwrap();
    assert_eq!(store.keys().await, ["a/c/0", "a/zarr.json"]);
    assert_eq!(store.inner.intents().await.unwrap(), []);
}

#[tokio::test]
async fn interrupted_shrink_is_finished() {
    for (document, root, prefix) in [
        (v3_array(&[4]), None, "a/c/"),
        (v2_array(&[4]), None, "a/"),
        (draft_array(&[4]), Some(entry_point()), "data/root/a/c"),
    ] {
        let store = TestStore::new();
        let key = match (&root, document.get("node_type")) {
            (Some(_), _) => "meta/root/a.array.json",
            (None, Some(_)) => "a/zarr.json",
            (None, None) => "a/.zarray",
        };
        if let Some(root) = &root {
            store.json("zarr.json", root).await;
        }
        store.json(key, &document).await;
        for number in 0..5 {
            store.set(&format!("{prefix}{number}"), [1; 2]).await;
        }
        let dialect = if root.is_some() {
            "draft"
        } else if prefix == "a/" {
            "v2"
        } else {
            "v3"
        };
        let operation = json!({"kind": "shrink", "path": "/a", "dialect": dialect});
        let record = json!({"version": 1, "operation": operation}).to_string().into_bytes();
        store.inner.commit(vec![Change::AddIntent { id: IntentId::random(), record: record.into() }]).await.unwrap();
        let settled = store.nodes.settle_intents().await.unwrap();
        assert_eq!(settled, SettledIntents { finished: 1, ..SettledIntents::default() }, "{dialect}");
        let leftover: Vec<String> = store.keys().await.into_iter().filter(|key| key.starts_with(prefix)).collect();
        let chunks: Vec<String> = [0, 1].map(|number| format!("{prefix}{number}")).into();
        assert_eq!(leftover.iter().filter(|key| !key.contains(".z")).cloned().collect::<Vec<_>>(), chunks, "{dialect}");
        assert_eq!(store.inner.intents().await.unwrap(), []);
    }
}

#[tokio::test]
async fn append_fails_until_an_interrupted_shrink_is_finished() {
    let store = Arc::new(MemoryStore::new());
    let options = Options { memory_timeout: std::time::Duration::from_millis(50), ..Options::default() };
    let arrays = Arrays::new(store.clone(), options);
    let store = TestStore { inner: store, nodes: arrays.hierarchies(), arrays };
    store.declare("/a", &v3_array(&[4])).await.unwrap();
    // The document cannot be read, so the recorded shrink cannot be finished.
    let record = json!({"version": 1, "operation": {"kind": "shrink", "path": "/a", "dialect": "v2"}});
    store.set("a/.zarray", "{").await;
    let record = record.to_string().into_bytes().into();
    store.inner.commit(vec![Change::AddIntent { id: IntentId::random(), record }]).await.unwrap();
    assert_eq!(store.nodes.settle_intents().await.unwrap().unsettled, 1);
    store.erase_key("a/.zarray").await;
    let append = store.arrays.append(&path("/a"), Some(Dialect::V3), "0", Precondition::none()).await.unwrap();
    let rejected = append.execute(Some(2), ElementSource::Scalar(vec![1])).await;
    assert!(rejected.is_err(), "{rejected:?}");
    let rejected = store.patch("/a", &json!({"shape": [9]})).await;
    assert!(rejected.is_err(), "{rejected:?}");
    // Elements within the shape can be written.
    write(&store.arrays, "/a", "...", 1).await.unwrap();
}

#[tokio::test]
async fn copy_reflects_one_commit() {
    let mut interfered = 0;
    for number in 0.. {
        let (store, interference) = InterferingStore::create();
        store.declare("/from", &v3_group(&json!({"a": v3_array(&[4]), "b": v3_array(&[4])}))).await.unwrap();
        // The chunks are written one after the other, so the second never exists without the first.
        interference.write_all_before_page(number, &[("from/a/c/0", json!(10)), ("from/b/c/0", json!(10))]);
        let conversion = ConvertOptions {
            dialect: Dialect::V2,
            target: Some(path("/to")),
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        let report = store.nodes.convert(&path("/from"), None, &conversion).await.unwrap();
        if interference.has_pending_writes() {
            break;
        }
        interfered += 1;
        let keys = store.keys().await;
        let [first, second] = ["to/a/0", "to/b/0"].map(|key| keys.iter().any(|found| found == key));
        assert!(first || !second, "page {number}");
        assert_eq!(report.chunks, u64::from(first) + u64::from(second), "page {number}");
        assert_eq!(store.inner.intents().await.unwrap(), []);
    }
    assert_eq!(interfered, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn array_under_constant_writes_is_copied() {
    let store = TestStore::new();
    store.declare("/from", &v3_group(&json!({"a": v3_array(&[400])}))).await.unwrap();
    let (done, arrays) = (Arc::new(AtomicBool::new(false)), store.arrays.clone());
    let ended = done.clone();
    let writer = tokio::spawn(async move {
        let mut written = 0_u32;
        while !ended.load(Ordering::Relaxed) {
            // Every third write erases all chunks, since they contain only the fill value.
            write(&arrays, "/from/a", "...", (written % 3) as u8).await.unwrap();
            written += 1;
        }
        written
    });
    for round in 0..40 {
        let target = format!("/to{round}");
        let conversion = ConvertOptions {
            dialect: Dialect::V2,
            target: Some(path(&target)),
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        store.nodes.convert(&path("/from"), None, &conversion).await.unwrap();
        let copied = read(&store.arrays, &format!("{target}/a")).await;
        assert!(copied.iter().all(|element| Some(element) == copied.first()), "round {round}: {copied:?}");
    }
    done.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 40, "the writer wrote continuously");
    assert_eq!(store.inner.intents().await.unwrap(), []);
}

#[tokio::test]
async fn chunks_outside_the_array_are_not_copied() {
    let store = TestStore::new();
    store.declare("/a", &v3_array(&[4])).await.unwrap();
    for number in 0..4 {
        store.set(&format!("a/c/{number}"), [1; 2]).await;
    }
    let conversion = ConvertOptions {
        dialect: Dialect::V2,
        target: Some(path("/b")),
        losses: LossPolicy::Allow,
        existing: ExistingDocuments::Keep,
    };
    assert_eq!(store.nodes.convert(&path("/a"), None, &conversion).await.unwrap().chunks, 2);
    assert_eq!(store.keys().await.iter().filter(|key| key.starts_with("b/")).count(), 3);
}

async fn declare(
    store: &TestStore,
    at: &str,
    document: &Value,
    dialect: Dialect,
    existing: IfExists,
) -> Result<(), NodeError> {
    let declaration = CreateOptions { dialect: Some(dialect), if_exists: existing, ..CreateOptions::default() };
    store.nodes.create(&path(at), Arc::new(zom(document)), &declaration).await.map(|_| ())
}

#[tokio::test]
async fn existing_keys_are_rejected_erased_or_adopted() {
    for (dialect, chunk) in [(Dialect::V3, "a/c/0"), (Dialect::V2, "a/0"), (Dialect::Draft, "data/root/a/c0")] {
        for existing in [IfExists::Fail, IfExists::Replace, IfExists::Adopt] {
            for alone in [true, false] {
                let store = TestStore::new();
                if dialect == Dialect::Draft {
                    store.json("zarr.json", &entry_point()).await;
                }
                store.set(chunk, [7; 2]).await;
                let (at, document) = match alone {
                    true => ("/a", v3_array(&[2])),
                    false => ("/", v3_group(&json!({"a": v3_array(&[2]), "b": v3_array(&[2])}))),
                };
                let declared = declare(&store, at, &document, dialect, existing).await;
                let case = format!("{dialect} {existing:?} {at}");
                match existing {
                    IfExists::Fail => {
                        let is_named = |error: &NodeError| match error {
                            NodeError::Rejected(NodeRejection::StrayKeys { path: at, key }) => {
                                *at == path("/a") && key.as_str() == chunk
                            }
                            _ => false,
                        };
                        assert!(declared.as_ref().is_err_and(is_named), "{case}: {declared:?}");
                        assert!(store.keys().await.len() <= 2, "{case}: nothing was written");
                    }
                    IfExists::Replace => {
                        declared.unwrap();
                        assert_eq!(read(&store.arrays, "/a").await, [0; 2], "{case}");
                    }
                    IfExists::Adopt => {
                        declared.unwrap();
                        assert_eq!(read(&store.arrays, "/a").await, [7; 2], "{case}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn key_set_during_create_is_rejected() {
    let (store, interference) = InterferingStore::create();
    interference.write_before_commit("a/c/0", json!(1));
    let rejected = store.declare("/a", &v3_array(&[2])).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::StrayKeys { .. }))), "{rejected:?}");
    assert_eq!(store.keys().await, ["a/c/0"]);
    let (store, interference) = InterferingStore::create();
    store.declare("/g", &v3_group(&json!({}))).await.unwrap();
    interference.write_before_commit("g/a/c/0", json!(1));
    let mut group = v3_group(&json!({"a": v3_array(&[2])}));
    group["attributes"] = json!({"of": "the group"});
    store.replace("/g", &group).await.unwrap();
    assert_eq!(read(&store.arrays, "/g/a").await, [0; 2]);
}

#[tokio::test]
async fn unrelated_keys_do_not_prevent_create() {
    let store = TestStore::new();
    for key in ["g/notes", "g/ab/c/0", "g/b/old/c/0"] {
        store.set(key, [1; 2]).await;
    }
    store.declare("/g", &v3_group(&json!({"a": v3_array(&[2])}))).await.unwrap();
    // Replaced and erased nodes leave no obstructing keys.
    store.set("g/a/c/0", [1; 2]).await;
    store.set("g/a/stray", [1; 2]).await;
    store.replace("/g/a", &v2_array(&[2])).await.unwrap_err();
    store
        .replace("/g/a", &json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}}))
        .await
        .unwrap();
    store.declare("/g/a/c", &v3_array(&[2])).await.unwrap();
    store.erase("/g/a").await.unwrap();
    store.declare("/g/a", &v3_array(&[2])).await.unwrap();
    let remaining = store.keys().await;
    assert_eq!(remaining, ["g/a/zarr.json", "g/ab/c/0", "g/b/old/c/0", "g/notes", "g/zarr.json"]);
}
