use std::sync::Arc;

use serde_json::{Value, json};
use zarrd_array::{CreateAction, CreateOptions, Depth, IfExists, NodeError, NodeRejection};
use zarrd_meta::Dialect;

use crate::hierarchies::test_store::{
    TestStore, draft_array, entry_point, path, v2_array, v2_group, v3_array, v3_group, zom,
};

/// A tree before it is replaced, and its replacement.
struct Case {
    name: &'static str,
    /// The documents, of which one may be given as text.
    keys: Vec<(&'static str, Value)>,
    declared: Value,
    dialect: Option<Dialect>,
}

fn case(name: &'static str, keys: Vec<(&'static str, Value)>, declared: Value) -> Case {
    Case { name, keys, declared, dialect: None }
}

fn attributes(mut document: Value, attributes: Value) -> Value {
    document["attributes"] = attributes;
    document
}

/// The text of a document, which may be given as text.
fn text(document: &Value) -> String {
    document.as_str().map_or_else(|| document.to_string(), str::to_owned)
}

/// A group that makes no statement about its members.
fn any_group() -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}})
}

fn cases_of_v3() -> Vec<Case> {
    let (group, array) = (any_group, v3_array);
    let other = v3_group(&json!({"new": any_group()}));
    let consolidated = json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {"a": any_group()}}});
    // The same values in another order of names.
    let reordered = json!(r#"{"zarr_format": 3, "node_type": "group", "attributes": {"b": 1.50, "a": 0}}"#);
    vec![
        case("nothing stays", vec![("g/zarr.json", group()), ("g/a/zarr.json", array(&[3]))], other.clone()),
        case(
            "equal nodes stay",
            vec![("g/zarr.json", group()), ("g/a/zarr.json", reordered)],
            v3_group(&json!({"a": attributes(any_group(), json!({"a": 0, "b": 1.5})), "b": any_group()})),
        ),
        case(
            "undeclared members stay",
            vec![("g/zarr.json", group()), ("g/a/zarr.json", group()), ("g/a/b/zarr.json", array(&[3]))],
            v3_group(&json!({"a": attributes(any_group(), json!({"x": 1})), "new": any_group()})),
        ),
        case(
            "a broken node stays",
            vec![("g/zarr.json", group()), ("g/a/zarr.json", group()), ("g/a/b/zarr.json", json!({"zarr_format": 3}))],
            v3_group(&json!({"a": any_group(), "new": any_group()})),
        ),
        case(
            "a broken node is replaced",
            vec![("g/zarr.json", group()), ("g/a/zarr.json", json!(1)), ("g/a/b/zarr.json", group())],
            v3_group(&json!({"a": any_group()})),
        ),
        case(
            "implicit groups get documents",
            vec![("g/a/b/zarr.json", array(&[3]))],
            v3_group(&json!({"a": v3_group(&json!({"b": v3_array(&[3])}))})),
        ),
        case(
            "an undeclared implicit group stays",
            vec![("g/zarr.json", group()), ("g/a/zarr.json", group()), ("g/a/b/c/zarr.json", array(&[3]))],
            v3_group(&json!({"a": attributes(any_group(), json!({"x": 1}))})),
        ),
        case(
            "an array becomes a group",
            vec![("g/zarr.json", group()), ("g/a/zarr.json", array(&[3])), ("g/a/c/0", json!(0))],
            v3_group(&json!({"a": v3_group(&json!({"b": any_group()}))})),
        ),
        case(
            "consolidated metadata stays",
            vec![("g/zarr.json", consolidated), ("g/a/zarr.json", group())],
            v3_group(&json!({"a": attributes(any_group(), json!({"x": 1})), "b": any_group()})),
        ),
        case(
            "a group of another dialect",
            vec![
                ("g/zarr.json", group()),
                ("g/a/zarr.json", array(&[3])),
                ("g/old/.zgroup", json!({"zarr_format": 2})),
            ],
            other,
        ),
    ]
}

fn cases_of_other_dialects() -> Vec<Case> {
    let zgroup = || json!({"zarr_format": 2});
    let zarray = || {
        let mut array = v2_array(&[3]);
        array.as_object_mut().unwrap().remove("attributes");
        array
    };
    let with = |members: Value| attributes(v2_group(&members), json!({"a": 1}));
    vec![
        case(
            "attributes of v2 change",
            vec![("g/.zgroup", zgroup()), ("g/.zattrs", json!({"b": 1})), ("g/a/.zarray", zarray())],
            with(json!({"a": attributes(v2_array(&[3]), json!({"x": 1})), "b": v2_group(&json!({}))})),
        ),
        case(
            "attributes of v2 are erased",
            vec![("g/.zgroup", zgroup()), ("g/.zattrs", json!({"b": 1})), ("g/a/.zgroup", zgroup())],
            v2_group(&json!({"a": {"zarr_format": 2}, "b": v2_group(&json!({}))})),
        ),
        case(
            "attributes of v2 stay",
            vec![("g/.zgroup", zgroup()), ("g/.zattrs", json!({"a": 1})), ("g/a/.zarray", zarray())],
            with(json!({"a": v2_array(&[4])})),
        ),
        case(
            "a name that the draft reserves",
            vec![("g/.zgroup", zgroup()), ("g/zarr.json", entry_point()), ("g/a/.zgroup", zgroup())],
            v2_group(&json!({"meta": v2_group(&json!({}))})),
        ),
        Case {
            dialect: Some(Dialect::Draft),
            ..case(
                "draft",
                vec![
                    ("g/zarr.json", entry_point()),
                    ("g/meta/root.group.json", json!({"extensions": [], "attributes": {}})),
                    ("g/meta/root/a.array.json", draft_array(&[3])),
                    ("g/meta/root/b/c.array.json", draft_array(&[3])),
                ],
                v3_group(&json!({"b": any_group(), "new": v3_array(&[5])})),
            )
        },
    ]
}

#[tokio::test]
async fn replaced_tree_is_described_as_it_is_read_afterwards() {
    for Case { name, keys, declared, dialect } in cases_of_v3().into_iter().chain(cases_of_other_dialects()) {
        let store = TestStore::new();
        for (key, document) in keys {
            store.set(key, text(&document)).await;
        }
        let options = CreateOptions { if_exists: IfExists::Replace, dialect, ..CreateOptions::default() };
        let replaced = store.nodes.create(&path("/g"), Arc::new(zom(&declared)), &options).await.unwrap();
        assert!(replaced.action != CreateAction::Unchanged, "{name}");
        let made = replaced.node.info;
        let read = store.nodes.node(&path("/g"), Some(made.dialect), Depth::All, None).await.unwrap().info;
        assert_eq!(made.zom.to_text().as_str(), read.zom.to_text().as_str(), "{name}");
        assert_eq!((made.version, made.implicit), (read.version, read.implicit), "{name}");
        assert_eq!((made.broken, made.other_dialects), (read.broken, read.other_dialects), "{name}");
    }
}

/// Few keys are scanned, and nodes among many are looked up.
#[tokio::test]
async fn node_of_another_dialect_is_found_among_few_and_many_keys() {
    for others in [0, 100] {
        let store = TestStore::new();
        store.json("g/zarr.json", &any_group()).await;
        store.json("g/a/.zgroup", &json!({"zarr_format": 2})).await;
        for number in 0..others {
            store.set(&format!("g/z/{number}"), [0]).await;
        }
        let replaced = store.replace("/g", &v3_group(&json!({"a": any_group()}))).await;
        let Err(NodeError::Rejected(NodeRejection::DialectConflict { path, dialect })) = replaced else {
            panic!("{others}: {replaced:?}")
        };
        assert_eq!((path.to_string().as_str(), dialect), ("/g/a", Dialect::V2), "{others}");
    }
}
