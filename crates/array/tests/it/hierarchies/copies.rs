//! Consolidated metadata of both dialects after each kind of change.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zarrd_array::{CreateOptions, IfExists};
use zarrd_meta::Dialect;

use crate::hierarchies::test_store::{TestStore, path, v2_array, v2_group, v3_array, v3_group, zom};

/// The documents of v2 below a group, by their names in `.zmetadata`.
async fn documents_of_v2(store: &TestStore, group: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for key in store.keys().await {
        let Some(below) = key.strip_prefix(&format!("{group}/")) else { continue };
        let name = below.rsplit('/').next().unwrap_or_default();
        if [".zarray", ".zgroup", ".zattrs"].contains(&name) {
            found.insert(below.to_owned(), store.document(&key).await);
        }
    }
    found
}

/// The documents of v3 below a group, by the paths of their nodes, without consolidated metadata of their own.
async fn documents_of_v3(store: &TestStore, group: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for key in store.keys().await {
        let below = key.strip_prefix(&format!("{group}/")).and_then(|below| below.strip_suffix("/zarr.json"));
        if let Some(below) = below {
            let mut document = store.document(&key).await;
            document.as_object_mut().unwrap().remove("consolidated_metadata");
            found.insert(below.to_owned(), document);
        }
    }
    found
}

/// Adds consolidated metadata to a group in each dialect that it has, as zarr-python does.
pub(crate) async fn consolidate(store: &TestStore, group: &str) {
    let keys = store.keys().await;
    if keys.contains(&format!("{group}/.zgroup")) {
        let metadata: Map<String, Value> = documents_of_v2(store, group).await.into_iter().collect();
        let document = json!({"zarr_consolidated_format": 1, "metadata": metadata});
        store.json(&format!("{group}/.zmetadata"), &document).await;
    }
    let key = format!("{group}/zarr.json");
    if keys.contains(&key) {
        let metadata: Map<String, Value> = documents_of_v3(store, group).await.into_iter().collect();
        let mut document = store.document(&key).await;
        document["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
        store.json(&key, &document).await;
    }
}

/// Fails unless the consolidated metadata of a group has the documents below it, in either dialect that has some.
pub(crate) async fn assert_copies_match(store: &TestStore, group: &str) {
    let keys = store.keys().await;
    let mut compared = 0;
    if keys.contains(&format!("{group}/.zmetadata")) {
        let copies = store.document(&format!("{group}/.zmetadata")).await["metadata"].clone();
        let copies: BTreeMap<String, Value> = copies.as_object().unwrap().clone().into_iter().collect();
        assert_eq!(copies, documents_of_v2(store, group).await, "v2");
        compared += 1;
    }
    let key = format!("{group}/zarr.json");
    if keys.contains(&key)
        && let Some(copies) = store.document(&key).await.get("consolidated_metadata")
    {
        let copies: BTreeMap<String, Value> = copies["metadata"].as_object().unwrap().clone().into_iter().collect();
        let copies = copies.into_iter().map(|(path, mut document)| {
            document.as_object_mut().unwrap().remove("consolidated_metadata");
            (path, document)
        });
        assert_eq!(copies.collect::<BTreeMap<_, _>>(), documents_of_v3(store, group).await, "v3");
        compared += 1;
    }
    assert!(compared > 0, "there is consolidated metadata: {keys:?}");
}

/// A group of both dialects with consolidated metadata of both, an array, and a group with an array.
async fn consolidated() -> TestStore {
    let store = TestStore::new();
    let members = json!({"a": v2_array(&[5]), "sub": v2_group(&json!({"b": v2_array(&[5])}))});
    store.declare("/g", &v2_group(&members)).await.unwrap();
    store.convert("/g", Dialect::V3).await.unwrap();
    store.set("g/a/0", [1, 1]).await;
    consolidate(&store, "g").await;
    consolidate(&store, "g/sub").await;
    store
}

async fn overwrite(store: &TestStore, at: &str, document: &Value, dialect: Dialect) {
    let declaration =
        CreateOptions { dialect: Some(dialect), if_exists: IfExists::Replace, ..CreateOptions::default() };
    store.nodes.create(&path(at), std::sync::Arc::new(zom(document)), &declaration).await.unwrap();
}

fn with_attributes(mut document: Value, attributes: Value) -> Value {
    document["attributes"] = attributes;
    document
}

/// The kinds of overwriting: what is at the path, and what replaces it.
fn overwrites() -> Vec<(&'static str, &'static str, Value)> {
    let keys_of_v2 = |mut document: Value| {
        document["chunk_key_encoding"] = json!({"name": "v2", "configuration": {"separator": "."}});
        document
    };
    let group = |members: Value| v3_group(&members);
    let sub = v3_group(&json!({"b": keys_of_v2(v3_array(&[5]))}));
    vec![
        ("another array", "/g/a", v3_array(&[9])),
        ("other attributes", "/g/a", with_attributes(keys_of_v2(v3_array(&[5])), json!({"n": 1}))),
        ("a group for an array", "/g/a", group(json!({}))),
        ("a group with members for an array", "/g/a", group(json!({"x": v3_array(&[1])}))),
        ("an array for a group", "/g/sub", v3_array(&[9])),
        ("a group without its member", "/g/sub", group(json!({}))),
        ("a group with another member", "/g/sub", group(json!({"c": v3_array(&[1])}))),
        ("a member that changes", "/g/sub", group(json!({"b": v3_array(&[7])}))),
        ("attributes of a group", "/g/sub", with_attributes(sub.clone(), json!({"n": 1}))),
        ("the topmost group", "/g", group(json!({"a": v3_array(&[9])}))),
        ("members two levels below", "/g", group(json!({"a": keys_of_v2(v3_array(&[5])), "sub": group(json!({}))}))),
        (
            "attributes of the topmost group",
            "/g",
            with_attributes(group(json!({"a": keys_of_v2(v3_array(&[5])), "sub": sub})), json!({"n": 1})),
        ),
    ]
}

#[tokio::test]
async fn copies_of_both_dialects_follow_each_kind_of_overwrite() {
    for dialect in [Dialect::V3, Dialect::V2] {
        for (kind, at, document) in overwrites() {
            let store = consolidated().await;
            overwrite(&store, at, &document, dialect).await;
            println!("{dialect} {kind}");
            assert_copies_match(&store, "g").await;
            if store.keys().await.iter().any(|key| key == "g/sub/.zmetadata") {
                assert_copies_match(&store, "g/sub").await;
            }
        }
    }
}

#[tokio::test]
async fn copies_of_both_dialects_follow_the_overwrite_of_a_broken_node() {
    for dialect in [Dialect::V3, Dialect::V2] {
        let store = consolidated().await;
        let key = if dialect == Dialect::V3 { "g/a/zarr.json" } else { "g/a/.zarray" };
        store.set(key, "{").await;
        overwrite(&store, "/g/a", &v3_array(&[9]), dialect).await;
        println!("{dialect}");
        assert_copies_match(&store, "g").await;
    }
}

#[tokio::test]
async fn copies_lose_what_is_erased_with_stray_keys() {
    let store = consolidated().await;
    // Below a path without documents there are nodes of v2, which a new array of v3 erases.
    store.json("g/new/x/.zarray", &v2_array(&[1])).await;
    consolidate(&store, "g").await;
    overwrite(&store, "/g/new", &v3_array(&[1]), Dialect::V3).await;
    assert!(!store.keys().await.iter().any(|key| key == "g/new/x/.zarray"));
    assert_copies_match(&store, "g").await;
}

#[tokio::test]
async fn copies_below_an_implicit_group_follow_its_documents() {
    let store = TestStore::new();
    store.declare("/top/g", &v3_group(&json!({"sub": v3_group(&json!({"b": v3_array(&[5])}))}))).await.unwrap();
    store.erase_key("top/zarr.json").await;
    store.erase_key("top/g/sub/zarr.json").await;
    consolidate(&store, "top/g").await;
    let tree = v3_group(&json!({"g": v3_group(&json!({"sub": v3_group(&json!({"b": v3_array(&[5])}))}))}));
    store.declare("/top", &tree).await.unwrap();
    assert_copies_match(&store, "top/g").await;
}

#[tokio::test]
async fn copies_of_both_dialects_follow_other_changes() {
    for change in ["attributes", "shape", "shrink", "erase", "erase group", "create", "copy", "statistics", "implicit"]
    {
        for dialect in [Dialect::V3, Dialect::V2] {
            let store = consolidated().await;
            let patch = async |at: &str, patch: &Value| {
                let changes = zarrd_meta::documents::NodePatch::parse(patch.to_string()).unwrap();
                let none = zarrd_store::Precondition::none();
                drop(store.nodes.patch(&path(at), Some(dialect), &changes, &none).await.unwrap());
            };
            match change {
                "attributes" => patch("/g/a", &json!({"attributes": {"n": 1}})).await,
                "shape" => patch("/g/a", &json!({"shape": [9]})).await,
                "shrink" => patch("/g/a", &json!({"shape": [1]})).await,
                "erase" => drop(store.erase("/g/a").await.unwrap()),
                "erase group" => drop(store.erase("/g/sub").await.unwrap()),
                "create" => drop(store.declare_as("/g/x/y", &v3_array(&[1]), dialect).await.unwrap()),
                "copy" => {
                    let conversion = zarrd_array::ConvertOptions {
                        dialect,
                        target: Some(path("/g/copied")),
                        losses: zarrd_array::LossPolicy::Allow,
                        existing: zarrd_array::ExistingDocuments::Keep,
                    };
                    drop(store.nodes.convert(&path("/g/sub"), None, &conversion).await.unwrap());
                }
                "statistics" => {
                    let extension = json!([{"name": "example.array-statistics", "must_understand": false}]);
                    let mut document = store.document("g/a/zarr.json").await;
                    document["extensions"] = extension;
                    store.json("g/a/zarr.json", &document).await;
                    let selection = zarrd_meta::selection::Selection::parse("0").unwrap();
                    let none = zarrd_store::Precondition::none();
                    let write = store.arrays.write(&path("/g/a"), Some(dialect), &selection, none).await.unwrap();
                    drop(write.execute(zarrd_array::ElementSource::Scalar(vec![9])).await.unwrap());
                    assert!(store.document("g/a/zarr.json").await.get("extensions").is_none());
                }
                _ => {
                    let name = if dialect == Dialect::V2 { "g/i/x/.zarray" } else { "g/i/x/zarr.json" };
                    let array = if dialect == Dialect::V2 { v2_array(&[1]) } else { v3_array(&[1]) };
                    store.json(name, &array).await;
                    consolidate(&store, "g").await;
                    patch("/g/i", &json!({"attributes": {"n": 1}})).await;
                }
            }
            println!("{change} {dialect}");
            assert_copies_match(&store, "g").await;
        }
    }
}
