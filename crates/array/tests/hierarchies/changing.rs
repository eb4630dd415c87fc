use array::NodeError;
use meta::documents::Changes;
use serde_json::json;
use store::Precondition;

use crate::lab::{Lab, draft_array, entry_point, path, v2_array, v3_array, v3_group};

#[tokio::test]
async fn shrink_erases_the_chunks_outside() {
    let cases = [("a/zarr.json", v3_array(&[6, 6]), "a/c/", "/"), ("a/.zarray", v2_array(&[6, 6]), "a/", ".")];
    for (key, document, prefix, separator) in cases {
        let lab = Lab::new();
        lab.json(key, &document).await;
        for (row, column) in [(0, 0), (1, 1), (1, 2), (2, 0), (2, 2), (7, 0)] {
            lab.set(&format!("{prefix}{row}{separator}{column}"), [0; 4]).await;
        }
        lab.set("a/other", "x").await;
        let changed = lab.patch("/a", &json!({"shape": [3, 4]})).await.unwrap();
        assert_eq!(changed.zom.to_text().to_value().unwrap()["shape"], json!([3, 4]));
        let mut expected = vec![
            format!("{prefix}0{separator}0"),
            format!("{prefix}1{separator}1"),
            "a/other".to_owned(),
            key.to_owned(),
        ];
        expected.sort();
        assert_eq!(lab.keys().await, expected);
        lab.patch("/a", &json!({"shape": [100, 100]})).await.unwrap();
        assert_eq!(lab.keys().await, expected);
        assert!(matches!(lab.patch("/a", &json!({"shape": [1]})).await, Err(NodeError::Change(_))));
    }
}

#[tokio::test]
async fn shrink_erases_the_chunks_outside_in_the_draft() {
    let lab = Lab::new();
    lab.json("zarr.json", &entry_point()).await;
    lab.json("meta/root/a.array.json", &draft_array(&[6])).await;
    for chunk in ["data/root/a/c0", "data/root/a/c2", "data/root/a2/c2"] {
        lab.set(chunk, [0; 2]).await;
    }
    let changes = Changes::parse(&br#"{"shape": [2]}"#[..]).unwrap();
    lab.nodes.patch(&path("/a"), None, &changes, &Precondition::none()).await.unwrap();
    assert_eq!(lab.document("meta/root/a.array.json").await["shape"], json!([2]));
    assert_eq!(lab.keys().await, ["data/root/a/c0", "data/root/a2/c2", "meta/root/a.array.json", "zarr.json"]);
}

#[tokio::test]
async fn attribute_patches_are_merged() {
    let lab = Lab::new();
    lab.declare("/g", &v3_group(&json!({}))).await.unwrap();
    lab.json("h/.zgroup", &json!({"zarr_format": 2})).await;
    for group in ["/g", "/h"] {
        lab.patch(group, &json!({"attributes": {"a": 1, "b": {"c": 2}}})).await.unwrap();
        let found = lab.patch(group, &json!({"attributes": {"a": null, "b": {"d": 3}}})).await.unwrap();
        assert_eq!(found.zom.to_text().to_value().unwrap()["attributes"], json!({"b": {"c": 2, "d": 3}}), "{group}");
        let refused = lab.patch(group, &json!({"shape": [1]})).await;
        assert!(matches!(refused, Err(NodeError::Change(_))), "{group}");
    }
    assert_eq!(lab.keys().await, ["g/zarr.json", "h/.zattrs", "h/.zgroup"]);
    // A group that has no document gets one.
    lab.json("i/a/zarr.json", &v3_array(&[3])).await;
    lab.patch("/i", &json!({"attributes": {"a": 1}})).await.unwrap();
    assert_eq!(lab.document("i/zarr.json").await["node_type"], "group");
}

#[tokio::test]
async fn patch_updates_both_documents_of_an_array() {
    let lab = Lab::new();
    let mut v3 = v3_array(&[6]);
    v3["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
    lab.json("a/zarr.json", &v3).await;
    lab.json("a/.zarray", &v2_array(&[6])).await;
    lab.patch("/a", &json!({"shape": [4], "attributes": {"n": 1}})).await.unwrap();
    assert_eq!(lab.document("a/zarr.json").await["shape"], json!([4]));
    assert_eq!(lab.document("a/.zarray").await["shape"], json!([4]));
    assert_eq!(lab.document("a/.zattrs").await, json!({"n": 1}));
    // Another array that happens to be there is left alone.
    lab.json("a/.zarray", &v2_array(&[9])).await;
    lab.patch("/a", &json!({"shape": [3]})).await.unwrap();
    assert_eq!(lab.document("a/.zarray").await["shape"], json!([9]));
}

#[tokio::test]
async fn patch_respects_preconditions() {
    let lab = Lab::new();
    let version = lab.declare("/a", &v3_array(&[3])).await.unwrap().node.version.unwrap();
    let patch = async |text: &str, condition| {
        lab.nodes.patch(&path("/a"), None, &Changes::parse(text.to_owned()).unwrap(), &condition).await
    };
    let changed = patch(r#"{"shape": [4]}"#, Precondition::at(version)).await.unwrap();
    let refused = patch(r#"{"shape": [5]}"#, Precondition::at(version)).await;
    let Err(NodeError::PreconditionFailed { current, .. }) = refused else { panic!("it was changed") };
    assert_eq!(current, changed.version);
    let same = patch(r#"{"shape": [4]}"#, Precondition::none()).await.unwrap();
    assert_eq!(same.version, changed.version, "nothing changed");
}
