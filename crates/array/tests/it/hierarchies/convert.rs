use std::sync::Arc;

use serde_json::json;
use zarrd_array::{
    ConversionReport, ConvertOptions, CreateAction, CreateOptions, Depth, ExistingDocuments, LossPolicy, NodeError,
    NodeRejection,
};
use zarrd_meta::Dialect;
use zarrd_store::{Key, Precondition};

use crate::hierarchies::test_store::{
    TestStore, draft_array, entry_point, path, v2_array, v2_group, v3_array, v3_group, zom,
};

impl TestStore {
    pub(super) async fn copy(&self, from: &str, to: &str, dialect: Dialect) -> Result<ConversionReport, NodeError> {
        let conversion = ConvertOptions {
            dialect,
            target: Some(path(to)),
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        self.nodes.convert(&path(from), None, &conversion).await
    }

    async fn value(&self, key: &str) -> Vec<u8> {
        let value = self.inner.get(&Key::parse(key).unwrap(), None).await.unwrap().unwrap();
        value.bytes().await.unwrap().to_vec()
    }
}

#[tokio::test]
async fn conversion_in_place_adds_documents() {
    let store = TestStore::new();
    store
        .declare("/g", &v2_group(&json!({"a": v2_array(&[4]), "h": v2_group(&json!({"b": v2_array(&[2, 2])}))})))
        .await
        .unwrap();
    store.set("g/a/1", [1, 2]).await;
    store.json("g/.zmetadata", &json!({"zarr_consolidated_format": 1, "metadata": {}})).await;
    let before = store.keys().await;
    let report = store.convert("/g", Dialect::V3).await.unwrap();
    assert_eq!((report.nodes, report.chunks, report.losses), (4, 0, vec![]));
    let added: Vec<_> = store.keys().await.into_iter().filter(|key| !before.contains(key)).collect();
    assert_eq!(added, ["g/a/zarr.json", "g/h/b/zarr.json", "g/h/zarr.json", "g/zarr.json"]);
    assert_eq!(store.keys().await.len(), before.len() + 4, "no key was removed");
    let array = store.document("g/a/zarr.json").await;
    assert_eq!(array["chunk_key_encoding"]["name"], "v2");
    let copies = store.document("g/zarr.json").await["consolidated_metadata"]["metadata"].clone();
    assert_eq!(copies["a"], array);
    assert_eq!(copies.as_object().unwrap().len(), 3);
    let found = store.node("/g", Depth::All).await.unwrap();
    assert_eq!((found.dialect, found.zom.len()), (Dialect::V3, 4));
    // Both documents change together from now on, and so do both consolidated ones.
    store.patch("/g/a", &json!({"shape": [2]})).await.unwrap();
    assert_eq!(store.document("g/a/.zarray").await["shape"], json!([2]));
    assert_eq!(store.document("g/.zmetadata").await["metadata"]["a/.zarray"]["shape"], json!([2]));
    assert_eq!(store.document("g/zarr.json").await["consolidated_metadata"]["metadata"]["a"]["shape"], json!([2]));
    assert!(!store.keys().await.contains(&"g/a/1".to_owned()));
    assert_eq!(store.convert("/g", Dialect::V3).await.unwrap().nodes, 0, "already converted");
    store.erase("/g/a").await.unwrap();
    assert!(!store.keys().await.iter().any(|key| key.starts_with("g/a/")));
}

/// Consolidated metadata of the other dialect may exist in a group above, whose own documents do not change.
#[tokio::test]
async fn conversion_in_place_updates_consolidated_metadata_above() {
    let store = TestStore::new();
    store.json("top/.zgroup", &json!({"zarr_format": 2})).await;
    let consolidated = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {}}});
    store.json("top/zarr.json", &consolidated).await;
    let mut tree = v2_group(&json!({"a": v2_array(&[4]), "b": v2_group(&json!({}))}));
    tree["members"]["b"]["attributes"] = json!({"x": 1});
    store.declare_as("/top/g", &tree, Dialect::V2).await.unwrap();
    let converted = json!({"zarr_format": 3, "node_type": "group", "attributes": {"x": 1}});
    store.json("top/g/b/zarr.json", &converted).await;
    let conversion = ConvertOptions {
        dialect: Dialect::V3,
        target: None,
        losses: LossPolicy::Allow,
        existing: ExistingDocuments::Keep,
    };
    let report = store.nodes.convert(&path("/top/g"), Some(Dialect::V2), &conversion).await.unwrap();
    assert_eq!(report.nodes, 2, "one node had a document");
    let copies = store.document("top/zarr.json").await["consolidated_metadata"]["metadata"].clone();
    assert_eq!(copies.as_object().unwrap().keys().collect::<Vec<_>>(), ["g", "g/a"]);
    assert_eq!(copies["g/a"], store.document("top/g/a/zarr.json").await);
    assert_eq!(store.document("top/g/b/zarr.json").await, converted);
}

/// The losses of a node come after those of the nodes above it, and of their other members.
#[tokio::test]
async fn losses_are_reported_level_by_level() {
    let lossy = |members: &serde_json::Value| {
        let mut group = v2_group(members);
        group["more"] = json!(1);
        group
    };
    let tree = lossy(&json!({"a": lossy(&json!({"x": lossy(&json!({}))})), "b": lossy(&json!({}))}));
    for target in [None, Some("/copy")] {
        let store = TestStore::new();
        store.declare("/g", &tree).await.unwrap();
        let conversion = ConvertOptions {
            dialect: Dialect::V3,
            target: target.map(path),
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        let report = store.nodes.convert(&path("/g"), None, &conversion).await.unwrap();
        let paths: Vec<String> = report.losses.iter().map(|(path, _)| path.to_string()).collect();
        assert_eq!(paths, ["/g", "/g/a", "/g/b", "/g/a/x"], "{target:?}");
        assert!(report.losses.iter().all(|(_, loss)| loss.pointer == "/more"), "{:?}", report.losses);
    }
}

#[tokio::test]
async fn copy_to_an_occupied_path_is_rejected() {
    let store = TestStore::new();
    store.json("d/zarr.json", &entry_point()).await;
    store.json("d/meta/root/x.array.json", &draft_array(&[4])).await;
    assert!(matches!(store.convert("/d", Dialect::V3).await, Err(NodeError::NotInPlace { .. })));
    store.declare("/there", &v3_array(&[1])).await.unwrap();
    for occupied in ["/there", "/d"] {
        assert!(store.copy("/d/x", occupied, Dialect::V3).await.is_err(), "{occupied}");
    }
    assert!(matches!(
        store.copy("/d/x", "/there/x", Dialect::V3).await,
        Err(NodeError::Rejected(NodeRejection::ParentIsArray { .. }))
    ));
    assert_eq!(store.keys().await, ["d/meta/root/x.array.json", "d/zarr.json", "there/zarr.json"]);
}

/// The chunks of a draft hierarchy have other keys than in v3: they are copied byte by byte.
#[tokio::test]
async fn draft_hierarchy_is_copied_with_its_chunks() {
    let store = TestStore::new();
    store.json("d/zarr.json", &entry_point()).await;
    store.json("d/meta/root/g/x.array.json", &draft_array(&[4, 4])).await;
    store.json("d/meta/root/z.array.json", &draft_array(&[])).await;
    store.set("d/data/root/g/x/c1/0", [1, 2, 3, 4]).await;
    store.set("d/data/root/g/x/no-chunk", "x").await;
    store.set("d/data/root/z/c0", [7]).await;
    let report = store.copy("/d", "/lab/new", Dialect::V3).await.unwrap();
    assert_eq!((report.nodes, report.chunks), (4, 2));
    let keys: Vec<_> = store.keys().await.into_iter().filter(|key| key.starts_with("lab/")).collect();
    assert_eq!(
        keys,
        [
            "lab/new/g/x/c/1/0",
            "lab/new/g/x/zarr.json",
            "lab/new/g/zarr.json",
            "lab/new/z/c",
            "lab/new/z/zarr.json",
            "lab/new/zarr.json",
            "lab/zarr.json"
        ]
    );
    assert_eq!(store.value("lab/new/g/x/c/1/0").await, [1, 2, 3, 4]);
    assert_eq!(store.value("lab/new/z/c").await, [7]);
}

#[tokio::test]
async fn copy_round_trips_through_every_dialect() {
    let store = TestStore::new();
    store.declare("/v3", &v3_group(&json!({"a": v3_array(&[4, 4])}))).await.unwrap();
    store.set("v3/a/c/1/1", [1, 2, 3, 4]).await;
    let original = store.all("/v3").await;
    for (dialect, chunk) in
        [(Dialect::V2, "copy/a/1.1"), (Dialect::V3, "copy/a/c/1/1"), (Dialect::Draft, "copy/data/root/a/c1/1")]
    {
        let report = store.copy("/v3", "/copy", dialect).await.unwrap();
        assert_eq!((report.nodes, report.chunks), (2, 1), "{dialect}");
        assert_eq!(store.node("/copy", Depth::All).await.unwrap().dialect, dialect);
        assert!(store.keys().await.iter().any(|key| key == chunk), "{dialect}: {:?}", store.keys().await);
        store.copy("/copy", "/back", Dialect::V3).await.unwrap();
        assert_eq!(store.value("back/a/c/1/1").await, [1, 2, 3, 4]);
        assert_eq!(store.all("/back").await["members"]["a"]["shape"], original["members"]["a"]["shape"]);
        for node in ["/copy", "/back"] {
            store.erase(node).await.unwrap();
        }
        assert_eq!(store.keys().await.len(), 3, "{dialect}");
    }
}

/// Draft: one entry point for each hierarchy, documents below `meta/root`; groups above a node are implied.
#[tokio::test]
async fn draft_nodes_are_created_below_the_entry_point() {
    let store = TestStore::new();
    let tree = v3_group(&json!({"a": v3_array(&[3]), "g": v3_group(&json!({}))}));
    let created = store.declare_as("/d", &tree, Dialect::Draft).await.unwrap();
    assert_eq!((created.action, created.node.dialect), (CreateAction::Created, Dialect::Draft));
    let keys = ["d/meta/root.group.json", "d/meta/root/a.array.json", "d/meta/root/g.group.json", "d/zarr.json"];
    assert_eq!(store.keys().await, keys);
    assert_eq!(store.declare_as("/d", &tree, Dialect::Draft).await.unwrap().action, CreateAction::Unchanged);
    // Nodes declared inside the hierarchy belong to it.
    let inside = store.declare("/d/g/deep/x", &v3_array(&[3])).await.unwrap();
    assert_eq!(inside.node.dialect, Dialect::Draft);
    assert_eq!(store.keys().await.len(), 5, "the group above it is implied");
    assert!(matches!(
        store.declare("/d/a/x", &v3_array(&[3])).await,
        Err(NodeError::Rejected(NodeRejection::ParentIsArray { .. }))
    ));
    assert!(store.declare("/d/g", &v3_array(&[3])).await.is_err());
    store.replace("/d/g", &v3_array(&[3])).await.unwrap();
    assert_eq!(store.keys().await[1..3], ["d/meta/root/a.array.json", "d/meta/root/g.array.json"]);
    store.declare("/v3", &v3_group(&json!({}))).await.unwrap();
    let rejected = store.declare_as("/v3", &tree, Dialect::Draft).await;
    assert!(matches!(rejected, Err(NodeError::Rejected(NodeRejection::DialectConflict { dialect: Dialect::V3, .. }))));
}

#[tokio::test]
async fn models_are_mapped_between_dialects() {
    let store = TestStore::new();
    store.declare_as("/two", &v3_group(&json!({"a": v3_array(&[3])})), Dialect::V2).await.unwrap();
    assert_eq!(store.keys().await, ["two/.zgroup", "two/a/.zarray"]);
    let returned = store.nodes.node(&path("/two"), None, Depth::All, Some(Dialect::V3)).await.unwrap();
    assert_eq!(returned.zom.to_text().to_value().unwrap()["members"]["a"]["data_type"], "uint8");
    // Members of all dialects are returned in one model.
    store.declare("/three/x", &v3_array(&[3])).await.unwrap();
    let returned = store.nodes.node(&path("/"), None, Depth::All, Some(Dialect::V3)).await.unwrap();
    assert_eq!((returned.zom.len(), returned.info.other_dialects), (5, vec![]));
    let mut lost = v3_array(&[3]);
    lost["dimension_names"] = json!(["x"]);
    lost["extensions"] = json!([{"name": "example.unheard-of", "must_understand": false}]);
    let declare = async |losses| {
        let declaration = CreateOptions { dialect: Some(Dialect::V2), losses, ..CreateOptions::default() };
        store.nodes.create(&path("/lost"), Arc::new(zom(&lost)), &declaration).await
    };
    let Err(NodeError::Rejected(NodeRejection::LossyConversion { losses, .. })) = declare(LossPolicy::Reject).await
    else {
        panic!("it was accepted")
    };
    assert!(losses.iter().any(|(path, _)| path.to_string() == "/lost"));
    assert_eq!(declare(LossPolicy::Allow).await.unwrap().action, CreateAction::Created);
    let compared = store.nodes.compare(&path("/two"), None, zom(&v3_group(&json!({"a": v3_array(&[4])}))), 9).await;
    let pointers: Vec<_> = compared.unwrap().into_iter().map(|difference| difference.pointer).collect();
    assert!(pointers.contains(&"/members/a/shape/0".to_owned()), "{pointers:?}");
    store.nodes.erase(&path("/lost"), None, &Precondition::none()).await.unwrap();
}
