use super::{super::v3::Node, *};
use crate::{
    chunk_keys::{ChunkKeyForm, Separator},
    grid::{ChunkGrid, DimensionGrid},
};

/// Documents written by zarr-python 3.4.2.
pub(super) fn base() -> Value {
    json!({"shape": [5, 7], "data_type": "float32", "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd", "configuration": {"level": 0, "checksum": false}}],
        "attributes": {}, "dimension_names": ["x", null], "zarr_format": 3, "node_type": "array", "storage_transformers": []})
}

fn array(document: impl Into<Bytes>) -> crate::ArrayModel {
    match super::super::v3::node(document).unwrap() {
        Node::Array(array) => *array,
        Node::Group(group) => panic!("{group:?}"),
    }
}

fn group(document: impl Into<Bytes>) -> GroupModel {
    match super::super::v3::node(document).unwrap() {
        Node::Group(group) => group,
        Node::Array(array) => panic!("{array:?}"),
    }
}

fn refusal(document: Bytes) -> String {
    super::super::v3::node(document).unwrap_err().to_string()
}

#[test]
fn documents_of_zarr_python_are_read() {
    let array = array(bytes(&base()));
    assert_eq!(array.dialect, Dialect::V3);
    assert_eq!(array.shape, [5, 7]);
    assert_eq!(array.data_type.name(), "float32");
    assert_eq!(array.fill_value, f32::NAN.to_le_bytes());
    assert_eq!(array.grid, ChunkGrid::regular(&[2, 3]).unwrap());
    assert_eq!((array.chunk_keys.form, array.chunk_keys.separator), (ChunkKeyForm::Default, Separator::Slash));
    let expected = [r#"bytes {"endian":"little"}"#, r#"zstd {"level":0,"checksum":false}"#];
    assert_eq!(chain(&array.codecs), expected);
    assert_eq!(array.dimension_names, [Some("x".to_owned()), None]);
    assert_eq!(array.document.to_bytes(), bytes(&base()));
}

#[test]
fn documents_of_tensorstore_are_read() {
    let sharded = json!({"chunk_grid":{"configuration":{"chunk_shape":[4,4]},"name":"regular"},"chunk_key_encoding":{"name":"default"},
        "codecs":[{"configuration":{"chunk_shape":[2,2],"codecs":[{"configuration":{"order":[1,0]},"name":"transpose"},
        {"configuration":{"endian":"big"},"name":"bytes"},{"configuration":{"level":3},"name":"gzip"}],
        "index_codecs":[{"configuration":{"endian":"little"},"name":"bytes"},{"name":"crc32c"}]},"name":"sharding_indexed"}],
        "data_type":"uint16","dimension_names":["x",""],"fill_value":0,"node_type":"array","shape":[8,8],"zarr_format":3});
    let array = array(bytes(&sharded));
    assert_eq!((array.codecs.len(), array.codecs[0].name.as_str()), (1, "sharding_indexed"));
    assert_eq!(array.codecs[0].configuration["chunk_shape"], json!([2, 2]));
    assert_eq!(array.dimension_names, [Some("x".to_owned()), Some(String::new())]);
    assert_eq!(array.chunk_keys.key(&[1, 0]), "c/1/0");
}

#[test]
fn codecs_without_configuration_are_read() {
    let codecs = json!(["bytes", {"name": "numcodecs.zlib", "configuration": {"level": 1}, "must_understand": false}, {"name": "crc32c"}]);
    let array = array(with(&base(), &["codecs"], codecs));
    assert_eq!(chain(&array.codecs), ["bytes", r#"numcodecs.zlib {"level":1}"#, "crc32c"]);
}

#[test]
fn chunk_key_encodings_are_read() {
    let key = |encoding: Value| array(with(&base(), &["chunk_key_encoding"], encoding)).chunk_keys.key(&[1, 23]);
    assert_eq!(key(json!("default")), "c/1/23");
    assert_eq!(key(json!({"name": "default", "configuration": {"separator": "."}})), "c.1.23");
    assert_eq!(key(json!("v2")), "1.23");
    assert_eq!(key(json!({"name": "v2", "configuration": {}})), "1.23");
    assert_eq!(key(json!({"name": "v2", "configuration": {"separator": "/"}})), "1/23");
}

#[test]
fn empty_arrays_are_read() {
    let empty = with(&with_shape(&[0, 7]), &["chunk_grid", "configuration", "chunk_shape"], json!([0, 3]));
    assert_eq!(array(empty.clone()).grid, ChunkGrid::regular(&[1, 3]).unwrap());
    let mut sharded: Value = serde_json::from_slice(&empty).unwrap();
    sharded["codecs"] =
        json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [4, 1], "codecs": ["bytes"]}}]);
    assert_eq!(array(bytes(&sharded)).grid, ChunkGrid::regular(&[4, 3]).unwrap());
}

fn with_shape(shape: &[u64]) -> Value {
    serde_json::from_slice(&with(&base(), &["shape"], json!(shape))).unwrap()
}

fn rectilinear(shape: &[u64], chunk_shapes: Value) -> Bytes {
    let mut document = with_shape(shape);
    document["chunk_grid"] =
        json!({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": chunk_shapes}});
    document.as_object_mut().unwrap().remove("dimension_names");
    bytes(&document)
}

/// The example of the registry's `rectilinear`, and what zarr-python 3.4.2 writes.
#[test]
fn rectilinear_grids_are_read() {
    let pieces = |grid: &ChunkGrid, dimension: usize, extent| {
        let dimension = &grid.dimensions()[dimension];
        let length = |index| dimension.chunk_bounds(index).map(|piece| piece.end - piece.start).unwrap();
        (0..dimension.num_chunks(extent)).map(length).collect::<Vec<_>>()
    };
    let grid = array(rectilinear(&[6, 6, 6, 6, 6], json!([4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]]))).grid;
    let all: Vec<_> = (0..5).map(|dimension| pieces(&grid, dimension, 6)).collect();
    assert_eq!(all, [vec![4, 4], vec![1, 2, 3], vec![4, 4], vec![1, 1, 1, 3], vec![4, 4]]);
    assert_eq!(grid.dimensions()[4].chunk_bounds(2), Some(8..12));

    let grid = array(rectilinear(&[6, 7], json!([[1, 2, 3], [[3, 2], 1]]))).grid;
    assert_eq!(grid.dimensions()[1], DimensionGrid::rectilinear([3, 3, 1]).unwrap());
    assert_eq!(array(rectilinear(&[0], json!([[]]))).grid.dimensions()[0].num_chunks(0), 0);
}

#[test]
fn invalid_rectilinear_grids_are_rejected() {
    for (chunk_shapes, why) in [
        (json!(4), " is not a list"),
        (json!([4]), " has 1 entries for 2 dimensions"),
        (json!([4, "4"]), "/1 is not a list"),
        (json!([0, 4]), "/0 is 0"),
        (json!([-1, 4]), "/0 is negative"),
        (json!([4, [3, 0]]), "/1/1 is 0"),
        (json!([4, [2.5, 7]]), "/1/0 is not an integer from 0 to 9223372036854775807"),
        (json!([4, [[2]]]), "/1/0 is not a pair of a length and a count"),
        (json!([4, [[2, 3, 4]]]), "/1/0 is not a pair of a length and a count"),
        (json!([4, [[2, 0]]]), "/1/0/1 is 0"),
        (json!([4, [[[2, 2], 2]]]), "/1/0/0 is not an integer from 0 to 9223372036854775807"),
        (json!([4, [3, 3]]), "/1 has chunks for fewer than the 7 elements of the dimension"),
        (json!([4, []]), "/1 has chunks for fewer than the 7 elements of the dimension"),
        (json!([4, [[1, 1_u64 << 40]]]), "/1 has more than 1048576 chunks"),
        (json!([[[1, 600_000]], [[1, 600_000]]]), "/1 has more than 1048576 chunks"),
        (json!([4, [MAX_EXTENT, 1]]), "/1 has chunks beyond the maximum extent"),
    ] {
        let document = rectilinear(&[6, 7], chunk_shapes);
        assert_eq!(refusal(document), format!("/chunk_grid/configuration/chunk_shapes{why}"));
    }
    let kind = |kind: Value| {
        with(
            &serde_json::from_slice(&rectilinear(&[6, 7], json!([4, 4]))).unwrap(),
            &["chunk_grid", "configuration", "kind"],
            kind,
        )
    };
    assert_eq!(refusal(kind(json!("file"))), r#"/chunk_grid/configuration/kind is not "inline""#);
}

#[test]
fn extensions_are_read() {
    let listed = json!([
        "example.skip_empty_chunks",
        {"name": "example.array-statistics", "must_understand": false, "configuration": {"min": 5, "max": 1023}},
        {"name": "example.offset", "must_understand": false, "configuration": {"offset": [1, 1]}},
        {"name": "nobody.knows", "must_understand": false}
    ]);
    let found = array(with(&base(), &["extensions"], listed)).extensions;
    let names: Vec<_> = found.iter().map(|extension| (extension.name.as_str(), extension.must_understand)).collect();
    let expected = [
        ("example.skip_empty_chunks", true),
        ("example.array-statistics", false),
        ("example.offset", false),
        ("nobody.knows", false),
    ];
    assert_eq!(names, expected);
    assert_eq!(found[1].configuration["max"], json!(1023));
    for (extension, why) in [
        (json!("nobody.knows"), "/extensions/0: the extension nobody.knows must be understood but is not supported"),
        (json!({"name": "a", "must_understand": "no"}), "/extensions/0/must_understand is neither true nor false"),
        (
            json!({"name": "a", "must_understand": false, "configuration": 1}),
            "/extensions/0/configuration is not an object",
        ),
        (json!({"name": "a", "must_understand": false, "more": 1}), "/extensions/0 has the unknown member more"),
        (json!({"must_understand": false}), "/extensions/0/name is missing"),
        (json!(1), "/extensions/0 is neither a name nor an object with one"),
    ] {
        for base in [base(), json!({"zarr_format": 3, "node_type": "group"})] {
            assert_eq!(refusal(with(&base, &["extensions"], json!([extension]))), why);
        }
    }
    assert_eq!(refusal(with(&base(), &["extensions"], json!([]))), "/extensions is empty");
    assert_eq!(refusal(with(&base(), &["extensions"], json!(null))), "/extensions is not a list");
}

#[test]
fn unknown_members_must_be_ignorable() {
    for value in [json!(1), json!(null), json!({}), json!({"must_understand": true}), json!({"must_understand": 0})] {
        let why = "/unheard~1of: the extension unheard/of must be understood but is not supported";
        assert_eq!(refusal(with(&base(), &["unheard/of"], value.clone())), why);
        assert_eq!(refusal(with(&json!({"zarr_format": 3, "node_type": "group"}), &["unheard/of"], value)), why);
    }
    array(with(&base(), &["unheard/of"], json!({"must_understand": false})));
}

#[test]
fn groups_are_read() {
    let group = group(
        r#"{"attributes": {"spam": NaN}, "zarr_format": 3, "node_type": "group", "consolidated_metadata": null}"#,
    );
    assert_eq!(group.attributes, json!({"spam": "NaN"}));
    assert_eq!(group.attributes.as_str(), r#"{"spam": NaN}"#);
    assert_eq!((group.dialect, group.consolidated), (Dialect::V3, None));
}

#[test]
fn consolidated_metadata_is_read() {
    let of = |consolidated: Value| {
        bytes(&json!({"zarr_format": 3, "node_type": "group", "consolidated_metadata": consolidated}))
    };
    let inline = group(of(
        json!({"kind": "inline", "must_understand": false, "metadata": {"a": base(), "b/c": {"node_type": "group"}}}),
    ));
    let documents: std::collections::BTreeMap<_, _> = inline.consolidated.as_ref().unwrap().documents().collect();
    assert_eq!(documents.keys().collect::<Vec<_>>(), ["a/zarr.json", "b/c/zarr.json"]);
    assert_eq!(documents["a/zarr.json"], base());
    assert_eq!(group(of(json!({"kind": "file", "must_understand": false}))).consolidated, None);
    for (consolidated, why) in [
        (json!([]), " is not an object"),
        (json!({}), "/kind is missing"),
        (json!({"kind": "file"}), r#"/kind is not "inline""#),
        (json!({"kind": "inline"}), "/metadata is missing"),
        (json!({"kind": "inline", "metadata": {"a": 1}}), "/metadata/a is not an object"),
        (
            json!({"kind": "inline", "metadata": {"a//b": {}}}),
            "/metadata/a~1~1b is not a key: a segment of the path is empty",
        ),
    ] {
        assert_eq!(refusal(of(consolidated)), format!("/consolidated_metadata{why}"));
    }
}

#[test]
fn invalid_documents_are_rejected() {
    for name in
        ["zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"]
    {
        assert_eq!(refusal(without(&base(), name)), format!("/{name} is missing"));
    }
    for name in ["attributes", "storage_transformers", "dimension_names"] {
        array(without(&base(), name));
        array(with(&base(), &[name], json!(null)));
    }
    for (value, why) in wrong_shapes() {
        assert_eq!(refusal(with(&base(), &["shape"], value.clone())), format!("/shape{why}"));
        let document = with(&base(), &["chunk_grid", "configuration", "chunk_shape"], value);
        assert_eq!(refusal(document), format!("/chunk_grid/configuration/chunk_shape{why}"));
    }
    for (path, value, why) in [
        (&["zarr_format"][..], json!(2), "zarr_format is 2, expected 3"),
        (&["zarr_format"], json!(3.0), "zarr_format is 3.0, expected 3"),
        (&["zarr_format"], json!("http://zarr/3.0"), r#"zarr_format is "http://zarr/3.0", expected 3"#),
        (&["node_type"], json!("table"), r#"node_type is table, neither "array" nor "group""#),
        (&["node_type"], json!(1), "/node_type is not a string"),
        (&["chunk_grid"], json!("regular"), "/chunk_grid/configuration is missing"),
        (&["chunk_grid"], json!("hexagonal"), "/chunk_grid: the chunk grid hexagonal is not supported"),
        (&["chunk_grid"], json!([1]), "/chunk_grid is neither a name nor an object with one"),
        (&["chunk_grid", "more"], json!(1), "/chunk_grid has the unknown member more"),
        (
            &["chunk_grid", "configuration", "origin"],
            json!([1, 1]),
            "/chunk_grid/configuration has the unknown member origin",
        ),
        (
            &["chunk_grid", "configuration", "chunk_shape"],
            json!([2]),
            "/chunk_grid/configuration/chunk_shape has 1 entries for 2 dimensions",
        ),
        (
            &["chunk_grid", "configuration", "chunk_shape"],
            json!([2, 0]),
            "/chunk_grid/configuration/chunk_shape/1 is 0",
        ),
        (
            &["chunk_key_encoding"],
            json!("z-order"),
            "/chunk_key_encoding: the chunk key encoding z-order is not supported",
        ),
        (
            &["chunk_key_encoding", "configuration"],
            json!({"suffix": "x"}),
            "/chunk_key_encoding/configuration has the unknown member suffix",
        ),
        (
            &["chunk_key_encoding", "configuration", "separator"],
            json!("-"),
            r#"/chunk_key_encoding/configuration/separator is neither "/" nor ".""#,
        ),
        (&["codecs"], json!([]), "/codecs is empty"),
        (&["codecs"], json!({}), "/codecs is not a list"),
        (&["codecs"], json!(vec!["bytes"; 65]), "/codecs has more than 64 codecs"),
        (&["codecs"], json!([{}]), r#"/codecs/0: a codec is a name or an object with a "name""#),
        (
            &["storage_transformers"],
            json!(["cache"]),
            "/storage_transformers/0: the storage transformer cache is not supported",
        ),
        (&["storage_transformers"], json!(1), "/storage_transformers is not a list"),
        (&["dimension_names"], json!(["x"]), "/dimension_names has 1 entries for 2 dimensions"),
        (&["dimension_names"], json!(["x", 1]), "/dimension_names/1 is neither a string nor null"),
        (&["attributes"], json!([]), "/attributes is not an object"),
    ] {
        assert_eq!(refusal(with(&base(), path, value)), why);
    }
    let unknown = super::super::v3::node(with(&base(), &["data_type"], json!("float31"))).unwrap_err();
    assert!(matches!(unknown, DocumentError::DataType { ref pointer, .. } if pointer == "/data_type"), "{unknown}");
    let fill = super::super::v3::node(with(&base(), &["fill_value"], json!([]))).unwrap_err();
    assert!(matches!(fill, DocumentError::FillValue { ref pointer, .. } if pointer == "/fill_value"), "{fill}");
}
