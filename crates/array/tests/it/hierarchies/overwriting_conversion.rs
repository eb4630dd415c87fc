//! Conversions in place that write documents anew which the other dialect has already.

use serde_json::{Value, json};
use zarrd_array::{ConvertOptions, Depth, ExistingDocuments, LossPolicy, NodeError};
use zarrd_meta::{Dialect, relation::DialectRelation};

use crate::hierarchies::{
    test_store::{TestStore, path, v2_array, v2_group},
    two_dialects::{NAMED, append, array_of_both, change_document, layouts, patch, read, shapes},
};

async fn overwrite(store: &TestStore, at: &str, from: Dialect, to: Dialect) -> Result<(), NodeError> {
    let (losses, existing) = (LossPolicy::Allow, ExistingDocuments::Overwrite);
    let conversion = ConvertOptions { dialect: to, target: None, losses, existing };
    store.nodes.convert(&path(at), Some(from), &conversion).await.map(|_| ())
}

async fn relation(store: &TestStore, at: &str) -> Option<DialectRelation> {
    store.nodes.node(&path(at), None, Depth::Levels(0), None).await.unwrap().relation
}

const WAYS: [(Dialect, Dialect); 2] = [(Dialect::V2, Dialect::V3), (Dialect::V3, Dialect::V2)];

#[tokio::test]
async fn documents_that_differ_are_made_equal() {
    for (key, members) in layouts() {
        for (from, to) in WAYS {
            let store = array_of_both(5).await;
            change_document(&store, key, &members).await;
            // A document that cannot be read is no source.
            let changed = if key == "a/zarr.json" { Dialect::V3 } else { Dialect::V2 };
            if changed == from {
                continue;
            }
            overwrite(&store, "/a", from, to).await.unwrap();
            assert_eq!(relation(&store, "/a").await, Some(DialectRelation::Same), "{key} {members:?} {to}");
            assert_eq!(append(&store, None, 1, 9).await.unwrap(), [6]);
            for dialect in NAMED {
                assert_eq!(read(&store, dialect).await.unwrap(), [1, 1, 1, 1, 1, 9], "{key} {members:?} {to}");
            }
        }
    }
}

#[tokio::test]
async fn unreadable_document_is_written_anew() {
    for (from, to) in WAYS {
        let store = array_of_both(5).await;
        store.set(if to == Dialect::V2 { "a/.zarray" } else { "a/zarr.json" }, "{").await;
        overwrite(&store, "/a", from, to).await.unwrap();
        assert_eq!(relation(&store, "/a").await, Some(DialectRelation::Same), "{to}");
    }
}

#[tokio::test]
async fn chunks_outside_a_smaller_shape_do_not_come_back() {
    for (from, to) in WAYS {
        let store = array_of_both(9).await;
        let smaller = if from == Dialect::V2 { "a/.zarray" } else { "a/zarr.json" };
        change_document(&store, smaller, &[("shape", json!([3]))]).await;
        overwrite(&store, "/a", from, to).await.unwrap();
        assert_eq!(shapes(&store).await, [json!([3]), json!([3])], "{to}");
        patch(&store, None, &json!({"shape": [9]})).await.unwrap();
        // The edge chunk keeps what it has, as after a shrink.
        assert_eq!(read(&store, None).await.unwrap()[4..], [0, 0, 0, 0, 0], "{to}");
    }
}

#[tokio::test]
async fn without_overwrite_documents_stay() {
    let store = array_of_both(5).await;
    change_document(&store, "a/.zarray", &[("shape", json!([4]))]).await;
    store.convert("/a", Dialect::V2).await.unwrap();
    assert_eq!(shapes(&store).await, [json!([4]), json!([5])]);
}

#[tokio::test]
async fn group_of_v2_at_an_array_becomes_that_array() {
    let store = TestStore::new();
    store.declare("/g", &v2_group(&json!({}))).await.unwrap();
    store.convert("/g", Dialect::V3).await.unwrap();
    store.declare("/g/a", &v2_array(&[2])).await.unwrap();
    store.convert("/g/a", Dialect::V3).await.unwrap();
    store.erase_key("g/a/.zarray").await;
    store.json("g/a/.zgroup", &json!({"zarr_format": 2})).await;
    store
        .json(
            "g/.zmetadata",
            &json!({"zarr_consolidated_format": 1, "metadata": {
        ".zgroup": {"zarr_format": 2}, "a/.zgroup": {"zarr_format": 2}}}),
        )
        .await;
    overwrite(&store, "/g/a", Dialect::V3, Dialect::V2).await.unwrap();
    assert_eq!(relation(&store, "/g/a").await, Some(DialectRelation::Same));
    let copies: Value = store.document("g/.zmetadata").await;
    let mut names: Vec<_> = copies["metadata"].as_object().unwrap().keys().cloned().collect();
    names.retain(|name| name.starts_with("a/"));
    names.sort();
    assert!(names.contains(&"a/.zarray".to_owned()) && !names.contains(&"a/.zgroup".to_owned()), "{names:?}");
}

#[tokio::test]
async fn tree_is_written_anew_as_a_whole() {
    let store = array_of_both(5).await;
    change_document(&store, "a/zarr.json", &[("shape", json!([7])), ("attributes", json!({"n": 1}))]).await;
    store.declare("/", &v2_group(&json!({}))).await.ok();
    overwrite(&store, "/", Dialect::V2, Dialect::V3).await.unwrap();
    assert_eq!(shapes(&store).await, [json!([5]), json!([5])]);
    assert_eq!(relation(&store, "/a").await, Some(DialectRelation::Same));
}
