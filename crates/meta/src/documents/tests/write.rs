use super::*;
use crate::documents::write::{self, ConsolidatedEntry, StoredNode};

fn compact(document: Value) -> Json {
    Json::compact(&document)
}

fn formatted(dialect: Dialect, document: Value) -> StoredNode {
    StoredNode::from_node_document(dialect, &compact(document)).formatted()
}

/// As zarr-python 3.4.2 writes the same.
#[test]
fn documents_are_formatted() {
    let document = json!({"zarr_format": 2, "shape": [2], "filters": [], "attributes": {}, "a": {"b": 0.0}});
    let text = "{\n  \"zarr_format\": 2,\n  \"shape\": [\n    2\n  ],\n  \"filters\": [],\n  \"attributes\": {},\n  \"a\": {\n    \"b\": 0.0\n  }\n}";
    let stored = formatted(Dialect::V3, document.clone());
    assert_eq!((stored.document.as_str(), stored.attributes), (text, None));
    let stored = formatted(Dialect::V2, document);
    assert_eq!(stored.document.as_str(), text.replace("  \"attributes\": {},\n", ""));
    assert_eq!(stored.attributes, None);
}

/// Indentation could make a hundred bytes of each.
#[test]
fn deep_documents_are_not_indented() {
    let mut deep = json!(vec![1; 1000]);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let document = json!({"a": deep});
    assert_eq!(formatted(Dialect::V3, document.clone()).document.to_bytes(), bytes(&document));
}

#[test]
fn v2_attributes_are_stored_separately() {
    let node = compact(json!({"zarr_format": 2, "attributes": {"a": 1}, "x": 2}));
    let stored = StoredNode::from_node_document(Dialect::V2, &node);
    assert_eq!(stored.document, json!({"zarr_format": 2, "x": 2}));
    assert_eq!(*stored.attributes.as_ref().unwrap(), json!({"a": 1}));
    assert_eq!(stored.node_document(Dialect::V2), value(&node));
    let none = StoredNode::from_node_document(Dialect::V2, &compact(json!({"zarr_format": 2, "attributes": {}})));
    assert_eq!((none.attributes.clone(), none.document.clone()), (None, compact(json!({"zarr_format": 2}))));
    assert_eq!(none.node_document(Dialect::V2), json!({"zarr_format": 2, "attributes": {}}));
    for dialect in [Dialect::V3, Dialect::Draft] {
        let stored = StoredNode::from_node_document(dialect, &node);
        assert_eq!(stored, StoredNode::single_document(node.clone()));
        assert_eq!(stored.node_document(dialect), node);
    }
}

#[test]
fn entry_point_of_a_new_draft_hierarchy() {
    let text = write::draft_entry_point();
    assert_eq!(text, text.formatted());
    let entry_point = super::super::draft::entry_point(text.to_bytes()).unwrap();
    assert_eq!((entry_point.metadata_key_suffix.as_str(), entry_point.extensions.len()), (".json", 0));
}

/// Consolidated metadata after one change.
fn changed(dialect: Dialect, all: &Json, below: &str, node: Option<&StoredNode>) -> Json {
    write::update_consolidated(dialect, all, [ConsolidatedEntry { path: below, node }].into_iter())
}

fn names(metadata: &Json) -> Vec<String> {
    metadata.members().map(|member| member.name().unwrap()).collect()
}

#[test]
fn consolidated_metadata_of_v2_is_updated() {
    let array = json!({"zarr_format": 2, "shape": [1]});
    let group = json!({"zarr_format": 2});
    let all =
        compact(json!({"metadata": {".zgroup": group, "a/.zgroup": group, "a/.zattrs": {"q": 1}, "a/x/.zarray": array,
        "ab/.zgroup": group}, "zarr_consolidated_format": 1}));
    let array = StoredNode::from_node_document(Dialect::V2, &compact(array));
    let group =
        StoredNode::from_node_document(Dialect::V2, &compact(json!({"zarr_format": 2, "attributes": {"q": 2}})));
    let change = |all: &Json, below: &str, node: Option<&StoredNode>| changed(Dialect::V2, all, below, node);
    let metadata = |all: &Json| all.get("metadata").unwrap();
    let mut found = change(&all, "a", Some(&group));
    assert_eq!(found.as_str(), all.as_str().replace("{\"q\":1}", "{\"q\":2}"), "all else stays as it is");
    assert_eq!(metadata(&found).get("a/.zattrs").unwrap(), json!({"q": 2}));
    assert_eq!(metadata(&found).get("a/.zgroup").unwrap(), json!({"zarr_format": 2}));
    found = change(&found, "", Some(&group));
    found = change(&found, "b", Some(&array));
    assert_eq!(
        names(&metadata(&found)),
        [".zgroup", "a/.zgroup", "a/.zattrs", "a/x/.zarray", "ab/.zgroup", ".zattrs", "b/.zarray"]
    );
    found = change(&found, "a", None);
    assert_eq!(names(&metadata(&found)), [".zgroup", "ab/.zgroup", ".zattrs", "b/.zarray"]);
    super::super::v2::consolidated(found.to_bytes()).unwrap();
    found = change(&found, "ab", Some(&array));
    assert_eq!(names(&metadata(&found)), [".zgroup", ".zattrs", "b/.zarray", "ab/.zarray"]);
    // A removed copy makes room for the one that replaces it.
    let copies = [("ab", None), ("ab/c", Some(&array)), ("ab", Some(&group))];
    let replaced = write::update_consolidated(
        Dialect::V2,
        &found,
        copies.iter().map(|(below, node)| ConsolidatedEntry { path: below, node: *node }),
    );
    assert_eq!(
        names(&metadata(&replaced)),
        [".zgroup", ".zattrs", "b/.zarray", "ab/c/.zarray", "ab/.zgroup", "ab/.zattrs"]
    );
    found = change(&found, "", None);
    assert!(names(&metadata(&found)).is_empty(), "{found:?}");
    let other = compact(json!({"metadata": 1}));
    assert_eq!(change(&other, "a", Some(&group)), other);
}

#[test]
fn consolidated_metadata_of_v3_is_updated() {
    let root = compact(json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {"a": {"old": 1}, "a/x": {}, "ab": {}}}}));
    let group =
        StoredNode::single_document(compact(json!({"attributes": {"q": 2}, "zarr_format": 3, "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"x": {}}}})));
    let change = |root: &Json, below: &str, node: Option<&StoredNode>| changed(Dialect::V3, root, below, node);
    let metadata = |root: &Json| root.get("consolidated_metadata").unwrap().get("metadata").unwrap();
    let mut found = change(&root, "a", Some(&group));
    let copy = json!({"attributes": {"q": 2}, "zarr_format": 3, "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}});
    assert_eq!(metadata(&found), json!({"a": copy, "a/x": {}, "ab": {}}));
    assert_eq!(found.as_str(), root.as_str().replace("{\"old\":1}", &copy.to_string()), "all else stays as it is");
    let array = json!({"zarr_format": 3, "node_type": "array"});
    let node = StoredNode::single_document(compact(array.clone()));
    found = change(&found, "ab", Some(&node));
    found = change(&found, "c/d", Some(&node));
    found = change(&found, "a", None);
    assert_eq!(metadata(&found), json!({"ab": array, "c/d": array}));
    assert_eq!(change(&change(&found, "", Some(&group)), "", None), found, "the group itself has no copy");
    super::super::v3::node(found.to_bytes()).unwrap();
    let without = compact(json!({"attributes": {"q": 2}, "zarr_format": 3, "node_type": "group"}));
    assert_eq!(change(&without, "a", Some(&node)), without);
}

/// Copies of strange documents are those documents, without members that others of their name override, and what stands
/// around them stays.
#[test]
fn update_preserves_bytes_of_other_nodes() {
    let text = r#"{"zarr_consolidated_format":1, "metadata" :{".zgroup":{"zarr_format":2},
 "a/.zattrs":{ "n":NaN, "n":123456789012345678901234567890, "e" :"\u00e9\ud800"},"b/.zattrs":{"x":0} } }"#;
    let node = StoredNode {
        document: Json::parse("{\"zarr_format\":2}").unwrap(),
        attributes: Some(Json::parse(r#"{"n":NaN,"n":1.50e+3,"e":"\u00e9\ud800"}"#).unwrap()),
    };
    let found = changed(Dialect::V2, &Json::parse(text).unwrap(), "b", Some(&node));
    let attributes = node.attributes.unwrap().as_str().replace("\"n\":NaN,", "");
    let group = r#", "b/.zgroup":{"zarr_format":2} } }"#;
    let expected = text.replace("{\"x\":0}", &attributes).replace(" } }", group);
    let unspaced = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(unspaced(found.as_str()), unspaced(&expected));
    let before_b = text.split("{\"x\":0}").next().unwrap();
    assert!(found.as_str().starts_with(before_b), "{}", found.as_str());
}

/// Copies that have the content already are not written again: their layout stays, and empty attributes count as none.
#[test]
fn up_to_date_copies_are_not_rewritten() {
    let text = "{\"metadata\": {\n \".zgroup\": {\"zarr_format\"  : 2},\n \".zattrs\": {},\n \"a/.zarray\":\n  {\"shape\":[1],  \"zarr_format\":2},\n\
        \"a/.zattrs\": {\"e\": \"\\u00e9\", \"f\": 1.0 ,\"deep\": { \"n\" :NaN}, \"old\": 1}\n}}";
    let all = Json::parse(text).unwrap();
    let array = |attributes: &str| StoredNode {
        document: Json::parse("{\"zarr_format\": 2, \"shape\": [1]}").unwrap(),
        attributes: Some(Json::parse(attributes.to_owned()).unwrap()),
    };
    let same = array("{\"old\": 1, \"deep\": {\"n\": NaN}, \"f\": 1.00, \"e\": \"\u{e9}\"}");
    assert_eq!(changed(Dialect::V2, &all, "a", Some(&same)).as_str(), text);
    let other = array("{\"deep\": {\"n\": NaN, \"m\": 2}, \"f\": 1, \"e\": \"\\u00e9\"}");
    let expected = text.replace("1.0 ", "1 ").replace(":NaN", ":NaN, \"m\" :2").replace(", \"old\": 1", "");
    assert_eq!(changed(Dialect::V2, &all, "a", Some(&other)).as_str(), expected);
    let group = StoredNode { document: Json::parse("{\"zarr_format\": 2}").unwrap(), attributes: None };
    assert_eq!(changed(Dialect::V2, &all, "", Some(&group)).as_str(), text);
    // As zarr-python 3 writes it.
    let text =
        text.replace("\"zarr_format\"  : 2", "\"zarr_format\": 2, \"consolidated_metadata\": {\"metadata\": {}}");
    assert_eq!(changed(Dialect::V2, &Json::parse(text.clone()).unwrap(), "", Some(&group)).as_str(), text);
}
