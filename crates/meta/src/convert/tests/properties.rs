use super::*;

/// A dtype of v2 and a fill value that is not `null`.
fn any_type() -> impl Strategy<Value = (Value, Value)> {
    let order = prop::sample::select(vec!["<", ">"]);
    let sized = prop::sample::select(vec![
        ("i2", json!(-3)),
        ("i4", json!(7)),
        ("i8", json!(i64::MIN)),
        ("u2", json!(65535)),
        ("u8", json!(u64::MAX)),
        ("f2", json!(0.5)),
        ("f4", json!("NaN")),
        ("f8", json!("-Infinity")),
        ("c8", json!([1.0, "NaN"])),
        ("c16", json!([0.0, 1.5])),
        ("M8[ns]", json!(5)),
        ("m8[10us]", json!(i64::MIN)),
        ("U3", json!("é")),
    ]);
    let plain = prop::sample::select(vec![
        (json!("|b1"), json!(true)),
        (json!("|i1"), json!(-1)),
        (json!("|u1"), json!(255)),
        (json!("|S4"), json!("YWI=")),
        (json!("|V3"), json!("AAEC")),
        (json!([["a", "<i4"], ["b", "|u1"]]), json!("AQIDBAU=")),
        (json!([["a", ">i4"], ["n", [["x", ">f4"], ["s", "|S1"]]]]), json!("AQIDBD+AAABh")),
    ]);
    prop_oneof![3 => (order, sized).prop_map(|(order, (name, fill))| (json!(format!("{order}{name}")), fill)), 1 => plain]
}

/// Filters for elements of a type, and for bytes.
fn any_filters(dtype: &Value) -> BoxedStrategy<Vec<Value>> {
    let of_bytes = prop::collection::vec(
        prop::sample::select(vec![
            json!({"id": "shuffle", "elementsize": 4}),
            json!({"id": "crc32"}),
            json!({"id": "fletcher32"}),
            json!({"id": "zlib", "level": 1}),
        ]),
        0..3,
    );
    let of_elements = match dtype.as_str() {
        Some(">i4") => vec![vec![
            json!({"id": "delta", "dtype": ">i4", "astype": ">i2"}),
            json!({"id": "delta", "dtype": ">i2", "astype": ">i2"}),
        ]],
        Some("<i4") => vec![vec![json!({"id": "delta", "dtype": "<i4", "astype": "<i4"})]],
        Some(">f8") => vec![vec![
            json!({"id": "astype", "decode_dtype": ">f8", "encode_dtype": ">f4"}),
            json!({"id": "bitround", "keepbits": 3}),
        ]],
        // In which order elements are that become bytes of one each, no chunk tells.
        Some("<f8") => {
            vec![vec![json!({"id": "fixedscaleoffset", "offset": 1, "scale": 10.0, "dtype": "<f8", "astype": "|u1"})]]
        }
        Some("<f4") => vec![vec![json!({"id": "quantize", "digits": 2, "dtype": "<f4", "astype": "<f4"})]],
        Some("|b1") => vec![vec![json!({"id": "packbits"})]],
        _ => vec![vec![]],
    };
    let of_elements = of_elements.into_iter().chain([vec![]]).collect::<Vec<_>>();
    (prop::sample::select(of_elements), of_bytes).prop_map(|(elements, bytes)| [elements, bytes].concat()).boxed()
}

fn any_compressor() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        Value::Null,
        json!({"id": "gzip", "level": 2}),
        json!({"id": "zlib", "level": 2}),
        json!({"id": "zstd", "level": -3}),
        json!({"id": "zstd", "level": 3, "checksum": true}),
        json!({"id": "blosc", "cname": "lz4hc", "clevel": 9, "shuffle": 2, "blocksize": 64}),
        json!({"id": "lz4", "acceleration": 1}),
        json!({"id": "bz2", "level": 1}),
        json!({"id": "lzma", "format": 3, "check": -1, "preset": null, "filters": [{"id": 33, "preset": 1}]}),
        json!({"id": "crc32c"}),
    ])
}

fn any_v2() -> impl Strategy<Value = Value> {
    let array = any_type().prop_flat_map(|(dtype, fill)| (any_filters(&dtype), Just((dtype, fill))));
    let shape = prop::collection::vec((0_u64..50, 1_u64..9), 0..4);
    (array, shape, any_compressor(), prop::bool::ANY, prop::bool::ANY, prop::bool::ANY).prop_map(
        |((filters, (dtype, fill)), shape, compressor, fortran, slash, named)| {
            let (shape, chunks): (Vec<_>, Vec<_>) = shape.into_iter().unzip();
            let names: Vec<_> = (0..shape.len()).map(|index| format!("d{index}")).collect();
            let mut document = json!({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": compressor,
                "fill_value": fill, "order": if fortran { "F" } else { "C" }, "filters": filters,
                "dimension_separator": if slash { "/" } else { "." }, "attributes": {"a": [1, {"b": null}]}});
            if named {
                document["attributes"]["_ARRAY_DIMENSIONS"] = json!(names);
            }
            document
        },
    )
}

/// The properties that are equal in every dialect.
fn assert_same(found: &ArrayModel, expected: &ArrayModel) {
    assert_eq!(found.shape, expected.shape);
    assert_eq!(found.data_type, expected.data_type);
    assert_eq!(found.fill_value, expected.fill_value);
    assert_eq!(found.grid, expected.grid);
    assert_eq!(found.dimension_names, expected.dimension_names);
}

proptest! {
    #[test]
    fn v2_roundtrips_through_v3_and_the_draft(document in any_v2()) {
        let v2 = model(Dialect::V2, &document);
        for (to, chunks) in [(Dialect::V3, ChunkPolicy::Preserve), (Dialect::V3, ChunkPolicy::Preferred), (Dialect::Draft, ChunkPolicy::Preferred)] {
            let intermediate = model(to, &converted(&document, Dialect::V2, to, chunks));
            assert_same(&intermediate, &v2);
            if chunks == ChunkPolicy::Preserve {
                prop_assert_eq!(intermediate.chunk_keys, v2.chunk_keys);
            }
            let back = array(&intermediate, Dialect::V2, chunks, ArrayContext::default()).unwrap();
            prop_assert_eq!(without_masks(back.losses), vec![]);
            let back = read(Dialect::V2, &back.document);
            assert_same(&back, &v2);
            prop_assert_eq!(&back.codecs, &v2.codecs);
            prop_assert_eq!(&back.attributes, &v2.attributes);
            // And on to the third.
            for third in [Dialect::V3, Dialect::Draft] {
                let onwards = array(&intermediate, third, ChunkPolicy::Preferred, ArrayContext::default()).unwrap();
                prop_assert_eq!(without_masks(onwards.losses), vec![]);
                assert_same(&read(third, &onwards.document), &v2);
            }
        }
    }
}

fn any_v3() -> impl Strategy<Value = Value> {
    let endian = prop::sample::select(vec!["little", "big"]);
    let data_type = prop::sample::select(vec![
        (
            json!("int32"),
            json!(5),
            vec![json!({"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": "<i2"}})],
        ),
        (
            json!("float64"),
            json!("Infinity"),
            vec![json!({"name": "numcodecs.astype", "configuration": {"encode_dtype": "<f4", "decode_dtype": "<f8"}})],
        ),
        (json!("complex64"), json!([0.5, "NaN"]), vec![]),
        (json!({"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 10}}), json!(-1), vec![]),
        (json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}), json!("é"), vec![]),
        (
            json!({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "bool"}]}}),
            json!({"a": -2, "b": true}),
            vec![],
        ),
    ]);
    let bytes = prop::sample::subsequence(
        vec![
            json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}),
            json!({"name": "gzip", "configuration": {"level": 5}}),
            json!({"name": "zstd", "configuration": {"level": 0, "checksum": true}}),
            json!({"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}),
            json!({"name": "crc32c"}),
        ],
        0..3,
    );
    let names = prop::sample::select(vec![Value::Null, json!(["y", "x"])]);
    (data_type, endian, bytes, prop::bool::ANY, prop::bool::ANY, names).prop_map(
        |((data_type, fill, filters), endian, bytes, filtered, fortran, names)| {
            let mut codecs = Vec::new();
            if fortran {
                codecs.push(json!({"name": "transpose", "configuration": {"order": [1, 0]}}));
            }
            codecs.extend(filters.into_iter().filter(|_| filtered));
            codecs.push(json!({"name": "bytes", "configuration": {"endian": endian}}));
            codecs.extend(bytes);
            let mut document = v3_with(
                json!({"data_type": data_type, "fill_value": fill, "codecs": codecs, "attributes": {"a": {"b": 1}}}),
            );
            if !names.is_null() {
                document["dimension_names"] = names;
            }
            document
        },
    )
}

/// A document with anything else in place of a member, or of one within it.
fn any_mutation() -> impl Strategy<Value = (Dialect, Value)> {
    let values = prop::sample::select(vec![
        json!(null),
        json!(0),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("|O"),
        json!(">f4"),
        json!("|V3"),
        json!("r24"),
        json!("string"),
        json!("F"),
        json!("NaN"),
        json!([]),
        json!([[]]),
        json!([0, 0]),
        json!([1, 0]),
        json!({}),
        json!({"id": "vlen-utf8"}),
        json!([{"id": "vlen-bytes"}, {"id": "blosc", "typesize": 0}]),
        json!([{"name": "vlen-utf8"}, {"name": "blosc"}]),
        json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [0, 1], "codecs": [1]}}]),
        json!([{"name": "transpose", "configuration": {"order": [9, 9]}}, "bytes"]),
        json!([{"name": "model:mixed_endian", "configuration": {"big": [[0, 4, 1]]}}]),
        json!({"id": "zstd", "level": "x"}),
        json!({"extension": "x", "type": [["", "|V4"]], "fallback": 1}),
        json!(vec![json!({"id": "crc32"}); 64]),
    ]);
    let document = prop_oneof![
        any_v2().prop_map(|document| (Dialect::V2, document)),
        any_v3().prop_map(|document| (Dialect::V3, document)),
        Just((
            Dialect::Draft,
            draft_with(json!({"compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip", "configuration": {}}}))
        )),
    ];
    (document, any::<prop::sample::Index>(), values, any::<prop::sample::Index>(), prop::bool::ANY).prop_map(
        |((dialect, mut document), member, value, inner, deep)| {
            let members = document.as_object_mut().unwrap();
            let name = members.keys().nth(member.index(members.len())).unwrap().clone();
            let place = &mut members[&name];
            match place {
                Value::Array(items) if deep && !items.is_empty() => {
                    let index = inner.index(items.len());
                    items[index] = value;
                }
                _ => *place = value,
            }
            (dialect, document)
        },
    )
}

proptest! {
    #[test]
    fn v3_roundtrips_through_v2(document in any_v3()) {
        let v3 = model(Dialect::V3, &document);
        for to in [Dialect::V2, Dialect::Draft] {
            let other = converted(&document, Dialect::V3, to, ChunkPolicy::Preferred);
            assert_same(&model(to, &other), &v3);
            let mut back = converted(&other, to, Dialect::V3, ChunkPolicy::Preferred);
            // The fill value means missing there if dimensions have names.
            let mask = back["attributes"].as_object_mut().and_then(|attributes| attributes.remove("_FillValue"));
            prop_assert!(mask.is_none() || !document["dimension_names"].is_null());
            prop_assert_eq!(back, document.clone());
        }
    }

    /// Whatever can be read and converted can be read again.
    #[test]
    fn random_documents_never_panic((from, document) in any_mutation()) {
        let Ok(Some(model)) = try_read(from, &Json::compact(&document)) else { return Ok(()) };
        for to in Dialect::ALL {
            for chunks in [ChunkPolicy::Preserve, ChunkPolicy::Preferred] {
                if let Ok(converted) = array(&model, to, chunks, ArrayContext::default()) {
                    let read = read(to, &converted.document);
                    prop_assert_eq!(read.data_type, model.data_type.clone());
                    prop_assert_eq!(&read.fill_value, &model.fill_value);
                    prop_assert_eq!(&read.grid, &model.grid);
                }
            }
        }
    }
}
