use serde_json::{Value, json};

use crate::lab::{Lab, v2_array, v2_group, v3_array, v3_group};

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn v2_consolidated_metadata_follows_changes() {
    let lab = Lab::new();
    lab.declare("/g", &v2_group(&json!({"a": v2_array(&[3])}))).await.unwrap();
    let metadata = json!({".zgroup": {"zarr_format": 2}, "a/.zarray": lab.document("g/a/.zarray").await});
    lab.json("g/.zmetadata", &json!({"zarr_consolidated_format": 1, "metadata": metadata})).await;
    lab.declare("/g/x/y", &v2_array(&[5])).await.unwrap();
    let copies = lab.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(names(&copies), [".zgroup", "a/.zarray", "x/.zgroup", "x/y/.zarray"]);
    assert_eq!(copies["x/y/.zarray"], lab.document("g/x/y/.zarray").await);
    lab.patch("/g/a", &json!({"attributes": {"n": 1}, "shape": [7]})).await.unwrap();
    lab.patch("/g", &json!({"attributes": {"m": 1}})).await.unwrap();
    let copies = lab.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!((&copies["a/.zarray"]["shape"], &copies["a/.zattrs"]), (&json!([7]), &json!({"n": 1})));
    assert_eq!(copies[".zattrs"], json!({"m": 1}));
    lab.erase("/g/x").await.unwrap();
    let copies = lab.document("g/.zmetadata").await["metadata"].clone();
    assert_eq!(names(&copies), [".zattrs", ".zgroup", "a/.zarray", "a/.zattrs"]);
}

#[tokio::test]
async fn v3_consolidated_metadata_follows_changes() {
    let lab = Lab::new();
    lab.declare("/g", &v3_group(&json!({"a": v3_array(&[3])}))).await.unwrap();
    let mut group = lab.document("g/zarr.json").await;
    let copies = json!({"a": v3_array(&[3])});
    group["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": copies});
    lab.json("g/zarr.json", &group).await;
    assert!(lab.all("/g").await.get("consolidated_metadata").is_none());
    let copies = async || lab.document("g/zarr.json").await["consolidated_metadata"]["metadata"].clone();
    lab.declare("/g/x/y", &v3_array(&[5])).await.unwrap();
    assert_eq!(names(&copies().await), ["a", "x", "x/y"]);
    lab.patch("/g/x/y", &json!({"shape": [7]})).await.unwrap();
    assert_eq!(copies().await["x/y"], lab.document("g/x/y/zarr.json").await);
    lab.patch("/g", &json!({"attributes": {"m": 1}})).await.unwrap();
    assert_eq!(names(&copies().await), ["a", "x", "x/y"]);
    lab.replace("/g", &v3_group(&json!({"a": v3_array(&[9]), "b": v3_array(&[1])}))).await.unwrap();
    assert_eq!(names(&copies().await), ["a", "b"]);
    assert_eq!(copies().await["a"]["shape"], json!([9]));
    lab.erase("/g/a").await.unwrap();
    assert_eq!(names(&copies().await), ["b"]);
    // Nothing is consolidated that was not.
    lab.declare("/h", &v3_group(&json!({}))).await.unwrap();
    lab.declare("/h/a", &v3_array(&[1])).await.unwrap();
    assert!(lab.document("h/zarr.json").await.get("consolidated_metadata").is_none());
}
