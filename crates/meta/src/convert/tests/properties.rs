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

/// What is the same in every dialect.
fn assert_same(found: &ArrayModel, expected: &ArrayModel) {
    assert_eq!(found.shape, expected.shape);
    assert_eq!(found.data_type, expected.data_type);
    assert_eq!(found.fill_value, expected.fill_value);
    assert_eq!(found.grid, expected.grid);
    assert_eq!(found.dimension_names, expected.dimension_names);
}

proptest! {
    #[test]
    fn v2_there_and_back(document in any_v2()) {
        let v2 = model(Dialect::V2, &document);
        for (to, chunks) in [(Dialect::V3, Chunks::Kept), (Dialect::V3, Chunks::Moved), (Dialect::Draft, Chunks::Moved)] {
            let there = read(to, converted(&document, Dialect::V2, to, chunks).as_object().unwrap());
            assert_same(&there, &v2);
            if chunks == Chunks::Kept {
                prop_assert_eq!(there.chunk_keys, v2.chunk_keys);
            }
            let back = array(&there, Dialect::V2, chunks).unwrap();
            prop_assert_eq!(&back.losses, &[]);
            let back = read(Dialect::V2, &back.document);
            assert_same(&back, &v2);
            prop_assert_eq!(&back.codecs, &v2.codecs);
            prop_assert_eq!(&back.attributes, &v2.attributes);
            // And on to the third.
            for third in [Dialect::V3, Dialect::Draft] {
                let onwards = array(&there, third, Chunks::Moved).unwrap();
                prop_assert_eq!(&onwards.losses, &[]);
                assert_same(&read(third, &onwards.document), &v2);
            }
        }
    }
}
