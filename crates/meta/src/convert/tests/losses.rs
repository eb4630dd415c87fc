use super::*;

fn outcome(from: Dialect, document: &Value, to: Dialect, chunks: ChunkPolicy) -> Result<Vec<String>, String> {
    let converted =
        array(&model(from, document), to, chunks, ArrayContext::default()).map_err(|error| error.to_string())?;
    read(to, &converted.document);
    Ok(converted.losses.into_iter().map(|loss| format!("{} {}", loss.pointer, loss.property)).collect())
}

#[test]
fn losses_are_listed() {
    let named = json!({"name": "example.array-statistics", "configuration": {}, "must_understand": false});
    for (from, document, to, losses) in [
        (
            Dialect::V2,
            v2_with(json!({"fill_value": null})),
            Dialect::V3,
            vec!["/fill_value that unwritten elements are undefined"],
        ),
        (Dialect::V2, v2_with(json!({"fill_value": null})), Dialect::Draft, vec![]),
        (Dialect::V2, v2_with(json!({"x/y": 1})), Dialect::V3, vec!["/x~1y a member that is not in the specification"]),
        (
            Dialect::V3,
            v3_with(json!({"dimension_names": ["a", null], "x": {"must_understand": false}, "extensions": [named]})),
            Dialect::V2,
            vec![
                "/dimension_names dimension names, because other dimensions are unnamed",
                "/x a member that is not in the specification",
                "/extensions/0 the extension example.array-statistics",
            ],
        ),
        (
            Dialect::V3,
            v3_with(json!({"dimension_names": ["a", "b"], "attributes": {"_ARRAY_DIMENSIONS": ["a", "c"]}})),
            Dialect::V2,
            vec!["/attributes/_ARRAY_DIMENSIONS an attribute whose name means dimension_names there"],
        ),
        (
            Dialect::V3,
            v3_with(json!({"attributes": {"_ARRAY_DIMENSIONS": ["a", "c"]}})),
            Dialect::Draft,
            vec!["/attributes/_ARRAY_DIMENSIONS that this attribute is not the dimension names"],
        ),
        (
            Dialect::V3,
            v3_with(json!({"codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}}]})),
            Dialect::V2,
            vec!["/codecs/1/configuration/typesize the typesize of blosc"],
        ),
        (
            Dialect::Draft,
            draft_with(json!({"later": 1, "data_type": {"extension": "x", "type": "<M8[s]", "fallback": "<i8"},
                "extensions": [{"extension": "https://example.org/x", "must_understand": false}]})),
            Dialect::V3,
            vec![
                "/later a member that is not in the specification",
                "/data_type/fallback the fallback for readers that do not support the data type",
                "/extensions/0 the extension https://example.org/x",
            ],
        ),
    ] {
        assert_eq!(
            outcome(from, &document, to, ChunkPolicy::Preferred),
            Ok(losses.into_iter().map(str::to_owned).collect()),
            "{document}"
        );
    }
}

#[test]
fn unconvertible_arrays_are_rejected() {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let shards = |index_location: &str| {
        v3_with(
            json!({"codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [bytes], "index_location": index_location,
            "index_codecs": [bytes]}}]}),
        )
    };
    for (from, document, to, reason) in [
        (
            Dialect::V2,
            v2_with(json!({"dtype": [["a", "<i4"], ["b", ">i4"]]})),
            Dialect::V3,
            "/dtype has fields of both byte orders, for which v3 has no codec",
        ),
        (
            Dialect::V2,
            v2_with(json!({"dtype": [["a", "<i4", [2]]]})),
            Dialect::V3,
            "/dtype is struct{a:int32[2]}, for which v3 has no registered data type",
        ),
        (
            Dialect::V2,
            v2_with(json!({"dtype": "|S0"})),
            Dialect::V3,
            "/dtype is null_terminated_bytes[0], for which v3 has no registered data type",
        ),
        (
            Dialect::V2,
            v2_with(json!({"dtype": "|O", "filters": [{"id": "json2"}]})),
            Dialect::V3,
            "/dtype is json, for which v3 has no registered data type",
        ),
        (
            Dialect::V2,
            v2_with(json!({"dtype": "|O", "filters": [{"id": "vlen-array", "dtype": "<i4"}]})),
            Dialect::V3,
            "/dtype is vlen_array[int32], for which v3 has no registered data type",
        ),
        (
            Dialect::V2,
            v2_with(json!({"dtype": "|O", "filters": [{"id": "categorize", "labels": ["a"], "dtype": "|O"}]})),
            Dialect::V3,
            "/filters/0 is the codec categorize, for which v3 has no name",
        ),
        (
            Dialect::V2,
            v2_with(json!({"compressor": {"id": "zfpy"}})),
            Dialect::V3,
            "/compressor is the codec zfpy, for which v3 has no name",
        ),
        (
            Dialect::V2,
            v2_with(json!({"filters": [{"id": "zlib"}, {"id": "delta", "dtype": "|u1"}]})),
            Dialect::V3,
            "/filters/1 is the filter delta behind a codec that works on bytes",
        ),
        (
            Dialect::V2,
            v2_with(json!({"order": "F", "filters": [{"id": "delta", "dtype": ">i4"}]})),
            Dialect::V3,
            "/filters/0 is not for the elements that it is given, int32",
        ),
        (
            Dialect::V2,
            v2_with(json!({"attributes": {"filters": "mine"}})),
            Dialect::Draft,
            "/attributes/filters is reserved for the filters of the array in the draft",
        ),
        (
            Dialect::V3,
            v3_with(
                json!({"shape": [1, 2, 3], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1]}},
                "codecs": [{"name": "transpose", "configuration": {"order": [1, 0, 2]}}, bytes]}),
            ),
            Dialect::V2,
            "/codecs/0 is neither order C nor order F",
        ),
        (Dialect::V3, shards("end"), Dialect::V2, "/codecs/0 makes shards, which v2 does not support"),
        (
            Dialect::V3,
            shards("start"),
            Dialect::Draft,
            "/codecs/0 has an index that is not at the end, or not stored as plain little-endian numbers",
        ),
        (
            Dialect::V3,
            v3_with(
                json!({"chunk_grid": {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2, 3], [7]]}}}),
            ),
            Dialect::V2,
            "/chunk_grid is not a regular grid",
        ),
        (
            Dialect::V3,
            v3_with(
                json!({"data_type": "bfloat16", "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}),
            ),
            Dialect::V2,
            "/data_type is bfloat16, for which v2 has no dtype",
        ),
        (
            Dialect::V3,
            v3_with(json!({"data_type": "float32", "fill_value": "0x7fc00001"})),
            Dialect::V2,
            "/fill_value is a NaN with a payload, which v2 cannot represent",
        ),
        (
            Dialect::V3,
            v3_with(json!({"codecs": [bytes, {"name": "lz5"}]})),
            Dialect::V2,
            "/codecs/1 is the codec lz5, which numcodecs does not have",
        ),
    ] {
        let expected = format!("{to} cannot represent the array: {reason}");
        assert_eq!(outcome(from, &document, to, ChunkPolicy::Preferred), Err(expected), "{document}");
    }
}

#[test]
fn chunk_keys_are_preserved_where_both_dialects_have_them() {
    let preserved = |from, document: Value, to| outcome(from, &document, to, ChunkPolicy::Preserve);
    let v2_keys = json!({"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}});
    assert_eq!(preserved(Dialect::V3, v3_with(v2_keys.clone()), Dialect::V2), Ok(vec![]));
    let v2 = array(&model(Dialect::V3, &v3_with(v2_keys)), Dialect::V2, ChunkPolicy::Preserve, ArrayContext::default())
        .unwrap()
        .document;
    assert_eq!(v2.get("dimension_separator").unwrap(), json!("/"));
    for (from, document, to, reason) in [
        (
            Dialect::V3,
            v3_with(json!({})),
            Dialect::V2,
            "v2 cannot represent the array: /chunk_key_encoding names chunks differently than v2",
        ),
        (
            Dialect::Draft,
            draft_with(json!({})),
            Dialect::V2,
            "v2 cannot represent the array: /chunk_grid has chunk keys that v2 does not support",
        ),
        (
            Dialect::Draft,
            draft_with(json!({})),
            Dialect::V3,
            "v3 cannot represent the array: /chunk_grid has chunk keys that v3 does not support",
        ),
        (
            Dialect::V2,
            v2_with(json!({})),
            Dialect::Draft,
            "draft cannot represent the array:  has chunk keys that the draft does not support",
        ),
    ] {
        assert_eq!(preserved(from, document, to), Err(reason.to_owned()));
    }
}

/// A short document can stand for a fill value with very many parts.
#[test]
fn large_fill_values_are_rejected() {
    let wide = v2_with(json!({"dtype": [["a", "|u1", [1_000_000]]], "fill_value": null}));
    let draft = array(&model(Dialect::V2, &wide), Dialect::Draft, ChunkPolicy::Preferred, ArrayContext::default())
        .unwrap()
        .document;
    assert!(draft.get("fill_value").unwrap().is_null());
    let raw = v2_with(json!({"dtype": "|V1000000", "fill_value": null}));
    let v3 = array(&model(Dialect::V2, &raw), Dialect::V3, ChunkPolicy::Preferred, ArrayContext::default())
        .unwrap()
        .document;
    assert!(v3.get("fill_value").unwrap().to_text().is_some());
    let many = json!({"dtype": "|O", "filters": [{"id": "vlen-array", "dtype": "|u1"}], "fill_value": vec![1; 70_000]});
    assert_eq!(
        outcome(Dialect::V2, &v2_with(many), Dialect::Draft, ChunkPolicy::Preferred).unwrap_err(),
        "draft cannot represent the array: /fill_value is a fill value of more than 65536 elements, which draft cannot represent"
    );
}
