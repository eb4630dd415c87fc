//! Decisions that rest on the absence of something: it appears after the decision, before its commit.

use serde_json::{Value, json};
use zarrd_array::{ArrayError, CreateOptions, IfExists, NodeError, NodeRejection, WriteError};
use zarrd_meta::{Dialect, relation::DialectRelation};
use zarrd_store::Precondition;

use crate::hierarchies::{
    concurrency::InterferingStore,
    copies::{assert_copies_match, consolidate},
    test_store::{TestStore, path, v2_array, v2_group, v3_array, v3_group},
    two_dialects::{append, make_both, node_differs, patch, read, shapes, snapshot, write, write_differs},
};

/// An array of v3 with the keys of v2.
fn v3_array_with_v2_keys(shape: &[u64]) -> Value {
    let mut document = v3_array(shape);
    document["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
    document
}

/// An array of five ones at `/a` in one dialect, and the key and document that it would have in the other one.
async fn array_of_one(
    dialect: Dialect,
    extent: u64,
) -> (TestStore, std::sync::Arc<InterferingStore>, &'static str, Value) {
    let (store, interference) = InterferingStore::create();
    let (two, three) = (v2_array(&[5]), v3_array_with_v2_keys(&[5]));
    let (key, other) = match dialect {
        Dialect::V2 => ("a/zarr.json", v3_array_with_v2_keys(&[extent])),
        _ => ("a/.zarray", v2_array(&[extent])),
    };
    store.declare("/a", if dialect == Dialect::V2 { &two } else { &three }).await.unwrap();
    write(&store, None, "...", 1).await.unwrap();
    (store, interference, key, other)
}

#[tokio::test]
async fn append_grows_a_document_that_appears() {
    for dialect in [Dialect::V2, Dialect::V3] {
        let (store, interference, key, other) = array_of_one(dialect, 5).await;
        interference.write_before_commit(key, other);
        assert_eq!(append(&store, Some(dialect), 2, 9).await.unwrap(), [7]);
        assert_eq!(shapes(&store).await, [json!([7]), json!([7])], "{dialect}");
    }
}

#[tokio::test]
async fn append_continues_after_a_larger_document_that_appears() {
    for dialect in [Dialect::V2, Dialect::V3] {
        let (store, interference, key, other) = array_of_one(dialect, 8).await;
        store.set("a/3", [7, 7]).await;
        interference.write_before_commit(key, other);
        assert_eq!(append(&store, Some(dialect), 1, 9).await.unwrap(), [9]);
        assert_eq!(shapes(&store).await, [json!([9]), json!([9])], "{dialect}");
        assert_eq!(read(&store, None).await.unwrap()[6..], [7, 7, 9], "{dialect}");
    }
}

#[tokio::test]
async fn region_write_adopts_a_larger_document_that_appears() {
    for dialect in [Dialect::V2, Dialect::V3] {
        let (store, interference, key, other) = array_of_one(dialect, 6).await;
        store.set("a/2", [1, 7]).await;
        interference.write_before_commit(key, other);
        // The write covered the edge chunk of the smaller shape, and covers half a chunk of the larger one.
        let refused = write(&store, Some(dialect), "4", 9).await;
        assert!(matches!(refused, Err(WriteError::ShapeChanged { .. })), "{dialect} {refused:?}");
        write(&store, Some(dialect), "4", 9).await.unwrap();
        assert_eq!(read(&store, Some(dialect)).await.unwrap(), [1, 1, 1, 1, 9, 7], "{dialect}");
    }
}

#[tokio::test]
async fn shrink_takes_a_document_that_appears_along() {
    for dialect in [Dialect::V2, Dialect::V3] {
        let (store, interference, key, other) = array_of_one(dialect, 5).await;
        interference.write_before_commit(key, other);
        patch(&store, Some(dialect), &json!({"shape": [2]})).await.unwrap();
        assert_eq!(shapes(&store).await, [json!([2]), json!([2])], "{dialect}");
    }
}

/// Between the two commits of a shrink another program appends by the other document.
#[tokio::test]
async fn shrink_erases_no_chunk_within_a_document_that_grows_meanwhile() {
    for (key, document) in [("a/.zarray", v2_array(&[8])), ("a/zarr.json", v3_array_with_v2_keys(&[8]))] {
        let (store, interference) = InterferingStore::create();
        make_both(&store, &[8]).await;
        write(&store, None, "...", 1).await.unwrap();
        interference.write_before_commit("other", json!(1));
        interference.write_before_commit(key, document);
        patch(&store, None, &json!({"shape": [2]})).await.unwrap();
        assert!(store.keys().await.contains(&"a/3".to_owned()), "{key}: {:?}", store.keys().await);
        assert_eq!(store.inner.intents().await.unwrap(), []);
    }
}

#[tokio::test]
async fn write_beside_another_layout_that_appears_is_refused() {
    for dialect in [Dialect::V2, Dialect::V3] {
        for change in ["append", "write", "patch"] {
            let (store, interference, key, mut other) = array_of_one(dialect, 5).await;
            match dialect {
                Dialect::V2 => other["data_type"] = json!("int8"),
                _ => other["dtype"] = json!("|i1"),
            }
            interference.write_before_commit(key, other);
            let (dialect, relation) = (Some(dialect), DialectRelation::Layout);
            let before = snapshot(&store).await;
            let refused = match change {
                "append" => write_differs(append(&store, dialect, 1, 9).await, relation),
                "write" => write_differs(write(&store, dialect, "0", 9).await, relation),
                _ => node_differs(patch(&store, dialect, &json!({"shape": [2]})).await, relation),
            };
            assert!(refused, "{dialect:?} {change}");
            let mut after = snapshot(&store).await;
            after.retain(|(found, _)| found != key);
            assert_eq!(after, before, "{dialect:?} {change}");
        }
    }
}

#[tokio::test]
async fn patch_of_a_group_reaches_a_document_that_appears() {
    for (declared, key, other) in [
        (v3_group(&json!({})), "a/.zgroup", json!({"zarr_format": 2})),
        (v2_group(&json!({})), "a/zarr.json", json!({"zarr_format": 3, "node_type": "group"})),
    ] {
        let (store, interference) = InterferingStore::create();
        store.declare("/a", &declared).await.unwrap();
        interference.write_before_commit(key, other);
        patch(&store, None, &json!({"attributes": {"n": 1}})).await.unwrap();
        assert_eq!(store.document("a/.zattrs").await, json!({"n": 1}), "{key}");
        assert_eq!(store.document("a/zarr.json").await["attributes"], json!({"n": 1}), "{key}");
    }
}

#[tokio::test]
async fn implicit_group_gets_no_document_beside_a_node_that_appears() {
    for (member, key, other) in [
        (v3_array(&[1]), "a/.zarray", v2_array(&[1])),
        (v3_array(&[1]), "a/zarr.json", v3_array(&[1])),
        (v2_array(&[1]), "a/zarr.json", v3_array(&[1])),
        (v2_array(&[1]), "a/.zarray", v2_array(&[1])),
    ] {
        let (store, interference) = InterferingStore::create();
        let name = if member.get("node_type").is_some() { "a/x/zarr.json" } else { "a/x/.zarray" };
        store.json(name, &member).await;
        interference.write_before_commit(key, other);
        let patched = patch(&store, None, &json!({"attributes": {"n": 1}})).await;
        assert!(!store.keys().await.contains(&"a/.zgroup".to_owned()), "{key}: {patched:?}");
        assert_eq!(
            store.keys().await.iter().filter(|key| key.ends_with("zarr.json") && key.starts_with("a/z")).count(),
            usize::from(key == "a/zarr.json"),
            "{key}: {patched:?}"
        );
    }
}

#[tokio::test]
async fn implicit_group_gets_no_document_below_an_array_that_appears() {
    for (key, other) in [("g/zarr.json", v3_array(&[1])), ("g/.zarray", v2_array(&[1]))] {
        let (store, interference) = InterferingStore::create();
        store.json("g/a/x/zarr.json", &v3_array(&[1])).await;
        interference.write_before_commit(key, other);
        let changes = zarrd_meta::documents::NodePatch::parse(r#"{"attributes": {"n": 1}}"#).unwrap();
        let patched = store.nodes.patch(&path("/g/a"), None, &changes, &Precondition::none()).await;
        assert!(patched.is_err(), "{key}");
        assert_eq!(store.keys().await.len(), 2, "{key}");
    }
}

#[tokio::test]
async fn erase_of_an_implicit_group_spares_a_node_that_appears() {
    for (key, document) in
        [("a/.zarray", v2_array(&[1])), ("a/zarr.json", v3_array(&[1])), ("a/.zgroup", json!({"zarr_format": 2}))]
    {
        let (store, interference) = InterferingStore::create();
        store.json("a/x/zarr.json", &v3_array(&[1])).await;
        interference.write_before_commit(key, document);
        let condition = Precondition::unchanged(None);
        let refused = store.nodes.erase(&path("/a"), None, &condition).await;
        let refused_for = |error| matches!(error, NodeError::Rejected(NodeRejection::PreconditionFailed { .. }));
        assert!(refused.is_err_and(refused_for), "{key}");
        assert!(store.keys().await.contains(&key.to_owned()), "{key}");
    }
}

#[tokio::test]
async fn new_node_beside_one_of_the_other_dialect_that_appears_is_rejected() {
    let of_v2 = [("a/.zarray", v2_array(&[1])), ("a/.zgroup", json!({"zarr_format": 2}))];
    let of_v3 = [("a/zarr.json", v3_array(&[1]))];
    for (declared, others) in
        [(v3_group(&json!({})), &of_v2[..]), (v3_array(&[1]), &of_v2[..]), (v2_group(&json!({})), &of_v3[..])]
    {
        for (key, other) in others {
            for existing in [IfExists::Fail, IfExists::Adopt] {
                let (store, interference) = InterferingStore::create();
                interference.write_before_commit(key, other.clone());
                let options = CreateOptions { if_exists: existing, ..CreateOptions::default() };
                let zom = std::sync::Arc::new(crate::hierarchies::test_store::zom(&declared));
                let rejected = store.nodes.create(&path("/a"), zom, &options).await;
                assert!(rejected.is_err(), "{declared} {key} {existing:?}");
                assert_eq!(store.keys().await, [*key], "{declared} {existing:?}");
            }
        }
    }
}

#[tokio::test]
async fn new_member_beside_one_of_the_other_dialect_that_appears_is_rejected() {
    let member = v3_group(&json!({}));
    for (key, other) in [("g/x/.zarray", v2_array(&[1])), ("g/x/.zgroup", json!({"zarr_format": 2}))] {
        let (store, interference) = InterferingStore::create();
        store.declare("/g", &v3_group(&json!({}))).await.unwrap();
        store.set("g/notes", [1]).await;
        interference.write_before_commit(key, other);
        let rejected = store.replace("/g", &v3_group(&json!({"x": member.clone()}))).await;
        let is_expected = |error| matches!(error, NodeError::Rejected(NodeRejection::DialectConflict { .. }));
        assert!(rejected.is_err_and(is_expected), "{key}");
        assert!(!store.keys().await.contains(&"g/x/zarr.json".to_owned()), "{key}");
    }
}

#[tokio::test]
async fn overwrite_erases_a_document_of_the_other_dialect_that_appears() {
    for dialect in [Dialect::V2, Dialect::V3] {
        for attributes_only in [true, false] {
            let (store, interference, key, other) = array_of_one(dialect, 5).await;
            store.set("notes", [1]).await;
            interference.write_before_commit(key, other);
            let extent = if attributes_only { 5 } else { 4 };
            let mut planned =
                if dialect == Dialect::V2 { v2_array(&[extent]) } else { v3_array_with_v2_keys(&[extent]) };
            planned["attributes"] = json!({"n": 1});
            store.replace("/a", &planned).await.unwrap();
            assert!(!store.keys().await.contains(&key.to_owned()), "{dialect} {attributes_only}");
        }
    }
}

#[tokio::test]
async fn conversion_takes_attributes_that_appear_into_account() {
    let (store, interference) = InterferingStore::create();
    store.declare("/a", &v3_array_with_v2_keys(&[5])).await.unwrap();
    interference.write_before_commit("a/.zattrs", json!({"theirs": 1}));
    store.convert("/a", Dialect::V2).await.unwrap();
    assert!(!store.keys().await.contains(&"a/.zattrs".to_owned()), "the node has no attributes");
    let (store, interference) = InterferingStore::create();
    store.declare("/a", &v2_array(&[5])).await.unwrap();
    interference.write_before_commit("a/zarr.json", v3_array_with_v2_keys(&[9]));
    assert_eq!(store.convert("/a", Dialect::V3).await.unwrap().nodes, 0);
    assert_eq!(store.document("a/zarr.json").await["shape"], json!([9]));
}

#[tokio::test]
async fn conversion_keeps_a_consolidated_copy_that_appears() {
    let (store, interference) = InterferingStore::create();
    store.declare("/g", &v3_group(&json!({"a": v3_array_with_v2_keys(&[5])}))).await.unwrap();
    consolidate(&store, "g").await;
    interference.write_before_commit("g/.zmetadata", json!({"zarr_consolidated_format": 1, "metadata": {}}));
    store.convert("/g", Dialect::V2).await.unwrap();
    assert_copies_match(&store, "g").await;
}

/// Whatever changes below a group, a consolidated copy that appears meanwhile has the change.
#[tokio::test]
async fn copies_that_appear_have_each_kind_of_change() {
    for change in ["append", "shape", "attributes", "create", "overwrite", "erase", "convert", "group"] {
        for of_v2 in [true, false] {
            let (store, interference) = InterferingStore::create();
            let members = json!({"a": v2_array(&[5]), "x": v2_array(&[1])});
            store.declare("/g", &v2_group(&members)).await.unwrap();
            if change != "convert" {
                store.convert("/g", Dialect::V3).await.unwrap();
            }
            // What another program consolidates has the documents from before the change.
            let key = if of_v2 { "g/.zmetadata" } else { "g/zarr.json" };
            if change == "convert" && !of_v2 {
                continue;
            }
            let before = snapshot(&store).await;
            consolidate(&store, "g").await;
            let consolidated = store.document(key).await;
            for key in store.keys().await {
                match before.iter().find(|(found, _)| *found == key) {
                    Some((_, value)) => store.set(&key, value.clone()).await,
                    None => store.erase_key(&key).await,
                }
            }
            interference.write_before_commit(key, consolidated);
            let at = path("/g/a");
            let patch = |text: &str| zarrd_meta::documents::NodePatch::parse(text.to_owned()).unwrap();
            let none = Precondition::none();
            match change {
                "append" => {
                    let append = store.arrays.append(&at, None, "0", none).await.unwrap();
                    let elements = zarrd_array::ElementSource::Scalar(vec![1]);
                    drop(append.execute(Some(2), elements).await.unwrap());
                }
                "shape" => drop(store.nodes.patch(&at, None, &patch(r#"{"shape": [1]}"#), &none).await.unwrap()),
                "attributes" => {
                    drop(store.nodes.patch(&at, None, &patch(r#"{"attributes": {"n": 1}}"#), &none).await.unwrap());
                }
                "create" => drop(store.declare_as("/g/new", &v3_array(&[1]), Dialect::V3).await.unwrap()),
                "overwrite" => drop(store.replace("/g/a", &v3_array(&[9])).await.unwrap()),
                "erase" => drop(store.erase("/g/a").await.unwrap()),
                "convert" => drop(store.convert("/g", Dialect::V3).await.unwrap()),
                _ => {
                    let group = path("/g");
                    drop(store.nodes.patch(&group, None, &patch(r#"{"attributes": {"n": 1}}"#), &none).await.unwrap());
                }
            }
            assert_copies_match(&store, "g").await;
        }
    }
}

#[tokio::test]
async fn copy_to_a_place_where_keys_appear_is_rejected() {
    for (key, value) in [("to/zarr.json", v3_array(&[1])), ("to/x/.zarray", v2_array(&[1])), ("to/notes", json!(1))] {
        let (store, interference) = InterferingStore::create();
        store.declare("/a", &v3_array(&[5])).await.unwrap();
        interference.write_before_commit(key, value);
        let conversion = zarrd_array::ConvertOptions {
            dialect: Dialect::V2,
            target: Some(path("/to")),
            losses: zarrd_array::LossPolicy::Allow,
            existing: zarrd_array::ExistingDocuments::Keep,
        };
        let rejected = store.nodes.convert(&path("/a"), None, &conversion).await;
        let is_expected = |error| {
            matches!(
                error,
                NodeError::Rejected(NodeRejection::NodeConflict { .. } | NodeRejection::DialectConflict { .. })
            )
        };
        assert!(rejected.is_err_and(is_expected), "{key}");
        assert_eq!(store.keys().await, ["a/zarr.json", key], "what appeared is not erased");
        assert_eq!(store.inner.intents().await.unwrap(), []);
    }
}

/// As many appends as there are conflicts with a group that another program changes all the time.
#[tokio::test]
async fn append_below_a_group_that_changes_is_planned_again() {
    let (store, interference) = InterferingStore::create();
    store.declare("/a", &v3_array(&[1])).await.unwrap();
    for round in 0..12 {
        let mut group = v3_group(&json!({}));
        group["attributes"] = json!({"round": round});
        interference.write_before_commit("zarr.json", group);
    }
    assert_eq!(append(&store, None, 2, 9).await.unwrap(), [3]);
    for round in 0..40 {
        interference.write_before_commit("zarr.json", json!({"zarr_format": 3, "node_type": "group", "n": round}));
    }
    let refused = append(&store, None, 2, 9).await;
    let is_expected = |error| matches!(error, WriteError::Array(ArrayError::TooManyConflicts { .. }));
    assert!(refused.is_err_and(is_expected));
}
