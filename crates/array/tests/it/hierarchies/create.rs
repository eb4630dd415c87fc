use std::sync::Arc;

use serde_json::{Value, json};
use zarrd_array::{CreateAction, CreateOptions, Depth, IfExists, NodeError, NodeRejection};
use zarrd_meta::Dialect;
use zarrd_store::Precondition;

use crate::hierarchies::test_store::{TestStore, entry_point, path, v2_array, v2_group, v3_array, v3_group, zom};

/// v3, "Creating a group, creating an array": the metadata documents of explicit nodes; v2, "Hierarchies": every group
/// above a node exists.
#[tokio::test]
async fn created_nodes_have_the_specified_keys() {
    let tree = |array: &Value, group: &dyn Fn(&Value) -> Value| group(&json!({"a": array, "g": group(&json!({}))}));
    let v3 = tree(&v3_array(&[3]), &v3_group);
    let v2 = tree(&v2_array(&[3]), &v2_group);
    for (document, keys) in [
        (v3, vec!["lab/x/a/zarr.json", "lab/x/g/zarr.json", "lab/x/zarr.json", "lab/zarr.json"]),
        (v2, vec!["lab/.zgroup", "lab/x/.zgroup", "lab/x/a/.zarray", "lab/x/g/.zgroup"]),
    ] {
        let store = TestStore::new();
        let declared = store.declare("/lab/x", &document).await.unwrap();
        assert_eq!(declared.action, CreateAction::Created);
        assert_eq!(declared.node.zom.to_text().to_value().unwrap(), document);
        assert_eq!(store.keys().await, keys);
        assert_eq!(store.declare("/lab/x", &document).await.unwrap().action, CreateAction::Unchanged);
        assert_eq!(store.all("/lab/x").await, document);
    }
}

#[tokio::test]
async fn v2_attributes_are_stored_in_zattrs() {
    let store = TestStore::new();
    let mut array = v2_array(&[3]);
    array["attributes"] = json!({"unit": "m"});
    store.declare("/a", &array).await.unwrap();
    assert_eq!(store.keys().await, ["a/.zarray", "a/.zattrs"]);
    assert_eq!(store.document("a/.zattrs").await, json!({"unit": "m"}));
    assert!(store.document("a/.zarray").await.get("attributes").is_none());
    array["attributes"] = json!({});
    assert_eq!(store.replace("/a", &array).await.unwrap().action, CreateAction::Replaced);
    assert_eq!(store.keys().await, ["a/.zarray"]);
}

#[tokio::test]
async fn different_node_is_rejected_with_differences() {
    let store = TestStore::new();
    store.declare("/g", &v3_group(&json!({"a": v3_array(&[3]), "b": v3_array(&[3])}))).await.unwrap();
    let before = store.all("/g").await;
    let declared = v3_group(&json!({"a": v3_array(&[4])}));
    let Err(NodeError::Rejected(NodeRejection::NodeConflict { path, differences })) =
        store.declare("/g", &declared).await
    else {
        panic!("it was accepted")
    };
    assert_eq!(path.to_string(), "/g");
    let pointers: Vec<_> = differences.iter().map(|difference| difference.pointer.as_str()).collect();
    assert_eq!(pointers, ["/members/a/shape/0", "/members/b"]);
    assert_eq!(store.all("/g").await, before);
    // A document without members does not compare them.
    let silent = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    assert_eq!(store.declare("/g", &silent).await.unwrap().action, CreateAction::Unchanged);
}

#[tokio::test]
async fn replace_erases_removed_members() {
    let store = TestStore::new();
    let mut unchanged = v3_array(&[3]);
    store
        .declare("/g", &v3_group(&json!({"keeps": unchanged, "gone": v3_array(&[3]), "other": v3_array(&[3])})))
        .await
        .unwrap();
    for key in ["g/keeps/c/0", "g/gone/c/0", "g/other/c/0", "g2/c/0"] {
        store.set(key, [1, 2]).await;
    }
    unchanged["attributes"] = json!({"new": true});
    unchanged["dimension_names"] = json!(["x"]);
    let declared = v3_group(&json!({"keeps": unchanged, "other": v3_array(&[5]), "new": v3_group(&json!({}))}));
    let done = store.replace("/g", &declared).await.unwrap();
    assert_eq!(done.action, CreateAction::Replaced);
    assert_eq!(done.node.zom.to_text().to_value().unwrap(), declared);
    assert_eq!(
        store.keys().await,
        ["g/keeps/c/0", "g/keeps/zarr.json", "g/new/zarr.json", "g/other/zarr.json", "g/zarr.json", "g2/c/0"]
    );
    // An array replaces a group.
    store.replace("/g", &v3_array(&[1])).await.unwrap();
    assert_eq!(store.keys().await, ["g/zarr.json", "g2/c/0"]);
}

#[tokio::test]
async fn create_respects_preconditions() {
    let store = TestStore::new();
    let declare = async |document: Value, condition: Precondition| {
        let declaration =
            CreateOptions { precondition: condition, if_exists: IfExists::Replace, ..CreateOptions::default() };
        store.nodes.create(&path("/g"), Arc::new(zom(&document)), &declaration).await
    };
    let rejected = declare(v3_group(&json!({})), Precondition::present()).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::PreconditionFailed { current: None, .. }))));
    let created = declare(v3_group(&json!({})), Precondition::absent()).await.unwrap();
    let version = created.node.version.unwrap();
    let rejected = declare(v3_array(&[1]), Precondition::absent()).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::PreconditionFailed { current: Some(_), .. }))));
    let replaced = declare(v3_array(&[1]), Precondition::at(version)).await.unwrap();
    assert_ne!(replaced.node.version.unwrap(), version);
    assert!(declare(v3_array(&[2]), Precondition::at(version)).await.is_err());
}

#[tokio::test]
async fn node_at_an_invalid_place_is_rejected() {
    let store = TestStore::new();
    store.declare("/a", &v3_array(&[3])).await.unwrap();
    store.declare("/b", &v2_array(&[3])).await.unwrap();
    for (below, array) in [("/a/x", "/a"), ("/a/x/y", "/a"), ("/b/x", "/b")] {
        let Err(NodeError::Rejected(NodeRejection::ParentIsArray { array: found, .. })) =
            store.declare(below, &v3_array(&[1])).await
        else {
            panic!("{below} was accepted")
        };
        assert_eq!(found.to_string(), array);
    }
    store.json("d/zarr.json", &entry_point()).await;
    let rejected = store.declare_as("/d", &v3_group(&json!({})), Dialect::V3).await;
    assert!(matches!(
        rejected,
        Err(NodeError::Rejected(NodeRejection::DialectConflict { dialect: Dialect::Draft, .. }))
    ));
    let rejected = store.declare_as("/b", &v3_array(&[3]), Dialect::V3).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::DialectConflict { dialect: Dialect::V2, .. }))));
    let rejected = store.declare("/__x", &v3_array(&[1])).await;
    assert!(matches!(rejected, Err(NodeError::Name { .. })));
    let long = format!("/{}", "x".repeat(1020));
    assert!(matches!(store.declare(&long, &v3_array(&[1])).await, Err(NodeError::Name { .. })));
    assert_eq!(store.keys().await, ["a/zarr.json", "b/.zarray", "d/zarr.json"]);
}

/// A model is stored in its own dialect; a v3 model below a draft hierarchy is stored in the draft.
#[tokio::test]
async fn dialect_follows_the_model_and_its_parent() {
    let store = TestStore::new();
    store.declare("/three", &v3_group(&json!({}))).await.unwrap();
    store.declare("/three/two/a", &v2_array(&[3])).await.unwrap();
    store.declare("/three/two/b", &v3_array(&[3])).await.unwrap();
    store.declare_as("/draft", &v3_group(&json!({})), Dialect::Draft).await.unwrap();
    store.declare("/draft/c", &v3_array(&[3])).await.unwrap();
    assert_eq!(
        store.keys().await,
        [
            "draft/meta/root.group.json",
            "draft/meta/root/c.array.json",
            "draft/zarr.json",
            "three/two/.zgroup",
            "three/two/a/.zarray",
            "three/two/b/zarr.json",
            "three/zarr.json",
        ]
    );
}

#[tokio::test]
async fn declared_implicit_group_becomes_explicit() {
    let store = TestStore::new();
    store.json("g/a/zarr.json", &v3_array(&[3])).await;
    let declared = v3_group(&json!({"a": v3_array(&[3])}));
    assert_eq!(store.declare("/g", &declared).await.unwrap().action, CreateAction::Created);
    assert!(!store.node("/g", Depth::Levels(0)).await.unwrap().implicit);
    assert_eq!(store.declare("/g", &declared).await.unwrap().action, CreateAction::Unchanged);
    assert_eq!(store.keys().await, ["g/a/zarr.json", "g/zarr.json"]);
}

/// One commit creates all nodes, and one response returns them.
#[tokio::test]
async fn two_thousand_nodes_are_created_in_one_commit() {
    let store = TestStore::new();
    let group = |names: usize| {
        let members = (0..names).map(|name| (format!("a{name}"), v3_array(&[3]))).collect::<serde_json::Map<_, _>>();
        v3_group(&members.into())
    };
    let members = (0..20).map(|name| (format!("g{name}"), group(99))).collect::<serde_json::Map<_, _>>();
    let tree = v3_group(&members.into());
    let declared = store.declare("/big", &tree).await.unwrap();
    assert_eq!(declared.node.zom.len(), 2001);
    assert_eq!(declared.node.zom.to_text().to_value().unwrap(), tree);
    assert_eq!(store.declare("/big", &tree).await.unwrap().action, CreateAction::Unchanged);
    assert_eq!(store.erase("/big").await.unwrap(), 2001);
}
