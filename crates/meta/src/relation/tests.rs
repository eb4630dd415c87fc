#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::*;
use crate::documents::parse_object;

/// The node that a document describes, with the attributes of v2 as its member `attributes`.
enum Node {
    Array(Box<ArrayModel>),
    Group(GroupModel),
    Unreadable,
}

impl Node {
    fn compared(&self) -> ComparedNode<'_> {
        match self {
            Self::Array(model) => ComparedNode::Array(model),
            Self::Group(model) => ComparedNode::Group(model),
            Self::Unreadable => ComparedNode::Unreadable,
        }
    }
}

fn v2(document: &Value) -> Node {
    let json = parse_object(document.to_string()).unwrap();
    let StoredNode { document, attributes } = StoredNode::from_node_document(Dialect::V2, &json);
    let attributes = attributes.unwrap_or_default();
    match document.get("shape") {
        Some(_) => v2::read_array(document, attributes).map_or(Node::Unreadable, |model| Node::Array(Box::new(model))),
        None => v2::read_group(document, attributes).map_or(Node::Unreadable, Node::Group),
    }
}

fn v3(document: &Value) -> Node {
    match v3::read(parse_object(document.to_string()).unwrap()) {
        Ok(v3::Node::Array(model)) => Node::Array(model),
        Ok(v3::Node::Group(model)) => Node::Group(model),
        Err(_) => Node::Unreadable,
    }
}

/// The relation of two documents, which does not depend on their order.
fn relation(two: &Value, three: &Value) -> DialectRelation {
    let (two, three) = (v2(two), v3(three));
    let relation = DialectRelation::between(two.compared(), three.compared());
    assert_eq!(DialectRelation::between(three.compared(), two.compared()), relation);
    relation
}

fn array_v2() -> Value {
    json!({"zarr_format": 2, "shape": [5, 4], "chunks": [2, 2], "dtype": "<i2", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null, "dimension_separator": "."})
}

fn array_v3() -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [5, 4], "data_type": "int16", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {}})
}

fn with(mut document: Value, member: &str, value: Value) -> Value {
    document[member] = value;
    document
}

#[test]
fn notations_of_one_array_are_the_same() {
    let default = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let transposed = json!([{"name": "transpose", "configuration": {"order": [1, 0]}}, default]);
    let big = json!([{"name": "bytes", "configuration": {"endian": "big"}}]);
    let zlib = json!({"id": "zlib", "level": 1});
    let gzip = json!({"id": "gzip", "level": 5});
    let codec = |codec: Value| json!([default, codec]);
    let names = json!({"_ARRAY_DIMENSIONS": ["y", "x"], "n": 1});
    let cases = [
        ("plain", array_v2(), array_v3()),
        ("order", with(array_v2(), "order", json!("F")), with(array_v3(), "codecs", transposed)),
        ("byte order", with(array_v2(), "dtype", json!(">i2")), with(array_v3(), "codecs", big)),
        ("no fill value", with(array_v2(), "fill_value", json!(null)), array_v3()),
        (
            "no fill value beside another",
            with(array_v2(), "fill_value", json!(null)),
            with(array_v3(), "fill_value", json!(7)),
        ),
        (
            "numcodecs",
            with(array_v2(), "compressor", zlib),
            with(array_v3(), "codecs", codec(json!({"name": "numcodecs.zlib", "configuration": {"level": 1}}))),
        ),
        (
            "codec of both",
            with(array_v2(), "compressor", gzip),
            with(array_v3(), "codecs", codec(json!({"name": "gzip", "configuration": {"level": 5}}))),
        ),
        (
            "names",
            with(array_v2(), "attributes", names),
            with(with(array_v3(), "dimension_names", json!(["y", "x"])), "attributes", json!({"n": 1.0})),
        ),
        (
            "mask in the fill value",
            with(array_v2(), "fill_value", json!(-99)),
            with(with(array_v3(), "fill_value", json!(-99)), "attributes", json!({"_FillValue": -99})),
        ),
        (
            "mask beside the fill value",
            with(array_v2(), "fill_value", json!(-99)),
            with(array_v3(), "attributes", json!({"_FillValue": -99})),
        ),
        (
            "mask in base64",
            with(array_v2(), "fill_value", json!(-99)),
            with(array_v3(), "attributes", json!({"_FillValue": "AAAAAADAWMA="})),
        ),
    ];
    for (case, two, three) in cases {
        assert_eq!(relation(&two, &three), DialectRelation::Same, "{case}");
    }
}

#[test]
fn conversions_are_the_same() {
    let compressors = [
        json!(null),
        json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        json!({"id": "zstd", "level": 3}),
        json!({"id": "bz2", "level": 1}),
    ];
    for compressor in compressors {
        for dtype in ["<f8", "|u1", ">i4", "|b1", "<M8[s]", "<U3", "|S2"] {
            let document = with(with(array_v2(), "compressor", compressor.clone()), "dtype", json!(dtype));
            let document = with(document, "fill_value", json!(null));
            let Node::Array(two) = v2(&document) else { panic!("{dtype}") };
            let converted =
                convert::array(&two, Dialect::V3, ChunkPolicy::Preserve, ArrayContext::default()).unwrap().document;
            let Node::Array(three) = v3(&converted.to_value().unwrap()) else { panic!("{dtype}") };
            let relation = DialectRelation::between(ComparedNode::Array(&two), ComparedNode::Array(&three));
            assert_eq!(relation, DialectRelation::Same, "{dtype} {compressor}");
        }
    }
}

#[test]
fn each_member_of_the_layout_counts() {
    let chunks = json!({"name": "regular", "configuration": {"chunk_shape": [2, 4]}});
    let gzip = json!([{"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "gzip", "configuration": {"level": 5}}]);
    let big = json!([{"name": "bytes", "configuration": {"endian": "big"}}]);
    let cases = [
        ("data type", array_v2(), with(array_v3(), "data_type", json!("uint16"))),
        ("chunks", array_v2(), with(array_v3(), "chunk_grid", chunks)),
        ("codecs", array_v2(), with(array_v3(), "codecs", gzip)),
        ("byte order", array_v2(), with(array_v3(), "codecs", big)),
        ("order", with(array_v2(), "order", json!("F")), array_v3()),
        ("fill value", with(array_v2(), "fill_value", json!(1)), array_v3()),
        (
            "another mask",
            with(array_v2(), "fill_value", json!(1)),
            with(array_v3(), "attributes", json!({"_FillValue": 2})),
        ),
        ("group", json!({"zarr_format": 2}), array_v3()),
        ("array", array_v2(), json!({"zarr_format": 3, "node_type": "group"})),
        // A difference of the layout outweighs others.
        ("shape too", array_v2(), with(with(array_v3(), "data_type", json!("uint16")), "shape", json!([9, 4]))),
    ];
    for (case, two, three) in cases {
        assert_eq!(relation(&two, &three), DialectRelation::Layout, "{case}");
    }
}

#[test]
fn shapes_and_attributes_are_told_apart() {
    let cases = [
        (array_v2(), with(array_v3(), "shape", json!([6, 4])), DialectRelation::Shape),
        (array_v2(), with(array_v3(), "shape", json!([6, 3])), DialectRelation::Shape),
        (
            with(array_v2(), "attributes", json!({"n": 1})),
            with(array_v3(), "shape", json!([0, 0])),
            DialectRelation::Shape,
        ),
        (with(array_v2(), "attributes", json!({"n": 1})), array_v3(), DialectRelation::Attributes),
        (array_v2(), with(array_v3(), "dimension_names", json!(["y", "x"])), DialectRelation::Attributes),
        (json!({"zarr_format": 2}), json!({"zarr_format": 3, "node_type": "group"}), DialectRelation::Same),
        (
            json!({"zarr_format": 2, "attributes": {"n": 1}}),
            json!({"zarr_format": 3, "node_type": "group", "attributes": {"n": 2}}),
            DialectRelation::Attributes,
        ),
        (with(array_v2(), "dtype", json!("what")), array_v3(), DialectRelation::Unreadable),
        (array_v2(), with(array_v3(), "shape", json!("what")), DialectRelation::Unreadable),
    ];
    for (two, three, expected) in cases {
        assert_eq!(relation(&two, &three), expected, "{two} {three}");
    }
}

/// Two arrays are independent exactly if no chunk of one has the key of a chunk of the other.
#[test]
fn arrays_are_independent_if_their_keys_are_disjoint() {
    for (rank, other_rank) in [(0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2)] {
        for two_separator in [".", "/"] {
            for form in ["v2", "default"] {
                for separator in [".", "/"] {
                    let (shape, chunks) = (vec![4; rank], vec![2; rank]);
                    let two = with(with(array_v2(), "shape", json!(shape)), "chunks", json!(chunks));
                    let two = with(two, "dimension_separator", json!(two_separator));
                    let (shape, chunks) = (vec![4; other_rank], vec![2; other_rank]);
                    let grid = json!({"name": "regular", "configuration": {"chunk_shape": chunks}});
                    let keys = json!({"name": form, "configuration": {"separator": separator}});
                    let three = with(with(array_v3(), "shape", json!(shape)), "chunk_grid", grid);
                    let three = with(three, "chunk_key_encoding", keys);
                    let (Node::Array(one), Node::Array(other)) = (v2(&two), v3(&three)) else { panic!("arrays") };
                    let keys = |model: &ArrayModel| -> Vec<String> {
                        let positions = [0, 1].iter().flat_map(|y| [[*y, 0], [*y, 1]]);
                        positions.map(|position| model.chunk_keys.key(&position[..model.shape.len()])).collect()
                    };
                    let shares = keys(&one).iter().any(|key| keys(&other).contains(key));
                    let independent = relation(&two, &three) == DialectRelation::Independent;
                    assert_eq!(independent, !shares, "{two} {three}");
                }
            }
        }
    }
}

#[test]
fn containing_shape_is_the_larger_one() {
    let cases = [
        (vec![3, 4], vec![3, 4], Some([3, 4])),
        (vec![3, 4], vec![5, 4], Some([5, 4])),
        (vec![5, 4], vec![3, 0], Some([5, 4])),
        (vec![5, 4], vec![3, 6], None),
        (vec![5], vec![3, 6], None),
    ];
    for (one, other, expected) in cases {
        let expected = expected.as_ref().map(|shape| shape.as_slice());
        assert_eq!(containing_shape(&one, &other), expected);
        assert_eq!(containing_shape(&other, &one), expected);
    }
}

#[test]
fn names_are_parsed_back() {
    for relation in DialectRelation::ALL {
        assert_eq!(relation.to_string().parse(), Ok(relation));
    }
    assert_eq!("Shape".parse::<DialectRelation>(), Err(RelationError));
}
