use serde_json::{Value, json};

use crate::hierarchies::test_store::{TestStore, v2_array, v2_group, v3_array, v3_group};

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn v2_consolidated_metadata_follows_changes() {
    let store = TestStore::new();
    store.declare("/g", &v2_group(&json!({"a": v2_array(&[3])}))).await.unwrap();
    let metadata = json!({".zgroup": {"zarr_format": 2}, "a/.zarray": store.document("g/a/.zarray").await});
    store.json("g/.zmetadata", &json!({"zarr_consolidated_format": 1, "metadata": metadata})).await;
    store.declare("/g/x/y", &v2_array(&[5])).await.unwrap();
    let copies = store.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(names(&copies), [".zgroup", "a/.zarray", "x/.zgroup", "x/y/.zarray"]);
    assert_eq!(copies["x/y/.zarray"], store.document("g/x/y/.zarray").await);
    store.patch("/g/a", &json!({"attributes": {"n": 1}, "shape": [7]})).await.unwrap();
    store.patch("/g", &json!({"attributes": {"m": 1}})).await.unwrap();
    let copies = store.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!((&copies["a/.zarray"]["shape"], &copies["a/.zattrs"]), (&json!([7]), &json!({"n": 1})));
    assert_eq!(copies[".zattrs"], json!({"m": 1}));
    store.erase("/g/x").await.unwrap();
    let copies = store.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(names(&copies), [".zattrs", ".zgroup", "a/.zarray", "a/.zattrs"]);
}

#[tokio::test]
async fn v3_consolidated_metadata_follows_changes() {
    let store = TestStore::new();
    store.declare("/g", &v3_group(&json!({"a": v3_array(&[3])}))).await.unwrap();
    let mut group = store.document("g/zarr.json").await;
    let copies = json!({"a": v3_array(&[3])});
    group["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": copies});
    store.json("g/zarr.json", &group).await;
    assert!(store.all("/g").await.get("consolidated_metadata").is_none());
    let copies = async || store.document("g/zarr.json").await["consolidated_metadata"]["metadata"].clone();
    store.declare("/g/x/y", &v3_array(&[5])).await.unwrap();
    assert_eq!(names(&copies().await), ["a", "x", "x/y"]);
    store.patch("/g/x/y", &json!({"shape": [7]})).await.unwrap();
    assert_eq!(copies().await["x/y"], store.document("g/x/y/zarr.json").await);
    store.patch("/g", &json!({"attributes": {"m": 1}})).await.unwrap();
    assert_eq!(names(&copies().await), ["a", "x", "x/y"]);
    store.replace("/g", &v3_group(&json!({"a": v3_array(&[9]), "b": v3_array(&[1])}))).await.unwrap();
    assert_eq!(names(&copies().await), ["a", "b"]);
    assert_eq!(copies().await["a"]["shape"], json!([9]));
    store.erase("/g/a").await.unwrap();
    assert_eq!(names(&copies().await), ["b"]);
    // Nothing is consolidated that was not consolidated before.
    store.declare("/h", &v3_group(&json!({}))).await.unwrap();
    store.declare("/h/a", &v3_array(&[1])).await.unwrap();
    assert!(store.document("h/zarr.json").await.get("consolidated_metadata").is_none());
}
