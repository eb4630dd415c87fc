//! Accepted spellings.

use super::*;

/// The canonical form of an array with one member changed.
fn normalised(array: &Value, changes: &[(&str, Option<Value>)]) -> Value {
    let json = changes.iter().fold(array.clone(), |json, (pointer, value)| changed(&json, pointer, value.clone()));
    let zom = parse(&json).unwrap();
    assert_eq!(parse(&shown(&zom)).unwrap(), zom, "once is enough");
    shown(&zom)
}

#[test]
fn canonical_documents_are_unchanged() {
    assert_eq!(normalised(&array_v3(), &[]), array_v3());
    assert_eq!(normalised(&array_v2(), &[]), array_v2());
}

#[test]
fn v2_data_types_are_normalized() {
    for (dtype, data_type, fill_value) in [
        ("|u1", json!("uint8"), json!(0)),
        ("|b1", json!("bool"), json!(false)),
        ("<i4", json!("int32"), json!(0)),
        (">f8", json!("float64"), json!(0)),
        ("<c16", json!("complex128"), json!([0, 0])),
        ("|S3", json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}), json!("")),
        ("<U2", json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}), json!("")),
        ("<M8[10s]", json!({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 10}}), json!(0)),
    ] {
        let array = normalised(
            &array_v3(),
            &[
                ("/data_type", Some(json!(dtype))),
                ("/fill_value", Some(fill_value)),
                ("/codecs/0", Some(json!("bytes"))),
            ],
        );
        assert_eq!(array["data_type"], data_type, "{dtype}");
    }
    assert_eq!(violations(&changed(&array_v3(), "/data_type", Some(json!("<f5"))))[0].0, "/data_type");
    assert_eq!(violations(&changed(&array_v3(), "/data_type", Some(json!("|O"))))[0].0, "/data_type");
}

#[test]
fn numcodecs_classes_are_normalized() {
    let class = |class: &str| {
        let v3 = normalised(&array_v3(), &[("/codecs/1", Some(json!({"name": class, "configuration": {"level": 2}})))]);
        let bare = normalised(&array_v3(), &[("/codecs/1", Some(json!(class)))]);
        assert_eq!(bare["codecs"][1], v3["codecs"][1]["name"]);
        let v2 = normalised(&array_v2(), &[("/compressor/id", Some(json!(class)))]);
        let filter = normalised(&array_v2(), &[("/filters", Some(json!([{"id": class}])))]);
        assert_eq!(filter["filters"][0]["id"], v2["compressor"]["id"]);
        (v3["codecs"][1]["name"].as_str().unwrap().to_owned(), v2["compressor"]["id"].as_str().unwrap().to_owned())
    };
    for (name, v3, v2) in [
        ("GZip", "gzip", "gzip"),
        ("Zstd", "zstd", "zstd"),
        ("CRC32C", "crc32c", "crc32c"),
        ("Blosc", "numcodecs.blosc", "blosc"),
        ("Zlib", "numcodecs.zlib", "zlib"),
        ("JenkinsLookup3", "numcodecs.jenkins_lookup3", "jenkins_lookup3"),
        ("VLenUTF8", "vlen-utf8", "vlen-utf8"),
        ("JSON", "numcodecs.json2", "json2"),
        ("gzip", "gzip", "gzip"),
        ("Unheard", "Unheard", "Unheard"),
    ] {
        assert_eq!(class(name), (v3.to_owned(), v2.to_owned()), "{name}");
    }
}

#[test]
fn missing_array_to_bytes_codec_is_added() {
    let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let transpose = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
    for (data_type, fill_value, codecs, complete) in [
        ("float32", json!(0), json!([gzip]), json!([little, gzip])),
        (">f4", json!(0), json!([gzip]), json!([{"name": "bytes", "configuration": {"endian": "big"}}, gzip])),
        (">f4", json!(0), json!([little]), json!([little])),
        ("uint8", json!(0), json!(["gzip"]), json!([{"name": "bytes"}, "gzip"])),
        ("int16", json!(0), json!([]), json!([little])),
        ("int16", json!(0), json!([transpose]), json!([transpose, little])),
        ("int16", json!(0), json!([transpose, gzip]), json!([transpose, little, gzip])),
        ("int16", json!(0), json!([transpose, "Zstd"]), json!([transpose, little, "zstd"])),
        ("string", json!(""), json!([gzip]), json!([{"name": "vlen-utf8"}, gzip])),
        ("variable_length_bytes", json!(""), json!([gzip]), json!([{"name": "vlen-bytes"}, gzip])),
        // It is there, but without its byte order.
        ("float32", json!(0), json!([{"name": "bytes"}, gzip]), json!([little, gzip])),
        ("float32", json!(0), json!([transpose, "bytes"]), json!([transpose, little])),
        ("uint8", json!(0), json!([{"name": "bytes"}]), json!([{"name": "bytes"}])),
        ("string", json!(""), json!([{"name": "bytes"}]), json!([{"name": "bytes"}])),
        // There may be one among these that nobody here knows.
        ("int16", json!(0), json!(["unheard", gzip]), json!(["unheard", gzip])),
    ] {
        let changes = [("/data_type", json!(data_type)), ("/fill_value", fill_value), ("/codecs", codecs)];
        let array = normalised(&array_v3(), &changes.map(|(pointer, value)| (pointer, Some(value))));
        assert_eq!(array["codecs"], complete, "{data_type}");
    }
}

#[test]
fn codecs_of_shards_are_normalized() {
    let shards = |codecs: Value, index_codecs: Value| json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3], "codecs": codecs, "index_codecs": index_codecs}}]);
    let written = shards(json!([{"name": "GZip", "configuration": null}]), json!(["bytes", "CRC32C"]));
    let array = normalised(&array_v3(), &[("/codecs", Some(written))]);
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    assert_eq!(array["codecs"], shards(json!([bytes, {"name": "gzip"}]), json!(["bytes", "crc32c"])));
}

#[test]
fn null_members_of_v3_are_removed() {
    let nulls = [("/storage_transformers", Some(json!(null))), ("/dimension_names", Some(json!(null)))];
    assert_eq!(normalised(&array_v3(), &nulls), array_v3());
    let nulls = [("/attributes", Some(json!(null))), ("/codecs/0/configuration", Some(json!(null)))];
    let array = normalised(&array_v3(), &nulls);
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    assert_eq!((&array["attributes"], &array["codecs"][0]), (&json!({}), &bytes));
    let encoding = json!({"name": "default", "configuration": null});
    let array = normalised(&array_v3(), &[("/chunk_key_encoding", Some(encoding))]);
    assert_eq!(array["chunk_key_encoding"], json!({"name": "default"}));
    assert_eq!(normalised(&array_v3(), &[("/attributes", None)])["attributes"], json!({}));

    let group = group_v3(json!({}));
    for consolidated in [json!(null), json!({"kind": "inline", "must_understand": false, "metadata": {"a": {}}})] {
        assert_eq!(normalised(&group, &[("/consolidated_metadata", Some(consolidated))]), group);
    }
    let extension = json!([{"name": "example.unheard", "configuration": null, "must_understand": false}]);
    let group = normalised(&group, &[("/extensions", Some(extension))]);
    assert_eq!(group["extensions"], json!([{"name": "example.unheard", "must_understand": false}]));
}

#[test]
fn optional_members_of_v2_are_added() {
    for filters in [Some(json!({})), Some(json!([])), Some(json!(null)), None] {
        assert_eq!(normalised(&array_v2(), &[("/filters", filters)]), array_v2());
    }
    assert_eq!(normalised(&array_v2(), &[("/dimension_separator", None)]), array_v2());
    assert_eq!(normalised(&array_v2(), &[("/attributes", None)])["attributes"], json!({}));
    assert_eq!(violations(&changed(&array_v2(), "/filters", Some(json!({"id": "zlib"}))))[0].0, "/filters");
}
