use serde_json::Map;

use super::{super::draft::*, *};
use crate::{chunk_keys::Separator, grid::ChunkGrid};

/// The array of the specification's example ("Array metadata").
pub(super) fn base() -> Value {
    json!({"shape": [10000, 1000], "data_type": "<f8", "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100], "separator": "/"},
        "chunk_memory_layout": "C", "compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0", "configuration": {"level": 1}},
        "fill_value": "NaN", "extensions": [], "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]}})
}

/// The entry point of the specification's example ("Entry point metadata").
fn entry() -> Value {
    json!({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0",
        "metadata_key_suffix": ".json", "extensions": []})
}

fn refusal(document: Bytes) -> String {
    array(document, "foo").unwrap_err().to_string()
}

fn entry_refusal(document: Bytes) -> String {
    entry_point(document).unwrap_err().to_string()
}

/// "Storage keys".
#[test]
fn metadata_and_chunk_keys() {
    let json = entry_point(bytes(&entry())).unwrap();
    assert_eq!(json.array_key(""), "meta/root.array.json");
    assert_eq!(json.group_key(""), "meta/root.group.json");
    assert_eq!(json.group_key("foo/bar"), "meta/root/foo/bar.group.json");
    assert_eq!(json.array_key("foo/baz"), "meta/root/foo/baz.array.json");
    assert_eq!((children_prefix(""), children_prefix("foo")), ("meta/root/".to_owned(), "meta/root/foo/".to_owned()));
    let array = array(bytes(&base()), "foo/baz").unwrap();
    assert_eq!(format!("{}{}", array.chunk_prefix, array.chunk_keys.key(&[0, 0])), "data/root/foo/baz/c0/0");
    assert_eq!(super::super::draft::array(bytes(&base()), "").unwrap().chunk_prefix, "data/root/");
    for (suffix, key) in [(".zarr", "meta/root/a.array.zarr"), ("", "meta/root/a.array")] {
        let entry = entry_point(with(&entry(), &["metadata_key_suffix"], json!(suffix))).unwrap();
        assert_eq!(entry.array_key("a"), key);
    }
}

#[test]
fn entry_points_are_read() {
    let document = with(
        &entry(),
        &["extensions"],
        json!([{"extension": "http://example.org/zarr/extension/foo", "must_understand": false,
        "configuration": {"foo": "bar"}}]),
    );
    let read = entry_point(document.clone()).unwrap();
    assert_eq!(read.extensions[0].name, "http://example.org/zarr/extension/foo");
    assert_eq!(read.document.to_bytes(), document);
    for (name, value) in [
        ("zarr_format", json!("https://purl.org/zarr/spec/core/3.0")),
        ("zarr_format", json!("https://purl.org/zarr/spec/protocol/core/3.1")),
        ("metadata_encoding", json!("https://tools.ietf.org/html/rfc8259")),
        ("unheard-of", json!(1)),
    ] {
        entry_point(with(&entry(), &[name], value)).unwrap();
    }
    assert_eq!(entry_point(without(&entry(), "metadata_key_suffix")).unwrap().metadata_key_suffix, ".json");
    assert!(is_entry_point(&bytes(&entry())));
    for other in [r#"{"zarr_format": 3, "node_type": "group"}"#, r#"{"zarr_format": "3"}"#, "{}", "[]", "{"] {
        assert!(!is_entry_point(&other.into()));
    }
}

#[test]
fn invalid_entry_points_are_rejected() {
    for (name, value, why) in [
        ("zarr_format", json!(3), "zarr_format is 3, expected a URI of version 3"),
        (
            "zarr_format",
            json!("https://purl.org/zarr/spec/protocol/core/4.0"),
            r#"zarr_format is "https://purl.org/zarr/spec/protocol/core/4.0", expected a URI of version 3"#,
        ),
        ("zarr_format", json!("a://b/31.0"), r#"zarr_format is "a://b/31.0", expected a URI of version 3"#),
        ("zarr_format", json!("a://b/3."), r#"zarr_format is "a://b/3.", expected a URI of version 3"#),
        (
            "metadata_encoding",
            json!("https://example.org/cbor"),
            "/metadata_encoding: the metadata encoding https://example.org/cbor is not supported",
        ),
        ("metadata_encoding", json!({"type": "json"}), "/metadata_encoding is not a string"),
        (
            "metadata_key_suffix",
            json!("/x"),
            "/metadata_key_suffix is not up to 64 of the characters a-z, A-Z, 0-9, ., - and _",
        ),
        (
            "metadata_key_suffix",
            json!("x".repeat(65)),
            "/metadata_key_suffix is not up to 64 of the characters a-z, A-Z, 0-9, ., - and _",
        ),
        ("metadata_key_suffix", json!(null), "/metadata_key_suffix is not a string"),
        ("extensions", json!({}), "/extensions is not a list"),
        ("extensions", json!([{"must_understand": false}]), "/extensions/0/extension is missing"),
        ("extensions", json!(["http://e.org"]), "/extensions/0 is not an object"),
        (
            "extensions",
            json!([{"extension": "http://e.org/x", "must_understand": true}]),
            "/extensions/0: the extension http://e.org/x must be understood but is not supported",
        ),
        (
            "extensions",
            json!([{"extension": "http://e.org/x"}]),
            "/extensions/0: the extension http://e.org/x must be understood but is not supported",
        ),
    ] {
        assert_eq!(entry_refusal(with(&entry(), &[name], value)), why);
    }
    assert_eq!(entry_refusal(without(&entry(), "metadata_encoding")), "/metadata_encoding is missing");
}

/// Extensions are also known by their name in the draft's list.
#[test]
fn known_extensions_are_read() {
    let offset =
        |of: Value| json!([{"extension": "example.offset", "must_understand": true, "configuration": {"offset": of}}]);
    let view = array(with(&base(), &["extensions"], offset(json!([9000, 1]))), "foo").unwrap();
    assert_eq!((view.view_shape(), view.view_offset), (vec![1000, 999], vec![9000, 1]));
    let why = "/extensions/0/configuration/offset has 1 entries for 2 dimensions";
    assert_eq!(refusal(with(&base(), &["extensions"], offset(json!([1])))), why);
    let why = "/extensions/0 is the extension example.offset, which is not for a hierarchy";
    assert_eq!(entry_refusal(with(&entry(), &["extensions"], offset(json!([1])))), why);
}

/// Every document of a hierarchy that zarr-python 2.18.7 wrote.
#[test]
fn sample_hierarchy_is_read() {
    let documents: Map<String, Value> = serde_json::from_str(include_str!("sample_draft.json")).unwrap();
    let entry = entry_point(bytes(&entry())).unwrap();
    let mut arrays = 0;
    for (key, document) in &documents {
        let name = key.strip_prefix("meta/root/").unwrap();
        let Some(path) = name.strip_suffix(".array.json") else {
            let group = group(bytes(document)).unwrap();
            assert_eq!(entry.group_key(name.strip_suffix(".group.json").unwrap()), *key);
            assert_eq!(group.attributes, document["attributes"]);
            continue;
        };
        arrays += 1;
        let array = array(bytes(document), path).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(entry.array_key(path), *key);
        assert_eq!(json!(array.shape), document["shape"], "{key}");
        assert_eq!(array.attributes, document["attributes"], "{key}");
        assert_eq!(array.document, *document, "{key}");
        let chunk = vec![0; array.shape.len()];
        let factor = if path == "sharded/indexed" { 2 } else { 1 };
        let chunk_shape: Vec<_> =
            array.grid.chunk_shape(&chunk).unwrap().iter().map(|length| length / factor).collect();
        assert_eq!(json!(chunk_shape), document["chunk_grid"]["chunk_shape"], "{key}");
    }
    assert_eq!(arrays, 61);
}

#[test]
fn codecs_and_filters_make_a_chain() {
    let documents: Map<String, Value> = serde_json::from_str(include_str!("sample_draft.json")).unwrap();
    let of =
        |path: &str| chain(&array(bytes(&documents[&format!("meta/root/{path}.array.json")]), path).unwrap().codecs);
    assert_eq!(of("layout/F_dot"), [r#"transpose {"order":[2,1,0]}"#, r#"bytes {"endian":"little"}"#]);
    assert_eq!(of("shape/zero_d"), [r#"bytes {"endian":"little"}"#]);
    assert_eq!(of("core/bool"), ["bytes"]);
    assert_eq!(of("ext/be_c16"), [r#"bytes {"endian":"big"}"#, r#"numcodecs.gzip {"level":1}"#]);
    let lzma = r#"numcodecs.lzma {"check":-1,"filters":null,"format":1,"preset":null}"#;
    assert_eq!(of("compressor/lzma"), [r#"bytes {"endian":"little"}"#, lzma]);
    let sharding = json!({"chunk_shape": [2, 2], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "numcodecs.gzip", "configuration": {"level": 1}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "index_location": "end"});
    assert_eq!(of("sharded/indexed"), [format!("sharding_indexed {sharding}")]);
}

fn sharded(shape: Value, chunks: Value, per_shard: &[Value]) -> Value {
    let transformer = |count: &Value| {
        json!({"extension": "https://purl.org/zarr/spec/storage_transformers/sharding/1.0", "type": "indexed",
            "configuration": {"chunks_per_shard": count}})
    };
    json!({"shape": shape, "data_type": ">i2", "chunk_grid": {"type": "regular", "chunk_shape": chunks}, "chunk_memory_layout": "F",
        "fill_value": 0, "extensions": [], "attributes": {}, "storage_transformers": per_shard.iter().map(transformer).collect::<Vec<_>>()})
}

#[test]
fn sharding_transformers_are_read() {
    let read = |document: Value| array(bytes(&document), "").unwrap();
    let fortran = read(sharded(json!([8, 6]), json!([2, 3]), &[json!([2, 2])]));
    assert_eq!(fortran.grid, ChunkGrid::regular(&[4, 6]).unwrap());
    let inner = &fortran.codecs[0].configuration["codecs"];
    assert_eq!(inner[0], json!({"name": "transpose", "configuration": {"order": [1, 0]}}));
    // As zarr-python writes them: of no dimensions, of a number alone, and of a data type that has a dimension itself.
    assert_eq!(read(sharded(json!([]), json!([]), &[json!([1])])).codecs[0].configuration["chunk_shape"], json!([]));
    assert_eq!(read(sharded(json!([10]), json!([2]), &[json!(3)])).grid, ChunkGrid::regular(&[6]).unwrap());
    let subarray = read(sharded(json!([4, 2]), json!([2, 2]), &[json!([2])]));
    assert_eq!(subarray.grid, ChunkGrid::regular(&[4, 2]).unwrap());
    let mut mixed = sharded(json!([8]), json!([1]), &[json!([2])]);
    mixed["data_type"] =
        json!({"extension": "TODO: structured array protocol URL", "type": [["a", ">i4"], ["b", "<f8"]]});
    mixed["fill_value"] = json!(null);
    let inner = read(mixed).codecs[0].configuration["codecs"].clone();
    assert_eq!(inner, json!([{"name": "model:mixed_endian", "configuration": {"big": [[0, 4, 1]]}}]));
    // Shards of shards: the first transformer makes the inner ones.
    let nested = read(sharded(json!([8]), json!([1]), &[json!([2]), json!([4])]));
    assert_eq!(nested.grid, ChunkGrid::regular(&[8]).unwrap());
    let outer = &nested.codecs[0].configuration;
    assert_eq!(outer["chunk_shape"], json!([2]));
    assert_eq!(outer["codecs"][0]["configuration"]["chunk_shape"], json!([1]));
}

#[test]
fn invalid_sharding_transformers_are_rejected() {
    let at = "/storage_transformers/0/configuration/chunks_per_shard";
    for (per_shard, why) in [
        (json!([2, 2, 2]), " has 3 entries for 2 dimensions"),
        (json!([2, 0]), " makes a shard that is empty or exceeds the maximum extent"),
        (json!([2, MAX_EXTENT]), " makes a shard that is empty or exceeds the maximum extent"),
        (json!([2, -1]), "/1 is negative"),
        (json!("2"), " is not a list"),
        (json!(2.5), " is not an integer from 0 to 9223372036854775807"),
    ] {
        let document = sharded(json!([8, 6]), json!([2, 3]), &[per_shard]);
        assert_eq!(refusal(bytes(&document)), format!("{at}{why}"));
    }
    assert_eq!(
        refusal(bytes(&sharded(json!([]), json!([]), &[json!([2])]))),
        format!("{at} has 1 entries for 0 dimensions")
    );
    let deep = sharded(json!([8]), json!([1]), &vec![json!([1]); 300]);
    assert_eq!(refusal(bytes(&deep)), "/storage_transformers makes shards more than 8 deep");
    let shards = sharded(json!([8]), json!([1]), &[json!([1])]);
    for (path, value, why) in [
        (
            &["storage_transformers", "0", "extension"][..],
            json!("http://e.org/cache"),
            "/storage_transformers/0: the storage transformer http://e.org/cache is not supported",
        ),
        (
            &["storage_transformers", "0", "type"],
            json!("other"),
            "/storage_transformers/0: the storage transformer other is not supported",
        ),
        (
            &["storage_transformers", "0", "configuration"],
            json!({}),
            "/storage_transformers/0/configuration/chunks_per_shard is missing",
        ),
        (&["storage_transformers", "0"], json!({}), "/storage_transformers/0/extension is missing"),
        (&["storage_transformers"], json!(1), "/storage_transformers is not a list"),
    ] {
        assert_eq!(refusal(with(&shards, path, value)), why);
    }
}

#[test]
fn codec_uris_are_read() {
    let named = |name: &str, value: Value| -> Vec<String> {
        let document: Value = serde_json::from_slice(&without(&base(), "compressor")).unwrap();
        chain(&array(with(&document, &[name], value), "").unwrap().codecs)
    };
    let little = r#"bytes {"endian":"little"}"#;
    let uri = |end: &str| format!("https://purl.org/zarr/spec/codec/{end}");
    // The pipeline of the 2019 draft, of no codecs and of two.
    assert_eq!(named("codecs", json!([])), [little]);
    let two = json!([{"codec": uri("delta"), "configuration": {"dtype": "<f8"}}, {"codec": uri("zlib/1.2")}]);
    assert_eq!(named("codecs", two), [little, r#"numcodecs.delta {"dtype":"<f8"}"#, "numcodecs.zlib"]);
    assert_eq!(named("compressor", json!(null)), [little]);
    assert_eq!(named("compressor", json!({"codec": uri("gzip"), "configuration": null})), [little, "numcodecs.gzip"]);
    // zarr-python keeps filters in the attributes.
    let filters = json!({"filters": [{"astype": "<i4", "dtype": "<i4", "id": "delta"}]});
    assert_eq!(named("attributes", filters), [little, r#"numcodecs.delta {"astype":"<i4","dtype":"<i4"}"#]);
    for other in [json!("a"), json!(["a"]), json!([{"id": 1}]), json!([]), json!({"id": "a"})] {
        assert_eq!(named("attributes", json!({"filters": other})), [little]);
    }
}

#[test]
fn extension_types_are_read() {
    let read = |data_type: Value, attributes: Value, fill_value: Value| {
        let mut document = base();
        (document["data_type"], document["attributes"], document["fill_value"]) = (data_type, attributes, fill_value);
        array(bytes(&document), "").unwrap()
    };
    let datetimes = json!({"extension": "https://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0", "type": "<M8[ns]", "fallback": "<i8"});
    assert_eq!(read(datetimes, json!({}), json!(null)).data_type.name(), "numpy.datetime64[ns]");
    let unknown = json!({"extension": "https://example.org/decimal", "type": "decimal", "fallback": "<i8"});
    assert_eq!(read(unknown, json!({}), json!(1)).data_type.name(), "int64");
    let objects = json!({"extension": "TODO: object array protocol URL", "type": "|O", "fallback": null});
    let strings = read(objects, json!({"filters": [{"id": "vlen-utf8"}]}), json!(0));
    assert_eq!(chain(&strings.codecs), ["numcodecs.vlen-utf8", r#"numcodecs.gzip {"level":1}"#]);
    let fields = json!({"extension": "TODO: structured array protocol URL", "type": [["a", ">i4"], ["b", ">f8"]], "fallback": null});
    assert_eq!(read(fields, json!({}), json!(null)).codecs[0].configuration["endian"], json!("big"));
    let void = json!({"extension": "TODO: structured array protocol URL", "type": [["", "|V4"]], "fallback": null});
    assert_eq!(read(void, json!({}), json!(null)).data_type.fixed_size(), Some(4));
}

#[test]
fn grids_and_dimension_names_are_read() {
    let array = array(with(&base(), &["attributes"], json!({"_ARRAY_DIMENSIONS": ["row", "column"]})), "").unwrap();
    assert_eq!(array.dimension_names, [Some("row".to_owned()), Some("column".to_owned())]);
    assert_eq!(array.grid, ChunkGrid::regular(&[1000, 100]).unwrap());
    let key = |grid: Value| {
        let array = super::super::draft::array(with(&base(), &["chunk_grid"], grid), "").unwrap();
        (array.chunk_keys.separator, array.chunk_keys.key(&[1, 23]))
    };
    let without = key(json!({"type": "regular", "chunk_shape": [2, 5]}));
    assert_eq!(without, (Separator::Slash, "c1/23".to_owned()));
    let dot = key(json!({"type": "regular", "chunk_shape": [2, 5], "separator": "."}));
    assert_eq!(dot, (Separator::Dot, "c1.23".to_owned()));
}

#[test]
fn invalid_documents_are_rejected() {
    for name in ["shape", "data_type", "chunk_grid", "chunk_memory_layout", "fill_value"] {
        assert_eq!(refusal(without(&base(), name)), format!("/{name} is missing"));
    }
    for name in ["compressor", "extensions", "attributes"] {
        array(without(&base(), name), "").unwrap();
    }
    for (value, why) in wrong_shapes() {
        assert_eq!(refusal(with(&base(), &["shape"], value.clone())), format!("/shape{why}"));
        assert_eq!(
            refusal(with(&base(), &["chunk_grid", "chunk_shape"], value)),
            format!("/chunk_grid/chunk_shape{why}")
        );
    }
    for (path, value, why) in [
        (&["chunk_grid", "chunk_shape"][..], json!([1]), "/chunk_grid/chunk_shape has 1 entries for 2 dimensions"),
        (&["chunk_grid", "chunk_shape"], json!([1, 0]), "/chunk_grid/chunk_shape/1 is 0"),
        (&["chunk_grid", "type"], json!("hexagonal"), "/chunk_grid: the chunk grid hexagonal is not supported"),
        (
            &["chunk_grid", "extension"],
            json!("http://e.org/g"),
            "/chunk_grid: the chunk grid http://e.org/g is not supported",
        ),
        (&["chunk_grid", "separator"], json!("-"), r#"/chunk_grid/separator is neither "/" nor ".""#),
        (&["chunk_grid"], json!("regular"), "/chunk_grid is not an object"),
        (&["chunk_memory_layout"], json!("Z"), r#"/chunk_memory_layout is neither "C" nor "F""#),
        (
            &["chunk_memory_layout"],
            json!({"extension": "http://e.org/z", "type": "z-order"}),
            "/chunk_memory_layout: the chunk memory layout http://e.org/z is not supported",
        ),
        (&["compressor"], json!("gzip"), "/compressor is not an object"),
        (&["compressor"], json!({"id": "gzip"}), "/compressor/codec is missing"),
        (
            &["compressor", "codec"],
            json!("http://e.org/zip"),
            "/compressor/codec: the codec http://e.org/zip is not supported",
        ),
        (
            &["compressor", "codec"],
            json!("https://purl.org/zarr/spec/codec/gzip/2.0"),
            "/compressor/codec: the codec https://purl.org/zarr/spec/codec/gzip/2.0 is not supported",
        ),
        (
            &["compressor", "codec"],
            json!("https://purl.org/zarr/spec/codec/"),
            "/compressor/codec: the codec https://purl.org/zarr/spec/codec/ is not supported",
        ),
        (&["compressor", "configuration"], json!([1]), "/compressor/configuration is not an object"),
        (&["codecs"], json!([]), "/codecs conflicts with the compressor"),
        (&["attributes"], json!([]), "/attributes is not an object"),
        (
            &["extensions"],
            json!([{"extension": "http://e.org/x", "must_understand": true}]),
            "/extensions/0: the extension http://e.org/x must be understood but is not supported",
        ),
    ] {
        assert_eq!(refusal(with(&base(), path, value)), why);
    }
    let unknown = array(with(&base(), &["data_type"], json!("<f3")), "").unwrap_err();
    assert!(matches!(unknown, DocumentError::DataType { ref pointer, .. } if pointer == "/data_type"), "{unknown}");
    let fill = array(with(&base(), &["fill_value"], json!("0x00")), "").unwrap_err();
    assert!(matches!(fill, DocumentError::FillValue { ref pointer, .. } if pointer == "/fill_value"), "{fill}");
    assert_eq!(group(r#"{"attributes": 1}"#).unwrap_err().to_string(), "/attributes is not an object");
}
