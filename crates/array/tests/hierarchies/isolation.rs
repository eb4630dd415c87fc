//! Writes of elements beside changes of structure: nothing that was erased comes back, and a copy is of one commit.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use array::{Arrays, ConvertOptions, CreateOptions, ElementSource, IfExists, NodeError, Options, SettledIntents};
use codec::Elements;
use futures::StreamExt;
use meta::{
    Dialect,
    selection::{ReadRequest, Selection},
};
use serde_json::{Value, json};
use store::{Change, IntentId, MemoryStore, Precondition};

use crate::{
    lab::{Lab, draft_array, entry_point, path, v2_array, v3_array, v3_group, zom},
    racing::Intruded,
};

async fn write(arrays: &Arrays, at: &str, select: &str, value: u8) -> Result<(), array::WriteError> {
    let selection = Selection::parse(select).unwrap();
    let write = arrays.write(&path(at), None, &selection, Precondition::none()).await?;
    write.execute(ElementSource::Scalar(vec![value])).await.map(|_| ())
}

async fn read(arrays: &Arrays, at: &str) -> Vec<u8> {
    let request = ReadRequest::Select(Selection::default());
    let reading = arrays.read(&path(at), None, &request, u64::MAX).await.unwrap();
    let mut pieces = std::pin::pin!(reading.into_stream());
    let mut all = Vec::new();
    while let Some(piece) = pieces.next().await {
        match piece.unwrap() {
            Elements::Fixed(bytes) => all.extend_from_slice(&bytes),
            Elements::Variable(_) => panic!("the elements have a fixed size"),
        }
    }
    all
}

#[tokio::test]
async fn chunk_written_during_a_shrink_does_not_return() {
    for document in [v3_array(&[8]), v2_array(&[8])] {
        let (lab, store) = Intruded::lab();
        lab.declare("/a", &document).await.unwrap();
        let chunk = if document.get("node_type").is_some() { "a/c/3" } else { "a/3" };
        // The last of the chunks is set after whatever the shrink has looked at before its commit.
        store.intrude(chunk, json!(1));
        lab.patch("/a", &json!({"shape": [3]})).await.unwrap();
        assert!(!lab.keys().await.contains(&chunk.to_owned()));
        assert_eq!(lab.store.intents().await.unwrap(), []);
        lab.patch("/a", &json!({"shape": [8]})).await.unwrap();
        assert_eq!(read(&lab.arrays, "/a").await, [0; 8]);
    }
}

#[tokio::test]
async fn edge_chunks_and_other_keys_survive_a_shrink() {
    let lab = Lab::new();
    lab.declare("/a", &v3_array(&[8, 4])).await.unwrap();
    for key in ["c/0/0", "c/1/1", "c/2/0", "c/3/1", "c/x", "c/2/0/0", "notes"] {
        lab.set(&format!("a/{key}"), [1; 4]).await;
    }
    lab.patch("/a", &json!({"shape": [3, 4]})).await.unwrap();
    assert_eq!(lab.keys().await, ["a/c/0/0", "a/c/1/1", "a/c/2/0/0", "a/c/x", "a/notes", "a/zarr.json"]);
}

#[tokio::test]
async fn shrink_erases_more_chunks_than_a_commit_allows() {
    let lab = Lab::new();
    lab.declare("/a", &v3_array(&[20_000])).await.unwrap();
    write(&lab.arrays, "/a", "...", 1).await.unwrap();
    lab.patch("/a", &json!({"shape": [1]})).await.unwrap();
    assert_eq!(lab.keys().await, ["a/c/0", "a/zarr.json"]);
    assert_eq!(lab.store.intents().await.unwrap(), []);
}

#[tokio::test]
async fn interrupted_shrink_is_finished() {
    for (document, root, prefix) in [
        (v3_array(&[4]), None, "a/c/"),
        (v2_array(&[4]), None, "a/"),
        (draft_array(&[4]), Some(entry_point()), "data/root/a/c"),
    ] {
        let lab = Lab::new();
        let key = match (&root, document.get("node_type")) {
            (Some(_), _) => "meta/root/a.array.json",
            (None, Some(_)) => "a/zarr.json",
            (None, None) => "a/.zarray",
        };
        if let Some(root) = &root {
            lab.json("zarr.json", root).await;
        }
        lab.json(key, &document).await;
        for number in 0..5 {
            lab.set(&format!("{prefix}{number}"), [1; 2]).await;
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
        lab.store.commit(vec![Change::Intend { id: IntentId::random(), record: record.into() }]).await.unwrap();
        let settled = lab.nodes.settle_intents().await.unwrap();
        assert_eq!(settled, SettledIntents { finished: 1, ..SettledIntents::default() }, "{dialect}");
        let left: Vec<String> = lab.keys().await.into_iter().filter(|key| key.starts_with(prefix)).collect();
        let chunks: Vec<String> = [0, 1].map(|number| format!("{prefix}{number}")).into();
        assert_eq!(left.iter().filter(|key| !key.contains(".z")).cloned().collect::<Vec<_>>(), chunks, "{dialect}");
        assert_eq!(lab.store.intents().await.unwrap(), []);
    }
}

#[tokio::test]
async fn append_fails_until_an_interrupted_shrink_is_finished() {
    let store = Arc::new(MemoryStore::new());
    let options = Options { memory_timeout: std::time::Duration::from_millis(50), ..Options::default() };
    let arrays = Arrays::new(store.clone(), options);
    let lab = Lab { store, nodes: arrays.hierarchies(), arrays };
    lab.declare("/a", &v3_array(&[4])).await.unwrap();
    // Its document cannot be read, so that the shrink of the record cannot be carried on.
    let record = json!({"version": 1, "operation": {"kind": "shrink", "path": "/a", "dialect": "v2"}});
    lab.set("a/.zarray", "{").await;
    let record = record.to_string().into_bytes().into();
    lab.store.commit(vec![Change::Intend { id: IntentId::random(), record }]).await.unwrap();
    assert_eq!(lab.nodes.settle_intents().await.unwrap().unsettled, 1);
    let append = lab.arrays.append(&path("/a"), Some(Dialect::V3), 0, Precondition::none()).await.unwrap();
    let refused = append.execute(Some(2), ElementSource::Scalar(vec![1])).await;
    assert!(refused.is_err(), "{refused:?}");
    let refused = lab.patch("/a", &json!({"shape": [9]})).await;
    assert!(refused.is_err(), "{refused:?}");
    // Elements within the shape are written as ever.
    write(&lab.arrays, "/a", "...", 1).await.unwrap();
}

#[tokio::test]
async fn copy_reflects_one_commit() {
    let mut intruded = 0;
    for number in 0.. {
        let (lab, store) = Intruded::lab();
        lab.declare("/from", &v3_group(&json!({"a": v3_array(&[4]), "b": v3_array(&[4])}))).await.unwrap();
        // Two chunks are written one after the other, so nobody ever sees the second without the first.
        store.intrude_all_on_page(number, &[("from/a/c/0", json!(10)), ("from/b/c/0", json!(10))]);
        let conversion = ConvertOptions { dialect: Dialect::V2, target: Some(path("/to")) };
        let report = lab.nodes.convert(&path("/from"), None, &conversion).await.unwrap();
        if store.is_intruding() {
            break;
        }
        intruded += 1;
        let keys = lab.keys().await;
        let [first, second] = ["to/a/0", "to/b/0"].map(|key| keys.iter().any(|found| found == key));
        assert!(first || !second, "page {number}");
        assert_eq!(report.chunks, u64::from(first) + u64::from(second), "page {number}");
        assert_eq!(lab.store.intents().await.unwrap(), []);
    }
    assert_eq!(intruded, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn array_under_constant_writes_is_copied() {
    let lab = Lab::new();
    lab.declare("/from", &v3_group(&json!({"a": v3_array(&[400])}))).await.unwrap();
    let (done, arrays) = (Arc::new(AtomicBool::new(false)), lab.arrays.clone());
    let ended = done.clone();
    let writer = tokio::spawn(async move {
        let mut written = 0_u32;
        while !ended.load(Ordering::Relaxed) {
            // Every third time all chunks are erased, since they are full of the fill value.
            write(&arrays, "/from/a", "...", (written % 3) as u8).await.unwrap();
            written += 1;
        }
        written
    });
    for round in 0..40 {
        let target = format!("/to{round}");
        let conversion = ConvertOptions { dialect: Dialect::V2, target: Some(path(&target)) };
        lab.nodes.convert(&path("/from"), None, &conversion).await.unwrap();
        let copied = read(&lab.arrays, &format!("{target}/a")).await;
        assert!(copied.iter().all(|element| Some(element) == copied.first()), "round {round}: {copied:?}");
    }
    done.store(true, Ordering::Relaxed);
    assert!(writer.await.unwrap() > 40, "somebody wrote all the time");
    assert_eq!(lab.store.intents().await.unwrap(), []);
}

#[tokio::test]
async fn chunks_outside_the_array_are_not_copied() {
    let lab = Lab::new();
    lab.declare("/a", &v3_array(&[4])).await.unwrap();
    for number in 0..4 {
        lab.set(&format!("a/c/{number}"), [1; 2]).await;
    }
    let conversion = ConvertOptions { dialect: Dialect::V2, target: Some(path("/b")) };
    assert_eq!(lab.nodes.convert(&path("/a"), None, &conversion).await.unwrap().chunks, 2);
    assert_eq!(lab.keys().await.iter().filter(|key| key.starts_with("b/")).count(), 3);
}

async fn declare(lab: &Lab, at: &str, document: &Value, dialect: Dialect, existing: IfExists) -> Result<(), NodeError> {
    let declaration = CreateOptions { dialect: Some(dialect), if_exists: existing, ..CreateOptions::default() };
    lab.nodes.create(&path(at), &Arc::new(zom(document)), &declaration).await.map(|_| ())
}

#[tokio::test]
async fn existing_keys_are_rejected_erased_or_adopted() {
    for (dialect, chunk) in [(Dialect::V3, "a/c/0"), (Dialect::V2, "a/0"), (Dialect::Draft, "data/root/a/c0")] {
        for existing in [IfExists::Fail, IfExists::Replace, IfExists::Adopt] {
            for alone in [true, false] {
                let lab = Lab::new();
                if dialect == Dialect::Draft {
                    lab.json("zarr.json", &entry_point()).await;
                }
                lab.set(chunk, [7; 2]).await;
                let (at, document) = match alone {
                    true => ("/a", v3_array(&[2])),
                    false => ("/", v3_group(&json!({"a": v3_array(&[2]), "b": v3_array(&[2])}))),
                };
                let declared = declare(&lab, at, &document, dialect, existing).await;
                let case = format!("{dialect} {existing:?} {at}");
                match existing {
                    IfExists::Fail => {
                        let is_named = |error: &NodeError| matches!(error, NodeError::StrayKeys { path: at, key } if *at == path("/a") && key.as_str() == chunk);
                        assert!(declared.as_ref().is_err_and(is_named), "{case}: {declared:?}");
                        assert!(lab.keys().await.len() <= 2, "{case}: nothing was written");
                    }
                    IfExists::Replace => {
                        declared.unwrap();
                        assert_eq!(read(&lab.arrays, "/a").await, [0; 2], "{case}");
                    }
                    IfExists::Adopt => {
                        declared.unwrap();
                        assert_eq!(read(&lab.arrays, "/a").await, [7; 2], "{case}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn key_set_during_create_is_rejected() {
    let (lab, store) = Intruded::lab();
    store.intrude("a/c/0", json!(1));
    let refused = lab.declare("/a", &v3_array(&[2])).await;
    assert!(matches!(refused, Err(NodeError::StrayKeys { .. })), "{refused:?}");
    assert_eq!(lab.keys().await, ["a/c/0"]);
    let (lab, store) = Intruded::lab();
    lab.declare("/g", &v3_group(&json!({}))).await.unwrap();
    store.intrude("g/a/c/0", json!(1));
    let mut group = v3_group(&json!({"a": v3_array(&[2])}));
    group["attributes"] = json!({"of": "the group"});
    lab.replace("/g", &group).await.unwrap();
    assert_eq!(read(&lab.arrays, "/g/a").await, [0; 2]);
}

#[tokio::test]
async fn unrelated_keys_do_not_prevent_create() {
    let lab = Lab::new();
    for key in ["g/notes", "g/ab/c/0", "g/b/old/c/0"] {
        lab.set(key, [1; 2]).await;
    }
    lab.declare("/g", &v3_group(&json!({"a": v3_array(&[2])}))).await.unwrap();
    // What is replaced leaves nothing that could be in the way, and neither does what is erased.
    lab.set("g/a/c/0", [1; 2]).await;
    lab.set("g/a/stray", [1; 2]).await;
    lab.replace("/g/a", &v2_array(&[2])).await.unwrap_err();
    lab.replace("/g/a", &json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}}))
        .await
        .unwrap();
    lab.declare("/g/a/c", &v3_array(&[2])).await.unwrap();
    lab.erase("/g/a").await.unwrap();
    lab.declare("/g/a", &v3_array(&[2])).await.unwrap();
    let kept = lab.keys().await;
    assert_eq!(kept, ["g/a/zarr.json", "g/ab/c/0", "g/b/old/c/0", "g/notes", "g/zarr.json"]);
}
