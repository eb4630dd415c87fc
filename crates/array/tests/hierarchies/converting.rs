use std::sync::Arc;

use array::{ConversionReport, ConvertOptions, CreateAction, CreateOptions, Depth, LossPolicy, NodeError};
use meta::Dialect;
use serde_json::json;
use store::{Key, Precondition};

use crate::lab::{Lab, draft_array, entry_point, path, v2_array, v2_group, v3_array, v3_group, zom};

impl Lab {
    async fn copy(&self, from: &str, to: &str, dialect: Dialect) -> Result<ConversionReport, NodeError> {
        let conversion = ConvertOptions { dialect, target: Some(path(to)) };
        self.nodes.convert(&path(from), None, &conversion).await
    }

    async fn value(&self, key: &str) -> Vec<u8> {
        let value = self.store.get(&Key::parse(key).unwrap(), None).await.unwrap().unwrap();
        value.bytes().await.unwrap().to_vec()
    }
}

#[tokio::test]
async fn conversion_in_place_adds_documents() {
    let lab = Lab::new();
    lab.declare("/g", &v2_group(&json!({"a": v2_array(&[4]), "h": v2_group(&json!({"b": v2_array(&[2, 2])}))})))
        .await
        .unwrap();
    lab.set("g/a/1", [1, 2]).await;
    lab.json("g/.zmetadata", &json!({"zarr_consolidated_format": 1, "metadata": {}})).await;
    let before = lab.keys().await;
    let report = lab.convert("/g", Dialect::V3).await.unwrap();
    assert_eq!((report.nodes, report.chunks, report.losses), (4, 0, vec![]));
    let added: Vec<_> = lab.keys().await.into_iter().filter(|key| !before.contains(key)).collect();
    assert_eq!(added, ["g/a/zarr.json", "g/h/b/zarr.json", "g/h/zarr.json", "g/zarr.json"]);
    assert_eq!(lab.keys().await.len(), before.len() + 4, "nothing went");
    let array = lab.document("g/a/zarr.json").await;
    assert_eq!(array["chunk_key_encoding"]["name"], "v2");
    let copies = lab.document("g/zarr.json").await["consolidated_metadata"]["metadata"].clone();
    assert_eq!(copies["a"], array);
    assert_eq!(copies.as_object().unwrap().len(), 3);
    let found = lab.node("/g", Depth::All).await.unwrap();
    assert_eq!((found.dialect, found.zom.len()), (Dialect::V3, 4));
    // Both documents go together from now on, and so do both consolidated ones.
    lab.patch("/g/a", &json!({"shape": [2]})).await.unwrap();
    assert_eq!(lab.document("g/a/.zarray").await["shape"], json!([2]));
    assert_eq!(lab.document("g/.zmetadata").await["metadata"]["a/.zarray"]["shape"], json!([2]));
    assert_eq!(lab.document("g/zarr.json").await["consolidated_metadata"]["metadata"]["a"]["shape"], json!([2]));
    assert!(!lab.keys().await.contains(&"g/a/1".to_owned()));
    assert_eq!(lab.convert("/g", Dialect::V3).await.unwrap().nodes, 0, "it is already");
    lab.erase("/g/a").await.unwrap();
    assert!(!lab.keys().await.iter().any(|key| key.starts_with("g/a/")));
}

#[tokio::test]
async fn copy_to_an_occupied_path_is_rejected() {
    let lab = Lab::new();
    lab.json("d/zarr.json", &entry_point()).await;
    lab.json("d/meta/root/x.array.json", &draft_array(&[4])).await;
    assert!(matches!(lab.convert("/d", Dialect::V3).await, Err(NodeError::NotInPlace { .. })));
    lab.declare("/there", &v3_array(&[1])).await.unwrap();
    for taken in ["/there", "/d"] {
        assert!(lab.copy("/d/x", taken, Dialect::V3).await.is_err(), "{taken}");
    }
    assert!(matches!(lab.copy("/d/x", "/there/x", Dialect::V3).await, Err(NodeError::BelowArray { .. })));
    assert_eq!(lab.keys().await, ["d/meta/root/x.array.json", "d/zarr.json", "there/zarr.json"]);
}

/// The chunks of a draft hierarchy have other keys than v3 has: they are copied, byte by byte.
#[tokio::test]
async fn draft_hierarchy_is_copied_with_its_chunks() {
    let lab = Lab::new();
    lab.json("d/zarr.json", &entry_point()).await;
    lab.json("d/meta/root/g/x.array.json", &draft_array(&[4, 4])).await;
    lab.json("d/meta/root/z.array.json", &draft_array(&[])).await;
    lab.set("d/data/root/g/x/c1/0", [1, 2, 3, 4]).await;
    lab.set("d/data/root/g/x/no-chunk", "x").await;
    lab.set("d/data/root/z/c0", [7]).await;
    let report = lab.copy("/d", "/lab/new", Dialect::V3).await.unwrap();
    assert_eq!((report.nodes, report.chunks), (4, 2));
    let keys: Vec<_> = lab.keys().await.into_iter().filter(|key| key.starts_with("lab/")).collect();
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
    assert_eq!(lab.value("lab/new/g/x/c/1/0").await, [1, 2, 3, 4]);
    assert_eq!(lab.value("lab/new/z/c").await, [7]);
}

#[tokio::test]
async fn copy_round_trips_through_every_dialect() {
    let lab = Lab::new();
    lab.declare("/v3", &v3_group(&json!({"a": v3_array(&[4, 4])}))).await.unwrap();
    lab.set("v3/a/c/1/1", [1, 2, 3, 4]).await;
    let original = lab.all("/v3").await;
    for (dialect, chunk) in
        [(Dialect::V2, "copy/a/1.1"), (Dialect::V3, "copy/a/c/1/1"), (Dialect::Draft, "copy/data/root/a/c1/1")]
    {
        let report = lab.copy("/v3", "/copy", dialect).await.unwrap();
        assert_eq!((report.nodes, report.chunks), (2, 1), "{dialect}");
        assert_eq!(lab.node("/copy", Depth::All).await.unwrap().dialect, dialect);
        assert!(lab.keys().await.iter().any(|key| key == chunk), "{dialect}: {:?}", lab.keys().await);
        lab.copy("/copy", "/back", Dialect::V3).await.unwrap();
        assert_eq!(lab.value("back/a/c/1/1").await, [1, 2, 3, 4]);
        assert_eq!(lab.all("/back").await["members"]["a"]["shape"], original["members"]["a"]["shape"]);
        for node in ["/copy", "/back"] {
            lab.erase(node).await.unwrap();
        }
        assert_eq!(lab.keys().await.len(), 3, "{dialect}");
    }
}

/// Draft: one entry point for each hierarchy, documents below `meta/root`; groups above a node are implied.
#[tokio::test]
async fn draft_nodes_are_created_below_the_entry_point() {
    let lab = Lab::new();
    let tree = v3_group(&json!({"a": v3_array(&[3]), "g": v3_group(&json!({}))}));
    let created = lab.declare_as("/d", &tree, Dialect::Draft).await.unwrap();
    assert_eq!((created.action, created.node.dialect), (CreateAction::Created, Dialect::Draft));
    let keys = ["d/meta/root.group.json", "d/meta/root/a.array.json", "d/meta/root/g.group.json", "d/zarr.json"];
    assert_eq!(lab.keys().await, keys);
    assert_eq!(lab.declare_as("/d", &tree, Dialect::Draft).await.unwrap().action, CreateAction::Unchanged);
    // What is declared inside the hierarchy is of it.
    let inside = lab.declare("/d/g/deep/x", &v3_array(&[3])).await.unwrap();
    assert_eq!(inside.node.dialect, Dialect::Draft);
    assert_eq!(lab.keys().await.len(), 5, "the group above it is implied");
    assert!(matches!(lab.declare("/d/a/x", &v3_array(&[3])).await, Err(NodeError::BelowArray { .. })));
    assert!(lab.declare("/d/g", &v3_array(&[3])).await.is_err());
    lab.replace("/d/g", &v3_array(&[3])).await.unwrap();
    assert_eq!(lab.keys().await[1..3], ["d/meta/root/a.array.json", "d/meta/root/g.array.json"]);
    lab.declare("/v3", &v3_group(&json!({}))).await.unwrap();
    let refused = lab.declare_as("/v3", &tree, Dialect::Draft).await;
    assert!(matches!(refused, Err(NodeError::OtherDialect { found: Dialect::V3, .. })));
}

#[tokio::test]
async fn models_are_mapped_between_dialects() {
    let lab = Lab::new();
    lab.declare_as("/two", &v3_group(&json!({"a": v3_array(&[3])})), Dialect::V2).await.unwrap();
    assert_eq!(lab.keys().await, ["two/.zgroup", "two/a/.zarray"]);
    let told = lab.nodes.node(&path("/two"), None, Depth::All, Some(Dialect::V3)).await.unwrap();
    assert_eq!(told.zom.to_text().to_value().unwrap()["members"]["a"]["data_type"], "uint8");
    // Members of any dialect are told by one model.
    lab.declare("/three/x", &v3_array(&[3])).await.unwrap();
    let told = lab.nodes.node(&path("/"), None, Depth::All, Some(Dialect::V3)).await.unwrap();
    assert_eq!((told.zom.len(), told.info.other_dialects), (5, vec![]));
    let mut lost = v3_array(&[3]);
    lost["dimension_names"] = json!(["x"]);
    lost["extensions"] = json!([{"name": "example.unheard-of", "must_understand": false}]);
    let declare = async |losses| {
        let declaration = CreateOptions { dialect: Some(Dialect::V2), losses, ..CreateOptions::default() };
        lab.nodes.create(&path("/lost"), &Arc::new(zom(&lost)), &declaration).await
    };
    let Err(NodeError::Lossy { losses, .. }) = declare(LossPolicy::Reject).await else { panic!("it was taken") };
    assert!(losses.iter().any(|(path, _)| path.to_string() == "/lost"));
    assert_eq!(declare(LossPolicy::Allow).await.unwrap().action, CreateAction::Created);
    let compared = lab.nodes.compare(&path("/two"), None, zom(&v3_group(&json!({"a": v3_array(&[4])}))), 9).await;
    let pointers: Vec<_> = compared.unwrap().into_iter().map(|difference| difference.pointer).collect();
    assert!(pointers.contains(&"/members/a/shape/0".to_owned()), "{pointers:?}");
    lab.nodes.erase(&path("/lost"), None, &Precondition::none()).await.unwrap();
}
