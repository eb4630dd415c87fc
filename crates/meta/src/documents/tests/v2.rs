use super::*;
use crate::{
    chunk_keys::{ChunkKeyForm, Separator},
    grid::ChunkGrid,
};

/// Documents written by zarr-python 3.4.2.
pub(super) fn base() -> Value {
    json!({"shape": [5, 7], "chunks": [2, 3], "dtype": ">f4", "fill_value": "NaN", "order": "C", "filters": null,
        "dimension_separator": ".", "compressor": {"id": "zstd", "level": 0}, "zarr_format": 2})
}

fn refusal(document: Bytes) -> String {
    super::super::v2::array(document, None).unwrap_err().to_string()
}

fn array(document: &Value) -> crate::ArrayModel {
    super::super::v2::array(bytes(document), None).unwrap()
}

#[test]
fn documents_of_zarr_python_3_are_read() {
    let array = array(&base());
    assert_eq!(array.dialect, Dialect::V2);
    assert_eq!(array.shape, [5, 7]);
    assert_eq!(array.data_type.name(), "float32");
    assert_eq!(array.fill_value, f32::NAN.to_le_bytes());
    assert_eq!(array.grid, ChunkGrid::regular(&[2, 3]).unwrap());
    assert_eq!((array.chunk_keys.form, array.chunk_keys.separator), (ChunkKeyForm::V2, Separator::Dot));
    assert_eq!(array.chunk_prefix, "");
    assert_eq!(chain(&array.codecs), [r#"bytes {"endian":"big"}"#, r#"numcodecs.zstd {"level":0}"#]);
    assert_eq!(array.dimension_names, [None, None]);
    assert!(array.attributes == Json::empty_object() && array.extensions.is_empty());
    assert_eq!(array.document.to_bytes(), bytes(&base()));
}

#[test]
fn documents_of_zarr_python_2_are_read() {
    let fortran = array(
        &json!({"chunks": [2, 3], "compressor": {"blocksize": 0, "clevel": 5, "cname": "lz4", "id": "blosc", "shuffle": 1},
        "dimension_separator": "/", "dtype": "<i2", "fill_value": 0, "filters": [{"astype": "<i2", "dtype": "<i2", "id": "delta"}],
        "order": "F", "shape": [5, 7], "zarr_format": 2}),
    );
    let expected = [
        r#"transpose {"order":[1,0]}"#,
        r#"bytes {"endian":"little"}"#,
        r#"numcodecs.delta {"astype":"<i2","dtype":"<i2"}"#,
        r#"numcodecs.blosc {"blocksize":0,"clevel":5,"cname":"lz4","shuffle":1}"#,
    ];
    assert_eq!(chain(&fortran.codecs), expected);
    assert_eq!(fortran.chunk_keys.separator, Separator::Slash);
    let scalar = array(&json!({"chunks": [], "compressor": null, "dtype": "<f8", "fill_value": 0.0, "filters": null,
        "order": "F", "shape": [], "zarr_format": 2}));
    assert_eq!(scalar.grid.chunk_shape(&[]), Some(vec![]));
    assert_eq!(chain(&scalar.codecs), [r#"bytes {"endian":"little"}"#]);
    let bytes_of_one =
        array(&json!({"chunks": [4], "compressor": null, "dtype": "|u1", "fill_value": null, "filters": [],
        "order": "F", "shape": [4], "zarr_format": 2}));
    assert_eq!(chain(&bytes_of_one.codecs), ["bytes"]);
    assert_eq!(bytes_of_one.fill_value, [0]);
    let empty =
        array(&json!({"chunks": [0, 3], "compressor": null, "dtype": "<f8", "fill_value": 0.0, "filters": null,
        "order": "C", "shape": [0, 3], "zarr_format": 2}));
    assert_eq!(empty.grid, ChunkGrid::regular(&[1, 3]).unwrap());
}

#[test]
fn objects_and_structs_are_read() {
    let strings =
        array(&json!({"chunks": [3, 2], "compressor": {"id": "zlib", "level": 1}, "dtype": "|O", "fill_value": "",
        "filters": [{"id": "vlen-utf8"}], "order": "F", "shape": [3, 2], "zarr_format": 2}));
    let expected = [r#"transpose {"order":[1,0]}"#, "numcodecs.vlen-utf8", r#"numcodecs.zlib {"level":1}"#];
    assert_eq!(chain(&strings.codecs), expected);
    let mixed = array(&json!({"chunks": [4], "compressor": null, "dtype": [["a", ">i4"], ["b", "<f8"], ["c", "|S3"]],
        "fill_value": "AAAAAAAAAAAAAAAAAAAA", "filters": null, "order": "C", "shape": [4], "zarr_format": 2}));
    assert_eq!(chain(&mixed.codecs), [r#"mixed_endian {"big":[[0,4,1]]}"#]);
    assert_eq!(mixed.data_type.fixed_size(), Some(15));
}

#[test]
fn documents_of_tensorstore_are_read() {
    let array = array(
        &json!({"chunks": [5, 7], "compressor": {"id": "zstd", "level": 3}, "dimension_separator": "/", "dtype": ">i2",
        "fill_value": null, "filters": null, "order": "F", "shape": [5, 7], "zarr_format": 2}),
    );
    let expected = [r#"transpose {"order":[1,0]}"#, r#"bytes {"endian":"big"}"#, r#"numcodecs.zstd {"level":3}"#];
    assert_eq!(chain(&array.codecs), expected);
    assert_eq!(array.fill_value, [0, 0]);
}

#[test]
fn dimension_names_of_nczarr_are_read() {
    let names = |zarray: Value, zattrs: Value| {
        super::super::v2::array(with(&base(), &["_NCZARR_ARRAY"], zarray), Some(bytes(&zattrs)))
            .unwrap()
            .dimension_names
    };
    let found = [Some("time".to_owned()), Some("lat".to_owned())];
    let dimrefs = json!({"dimrefs": ["/time", "/group/lat"], "storage": "chunked"});
    assert_eq!(names(dimrefs.clone(), json!({})), found);
    for zattrs in [
        json!({"_NCZARR_ARRAY": dimrefs}),
        json!({"_NCZARR_ARRAY": {"dimension_references": ["/time", "/lat"]}}),
        json!({"_nczarr_array": {"dimension_references": ["time", "/lat"], "storage": "chunked"}}),
    ] {
        assert_eq!(names(json!(null), zattrs.clone()), found, "{zattrs}");
    }
    let xarray = names(dimrefs, json!({"_ARRAY_DIMENSIONS": ["x", "y"]}));
    assert_eq!(xarray, [Some("x".to_owned()), Some("y".to_owned())]);
    for other in [
        json!(7),
        json!([]),
        json!({"dimrefs": 7}),
        json!({"dimrefs": ["/time"]}),
        json!({"dimrefs": ["/time", "/lat", "/lon"]}),
        json!({"dimrefs": ["/time", 7]}),
        json!({"dimrefs": ["/time", "/"]}),
        json!({"dimrefs": ["/time", ""]}),
    ] {
        assert_eq!(names(other.clone(), json!({})), [None, None], "{other}");
    }
}

#[test]
fn zattrs_are_read() {
    let names =
        |zattrs: &'static str| super::super::v2::array(bytes(&base()), Some(zattrs.into())).unwrap().dimension_names;
    assert_eq!(names(r#"{"_ARRAY_DIMENSIONS": ["x", "y"]}"#), [Some("x".to_owned()), Some("y".to_owned())]);
    for other in
        ["{}", r#"{"_ARRAY_DIMENSIONS": ["x"]}"#, r#"{"_ARRAY_DIMENSIONS": ["x", 1]}"#, r#"{"_ARRAY_DIMENSIONS": 1}"#]
    {
        assert_eq!(names(other), [None, None], "{other}");
    }
    let array = super::super::v2::array(bytes(&base()), Some(r#"{"missing_value": NaN}"#.into())).unwrap();
    assert_eq!(array.attributes, json!({"missing_value": "NaN"}));
    assert_eq!(array.attributes.as_str(), r#"{"missing_value": NaN}"#);
    for zattrs in ["[]", "", "{"] {
        let error = super::super::v2::array(bytes(&base()), Some(zattrs.into())).unwrap_err();
        assert!(matches!(error, DocumentError::Attributes(_)), "{error}");
    }
}

#[test]
fn groups_are_read() {
    let group = super::super::v2::group(r#"{"zarr_format": 2, "more": 1}"#, Some(r#"{"a": 1}"#.into())).unwrap();
    let expected = GroupModel {
        dialect: Dialect::V2,
        attributes: Json::parse(r#"{"a": 1}"#).unwrap(),
        extensions: vec![],
        consolidated: None,
        document: Json::parse(r#"{"zarr_format": 2, "more": 1}"#).unwrap(),
    };
    assert_eq!(group, expected);
    let refusal = |zgroup: &'static str| super::super::v2::group(zgroup, None).unwrap_err().to_string();
    assert_eq!(refusal(r#"{"zarr_format": 3}"#), "zarr_format is 3, expected 2");
    assert_eq!(refusal(r#"{}"#), "/zarr_format is missing");
}

#[test]
fn consolidated_metadata_is_read() {
    let read = |zmetadata: Bytes| super::super::v2::consolidated(zmetadata);
    let all = read(
        r#"{"metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": {"shape": []}, "a/.zattrs": {}}, "zarr_consolidated_format": 1}"#
            .into(),
    )
    .unwrap();
    let documents: std::collections::BTreeMap<_, _> = all.documents().collect();
    assert_eq!(documents.keys().collect::<Vec<_>>(), [".zgroup", "a/.zarray", "a/.zattrs"]);
    assert_eq!(documents["a/.zarray"], json!({"shape": []}));
    for (document, why) in [
        (json!({"metadata": {}}), "/zarr_consolidated_format is missing"),
        (json!({"metadata": {}, "zarr_consolidated_format": 2}), "/zarr_consolidated_format is not 1"),
        (json!({"zarr_consolidated_format": 1}), "/metadata is missing"),
        (json!({"metadata": [], "zarr_consolidated_format": 1}), "/metadata is not an object"),
        (json!({"metadata": {"a/.zarray": 1}, "zarr_consolidated_format": 1}), "/metadata/a~1.zarray is not an object"),
        (
            json!({"metadata": {"../.zarray": {}}, "zarr_consolidated_format": 1}),
            "/metadata/..~1.zarray is not a key: a segment of the path is `.` or `..`",
        ),
    ] {
        assert_eq!(read(bytes(&document)).unwrap_err().to_string(), why);
    }
}

#[test]
fn invalid_documents_are_rejected() {
    for name in ["zarr_format", "shape", "chunks", "dtype", "fill_value", "order"] {
        assert_eq!(refusal(without(&base(), name)), format!("/{name} is missing"));
    }
    for name in ["filters", "dimension_separator"] {
        super::super::v2::array(without(&base(), name), None).unwrap();
    }
    let raw = super::super::v2::array(without(&base(), "compressor"), None).unwrap();
    assert_eq!(chain(&raw.codecs), [r#"bytes {"endian":"big"}"#], "without a compressor there is none");
    for (value, why) in wrong_shapes() {
        assert_eq!(refusal(with(&base(), &["shape"], value.clone())), format!("/shape{why}"));
        assert_eq!(refusal(with(&base(), &["chunks"], value)), format!("/chunks{why}"));
    }
    for (path, value, why) in [
        (&["zarr_format"][..], json!("2"), r#"zarr_format is "2", expected 2"#),
        (&["shape"], json!([1, 2, 3]), "/chunks has 2 entries for 3 dimensions"),
        (&["chunks"], json!([2, 0]), "/chunks/1 is 0"),
        (&["chunks"], json!([]), "/chunks has 0 entries for 2 dimensions"),
        (&["order"], json!("A"), r#"/order is neither "C" nor "F""#),
        (&["order"], json!(null), "/order is not a string"),
        (&["dimension_separator"], json!("-"), r#"/dimension_separator is neither "/" nor ".""#),
        (&["filters"], json!({"id": "delta"}), "/filters is not a list"),
        (&["filters"], json!([{"name": "delta"}]), "/filters/0/id is missing"),
        (&["filters"], json!(["delta"]), "/filters/0 is not an object"),
        (&["filters"], json!(vec![json!({"id": "delta"}); 65]), "/filters has more than 64 codecs"),
        (&["compressor"], json!("zlib"), "/compressor is not an object"),
        (&["compressor"], json!({"id": 1}), "/compressor/id is not a string"),
    ] {
        assert_eq!(refusal(with(&base(), path, value)), why);
    }
    let unknown = super::super::v2::array(with(&base(), &["dtype"], json!("<q4")), None).unwrap_err();
    assert!(matches!(unknown, DocumentError::DataType { ref pointer, .. } if pointer == "/dtype"), "{unknown}");
    let objects = super::super::v2::array(with(&base(), &["dtype"], json!("|O")), None).unwrap_err();
    assert!(matches!(objects, DocumentError::DataType { .. } | DocumentError::Invalid { .. }), "{objects}");
    let fill = super::super::v2::array(with(&base(), &["fill_value"], json!({})), None).unwrap_err();
    assert!(matches!(fill, DocumentError::FillValue { ref pointer, .. } if pointer == "/fill_value"), "{fill}");
}
