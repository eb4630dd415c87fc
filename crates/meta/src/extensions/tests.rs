#![allow(clippy::panic, reason = "helpers of tests")]

use serde_json::json;

use super::*;
use crate::{
    ArrayModel,
    documents::{GroupModel, v3},
};

fn node(extensions: &Value, document: Value) -> Result<v3::Node, DocumentError> {
    let mut document = document;
    document["zarr_format"] = json!(3);
    document["extensions"] = extensions.clone();
    v3::node(document.to_string())
}

fn array(extensions: &Value) -> Result<ArrayModel, DocumentError> {
    let array = json!({"node_type": "array", "shape": [50, 60], "data_type": "int16", "chunk_grid": {"name": "regular",
        "configuration": {"chunk_shape": [20, 30]}}, "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]});
    node(extensions, array).map(|node| match node {
        v3::Node::Array(array) => *array,
        v3::Node::Group(group) => panic!("{group:?}"),
    })
}

fn group(extensions: &Value) -> Result<GroupModel, DocumentError> {
    node(extensions, json!({"node_type": "group"})).map(|node| match node {
        v3::Node::Group(group) => group,
        v3::Node::Array(array) => panic!("{array:?}"),
    })
}

fn configured(name: &str, configuration: Value) -> Value {
    json!([{"name": name, "configuration": configuration}])
}

#[test]
fn offset_makes_a_view() {
    let offset = |offset: Value| json!({"name": "example.offset", "configuration": {"offset": offset}});
    let view = array(&json!([offset(json!([12, 24]))])).unwrap();
    assert_eq!((view.shape.as_slice(), view.view_offset.as_slice()), (&[50, 60][..], &[12, 24][..]));
    assert_eq!(view.view_shape(), [38, 36]);
    assert_eq!(array(&json!([offset(json!([50, 60]))])).unwrap().view_shape(), [0, 0]);
    // Of a view, a second offset makes another.
    let twice = json!([offset(json!([12, 24])), "example.skip_empty_chunks", offset(json!([38, 1]))]);
    let twice = array(&twice).unwrap();
    assert_eq!((twice.view_shape(), twice.view_offset.as_slice()), (vec![0, 35], &[50, 25][..]));
    assert!(twice.skips_empty_chunks());
    let beyond = array(&json!([offset(json!([12, 24])), offset(json!([39, 1]))])).unwrap_err();
    let why = "/extensions/1/configuration/offset/0 is beyond the 38 elements of the dimension";
    assert_eq!(beyond.to_string(), why);
    assert_eq!(array(&json!(["example.skip_empty_chunks"])).unwrap().view_shape(), [50, 60]);
}

#[test]
fn statistics_are_elements_of_the_data_type() {
    let read = array(&configured("example.array-statistics", json!({"min": -5, "max": 1023}))).unwrap();
    let expected =
        ExtensionEffect::Statistics { min: (-5_i16).to_le_bytes().to_vec(), max: 1023_i16.to_le_bytes().to_vec() };
    assert_eq!(read.extensions[0].effect, expected);
    assert!(!read.skips_empty_chunks());
}

#[test]
fn links_of_groups_have_pointers() {
    let listed = json!([
        {"name": "nobody.knows", "must_understand": false},
        {"name": "example.multiscale-arrays", "configuration": {"multiscale": {"datasets": ["path/to/1", "2"]}}},
        {"name": "example.tiered-storage", "must_understand": false, "configuration": {"slow-arrays": ["2"]}},
    ]);
    let links = group(&listed).unwrap().links();
    let links: Vec<_> =
        links.iter().map(|link| (link.extension.as_str(), link.pointer.as_str(), link.path.as_str())).collect();
    let expected = [
        ("example.multiscale-arrays", "/extensions/1/configuration/multiscale/datasets/0", "path/to/1"),
        ("example.multiscale-arrays", "/extensions/1/configuration/multiscale/datasets/1", "2"),
        ("example.tiered-storage", "/extensions/2/configuration/slow-arrays/0", "2"),
    ];
    assert_eq!(links, expected);
}

#[test]
fn invalid_extensions_are_rejected_or_ignored() {
    let (of_array, of_group) = (
        |listed: &Value| array(listed).map(|array| array.extensions),
        |listed: &Value| group(listed).map(|group| group.extensions),
    );
    type Read<'a> = &'a dyn Fn(&Value) -> Result<Vec<Extension>, DocumentError>;
    let cases: [(Read<'_>, &str, Value, &str); 19] = [
        (&of_array, "offset", json!({}), "/configuration/offset is missing"),
        (&of_array, "offset", json!({"offset": 1}), "/configuration/offset is not a list"),
        (&of_array, "offset", json!({"offset": [1]}), "/configuration/offset has 1 entries for 2 dimensions"),
        (&of_array, "offset", json!({"offset": [-1, 0]}), "/configuration/offset/0 is negative"),
        (
            &of_array,
            "offset",
            json!({"offset": [0, 61]}),
            "/configuration/offset/1 is beyond the 60 elements of the dimension",
        ),
        (&of_array, "offset", json!({"offset": [0, 0], "unit": 1}), "/configuration has the unknown member unit"),
        (&of_group, "offset", json!({"offset": []}), " is the extension example.offset, which is not for a group"),
        (&of_array, "array-statistics", json!({"min": 1}), "/configuration/max is missing"),
        (&of_array, "array-statistics", json!({"max": 1}), "/configuration/min is missing"),
        (
            &of_array,
            "array-statistics",
            json!({"min": 0, "max": 0, "mean": 0}),
            "/configuration has the unknown member mean",
        ),
        (
            &of_array,
            "array-statistics",
            json!({"min": 2, "max": 1}),
            "/configuration/max is less than the least element",
        ),
        (
            &of_group,
            "array-statistics",
            json!({"min": 1, "max": 1}),
            " is the extension example.array-statistics, which is not for a group",
        ),
        (&of_array, "skip_empty_chunks", json!({"never": true}), "/configuration has the unknown member never"),
        (
            &of_group,
            "skip_empty_chunks",
            json!({}),
            " is the extension example.skip_empty_chunks, which is not for a group",
        ),
        (&of_group, "multiscale-arrays", json!({"multiscale": {}}), "/configuration/multiscale/datasets is missing"),
        (
            &of_array,
            "multiscale-arrays",
            json!({"multiscale": {"datasets": []}}),
            " is the extension example.multiscale-arrays, which is not for an array",
        ),
        (&of_group, "tiered-storage", json!({"slow-arrays": [1]}), "/configuration/slow-arrays/0 is not a string"),
        (
            &of_group,
            "tiered-storage",
            json!({"slow-arrays": ["a", "/a"]}),
            "/configuration/slow-arrays/1 is not a path relative to the group: it is empty or begins with /",
        ),
        (
            &of_group,
            "tiered-storage",
            json!({"slow-arrays": ["a//b"]}),
            "/configuration/slow-arrays/0 is not a path relative to the group: a segment of the path is empty",
        ),
    ];
    for (read, name, configuration, why) in cases {
        let name = format!("example.{name}");
        assert_eq!(
            read(&configured(&name, configuration.clone())).unwrap_err().to_string(),
            format!("/extensions/0{why}")
        );
        let optional = json!([{"name": name, "must_understand": false, "configuration": configuration}]);
        let ignored = read(&optional).unwrap();
        assert_eq!(
            (ignored[0].effect.clone(), &ignored[0].configuration),
            (ExtensionEffect::Ignored, configuration.as_object().unwrap())
        );
    }
    let wrong = array(&configured("example.array-statistics", json!({"min": 1, "max": 40_000}))).unwrap_err();
    assert!(wrong.to_string().starts_with("/extensions/0/configuration/max is wrong: 40000 is no int16"), "{wrong}");
}

#[test]
fn write_drops_only_statistics() {
    for (name, survives) in [
        ("example.array-statistics", false),
        ("example.offset", true),
        ("example.skip_empty_chunks", true),
        ("nobody.knows", true),
    ] {
        assert_eq!(survives_write(name), survives, "{name}");
    }
}
