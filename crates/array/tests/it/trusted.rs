//! Trees from consolidated metadata that are trusted.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use zarrd_array::{ArrayError, Arrays, Depth, FileListing, MemberPage, NodeError, Options};
use zarrd_meta::{Dialect, NodePath};
use zarrd_store::{
    Consolidated, Guarantees, Key, Keyed, ListableStore, MemoryStore, PageRequest, Precondition, Prefix, ReadableStore,
    ServedStore, WriteableStore,
};

/// The same values with consolidated metadata that are trusted, and that are not.
struct Both {
    memory: MemoryStore,
    trusting: Arrays,
    exact: Arrays,
}

impl Both {
    async fn of(documents: &[(&str, Value)]) -> Self {
        let memory = MemoryStore::new();
        let arrays = |consolidated| {
            let keyed = Keyed::new(memory.clone(), Guarantees { consolidated, ..Guarantees::READ_ONLY });
            Arrays::new(ServedStore::read_only(Arc::new(keyed)), Options::default())
        };
        let (trusting, exact) = (arrays(Consolidated::Trusted), arrays(Consolidated::Ignored));
        let both = Self { memory, trusting, exact };
        for (key, document) in documents {
            both.set(key, document).await;
        }
        both
    }

    async fn set(&self, key: &str, document: &Value) {
        self.set_text(key, &document.to_string()).await;
    }

    async fn set_text(&self, key: &str, text: &str) {
        let payload = text.to_owned().into();
        self.memory.set(&Key::parse(key).unwrap(), payload, Precondition::none()).await.unwrap();
    }

    async fn erase(&self, key: &str) {
        self.memory.erase(&Key::parse(key).unwrap(), Precondition::none()).await.unwrap();
    }

    /// Consolidates the metadata below a group, as zarr-python does.
    async fn consolidate(&self, at: &str, dialect: Dialect) {
        let mut metadata = Map::new();
        let listed = self.memory.list_prefix(&Prefix::parse(at).unwrap(), PageRequest::first(10_000)).await.unwrap();
        for entry in listed.keys {
            let name = entry.key.as_str().strip_prefix(at).unwrap();
            let name = match (dialect, entry.key.name()) {
                (Dialect::V3, "zarr.json") if name != "zarr.json" => name.strip_suffix("/zarr.json").unwrap(),
                (Dialect::V2, ".zarray" | ".zgroup" | ".zattrs") => name,
                _ => continue,
            };
            metadata.insert(name.to_owned(), self.value(entry.key.as_str()).await);
        }
        match dialect {
            Dialect::V3 => {
                let mut document = self.value(&format!("{at}zarr.json")).await;
                document["consolidated_metadata"] = inline(metadata.into());
                self.set(&format!("{at}zarr.json"), &document).await;
            }
            _ => {
                let document = json!({"zarr_consolidated_format": 1, "metadata": metadata});
                self.set(&format!("{at}.zmetadata"), &document).await;
            }
        }
    }

    async fn value(&self, key: &str) -> Value {
        let value = self.memory.get(&Key::parse(key).unwrap(), None).await.unwrap().unwrap();
        serde_json::from_slice(&value.bytes().await.unwrap()).unwrap()
    }

    /// The description of a node, which is the same whether consolidated metadata are trusted or not.
    async fn same(&self, at: &str, depth: Depth, mapped: Option<Dialect>) -> Value {
        let found = describe(&self.trusting, at, depth, mapped).await.unwrap();
        assert_eq!(found, describe(&self.exact, at, depth, mapped).await.unwrap(), "{at} {depth:?} {mapped:?}");
        found
    }

    async fn trusted(&self, at: &str) -> Value {
        describe(&self.trusting, at, Depth::All, None).await.unwrap()
    }
}

/// The tree with the version of its topmost node, its broken nodes, and those of other dialects.
async fn describe(arrays: &Arrays, at: &str, depth: Depth, mapped: Option<Dialect>) -> Result<Value, NodeError> {
    let info = arrays.hierarchies().node(&NodePath::parse(at).unwrap(), None, depth, mapped).await?.info;
    let broken: Vec<_> = info.broken.iter().map(|node| format!("{} {} {}", node.path, node.key, node.reason)).collect();
    let others: Vec<_> = info.other_dialects.iter().map(|(path, dialect)| format!("{path} {dialect:?}")).collect();
    let version = info.version.map(|version| version.to_string());
    Ok(json!({"tree": info.zom.to_text().to_value().unwrap(), "version": version, "broken": broken, "others": others}))
}

fn inline(metadata: Value) -> Value {
    json!({"kind": "inline", "must_understand": false, "metadata": metadata})
}

fn group(attributes: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

fn consolidated(metadata: Value) -> Value {
    let mut group = group(json!({}));
    group["consolidated_metadata"] = inline(metadata);
    group
}

fn array(attributes: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 9,
        "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default"}, "attributes": attributes,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}})
}

fn zarray() -> Value {
    json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": null, "fill_value": 0,
        "order": "C", "filters": null})
}

fn zgroup() -> Value {
    json!({"zarr_format": 2})
}

/// A group of v3 and one of v2 in an implicit one, each with consolidated metadata, and nodes beside them.
async fn hierarchies() -> Both {
    let both = Both::of(&[
        ("s/g/zarr.json", group(json!({"top": 1}))),
        ("s/g/a/zarr.json", array(json!({"units": "m"}))),
        ("s/g/a-b/zarr.json", group(json!({}))),
        ("s/g/a-b/c/zarr.json", array(json!({}))),
        ("s/g/a/c/0", json!(0)),
        ("s/g/i/deep/zarr.json", array(json!({}))),
        ("s/g/unknown/zarr.json", {
            let mut array = array(json!({}));
            array["codecs"] = json!([{"name": "never-heard-of"}]);
            array
        }),
        ("s/h/.zgroup", zgroup()),
        ("s/h/.zattrs", json!({"top": 2})),
        ("s/h/a/.zarray", zarray()),
        ("s/h/a/.zattrs", json!({"_ARRAY_DIMENSIONS": ["x"]})),
        ("s/h/a/0", json!(0)),
        ("s/h/b/.zgroup", zgroup()),
        ("s/h/b/c/.zarray", zarray()),
        ("s/h/i/c/.zarray", zarray()),
        ("s/alone/zarr.json", array(json!({}))),
    ])
    .await;
    both.consolidate("s/g/", Dialect::V3).await;
    both.consolidate("s/h/", Dialect::V2).await;
    both
}

#[tokio::test]
async fn trees_of_all_dialects_are_those_of_their_documents() {
    let both = hierarchies().await;
    for at in ["/", "/s", "/s/g", "/s/g/a", "/s/g/i", "/s/h", "/s/h/b", "/s/h/i", "/s/h/a"] {
        for depth in [Depth::Levels(0), Depth::Levels(1), Depth::Levels(2), Depth::All] {
            for mapped in [None, Some(Dialect::V3), Some(Dialect::V2)] {
                if mapped == Some(Dialect::V2) && !at.starts_with("/s/h") {
                    continue;
                }
                both.same(at, depth, mapped).await;
            }
        }
    }
    let all = both.same("/s", Depth::All, Some(Dialect::V3)).await;
    assert_eq!(all["tree"]["members"]["g"]["members"]["i"]["members"]["deep"]["shape"], json!([4]));
    assert_eq!(all["tree"]["members"]["h"]["members"]["b"]["members"]["c"]["shape"], json!([4]));
}

#[tokio::test]
async fn metadata_that_are_out_of_date_show() {
    let both = hierarchies().await;
    let trees = [("/s/g", "s/g/a/zarr.json"), ("/s/h", "s/h/a/.zarray")];
    let mut before = Vec::new();
    for (at, key) in trees {
        before.push(both.same(at, Depth::All, None).await);
        both.erase(key).await;
    }
    both.set("s/g/new/zarr.json", &array(json!({}))).await;
    both.set("s/h/new/.zarray", &zarray()).await;
    both.set("s/h/.zattrs", &json!({"top": 3})).await;
    for ((at, _), before) in trees.into_iter().zip(before) {
        let trusted = both.trusted(at).await;
        let members = |tree: &Value| tree["tree"]["members"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(members(&trusted), members(&before), "{at}");
        let exact = members(&describe(&both.exact, at, Depth::All, None).await.unwrap());
        assert!(exact.contains(&"new".to_owned()) && !exact.contains(&"a".to_owned()), "{at}: {exact:?}");
        // The requested node itself is as its own documents say.
        both.same(&format!("{at}/new"), Depth::All, None).await;
        assert!(describe(&both.trusting, &format!("{at}/a"), Depth::All, None).await.is_err());
    }
    let trusted = both.trusted("/s/h").await;
    assert_eq!(trusted["tree"]["attributes"], json!({"top": 3}), "the group itself is read");
    let version = describe(&both.exact, "/s/h", Depth::All, None).await.unwrap()["version"].clone();
    assert_eq!(trusted["version"], version, "and has the version of its own documents");
    // Pages of members are those of listings.
    let (path, page) =
        (NodePath::parse("/s/h").unwrap(), MemberPage { limit: 10, cursor: None, files: FileListing::Omitted });
    let page = both.trusting.hierarchies().members(&path, None, &page, None).await.unwrap();
    let tree: Value = page.node.info.zom.to_text().to_value().unwrap();
    assert_eq!(tree["members"].as_object().unwrap().keys().collect::<Vec<_>>(), ["b", "i", "new"]);
}

#[tokio::test]
async fn nested_metadata_are_those_of_flat_ones() {
    let (a, b) = (array(json!({"n": 1})), array(json!({"n": 2})));
    let inner = consolidated(json!({"b": b.clone()}));
    let both = Both::of(&[
        ("g/zarr.json", consolidated(json!({"a": a.clone(), "s": inner.clone()}))),
        ("g/a/zarr.json", a.clone()),
        ("g/s/zarr.json", inner.clone()),
        ("g/s/b/zarr.json", b.clone()),
    ])
    .await;
    let nested = both.same("/g", Depth::All, None).await;
    both.set("g/zarr.json", &consolidated(json!({"a": a, "s": consolidated(json!({})), "s/b": b}))).await;
    let flat = both.same("/g", Depth::All, None).await;
    assert_eq!(nested["tree"], flat["tree"]);
    assert_eq!(flat["tree"]["members"]["s"]["members"]["b"]["attributes"]["n"], 2);
}

#[tokio::test]
async fn an_invalid_document_in_metadata_is_a_broken_node() {
    let both = Both::of(&[
        ("g/zarr.json", consolidated(json!({"a": array(json!({})), "x": {"zarr_format": 3, "node_type": "array"}}))),
        ("g/a/zarr.json", array(json!({}))),
        ("g/x/zarr.json", array(json!({}))),
        ("h/.zgroup", zgroup()),
        (
            "h/.zmetadata",
            json!({"zarr_consolidated_format": 1, "metadata": {"a/.zarray": zarray(), "x/.zarray": {"shape": 7}}}),
        ),
    ])
    .await;
    for (at, key) in [("/g", "g/zarr.json"), ("/h", "h/.zmetadata")] {
        let trusted = both.trusted(at).await;
        let broken = trusted["broken"][0].as_str().unwrap();
        assert!(broken.starts_with(&format!("{at}/x {key} ")), "{broken}");
        let members = trusted["tree"]["members"].as_object().unwrap();
        assert_eq!(members.keys().collect::<Vec<_>>(), ["a"]);
    }
    assert_eq!(describe(&both.exact, "/g", Depth::All, None).await.unwrap()["broken"], json!([]));
}

#[tokio::test]
async fn metadata_that_cannot_be_read_are_ignored() {
    let both =
        Both::of(&[("g/a/zarr.json", array(json!({}))), ("h/.zgroup", zgroup()), ("h/a/.zarray", zarray())]).await;
    for metadata in [json!([]), json!({"a": 7}), json!({"../x": array(json!({}))}), json!(null)] {
        both.set("g/zarr.json", &consolidated(metadata)).await;
        assert!(both.same("/g", Depth::All, None).await["tree"]["members"]["a"].is_object());
    }
    for text in ["{", "[]", "", r#"{"zarr_consolidated_format": 2, "metadata": {}}"#, r#"{"metadata": {}}"#] {
        both.set_text("h/.zmetadata", text).await;
        assert!(both.same("/h", Depth::All, None).await["tree"]["members"]["a"].is_object(), "{text}");
    }
}

/// Metadata of a group of v3 say nothing about v2, and the other way round.
#[tokio::test]
async fn metadata_of_a_dialect_have_the_nodes_of_that_dialect() {
    let both = Both::of(&[
        ("g/zarr.json", consolidated(json!({"a": array(json!({"dialect": 3}))}))),
        ("g/a/zarr.json", array(json!({"dialect": 3}))),
        ("g/.zgroup", zgroup()),
        ("g/b/.zarray", zarray()),
        ("g/.zmetadata", json!({"zarr_consolidated_format": 1, "metadata": {"b/.zarray": zarray()}})),
    ])
    .await;
    for (dialect, member) in [(Dialect::V3, "a"), (Dialect::V2, "b")] {
        let path = NodePath::parse("/g").unwrap();
        let info = both.trusting.hierarchies().node(&path, Some(dialect), Depth::All, None).await.unwrap().info;
        let tree: Value = info.zom.to_text().to_value().unwrap();
        assert_eq!(tree["members"].as_object().unwrap().keys().collect::<Vec<_>>(), [member]);
    }
}

#[tokio::test]
async fn metadata_of_too_many_nodes_are_rejected() {
    let with_groups = |count: usize| {
        let groups: Vec<String> = (0..count).map(|number| format!(r#""{number}/.zgroup":{{}}"#)).collect();
        format!(r#"{{"zarr_consolidated_format": 1, "metadata": {{{}}}}}"#, groups.join(","))
    };
    let both = Both::of(&[("h/.zgroup", zgroup())]).await;
    both.set_text("h/.zmetadata", &with_groups(300_001)).await;
    let error = describe(&both.trusting, "/h", Depth::All, None).await.unwrap_err();
    assert!(matches!(error, NodeError::Rejected(_)), "{error:?}");
    // The nodes of a small document take 15 MiB.
    both.set_text("h/.zmetadata", &with_groups(20_000)).await;
    let guarantees = Guarantees { consolidated: Consolidated::Trusted, ..Guarantees::READ_ONLY };
    let served = ServedStore::read_only(Arc::new(Keyed::new(both.memory.clone(), guarantees)));
    let arrays = Arrays::new(served, Options { max_memory: 8 << 20, ..Options::default() });
    let error = describe(&arrays, "/h", Depth::All, None).await.unwrap_err();
    assert!(matches!(&error, NodeError::Array(ArrayError::Memory(_))), "{error:?}");
}
