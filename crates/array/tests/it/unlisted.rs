//! Hierarchies in a store without listings: the members of a group are those that its metadata name.

use std::sync::Arc;

use serde_json::{Value, json};
use zarrd_array::{ArrayError, Arrays, Depth, FileListing, MemberPage, NodeError, Options};
use zarrd_meta::NodePath;
use zarrd_store::{
    Cursor, Guarantees, Key, Keyed, Listing, MemoryStore, Precondition, ServedStore, StoreError, WriteableStore,
};
use zarrd_store_testkit::Unlisted;

/// The same values with listings and without.
struct Both {
    memory: MemoryStore,
    listed: Arrays,
    unlisted: Arrays,
}

impl Both {
    async fn of(documents: &[(&str, Value)]) -> Self {
        let memory = MemoryStore::new();
        let guarantees = Guarantees { listing: Listing::None, ..Guarantees::READ_ONLY };
        let keyed = Keyed::new(Unlisted(memory.clone()), guarantees);
        let both = Self {
            listed: Arrays::new(Arc::new(memory.clone()), Options::default()),
            unlisted: Arrays::new(ServedStore::read_only(Arc::new(keyed)), Options::default()),
            memory,
        };
        for (key, document) in documents {
            both.set(key, document).await;
        }
        both
    }

    async fn set(&self, key: &str, document: &Value) {
        let bytes = document.to_string().into_bytes();
        self.memory.set(&Key::parse(key).unwrap(), bytes.into(), Precondition::none()).await.unwrap();
    }

    async fn tree(&self, at: &str, depth: Depth) -> Result<Value, NodeError> {
        tree(&self.unlisted, at, depth).await
    }

    /// The names of members, read in pages.
    async fn pages(&self, at: &str, limit: usize) -> Result<Vec<String>, NodeError> {
        let (mut names, mut cursor): (Vec<String>, Option<Cursor>) = (Vec::new(), None);
        loop {
            let page = MemberPage { limit, cursor, files: FileListing::Omitted };
            let found = self.unlisted.hierarchies().members(&NodePath::parse(at).unwrap(), None, &page, None).await?;
            let node = found.node.info.zom.to_text().to_value().unwrap();
            names.extend(node["members"].as_object().unwrap().keys().cloned());
            cursor = found.next;
            if cursor.is_none() {
                return Ok(names);
            }
        }
    }

    /// The tree, which is the same with listings.
    async fn same(&self, at: &str, depth: Depth) -> Value {
        let found = self.tree(at, depth).await.unwrap();
        assert_eq!(found, tree(&self.listed, at, depth).await.unwrap(), "{at}");
        found
    }
}

async fn tree(arrays: &Arrays, at: &str, depth: Depth) -> Result<Value, NodeError> {
    let node = arrays.hierarchies().node(&NodePath::parse(at).unwrap(), None, depth, None).await?;
    Ok(node.info.zom.to_text().to_value().unwrap())
}

fn group(attributes: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

fn array() -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 9,
        "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default"}, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}})
}

fn zarray() -> Value {
    json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": null, "fill_value": 0,
        "order": "C", "filters": null})
}

fn consolidated(named: &[&str]) -> Value {
    let metadata: serde_json::Map<_, _> = named.iter().map(|name| ((*name).to_owned(), group(json!({})))).collect();
    let mut document = group(json!({}));
    document["consolidated_metadata"] = json!({"kind": "inline", "must_understand": false, "metadata": metadata});
    document
}

fn is_unlisted(result: &Result<Value, NodeError>) -> bool {
    matches!(result, Err(NodeError::Store(StoreError::Unsupported { what: "listings" })))
}

#[tokio::test]
async fn consolidated_metadata_of_v3_name_all_members_below() {
    let both = Both::of(&[
        ("g/zarr.json", consolidated(&["a", "sub", "sub/b", "sub/deep", "sub/deep/c"])),
        ("g/a/zarr.json", array()),
        ("g/sub/zarr.json", group(json!({"x": 1}))),
        ("g/sub/b/zarr.json", array()),
        ("g/sub/deep/zarr.json", group(json!({}))),
        ("g/sub/deep/c/zarr.json", array()),
    ])
    .await;
    let all = both.same("/g", Depth::All).await;
    assert!(all["members"]["sub"]["members"]["deep"]["members"]["c"].is_object(), "{all}");
    for at in ["/g", "/g/sub", "/g/sub/deep", "/g/a"] {
        both.same(at, Depth::Levels(1)).await;
        both.same(at, Depth::All).await;
    }
    // The copies are old: nodes are as their own documents say.
    both.set("g/sub/zarr.json", &group(json!({"x": 2}))).await;
    assert_eq!(both.same("/g", Depth::All).await["members"]["sub"]["attributes"]["x"], 2);
    both.memory.erase(&Key::parse("g/a/zarr.json").unwrap(), Precondition::none()).await.unwrap();
    let members = both.same("/g", Depth::All).await["members"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members, ["sub"]);
    // Without listings, a node that is not named is not found below the group, and is by its path.
    both.set("g/new/zarr.json", &array()).await;
    assert!(both.tree("/g", Depth::All).await.unwrap()["members"]["new"].is_null());
    both.same("/g/new", Depth::All).await;
}

#[tokio::test]
async fn consolidated_metadata_of_v2_name_all_members_below() {
    let (zgroup, attributes) = (json!({"zarr_format": 2}), json!({"x": 1}));
    let metadata = json!({".zgroup": zgroup, "a/.zarray": zarray(), "a/.zattrs": attributes, "s/.zgroup": zgroup,
        "s/b/.zarray": zarray(), "i/c/.zarray": zarray()});
    let both = Both::of(&[
        (".zmetadata", json!({"zarr_consolidated_format": 1, "metadata": metadata})),
        (".zgroup", zgroup.clone()),
        ("a/.zarray", zarray()),
        ("a/.zattrs", attributes),
        ("s/.zgroup", zgroup.clone()),
        ("s/b/.zarray", zarray()),
        ("i/c/.zarray", zarray()),
    ])
    .await;
    let all = both.same("/", Depth::All).await;
    assert_eq!(all["members"].as_object().unwrap().len(), 3, "{all}");
    for at in ["/", "/s", "/i"] {
        both.same(at, Depth::Levels(1)).await;
    }
}

#[tokio::test]
async fn the_levels_of_an_image_are_its_members() {
    let levels = json!([{"datasets": [{"path": "0"}, {"path": "half/1"}, {"path": "../x"}, {"path": 7}, {}]}, {}]);
    let both = Both::of(&[
        ("v2/.zgroup", json!({"zarr_format": 2})),
        ("v2/.zattrs", json!({"multiscales": levels})),
        ("v2/0/.zarray", zarray()),
        ("v2/half/1/.zarray", zarray()),
        ("v3/zarr.json", group(json!({"ome": {"version": "0.5", "multiscales": levels}}))),
        ("v3/0/zarr.json", array()),
        ("v3/half/1/zarr.json", array()),
    ])
    .await;
    for at in ["/v2", "/v3"] {
        let all = both.same(at, Depth::All).await;
        assert!(all["members"]["half"]["members"]["1"].is_object(), "{all}");
    }
}

#[tokio::test]
async fn plates_wells_and_labels_name_their_members() {
    let image = json!([{"datasets": [{"path": "0"}]}]);
    let wells = json!([{"path": "A/1"}, {"path": "B/2"}, {"path": "../x"}, {"path": 7}, {}, 3]);
    let zgroup = json!({"zarr_format": 2});
    let ome = |attributes: Value| group(json!({"ome": attributes}));
    let both = Both::of(&[
        ("v2/.zgroup", zgroup.clone()),
        ("v2/.zattrs", json!({"plate": {"wells": wells}})),
        ("v2/A/.zgroup", zgroup.clone()),
        ("v2/A/1/.zgroup", zgroup.clone()),
        ("v2/A/1/.zattrs", json!({"well": {"images": [{"path": "0"}, {"path": ""}, {}]}})),
        ("v2/A/1/0/.zgroup", zgroup.clone()),
        ("v2/A/1/0/.zattrs", json!({"multiscales": image})),
        ("v2/A/1/0/0/.zarray", zarray()),
        ("v2/A/1/0/labels/.zgroup", zgroup.clone()),
        ("v2/A/1/0/labels/.zattrs", json!({"labels": ["cells", 7, "missing"]})),
        ("v2/A/1/0/labels/cells/.zgroup", zgroup.clone()),
        ("v2/A/1/0/labels/cells/.zattrs", json!({"multiscales": image})),
        ("v2/A/1/0/labels/cells/0/.zarray", zarray()),
        ("v3/zarr.json", ome(json!({"plate": {"wells": wells}}))),
        ("v3/A/zarr.json", group(json!({}))),
        ("v3/A/1/zarr.json", ome(json!({"well": {"images": [{"path": "0"}]}}))),
        ("v3/A/1/0/zarr.json", ome(json!({"multiscales": image}))),
        ("v3/A/1/0/0/zarr.json", array()),
        ("v3/A/1/0/labels/zarr.json", ome(json!({"labels": ["cells"]}))),
        ("v3/A/1/0/labels/cells/zarr.json", ome(json!({"multiscales": image}))),
        ("v3/A/1/0/labels/cells/0/zarr.json", array()),
    ])
    .await;
    for root in ["/v2", "/v3"] {
        for at in ["", "/A", "/A/1", "/A/1/0", "/A/1/0/labels", "/A/1/0/labels/cells"] {
            both.same(&format!("{root}{at}"), Depth::Levels(1)).await;
        }
        let all = both.same(root, Depth::All).await;
        let image = &all["members"]["A"]["members"]["1"]["members"]["0"]["members"];
        assert!(image["labels"]["members"]["cells"]["members"]["0"].is_object(), "{all}");
    }
}

#[tokio::test]
async fn the_wells_of_a_large_plate_are_searched_by_row() {
    let (rows, columns) = (8, 12_500);
    let path = |row: u8, column: u32| format!("{}/{column}", char::from(b'A' + row));
    let wells: Vec<Value> =
        (0..rows).flat_map(|row| (1..=columns).map(move |column| json!({"path": path(row, column)}))).collect();
    let both = Both::of(&[("p/zarr.json", group(json!({"ome": {"plate": {"wells": wells}}})))]).await;
    for row in 0..rows {
        both.set(&format!("p/{}/zarr.json", char::from(b'A' + row)), &group(json!({}))).await;
    }
    for column in [1, 2, 77, columns] {
        both.set(&format!("p/{}/zarr.json", path(2, column)), &group(json!({"ome": {"well": {"images": []}}}))).await;
    }
    let plate = both.same("/p", Depth::Levels(1)).await;
    assert_eq!(plate["members"].as_object().map(serde_json::Map::len), Some(8));
    let row = both.same("/p/C", Depth::Levels(1)).await;
    assert_eq!(row["members"].as_object().map(serde_json::Map::len), Some(4));
    both.same("/p/C/77", Depth::All).await;
}

#[tokio::test]
async fn images_of_bioformats2raw_are_named_or_numbered() {
    let image = json!([{"datasets": [{"path": "0"}]}]);
    let (zgroup, layout) = (json!({"zarr_format": 2}), json!({"bioformats2raw.layout": 3}));
    let ome = |attributes: Value| group(json!({"ome": attributes}));
    let both = Both::of(&[
        ("named/.zgroup", zgroup.clone()),
        ("named/.zattrs", layout.clone()),
        ("named/OME/.zgroup", zgroup.clone()),
        ("named/OME/.zattrs", json!({"series": ["0", "scan/7", "../x", 3, ""]})),
        ("named/0/.zgroup", zgroup.clone()),
        ("named/0/.zattrs", json!({"multiscales": image})),
        ("named/0/0/.zarray", zarray()),
        ("named/scan/.zgroup", zgroup.clone()),
        ("named/scan/7/.zgroup", zgroup.clone()),
        ("named/scan/7/.zattrs", json!({"multiscales": image})),
        ("named/scan/7/0/.zarray", zarray()),
        ("v3/zarr.json", ome(json!({"version": "0.5", "bioformats2raw.layout": 3}))),
        ("v3/OME/zarr.json", ome(json!({"version": "0.5", "series": ["0"]}))),
        ("v3/0/zarr.json", ome(json!({"multiscales": image}))),
        ("v3/0/0/zarr.json", array()),
        ("plate/.zgroup", zgroup.clone()),
        ("plate/.zattrs", json!({"bioformats2raw.layout": 3, "plate": {"wells": [{"path": "A/1"}]}})),
        ("plate/OME/.zgroup", zgroup.clone()),
        ("plate/A/.zgroup", zgroup.clone()),
        ("plate/A/1/.zgroup", zgroup.clone()),
        ("plate/A/1/.zattrs", json!({"well": {"images": [{"path": "0"}]}})),
        ("plate/A/1/0/.zgroup", zgroup.clone()),
        ("plate/A/1/0/.zattrs", json!({"multiscales": image})),
        ("plate/A/1/0/0/.zarray", zarray()),
        ("empty/.zgroup", zgroup.clone()),
        ("empty/.zattrs", layout.clone()),
        ("numbered/.zgroup", zgroup.clone()),
        ("numbered/.zattrs", layout),
    ])
    .await;
    for number in 0..70 {
        both.set(&format!("numbered/{number}/.zgroup"), &zgroup).await;
        both.set(&format!("numbered/{number}/.zattrs"), &json!({"multiscales": image})).await;
        both.set(&format!("numbered/{number}/0/.zarray"), &zarray()).await;
    }
    for at in ["/named", "/named/OME", "/named/0", "/named/scan", "/v3", "/v3/OME", "/plate", "/plate/A", "/empty"] {
        both.same(at, Depth::Levels(1)).await;
        both.same(at, Depth::All).await;
    }
    let all = both.same("/numbered", Depth::All).await;
    assert_eq!(all["members"].as_object().map(serde_json::Map::len), Some(70));
}

#[tokio::test]
async fn pages_have_the_members_that_documents_name() {
    let layout = group(json!({"ome": {"bioformats2raw.layout": 3}}));
    let both = Both::of(&[
        ("g/zarr.json", consolidated(&["a", "b", "c", "d", "missing", "z"])),
        ("layout/zarr.json", layout),
        ("layout/OME/zarr.json", group(json!({"ome": {"series": ["2", "0", "1"]}}))),
        ("bare/zarr.json", group(json!({}))),
    ])
    .await;
    for name in ["g/a", "g/b", "g/c", "g/d", "g/z", "layout/0", "layout/1", "layout/2"] {
        both.set(&format!("{name}/zarr.json"), &array()).await;
    }
    for limit in [1, 2, 3, 100] {
        assert_eq!(both.pages("/g", limit).await.unwrap(), ["a", "b", "c", "d", "z"], "{limit}");
        assert_eq!(both.pages("/layout", limit).await.unwrap(), ["0", "1", "2", "OME"], "{limit}");
        let bare = both.pages("/bare", limit).await;
        assert!(matches!(bare, Err(NodeError::Store(StoreError::Unsupported { what: "listings" }))), "{bare:?}");
    }
    let page = |cursor| MemberPage { limit: 2, cursor, files: FileListing::Omitted };
    let unlisted = both.unlisted.hierarchies();
    let cursor = unlisted.members(&NodePath::parse("/g").unwrap(), None, &page(None), None).await.unwrap().next;
    assert!(cursor.is_some());
    let other = unlisted.members(&NodePath::parse("/layout").unwrap(), None, &page(cursor), None).await;
    assert!(matches!(other, Err(NodeError::Store(StoreError::InvalidCursor))), "a cursor of another group");
}

#[tokio::test]
async fn members_that_nothing_names_are_an_error_and_never_none() {
    let both = Both::of(&[
        ("g/zarr.json", group(json!({"multiscales": 7, "ome": []}))),
        ("g/a/zarr.json", array()),
        ("bad/.zgroup", json!({"zarr_format": 2})),
        ("bad/.zmetadata", json!({"zarr_consolidated_format": 7, "metadata": {}})),
        ("none/zarr.json", consolidated(&[])),
    ])
    .await;
    for at in ["/g", "/bad", "/"] {
        let found = both.tree(at, Depth::Levels(1)).await;
        assert!(is_unlisted(&found), "{at}: {found:?}");
    }
    both.same("/g", Depth::Levels(0)).await;
    both.same("/g/a", Depth::All).await;
    both.same("/none", Depth::All).await;
    for at in ["/missing", "/g/missing"] {
        let found = both.tree(at, Depth::Levels(1)).await;
        assert!(matches!(found, Err(NodeError::Array(ArrayError::NoSuchNode { .. }))), "{at}: {found:?}");
    }
}
