use serde_json::json;
use zarrd_array::{ArrayError, BrokenNode, Depth, NodeError};
use zarrd_meta::Dialect;

use crate::hierarchies::test_store::{TestStore, draft_array, entry_point, path, v2_array, v3_array, v3_group};

#[tokio::test]
async fn root_of_an_empty_store_is_an_implicit_group() {
    let store = TestStore::new();
    let root = store.node("/", Depth::All).await.unwrap();
    assert!(root.implicit && root.version.is_none());
    assert_eq!((root.dialect, root.zom.len()), (Dialect::V3, 1));
    assert!(matches!(store.node("/x", Depth::All).await, Err(NodeError::Array(ArrayError::NoSuchNode { .. }))));
}

#[tokio::test]
async fn depth_limits_the_returned_levels() {
    let store = TestStore::new();
    store.json("a/zarr.json", &json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 1}})).await;
    store.json("a/b/c/zarr.json", &v3_array(&[3])).await;
    store.set("a/b/c/c/0", [1]).await;
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let depth = async |levels| store.node("/a", Depth::Levels(levels)).await.unwrap().zom.to_text().to_value().unwrap();
    assert_eq!(depth(0).await, json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 1}}));
    let one = depth(1).await;
    assert_eq!(one["members"]["b"], group, "an implicit group without members");
    let all = depth(2).await;
    assert_eq!(all["members"]["b"]["members"]["c"], v3_array(&[3]));
    assert_eq!(all, depth(9).await);
    assert_eq!(all, store.all("/a").await);
    let implicit = store.node("/a/b", Depth::All).await.unwrap();
    assert!(implicit.implicit);
    assert_eq!(implicit.zom.len(), 2);
}

/// Every node of a ZOM has attributes, even if its document has none.
#[tokio::test]
async fn missing_attributes_are_returned_empty() {
    let store = TestStore::new();
    store.json("three/zarr.json", &json!({"zarr_format": 3, "node_type": "group"})).await;
    store.json("two/.zgroup", &json!({"zarr_format": 2})).await;
    store.declare("/parent/group", &json!({"zarr_format": 3, "node_type": "group"})).await.unwrap();
    for path in ["/", "/three", "/two", "/parent", "/parent/group"] {
        let returned = store.node(path, Depth::Levels(0)).await.unwrap().zom.to_text().to_value().unwrap();
        assert_eq!(returned["attributes"], json!({}), "{path}");
    }
}

/// Keys below an array belong to it, and a prefix without documents below it is not a group.
#[tokio::test]
async fn keys_below_an_array_and_plain_keys_are_no_nodes() {
    let store = TestStore::new();
    store.json("a/zarr.json", &v3_array(&[3])).await;
    store.json("a/c/x/zarr.json", &v3_array(&[3])).await;
    store.set("files/deep/down/readme.txt", "x").await;
    let root = store.all("/").await;
    assert_eq!(root["members"], json!({"a": v3_array(&[3])}));
    for nothing in ["/a/c", "/files", "/files/deep"] {
        assert!(
            matches!(store.node(nothing, Depth::All).await, Err(NodeError::Array(ArrayError::NoSuchNode { .. }))),
            "{nothing}"
        );
    }
}

#[tokio::test]
async fn children_of_other_dialects_are_listed_separately() {
    let store = TestStore::new();
    store.json("lab/three/zarr.json", &v3_array(&[3])).await;
    store.json("lab/two/.zarray", &v2_array(&[3])).await;
    store.json("lab/deep/down/.zarray", &v2_array(&[3])).await;
    store.json("lab/draft/zarr.json", &entry_point()).await;
    store.json("lab/draft/meta/root/x.array.json", &draft_array(&[3])).await;
    let found = store.node("/lab", Depth::All).await.unwrap();
    assert_eq!((found.dialect, found.implicit), (Dialect::V3, true));
    assert_eq!(found.zom.to_text().to_value().unwrap()["members"], json!({"three": v3_array(&[3])}));
    let other: Vec<_> = found.other_dialects.iter().map(|(path, dialect)| (path.to_string(), *dialect)).collect();
    let expected = [("/lab/deep", Dialect::V2), ("/lab/draft", Dialect::Draft), ("/lab/two", Dialect::V2)];
    assert_eq!(other, expected.map(|(path, dialect)| (path.to_owned(), dialect)));
    let v2 = store.nodes.node(&path("/lab"), Some(Dialect::V2), Depth::All, None).await.unwrap();
    let members = v2.zom.to_text().to_value().unwrap()["members"].clone();
    assert_eq!(members.as_object().unwrap().keys().collect::<Vec<_>>(), ["deep", "two"]);
}

/// Draft, "Hierarchies": implicit groups exist above other nodes; the keys of a hierarchy are not groups of other
/// dialects.
#[tokio::test]
async fn keys_of_a_draft_hierarchy_are_no_groups() {
    let store = TestStore::new();
    store.json("d/zarr.json", &entry_point()).await;
    store.json("d/meta/root/x.array.json", &draft_array(&[3])).await;
    store.json("d/meta/root/evil/zarr.json", &v3_array(&[3])).await;
    for nothing in ["/d/meta", "/d/data", "/d/meta/root"] {
        assert!(store.node(nothing, Depth::All).await.is_err(), "{nothing}");
    }
}

#[tokio::test]
async fn version_depends_only_on_the_own_documents() {
    let store = TestStore::new();
    store.declare("/g", &v3_group(&json!({"a": v3_array(&[3])}))).await.unwrap();
    let version = async |at: &str| store.node(at, Depth::Levels(0)).await.unwrap().version.unwrap();
    let (group, array) = (version("/g").await, version("/g/a").await);
    store.set("g/a/c/0", [1]).await;
    assert_eq!((version("/g").await, version("/g/a").await), (group, array));
    store.patch("/g/a", &json!({"attributes": {"x": 1}})).await.unwrap();
    assert_eq!(version("/g").await, group);
    assert_ne!(version("/g/a").await, array);
}

#[tokio::test]
async fn unreadable_documents_are_reported_as_broken() {
    let store = TestStore::new();
    store.set("g/a/zarr.json", "{").await;
    let group = store.node("/g", Depth::All).await.unwrap();
    let [BrokenNode { path, dialect, key, reason }] = &group.broken[..] else { panic!("{group:?}") };
    assert_eq!((path.to_string().as_str(), *dialect), ("/g/a", Dialect::V3));
    assert_eq!((key.as_str(), reason.is_empty()), ("g/a/zarr.json", false));
    assert_eq!(store.all("/g").await["members"], json!({}));
    // A member that cannot be opened is still returned.
    let mut unheard = v3_array(&[3]);
    unheard["extensions"] = json!(["example.unheard-of"]);
    store.json("g/a/zarr.json", &unheard).await;
    assert_eq!(store.all("/g").await["members"]["a"], unheard);
    assert!(matches!(store.node("/g/a", Depth::All).await, Err(NodeError::Array(ArrayError::Document { .. }))));
    // Unknown codecs do not prevent reading the metadata of an array.
    let mut unknown = v3_array(&[3]);
    unknown["codecs"] = json!([{"name": "bytes"}, {"name": "unheard-of"}]);
    store.json("g/a/zarr.json", &unknown).await;
    assert_eq!(store.all("/g/a").await, unknown);
}

/// Paths can be deeper than a response, limited only by the length of keys.
#[tokio::test]
async fn deepest_hierarchy_is_truncated_and_erased() {
    let store = TestStore::new();
    let prefix = "a/".repeat(505);
    store.json(&format!("{prefix}zarr.json"), &v3_array(&[3])).await;
    let found = store.node("/", Depth::All).await.unwrap();
    assert_eq!(found.zom.len(), 65);
    let deep = store.node(&format!("/{}", "a/".repeat(470)), Depth::All).await.unwrap();
    assert_eq!(deep.zom.len(), 36);
    assert_eq!(store.erase("/a").await.unwrap(), 1);
}
