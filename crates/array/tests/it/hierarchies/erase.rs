use serde_json::json;
use zarrd_array::{ArrayError, Depth, NodeError, NodeRejection};
use zarrd_meta::Dialect;
use zarrd_store::{KeyCount, Precondition};

use crate::hierarchies::test_store::{
    TestStore, draft_array, entry_point, path, v2_array, v2_group, v3_array, v3_group,
};

/// v3, "Erasing": all keys below the node's prefix, and no other keys.
#[tokio::test]
async fn erase_removes_exactly_the_keys_of_the_node() {
    let cases = [
        (
            v3_array(&[3]),
            v3_group(&json!({"x": v3_array(&[3])})),
            vec!["foo/zarr.json", "foo2/zarr.json", "g/x/zarr.json", "g/zarr.json"],
        ),
        (
            v2_array(&[3]),
            v2_group(&json!({"x": v2_array(&[3])})),
            vec!["foo/.zarray", "foo2/.zarray", "g/.zgroup", "g/x/.zarray"],
        ),
    ];
    for (array, group, keys) in cases {
        let store = TestStore::new();
        store.declare("/foo", &array).await.unwrap();
        store.declare("/foo2", &array).await.unwrap();
        store.declare("/g", &group).await.unwrap();
        assert_eq!(store.keys().await, keys);
        store.set("foo/c/0", [0]).await;
        assert_eq!(store.erase("/foo").await.unwrap(), 2);
        assert_eq!(store.keys().await, keys[1..]);
        assert!(matches!(store.erase("/foo").await, Err(NodeError::Array(ArrayError::NoSuchNode { .. }))));
        assert_eq!(store.erase("/g").await.unwrap(), 2);
        assert_eq!(store.keys().await, keys[1..2]);
        assert_eq!(store.erase("/").await.unwrap(), 1, "the root is an implicit group");
    }
}

#[tokio::test]
async fn erase_removes_an_implicit_group() {
    let store = TestStore::new();
    store.json("a/b/c/.zarray", &v2_array(&[3])).await;
    store.set("a/b/readme", "x").await;
    store.set("a/other", "x").await;
    assert_eq!(store.erase("/a/b").await.unwrap(), 2);
    assert_eq!(store.keys().await, ["a/other"]);
}

/// Draft, "Store operations": "To delete an array or a group at path `P`": its metadata keys, `meta/root{P}/` and
/// `data/root{P}/`.
#[tokio::test]
async fn erase_removes_draft_nodes() {
    let store = TestStore::new();
    let all = async || {
        store.json("zarr.json", &entry_point()).await;
        for array in ["foo/bar", "foo/baz", "foo2", "implied/deep/x"] {
            store.json(&format!("meta/root/{array}.array.json"), &draft_array(&[3])).await;
            store.set(&format!("data/root/{array}/c0"), [0]).await;
        }
        store.json("meta/root/foo.group.json", &json!({"extensions": [], "attributes": {}})).await;
        store.set("beside", "x").await;
    };
    let erase = async |at: &str, expected: u64| {
        all().await;
        let erased = store.nodes.erase(&path(at), Some(Dialect::Draft), &Precondition::none()).await.unwrap();
        assert_eq!(erased, KeyCount::exact(expected), "{at}");
        store.keys().await
    };
    assert_eq!(erase("/foo/bar", 2).await.len(), 9);
    let leftover = erase("/foo", 5).await;
    assert!(!leftover.iter().any(|key| key.contains("foo/") || key.contains("foo.")), "{leftover:?}");
    assert!(
        leftover.contains(&"meta/root/foo2.array.json".to_owned())
            && leftover.contains(&"data/root/foo2/c0".to_owned())
    );
    let leftover = erase("/implied", 2).await;
    assert!(!leftover.iter().any(|key| key.contains("implied")), "{leftover:?}");
    assert_eq!(erase("/", 10).await, ["beside"]);
}

#[tokio::test]
async fn erase_removes_a_draft_root_array() {
    let store = TestStore::new();
    store.json("d/zarr.json", &entry_point()).await;
    store.json("d/meta/root.array.json", &draft_array(&[3])).await;
    store.set("d/data/root/c0", [0]).await;
    assert_eq!(store.erase("/d").await.unwrap(), 3);
    assert!(store.keys().await.is_empty());
}

#[tokio::test]
async fn erase_respects_preconditions() {
    let store = TestStore::new();
    let version = store.declare("/a", &v3_array(&[3])).await.unwrap().node.version.unwrap();
    store.patch("/a", &json!({"attributes": {"n": 1}})).await.unwrap();
    let erased = store.nodes.erase(&path("/a"), None, &Precondition::at(version)).await;
    assert!(matches!(erased, Err(NodeError::Rejected(NodeRejection::PreconditionFailed { .. }))));
    let version = store.node("/a", Depth::Levels(0)).await.unwrap().version.unwrap();
    assert_eq!(store.nodes.erase(&path("/a"), None, &Precondition::at(version)).await.unwrap(), KeyCount::exact(1));
}

/// A node is erased in one commit, for any number of chunks.
#[tokio::test]
async fn large_erase_is_one_commit() {
    let store = TestStore::new();
    store.declare("/g", &v3_group(&json!({"a": v3_array(&[300_000])}))).await.unwrap();
    for chunk in 0..100_050 {
        store.set(&format!("g/a/c/{chunk}"), []).await;
    }
    let erased = store.nodes.erase(&path("/g"), None, &Precondition::none()).await.unwrap();
    assert_eq!(erased, KeyCount { count: 100_000, exact: false });
    assert!(store.keys().await.is_empty());
}

/// A node that cannot be opened can still be erased.
#[tokio::test]
async fn unreadable_nodes_can_be_erased() {
    let store = TestStore::new();
    let mut unknown = v3_array(&[3]);
    unknown["codecs"] = json!([{"name": "bytes"}, {"name": "unheard-of"}]);
    store.json("a/zarr.json", &unknown).await;
    store.set("a/c/0", [0]).await;
    store.set("b/zarr.json", "{").await;
    store.set("c/.zarray", "{").await;
    store.set("c/0", [0]).await;
    for (node, keys) in [("/a", 2), ("/b", 1), ("/c", 2)] {
        assert_eq!(store.erase(node).await.unwrap(), keys, "{node}");
    }
    assert!(store.keys().await.is_empty());
}
