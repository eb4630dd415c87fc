use array::{ArrayError, Depth, NodeError};
use meta::Dialect;
use serde_json::json;
use store::{ErasedKeys, Precondition};

use crate::lab::{Lab, draft_array, entry_point, path, v2_array, v2_group, v3_array, v3_group};

/// v3, "Erasing": everything below the node's prefix, and nothing beside it.
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
        let lab = Lab::new();
        lab.declare("/foo", &array).await.unwrap();
        lab.declare("/foo2", &array).await.unwrap();
        lab.declare("/g", &group).await.unwrap();
        assert_eq!(lab.keys().await, keys);
        lab.set("foo/c/0", [0]).await;
        assert_eq!(lab.erase("/foo").await.unwrap(), 2);
        assert_eq!(lab.keys().await, keys[1..]);
        assert!(matches!(lab.erase("/foo").await, Err(NodeError::Array(ArrayError::NoSuchNode { .. }))));
        assert_eq!(lab.erase("/g").await.unwrap(), 2);
        assert_eq!(lab.keys().await, keys[1..2]);
        assert_eq!(lab.erase("/").await.unwrap(), 1, "the root is an implicit group");
    }
}

#[tokio::test]
async fn erase_removes_an_implicit_group() {
    let lab = Lab::new();
    lab.json("a/b/c/.zarray", &v2_array(&[3])).await;
    lab.set("a/b/readme", "x").await;
    lab.set("a/other", "x").await;
    assert_eq!(lab.erase("/a/b").await.unwrap(), 2);
    assert_eq!(lab.keys().await, ["a/other"]);
}

/// Draft, "Store operations": "To delete an array or a group at path `P`": its metadata keys, `meta/root{P}/` and `data/root{P}/`.
#[tokio::test]
async fn erase_removes_draft_nodes() {
    let lab = Lab::new();
    let all = async || {
        lab.json("zarr.json", &entry_point()).await;
        for array in ["foo/bar", "foo/baz", "foo2", "implied/deep/x"] {
            lab.json(&format!("meta/root/{array}.array.json"), &draft_array(&[3])).await;
            lab.set(&format!("data/root/{array}/c0"), [0]).await;
        }
        lab.json("meta/root/foo.group.json", &json!({"extensions": [], "attributes": {}})).await;
        lab.set("beside", "x").await;
    };
    let erase = async |at: &str, expected: u64| {
        all().await;
        let erased = lab.nodes.erase(&path(at), Some(Dialect::Draft), &Precondition::none()).await.unwrap();
        assert_eq!(erased, ErasedKeys::exactly(expected), "{at}");
        lab.keys().await
    };
    assert_eq!(erase("/foo/bar", 2).await.len(), 9);
    let left = erase("/foo", 5).await;
    assert!(!left.iter().any(|key| key.contains("foo/") || key.contains("foo.")), "{left:?}");
    assert!(left.contains(&"meta/root/foo2.array.json".to_owned()) && left.contains(&"data/root/foo2/c0".to_owned()));
    let left = erase("/implied", 2).await;
    assert!(!left.iter().any(|key| key.contains("implied")), "{left:?}");
    assert_eq!(erase("/", 10).await, ["beside"]);
}

#[tokio::test]
async fn erase_removes_a_draft_root_array() {
    let lab = Lab::new();
    lab.json("d/zarr.json", &entry_point()).await;
    lab.json("d/meta/root.array.json", &draft_array(&[3])).await;
    lab.set("d/data/root/c0", [0]).await;
    assert_eq!(lab.erase("/d").await.unwrap(), 3);
    assert!(lab.keys().await.is_empty());
}

#[tokio::test]
async fn erase_respects_preconditions() {
    let lab = Lab::new();
    let version = lab.declare("/a", &v3_array(&[3])).await.unwrap().node.version.unwrap();
    lab.patch("/a", &json!({"attributes": {"n": 1}})).await.unwrap();
    let erased = lab.nodes.erase(&path("/a"), None, &Precondition::at(version)).await;
    assert!(matches!(erased, Err(NodeError::PreconditionFailed { .. })));
    let version = lab.node("/a", Depth::Levels(0)).await.unwrap().version.unwrap();
    assert_eq!(lab.nodes.erase(&path("/a"), None, &Precondition::at(version)).await.unwrap(), ErasedKeys::exactly(1));
}

/// A node is erased in one commit, however many chunks it has.
#[tokio::test]
async fn large_erase_is_one_commit() {
    let lab = Lab::new();
    lab.declare("/g", &v3_group(&json!({"a": v3_array(&[300_000])}))).await.unwrap();
    for chunk in 0..100_050 {
        lab.set(&format!("g/a/c/{chunk}"), []).await;
    }
    let erased = lab.nodes.erase(&path("/g"), None, &Precondition::none()).await.unwrap();
    assert_eq!(erased, ErasedKeys { count: 100_000, exact: false });
    assert!(lab.keys().await.is_empty());
}

/// What cannot be opened can still be erased.
#[tokio::test]
async fn unreadable_nodes_can_be_erased() {
    let lab = Lab::new();
    let mut unknown = v3_array(&[3]);
    unknown["codecs"] = json!([{"name": "bytes"}, {"name": "unheard-of"}]);
    lab.json("a/zarr.json", &unknown).await;
    lab.set("a/c/0", [0]).await;
    lab.set("b/zarr.json", "{").await;
    lab.set("c/.zarray", "{").await;
    lab.set("c/0", [0]).await;
    for (node, keys) in [("/a", 2), ("/b", 1), ("/c", 2)] {
        assert_eq!(lab.erase(node).await.unwrap(), keys, "{node}");
    }
    assert!(lab.keys().await.is_empty());
}
