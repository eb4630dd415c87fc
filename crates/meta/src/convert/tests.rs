//! Documents of one dialect in another, and back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    ArrayModel, Dialect,
    documents::{DocumentError, draft, v2, v3, write::StoredNode},
    json::Json,
};

mod losses;
mod properties;
mod rewritten;

/// The model of a node document as it is stored; `None` where it is a group.
fn try_read(dialect: Dialect, document: &Json) -> Result<Option<ArrayModel>, DocumentError> {
    let StoredNode { document, attributes } = StoredNode::from_node_document(dialect, document).formatted();
    let text = document.to_bytes();
    match dialect {
        Dialect::V2 => v2::array(text, attributes.map(|zattrs| zattrs.to_bytes())).map(Some),
        Dialect::V3 => v3::node(text).map(|node| match node {
            v3::Node::Array(array) => Some(*array),
            v3::Node::Group(_) => None,
        }),
        Dialect::Draft => draft::array(text, "a").map(Some),
    }
}

/// The model of a node document of an array.
fn read(dialect: Dialect, document: &Json) -> ArrayModel {
    try_read(dialect, document)
        .unwrap_or_else(|error| panic!("{error}: {document:?}"))
        .unwrap_or_else(|| panic!("a group: {document:?}"))
}

fn model(dialect: Dialect, document: &Value) -> ArrayModel {
    read(dialect, &Json::compact(document))
}

/// The value that a text is.
fn value(json: &Json) -> Value {
    json.to_value().unwrap()
}

/// The losses other than those of masks, which the tests of the engine have.
fn without_masks(losses: Vec<Loss>) -> Vec<Loss> {
    losses.into_iter().filter(|loss| !loss.property.contains("elements equal to the fill value")).collect()
}

fn converted(document: &Value, from: Dialect, to: Dialect, chunks: ChunkPolicy) -> Value {
    let converted = array(&model(from, document), to, chunks, ArrayContext::default()).unwrap();
    assert_eq!(without_masks(converted.losses), [], "{document}");
    read(to, &converted.document);
    value(&converted.document)
}

/// A document of v2 with other members.
fn v2_with(members: Value) -> Value {
    let mut document = json!({"zarr_format": 2, "shape": [5, 7], "chunks": [2, 3], "dtype": "<i4", "compressor": null, "fill_value": 0,
        "order": "C", "filters": null, "dimension_separator": ".", "attributes": {}});
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

fn v3_with(members: Value) -> Value {
    let mut document = json!({"zarr_format": 3, "node_type": "array", "shape": [5, 7], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {}});
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

fn draft_with(members: Value) -> Value {
    let mut document = json!({"shape": [5, 7], "data_type": "<i4",
        "chunk_grid": {"type": "regular", "chunk_shape": [2, 3], "separator": "/"}, "chunk_memory_layout": "C", "fill_value": 0,
        "extensions": [], "attributes": {}});
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

/// Members of v2 and what they are in v3. zarr-python 3.4.2 read the elements that zarr-python 2.18.7 had written so,
/// from the same chunks.
#[test]
fn v2_arrays_convert_to_v3_with_the_same_chunks() {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let big = json!({"name": "bytes", "configuration": {"endian": "big"}});
    let table = [
        (
            json!({"dtype": ">f8", "fill_value": "NaN", "order": "F", "dimension_separator": "/", "compressor": {"id": "zlib", "level": 1}}),
            json!({"data_type": "float64", "fill_value": "NaN", "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
                "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, big, {"name": "numcodecs.zlib", "configuration": {"level": 1}}]}),
        ),
        (
            json!({"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
                "filters": [{"id": "delta", "dtype": "<i4", "astype": "<i2"}]}),
            json!({"codecs": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": "<i2"}}, little,
                {"name": "blosc", "configuration": {"typesize": 2, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}}]}),
        ),
        (
            json!({"dtype": ">f8", "filters": [{"id": "fixedscaleoffset", "offset": 0, "scale": 8, "dtype": ">f8", "astype": ">i2"},
                {"id": "delta", "dtype": ">i2"}, {"id": "shuffle", "elementsize": 2}], "compressor": {"id": "zstd", "level": 30}}),
            json!({"data_type": "float64", "fill_value": 0.0, "codecs": [
                {"name": "numcodecs.fixedscaleoffset", "configuration": {"offset": 0, "scale": 8, "dtype": "<f8", "astype": "<i2"}},
                {"name": "numcodecs.delta", "configuration": {"dtype": "<i2", "astype": "<i2"}}, big,
                {"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}, {"name": "zstd", "configuration": {"level": 22, "checksum": false}}]}),
        ),
        (
            json!({"dtype": "<f8", "filters": [{"id": "astype", "encode_dtype": ">f4", "decode_dtype": "<f8"}]}),
            json!({"data_type": "float64", "fill_value": 0.0,
                "codecs": [{"name": "numcodecs.astype", "configuration": {"encode_dtype": "<f4", "decode_dtype": "<f8"}}, big]}),
        ),
        (
            json!({"dtype": "<M8[ns]", "fill_value": null, "filters": [{"id": "delta", "dtype": "<i8"}]}),
            json!({"data_type": {"name": "numpy.datetime64", "configuration": {"unit": "ns", "scale_factor": 1}}, "fill_value": i64::MIN,
                "codecs": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i8", "astype": "<i8"}}, little]}),
        ),
        (
            json!({"dtype": "|b1", "fill_value": false, "filters": [{"id": "packbits"}], "compressor": {"id": "gzip", "level": 1}}),
            json!({"data_type": "bool", "fill_value": false, "codecs": [{"name": "numcodecs.packbits", "configuration": {}}, {"name": "bytes"},
                {"name": "gzip", "configuration": {"level": 1}}]}),
        ),
        (
            json!({"dtype": "|O", "fill_value": "", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "blosc", "shuffle": -1},
                "attributes": {"a": 1, "_ARRAY_DIMENSIONS": ["y", "x"]}}),
            json!({"data_type": "string", "fill_value": "", "codecs": [{"name": "vlen-utf8"},
                {"name": "blosc", "configuration": {"typesize": 1, "cname": "lz4", "clevel": 5, "shuffle": "bitshuffle", "blocksize": 0}}],
                "attributes": {"a": 1}, "dimension_names": ["y", "x"]}),
        ),
        (
            json!({"dtype": [["a", ">i2"], ["b", "|V2"]], "fill_value": "AAECAw==", "compressor": {"id": "crc32c"}}),
            json!({"data_type": {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"},
                    {"name": "b", "data_type": {"name": "raw_bytes", "configuration": {"length_bytes": 2}}}]}},
                "fill_value": {"a": 1, "b": "AgM="}, "codecs": [big, {"name": "crc32c"}]}),
        ),
    ];
    for (v2, v3) in table {
        let mut expected = v3_with(json!({"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}));
        expected.as_object_mut().unwrap().extend(v3.as_object().unwrap().clone());
        let found =
            array(&model(Dialect::V2, &v2_with(v2)), Dialect::V3, ChunkPolicy::Preserve, ArrayContext::default())
                .unwrap();
        assert_eq!(found.document, expected);
        read(Dialect::V3, &found.document);
    }
}

/// Members of v3 and what they are in v2 and the draft, where zarr-python 2.18.7 read the elements from the same bytes.
#[test]
fn v3_arrays_convert_to_v2_and_the_draft() {
    let table = [
        (
            json!({"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "big"}},
                {"name": "zstd", "configuration": {"level": 3, "checksum": true}}], "dimension_names": ["a", "b"]}),
            json!({"dtype": ">i4", "order": "F", "compressor": {"id": "zstd", "level": 3, "checksum": true}, "attributes": {"_ARRAY_DIMENSIONS": ["a", "b"]}}),
            json!({"data_type": ">i4", "chunk_memory_layout": "F", "attributes": {"_ARRAY_DIMENSIONS": ["a", "b"]},
                "compressor": {"codec": "https://purl.org/zarr/spec/codec/zstd/1.0", "configuration": {"level": 3, "checksum": true}}}),
        ),
        (
            json!({"codecs": [{"name": "numcodecs.delta", "configuration": {"dtype": "int32", "astype": "<i2"}},
                {"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}]}),
            json!({"dtype": ">i4", "filters": [{"id": "delta", "dtype": ">i4", "astype": ">i2"}], "compressor": {"id": "crc32c"}}),
            json!({"data_type": ">i4", "attributes": {"filters": [{"id": "delta", "dtype": ">i4", "astype": ">i2"}, {"id": "crc32c"}]}}),
        ),
        (
            json!({"data_type": {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}]}}, "fill_value": {"a": 1},
                "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}),
            json!({"dtype": [["a", ">i2"]], "fill_value": "AAE="}),
            json!({"data_type": {"extension": "TODO: structured array protocol URL", "type": [["a", ">i2"]], "fallback": null}, "fill_value": "AAE="}),
        ),
        (
            json!({"data_type": "string", "fill_value": "x", "codecs": [{"name": "vlen-utf8"}, {"name": "gzip", "configuration": {"level": 5}}]}),
            json!({"dtype": "|O", "fill_value": "x", "filters": [{"id": "vlen-utf8"}], "compressor": {"id": "gzip", "level": 5}}),
            json!({"data_type": {"extension": "TODO: object array protocol URL", "type": "|O", "fallback": null}, "fill_value": "x",
                "attributes": {"filters": [{"id": "vlen-utf8"}]},
                "compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0", "configuration": {"level": 5}}}),
        ),
    ];
    for (v3, v2, draft) in table {
        let v3 = v3_with(v3);
        assert_eq!(converted(&v3, Dialect::V3, Dialect::V2, ChunkPolicy::Preferred), v2_with(v2));
        assert_eq!(converted(&v3, Dialect::V3, Dialect::Draft, ChunkPolicy::Preferred), draft_with(draft));
    }
}

/// The data types of the draft are those of v2, most of them as extensions.
#[test]
fn data_types_convert_to_the_draft() {
    let complex =
        "https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/extensions/complex-dtypes/v1.0.html";
    let times = "https://zarr-specs.readthedocs.io/en/latest/extensions/data-types/datetime/v1.0.html";
    for (dtype, extension, data_type) in [
        (json!("|b1"), None, json!("bool")),
        (json!("|u1"), None, json!("u1")),
        (json!("|i1"), None, json!("i1")),
        (json!(">u8"), None, json!(">u8")),
        (json!("<f2"), None, json!("<f2")),
        (json!("<c8"), Some(complex), json!("<c8")),
        (json!(">m8[s]"), Some(times), json!(">m8[s]")),
        (json!("|S3"), Some("TODO: bytestring array protocol URL"), json!("|S3")),
        (json!(">U3"), Some("TODO: unicode array protocol URL"), json!(">U3")),
        (json!("|V4"), Some("TODO: structured array protocol URL"), json!([["", "|V4"]])),
        (
            json!([["a", ">i4"], ["b", "<f8", [2]]]),
            Some("TODO: structured array protocol URL"),
            json!([["a", ">i4"], ["b", "<f8", [2]]]),
        ),
    ] {
        let v2 = v2_with(json!({"dtype": dtype, "fill_value": null}));
        let source = model(Dialect::V2, &v2);
        let draft = array(&source, Dialect::Draft, ChunkPolicy::Preferred, ArrayContext::default()).unwrap().document;
        let expected = extension.map_or(
            data_type.clone(),
            |extension| json!({"extension": extension, "type": data_type, "fallback": null}),
        );
        assert_eq!(draft.get("data_type").unwrap(), expected);
        let read = read(Dialect::Draft, &draft);
        assert_eq!(
            (read.data_type, read.fill_value, read.codecs),
            (source.data_type, source.fill_value, source.codecs)
        );
    }
}

#[test]
fn shards_convert_from_and_to_the_draft() {
    let v3 = v3_with(
        json!({"shape": [16, 16], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 12]}}, "codecs": [
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 6], "codecs": [
            {"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 2], "codecs": [
                {"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}}],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"}}]}),
    );
    let draft = converted(&v3, Dialect::V3, Dialect::Draft, ChunkPolicy::Preferred);
    assert_eq!(draft["chunk_grid"]["chunk_shape"], json!([2, 2]));
    assert_eq!(draft["chunk_memory_layout"], "F");
    let counts: Vec<_> = draft["storage_transformers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["configuration"]["chunks_per_shard"])
        .collect();
    assert_eq!(counts, [&json!([2, 3]), &json!([2, 2])]);
    assert_eq!(converted(&draft, Dialect::Draft, Dialect::V3, ChunkPolicy::Preferred), v3);
    // Within shards there are filters and byte orders as elsewhere.
    let filtered = draft_with(
        json!({"data_type": ">i4", "attributes": {"filters": [{"id": "delta", "dtype": ">i4"}], "a": 1},
        "storage_transformers": [{"extension": "https://purl.org/zarr/spec/storage_transformers/sharding/1.0", "type": "indexed",
            "configuration": {"chunks_per_shard": [2, 2]}}]}),
    );
    let v3 = converted(&filtered, Dialect::Draft, Dialect::V3, ChunkPolicy::Preferred);
    assert_eq!(v3["attributes"], json!({"a": 1}));
    assert_eq!(
        v3["codecs"][0]["configuration"]["codecs"],
        json!([{"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": "<i4"}}, {"name": "bytes", "configuration": {"endian": "big"}}])
    );
    assert_eq!(v3["chunk_grid"]["configuration"]["chunk_shape"], json!([4, 6]));
}

/// xarray wants the empty list of a scalar's dimensions in both dialects.
#[test]
fn missing_dimension_names_stay_missing() {
    let v2 = v2_with(json!({"shape": [], "chunks": [], "attributes": {"_ARRAY_DIMENSIONS": []}}));
    let v3 = converted(&v2, Dialect::V2, Dialect::V3, ChunkPolicy::Preserve);
    // The fill value of v2 means missing, which 0 does too.
    assert_eq!((&v3["dimension_names"], &v3["attributes"]), (&json!([]), &json!({"_FillValue": 0})));
    assert_eq!(converted(&v3, Dialect::V3, Dialect::V2, ChunkPolicy::Preserve), v2);
    let unnamed = v2_with(json!({"attributes": {"_ARRAY_DIMENSIONS": ["one"]}}));
    let v3 = converted(&unnamed, Dialect::V2, Dialect::V3, ChunkPolicy::Preserve);
    assert_eq!((v3.get("dimension_names"), &v3["attributes"]), (None, &unnamed["attributes"]));
}

#[test]
fn groups_convert() {
    let group_of = |document: Value| match v3::node(document.to_string()).unwrap() {
        v3::Node::Group(group) => group,
        v3::Node::Array(array) => panic!("{array:?}"),
    };
    let source = group_of(
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, "x": {"must_understand": false},
        "extensions": [{"name": "unheard", "must_understand": false}],
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {}}}),
    );
    let losses = |converted: &Converted| converted.losses.iter().map(|loss| loss.pointer.clone()).collect::<Vec<_>>();
    let v2 = group(&source, Dialect::V2);
    assert_eq!(
        (value(&v2.document), losses(&v2)),
        (json!({"zarr_format": 2, "attributes": {"a": 1}}), vec!["/x".into(), "/extensions/0".into()])
    );
    let draft = group(&source, Dialect::Draft);
    assert_eq!(losses(&draft), ["/x"]);
    assert_eq!(
        value(&draft.document),
        json!({"attributes": {"a": 1}, "extensions": [{"extension": "unheard", "configuration": {}, "must_understand": false}]})
    );
    let back = group(&super::super::documents::draft::group(draft.document.to_bytes()).unwrap(), Dialect::V3);
    assert_eq!(
        (value(&back.document), losses(&back)),
        (json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}), vec!["/extensions/0".into()])
    );
    let same = group(&source, Dialect::V3);
    assert_eq!(
        (same.document.get("consolidated_metadata"), same.document.get("x").is_some(), same.losses.len()),
        (None, true, 0)
    );
    let bare = crate::documents::v2::group(r#"{"zarr_format": 2}"#, None).unwrap();
    assert_eq!(group(&bare, Dialect::V2).document, json!({"zarr_format": 2, "attributes": {}}));
}
