use super::*;
use crate::documents::write;

fn object(document: Value) -> Map<String, Value> {
    match document {
        Value::Object(members) => members,
        _ => panic!("{document} is no object"),
    }
}

/// As zarr-python 3.4.2 writes the same.
#[test]
fn texts() {
    let document = object(json!({"zarr_format": 2, "shape": [2], "filters": [], "attributes": {}, "a": {"b": 0.0}}));
    let text = "{\n  \"zarr_format\": 2,\n  \"shape\": [\n    2\n  ],\n  \"filters\": [],\n  \"attributes\": {},\n  \"a\": {\n    \"b\": 0.0\n  }\n}";
    assert_eq!(String::from_utf8(write::text(&document)).unwrap(), text);
}

/// Indentation could make a hundred bytes of each.
#[test]
fn deep_documents_are_not_indented() {
    let mut deep = json!(vec![1; 1000]);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let document = object(json!({"a": deep}));
    assert_eq!(write::text(&document), json!(document).to_string().into_bytes());
}

#[test]
fn attributes_of_v2_stand_beside() {
    let node = object(json!({"zarr_format": 2, "attributes": {"a": 1}, "x": 2}));
    let (zgroup, zattrs) = write::split_v2(&node);
    assert_eq!((json!(zgroup), json!(zattrs)), (json!({"zarr_format": 2, "x": 2}), json!({"a": 1})));
    assert_eq!(write::join_v2(&zgroup, &zattrs.unwrap()), node);
    let (_, none) = write::split_v2(&object(json!({"zarr_format": 2, "attributes": {}})));
    assert_eq!(none, None);
}

#[test]
fn a_new_hierarchy_of_the_draft() {
    let text = write::text(&write::draft_entry_point());
    let entry_point = super::super::draft::entry_point(&text).unwrap();
    assert_eq!((entry_point.metadata_key_suffix.as_str(), entry_point.extensions.len()), (".json", 0));
}

fn names(consolidated: &Map<String, Value>) -> Vec<&str> {
    consolidated["metadata"].as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn consolidated_metadata_of_v2() {
    let array = json!({"zarr_format": 2, "shape": [1]});
    let group = json!({"zarr_format": 2});
    let mut all =
        object(json!({"metadata": {".zgroup": group, "a/.zgroup": group, "a/.zattrs": {"q": 1}, "a/x/.zarray": array,
        "ab/.zgroup": group}, "zarr_consolidated_format": 1}));
    let array = object(array);
    let group = object(json!({"zarr_format": 2, "attributes": {"q": 2}}));
    write::consolidate_v2(&mut all, "a", Some(&group));
    assert_eq!(all["metadata"]["a/.zattrs"], json!({"q": 2}));
    assert_eq!(all["metadata"]["a/.zgroup"], json!({"zarr_format": 2}));
    write::consolidate_v2(&mut all, "", Some(&group));
    write::consolidate_v2(&mut all, "b", Some(&array));
    assert_eq!(names(&all), [".zgroup", "a/.zgroup", "a/.zattrs", "a/x/.zarray", "ab/.zgroup", ".zattrs", "b/.zarray"]);
    write::consolidate_v2(&mut all, "a", None);
    assert_eq!(names(&all), [".zgroup", "ab/.zgroup", ".zattrs", "b/.zarray"]);
    super::super::v2::consolidated(&write::text(&all)).unwrap();
    write::consolidate_v2(&mut all, "ab", Some(&array));
    assert_eq!(names(&all), [".zgroup", ".zattrs", "b/.zarray", "ab/.zarray"]);
    write::consolidate_v2(&mut all, "", None);
    assert!(names(&all).is_empty());
    let mut other = object(json!({"metadata": 1}));
    write::consolidate_v2(&mut other, "a", Some(&group));
    assert_eq!(json!(other), json!({"metadata": 1}));
}

#[test]
fn consolidated_metadata_of_v3() {
    let mut root = object(json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {"a": {"old": 1}, "a/x": {}, "ab": {}}}}));
    let group = object(json!({"attributes": {"q": 2}, "zarr_format": 3, "node_type": "group",
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"x": {}}}}));
    write::consolidate_v3(&mut root, "a", Some(&group));
    let metadata = |root: &Map<String, Value>| root["consolidated_metadata"]["metadata"].clone();
    assert_eq!(
        metadata(&root),
        json!({"a": {"attributes": {"q": 2}, "zarr_format": 3, "node_type": "group",
            "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}}, "a/x": {}, "ab": {}})
    );
    let array = object(json!({"zarr_format": 3, "node_type": "array"}));
    write::consolidate_v3(&mut root, "ab", Some(&array));
    write::consolidate_v3(&mut root, "c/d", Some(&array));
    write::consolidate_v3(&mut root, "a", None);
    assert_eq!(metadata(&root), json!({"ab": array, "c/d": array}));
    super::super::v3::node(&write::text(&root)).unwrap();
    let mut without = group.clone();
    without.remove("consolidated_metadata");
    let before = without.clone();
    write::consolidate_v3(&mut without, "a", Some(&array));
    assert_eq!(without, before);
}
