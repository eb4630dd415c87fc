//! Changes of nodes.

use serde_json::{Value, json};
use zarrd_array::{
    ConvertOptions, CreateOptions, Depth, ExistingDocuments, IfExists, LossPolicy, NodeError, RemovedCopies,
};
use zarrd_meta::{Dialect, NodePath, zom::Zom};
use zarrd_operations::NodeRejection;
use zarrd_store::{Guarantees, Precondition, StoreError};

use super::fake_store::{BUCKET, Engine, Event, FOLDER, array, path};

/// A group with an array and a group of another array.
fn tree() -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 1}, "members": {
        "x": array(8), "g": {"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {"y": array(4)}}}})
}

#[tokio::test]
async fn tree_is_there_once_its_topmost_document_is() {
    let engine = Engine::new(FOLDER);
    engine.create("/t", &tree()).await.unwrap();
    assert_eq!(engine.store.take_changed(), ["t/g/y/zarr.json", "t/g/zarr.json", "t/x/zarr.json", "t/zarr.json"]);
    let again = engine.create("/t", &tree()).await.unwrap();
    assert_eq!(again.action, zarrd_array::CreateAction::Unchanged);
    let mut described = array(4);
    described["attributes"] = json!({"n": 1});
    engine.create_as("/v2", &described, Some(Dialect::V2)).await.unwrap();
    let changed = engine.store.take_changed();
    let position = |name: &str| changed.iter().position(|key| key == name).unwrap();
    assert!(position("v2/.zattrs") < position("v2/.zarray"), "{changed:?}");
}

#[tokio::test]
async fn declaration_that_was_cut_is_completed_by_repeating_it() {
    for key in ["t/g/zarr.json", "t/x/zarr.json", "t/zarr.json"] {
        let engine = Engine::new(FOLDER);
        engine.store.before_change(key, Event::Fail);
        let failed = engine.create("/t", &tree()).await;
        assert!(matches!(failed, Err(NodeError::Store(StoreError::PartlyApplied { .. }))), "{failed:?}");
        assert_eq!(engine.store.value("t/zarr.json").await, None);
        let created = engine.create("/t", &tree()).await.unwrap();
        let found = engine.nodes.node(&path("/t"), None, Depth::Levels(0), None).await.unwrap();
        assert_eq!(created.node.info.version, found.info.version);
        assert_eq!(engine.store.keys().await.len(), 4);
    }
}

/// The names of groups sort before and after the names of documents.
#[tokio::test]
async fn members_are_there_before_their_group_whatever_they_are_called() {
    for (dialect, documents) in [
        (Dialect::V3, vec!["t/aa/zarr.json", "t/zz/zarr.json", "t/zarr.json"]),
        (Dialect::V2, vec!["t/aa/.zattrs", "t/zz/.zattrs", "t/aa/.zarray", "t/zz/.zarray", "t/.zattrs", "t/.zgroup"]),
    ] {
        let mut member = array(4);
        member["attributes"] = json!({"n": 1});
        let tree = json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 1}, "members":
            {"aa": member, "zz": member}});
        let engine = Engine::new(FOLDER);
        engine.create_as("/t", &tree, Some(dialect)).await.unwrap();
        assert_eq!(engine.store.take_changed(), documents);
    }
}

#[tokio::test]
async fn declaration_that_was_cut_after_the_attributes_of_v2_is_completed_by_repeating_it() {
    let engine = Engine::new(FOLDER);
    let mut described = array(4);
    described["attributes"] = json!({"n": 1});
    engine.store.before_change("a/.zarray", Event::Fail);
    assert!(engine.create_as("/a", &described, Some(Dialect::V2)).await.is_err());
    assert_eq!(engine.store.keys().await, ["a/.zattrs"]);
    engine.create_as("/a", &described, Some(Dialect::V2)).await.unwrap();
    assert_eq!(engine.store.keys().await, ["a/.zarray", "a/.zattrs"]);
    // Attributes of something else are not taken over.
    engine.store.put("b/.zattrs", r#"{"n":2}"#).await;
    assert!(engine.create_as("/b", &described, Some(Dialect::V2)).await.is_err());
    assert_eq!(engine.store.value("b/.zattrs").await.unwrap(), br#"{"n":2}"#);
}

#[tokio::test]
async fn declaration_over_other_keys_is_refused() {
    let engine = Engine::new(FOLDER);
    engine.store.put("a/c/0", "a chunk").await;
    let refused = engine.create("/a", &array(4)).await;
    assert!(matches!(refused, Err(NodeError::Rejected(NodeRejection::StrayKeys { .. }))), "{refused:?}");
    assert!(engine.store.take_changed().is_empty());
}

#[tokio::test]
async fn one_of_several_declarations_wins() {
    let engine = Engine::new(BUCKET);
    let other = Engine::over(engine.store.clone(), BUCKET);
    engine.store.before_change("a/zarr.json", Event::Set("a/zarr.json", array(5).to_string().into()));
    let refused = engine.create("/a", &array(4)).await;
    assert!(matches!(refused, Err(NodeError::Rejected(NodeRejection::NodeConflict { .. }))), "{refused:?}");
    assert_eq!(other.arrays.model(&path("/a"), None).await.unwrap().0.shape, [5]);
}

#[tokio::test]
async fn document_is_patched_by_compare_and_swap() {
    let engine = Engine::new(FOLDER);
    engine.create("/t", &tree()).await.unwrap();
    engine.store.take_changed();
    let mut theirs = array(8);
    theirs["attributes"] = json!({"theirs": 1});
    engine.store.before_change("t/x/zarr.json", Event::Set("t/x/zarr.json", theirs.to_string().into()));
    engine.patch("/t/x", &json!({"attributes": {"ours": 2}})).await.unwrap();
    let stored: Value = serde_json::from_slice(&engine.store.value("t/x/zarr.json").await.unwrap()).unwrap();
    assert_eq!(stored["attributes"], json!({"theirs": 1, "ours": 2}));
    engine.patch("/t", &json!({"attributes": {"n": 2}})).await.unwrap();
}

#[tokio::test]
async fn two_documents_are_not_patched_at_once() {
    let engine = Engine::new(FOLDER);
    engine.create_as("/a", &array(4), Some(Dialect::V2)).await.unwrap();
    engine.store.take_changed();
    let refused = engine.patch("/a", &json!({"shape": [8], "attributes": {"n": 2}})).await;
    assert!(matches!(refused, Err(NodeError::Store(StoreError::Unsupported { .. }))), "{refused:?}");
    assert!(engine.store.take_changed().is_empty());
    engine.patch("/a", &json!({"shape": [8]})).await.unwrap();
    engine.patch("/a", &json!({"attributes": {"n": 2}})).await.unwrap();
}

#[tokio::test]
async fn node_is_erased_documents_first() {
    for guarantees in [FOLDER, BUCKET] {
        let engine = Engine::new(guarantees);
        engine.create("/t", &tree()).await.unwrap();
        engine.store.put("t/x/c/0", vec![1; 4]).await;
        engine.store.take_changed();
        assert_eq!(engine.erase("/t").await.unwrap(), 5);
        let mut changed = engine.store.take_changed();
        changed[1..4].sort();
        assert_eq!(changed, ["t/zarr.json", "t/g/y/zarr.json", "t/g/zarr.json", "t/x/zarr.json", "t/"]);
        assert!(engine.store.keys().await.is_empty());
        assert!(engine.erase("/t").await.is_err());
    }
}

#[tokio::test]
async fn erase_of_what_another_program_changed_is_planned_again() {
    for is_conditional in [false, true] {
        let engine = Engine::new(FOLDER);
        engine.create("/t", &tree()).await.unwrap();
        let other = json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 2}}).to_string();
        engine.store.before_change("t/zarr.json", Event::Set("t/zarr.json", other.clone().into()));
        let found = engine.nodes.node(&path("/t"), None, Depth::Levels(0), None).await.unwrap();
        let condition =
            if is_conditional { Precondition::at(found.info.version.unwrap()) } else { Precondition::none() };
        let erased = engine.nodes.erase(&path("/t"), None, &condition).await;
        if is_conditional {
            assert!(matches!(erased, Err(NodeError::Rejected(NodeRejection::PreconditionFailed { .. }))), "{erased:?}");
            assert_eq!(engine.store.value("t/zarr.json").await, Some(other.into_bytes()), "it has not been read");
            assert_eq!(engine.store.keys().await.len(), 4);
        } else {
            assert_eq!(erased.unwrap().count, 4);
        }
    }
}

#[tokio::test]
async fn erase_that_was_cut_is_completed_by_repeating_it() {
    for key in ["t/g/zarr.json", "t/"] {
        let engine = Engine::new(FOLDER);
        engine.create("/t", &tree()).await.unwrap();
        engine.store.put("t/x/c/0", vec![1; 4]).await;
        engine.store.before_change(key, Event::Fail);
        let failed = engine.erase("/t").await.unwrap_err();
        assert!(matches!(failed, NodeError::PartlyErased { left: Some(1..), .. }), "{failed:?}");
        assert_eq!(engine.store.value("t/zarr.json").await, None);
        engine.erase("/t").await.unwrap();
        assert!(engine.store.keys().await.is_empty());
    }
}

#[tokio::test]
async fn what_needs_a_commit_is_refused() {
    let engine = Engine::with_array(FOLDER, 4).await;
    let replace = CreateOptions { if_exists: IfExists::Replace, ..CreateOptions::default() };
    let zom = std::sync::Arc::new(Zom::parse(array(9).to_string()).unwrap());
    let replaced = engine.nodes.create(&path("/a"), zom, &replace).await.map(drop);
    let converted = engine.nodes.convert(&path("/a"), None, &to_v2(None)).await.map(drop);
    for refused in [replaced, converted] {
        assert!(matches!(refused, Err(NodeError::Store(StoreError::Unsupported { .. }))), "{refused:?}");
    }
    assert!(engine.store.take_changed().is_empty());
}

fn to_v2(target: Option<NodePath>) -> ConvertOptions {
    ConvertOptions { dialect: Dialect::V2, target, losses: LossPolicy::Allow, existing: ExistingDocuments::Keep }
}

/// A tree with chunks in `/t/x`.
async fn with_chunks(guarantees: Guarantees) -> Engine {
    let engine = Engine::new(guarantees);
    engine.create("/t", &tree()).await.unwrap();
    engine.store.put("t/x/c/0", vec![1, 2, 3, 4]).await;
    engine.store.put("t/x/c/1", vec![5, 6, 7, 8]).await;
    engine.store.take_changed();
    engine
}

#[tokio::test]
async fn copy_is_there_once_its_topmost_document_is() {
    for guarantees in [FOLDER, BUCKET] {
        let engine = with_chunks(guarantees).await;
        let report = engine.nodes.convert(&path("/t"), None, &to_v2(Some(path("/n/copy")))).await.unwrap();
        assert_eq!((report.nodes, report.chunks), (4, 2));
        let changed = engine.store.take_changed();
        let (mut chunks, documents) = (changed[..2].to_vec(), &changed[2..]);
        chunks.sort();
        assert_eq!(chunks, ["n/copy/x/0", "n/copy/x/1"]);
        let depths = documents.iter().map(|key| key.matches('/').count());
        assert!(depths.is_sorted_by(|one, next| one >= next), "{documents:?}");
        assert_eq!(engine.store.value("n/copy/x/1").await.unwrap(), [5, 6, 7, 8]);
        let copied = engine.arrays.model(&path("/n/copy/x"), None).await.unwrap().0;
        assert_eq!((copied.dialect, copied.shape), (Dialect::V2, vec![8]));
        let again = engine.nodes.convert(&path("/t"), None, &to_v2(Some(path("/n/copy")))).await;
        assert!(matches!(again, Err(NodeError::Rejected(NodeRejection::NodeConflict { .. }))));
    }
}

#[tokio::test]
async fn copy_that_fails_is_no_node_and_can_be_erased() {
    for (key, event) in [
        ("copy/x/1", Event::Fail),
        ("copy/x/1", Event::Set("copy/x/1", vec![9; 4])),
        ("copy/x/.zarray", Event::Fail),
        ("copy/.zgroup", Event::Fail),
    ] {
        let engine = with_chunks(BUCKET).await;
        engine.store.before_change(key, event);
        let failed = engine.nodes.convert(&path("/t"), None, &to_v2(Some(path("/copy")))).await.map(drop);
        assert!(matches!(failed, Err(NodeError::Store(StoreError::PartlyApplied { .. }))), "{key}: {failed:?}");
        assert_eq!(engine.store.value("copy/.zgroup").await, None, "{key}");
        engine.erase("/copy").await.unwrap();
        engine.nodes.convert(&path("/t"), None, &to_v2(Some(path("/copy")))).await.unwrap();
        assert_eq!(engine.store.value("copy/x/1").await.unwrap(), [5, 6, 7, 8], "{key}");
    }
}

/// A group with consolidated metadata of an array.
async fn consolidated() -> Engine {
    let engine = Engine::new(FOLDER);
    engine
        .create("/g", &json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {"a": array(4)}}))
        .await
        .unwrap();
    let document = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {"a": array(4)}}});
    engine.store.put("g/zarr.json", document.to_string()).await;
    engine.store.take_changed();
    engine
}

async fn copied_shape(engine: &Engine) -> Value {
    let stored: Value = serde_json::from_slice(&engine.store.value("g/zarr.json").await.unwrap()).unwrap();
    stored["consolidated_metadata"]["metadata"]["a"]["shape"].clone()
}

#[tokio::test]
async fn consolidated_metadata_follow_the_document() {
    let engine = consolidated().await;
    engine.patch("/g/a", &json!({"shape": [6]})).await.unwrap();
    assert_eq!(engine.store.take_changed(), ["g/a/zarr.json", "g/zarr.json"]);
    assert_eq!(copied_shape(&engine).await, json!([6]));
    engine.erase("/g/a").await.unwrap();
    assert_eq!(copied_shape(&engine).await, Value::Null);
}

#[tokio::test]
async fn consolidated_metadata_that_cannot_be_written_are_reported() {
    let engine = consolidated().await;
    for _ in 0..3 {
        engine.store.before_change("g/zarr.json", Event::Fail);
    }
    let removed = RemovedCopies::default();
    let nodes = engine.arrays.clone().with_removed_copies(removed.clone()).hierarchies();
    let changes = zarrd_meta::documents::NodePatch::parse(r#"{"shape": [6]}"#).unwrap();
    nodes.patch(&path("/g/a"), None, &changes, &Precondition::none()).await.unwrap();
    assert_eq!(removed.stale().iter().map(|key| key.as_str()).collect::<Vec<_>>(), ["g/zarr.json"]);
    assert_eq!(copied_shape(&engine).await, json!([4]));
    // The next change of the node repairs them.
    engine.patch("/g/a", &json!({"attributes": {"n": 1}})).await.unwrap();
    assert_eq!(copied_shape(&engine).await, json!([6]));
}
