use serde_json::json;
use zarrd_array::NodeError;
use zarrd_array::NodeRejection;
use zarrd_meta::documents::NodePatch;
use zarrd_store::Precondition;

use crate::hierarchies::test_store::{TestStore, draft_array, entry_point, path, v2_array, v3_array, v3_group};

#[tokio::test]
async fn shrink_erases_the_chunks_outside() {
    let cases = [("a/zarr.json", v3_array(&[6, 6]), "a/c/", "/"), ("a/.zarray", v2_array(&[6, 6]), "a/", ".")];
    for (key, document, prefix, separator) in cases {
        let store = TestStore::new();
        store.json(key, &document).await;
        for (row, column) in [(0, 0), (1, 1), (1, 2), (2, 0), (2, 2), (7, 0)] {
            store.set(&format!("{prefix}{row}{separator}{column}"), [0; 4]).await;
        }
        store.set("a/other", "x").await;
        let changed = store.patch("/a", &json!({"shape": [3, 4]})).await.unwrap();
        assert_eq!(changed.zom.to_text().to_value().unwrap()["shape"], json!([3, 4]));
        let mut expected = vec![
            format!("{prefix}0{separator}0"),
            format!("{prefix}1{separator}1"),
            "a/other".to_owned(),
            key.to_owned(),
        ];
        expected.sort();
        assert_eq!(store.keys().await, expected);
        store.patch("/a", &json!({"shape": [100, 100]})).await.unwrap();
        assert_eq!(store.keys().await, expected);
        assert!(matches!(store.patch("/a", &json!({"shape": [1]})).await, Err(NodeError::Change(_))));
    }
}

#[tokio::test]
async fn shrink_erases_the_chunks_outside_in_the_draft() {
    let store = TestStore::new();
    store.json("zarr.json", &entry_point()).await;
    store.json("meta/root/a.array.json", &draft_array(&[6])).await;
    for chunk in ["data/root/a/c0", "data/root/a/c2", "data/root/a2/c2"] {
        store.set(chunk, [0; 2]).await;
    }
    let changes = NodePatch::parse(&br#"{"shape": [2]}"#[..]).unwrap();
    store.nodes.patch(&path("/a"), None, &changes, &Precondition::none()).await.unwrap();
    assert_eq!(store.document("meta/root/a.array.json").await["shape"], json!([2]));
    assert_eq!(store.keys().await, ["data/root/a/c0", "data/root/a2/c2", "meta/root/a.array.json", "zarr.json"]);
}

#[tokio::test]
async fn attribute_patches_are_merged() {
    let store = TestStore::new();
    store.declare("/g", &v3_group(&json!({}))).await.unwrap();
    store.json("h/.zgroup", &json!({"zarr_format": 2})).await;
    for group in ["/g", "/h"] {
        store.patch(group, &json!({"attributes": {"a": 1, "b": {"c": 2}}})).await.unwrap();
        let found = store.patch(group, &json!({"attributes": {"a": null, "b": {"d": 3}}})).await.unwrap();
        assert_eq!(found.zom.to_text().to_value().unwrap()["attributes"], json!({"b": {"c": 2, "d": 3}}), "{group}");
        let rejected = store.patch(group, &json!({"shape": [1]})).await;
        assert!(matches!(rejected, Err(NodeError::Change(_))), "{group}");
    }
    assert_eq!(store.keys().await, ["g/zarr.json", "h/.zattrs", "h/.zgroup"]);
    // A group without a document gets one.
    store.json("i/a/zarr.json", &v3_array(&[3])).await;
    store.patch("/i", &json!({"attributes": {"a": 1}})).await.unwrap();
    assert_eq!(store.document("i/zarr.json").await["node_type"], "group");
}

#[tokio::test]
async fn patch_updates_both_documents_of_an_array() {
    let store = TestStore::new();
    let mut v3 = v3_array(&[6]);
    v3["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
    store.json("a/zarr.json", &v3).await;
    store.json("a/.zarray", &v2_array(&[6])).await;
    store.patch("/a", &json!({"shape": [4], "attributes": {"n": 1}})).await.unwrap();
    assert_eq!(store.document("a/zarr.json").await["shape"], json!([4]));
    assert_eq!(store.document("a/.zarray").await["shape"], json!([4]));
    assert_eq!(store.document("a/.zattrs").await, json!({"n": 1}));
    // An array with other chunk keys at the same path is unaffected.
    let mut other = v3_array(&[4]);
    other["chunk_key_encoding"] = json!({"name": "default"});
    store.json("a/zarr.json", &other).await;
    store.patch("/a", &json!({"shape": [3]})).await.unwrap();
    assert_eq!(store.document("a/.zarray").await["shape"], json!([4]));
}

#[tokio::test]
async fn patch_respects_preconditions() {
    let store = TestStore::new();
    let version = store.declare("/a", &v3_array(&[3])).await.unwrap().node.version.unwrap();
    let patch = async |text: &str, condition| {
        store.nodes.patch(&path("/a"), None, &NodePatch::parse(text.to_owned()).unwrap(), &condition).await
    };
    let changed = patch(r#"{"shape": [4]}"#, Precondition::at(version)).await.unwrap();
    let rejected = patch(r#"{"shape": [5]}"#, Precondition::at(version)).await;
    let Err(NodeError::Rejected(NodeRejection::PreconditionFailed { current, .. })) = rejected else {
        panic!("the patch succeeded")
    };
    assert_eq!(current, changed.version);
    let same = patch(r#"{"shape": [4]}"#, Precondition::none()).await.unwrap();
    assert_eq!(same.version, changed.version, "nothing changed");
}
