//! Whatever is encoded is decoded again.

use proptest::prelude::*;

use super::*;

fn orders(rank: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..rank).collect::<Vec<_>>()).prop_shuffle()
}

fn filters() -> impl Strategy<Value = Vec<Value>> {
    let delta = json!({"name": "numcodecs.delta", "configuration": {"dtype": "<u2"}});
    let widen = json!({"name": "numcodecs.astype", "configuration": {"encode_dtype": "<u4", "decode_dtype": "<u2"}});
    prop_oneof![Just(vec![]), Just(vec![delta.clone()]), Just(vec![widen.clone()]), Just(vec![delta, widen])]
}

fn compressors() -> impl Strategy<Value = Vec<Value>> {
    let shuffle = json!("numcodecs.shuffle");
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 1, "checksum": true}});
    prop_oneof![
        Just(vec![]),
        Just(vec![json!("crc32c")]),
        Just(vec![shuffle.clone(), gzip.clone()]),
        Just(vec![shuffle, zstd, json!("crc32c")]),
        Just(vec![gzip.clone(), gzip]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_of_numbers_roundtrip(
        counts in proptest::collection::vec(1_u64..4, 0..4),
        inner in proptest::collection::vec(1_u64..5, 3),
        order in (0_usize..4).prop_flat_map(orders),
        filters in filters(),
        compressors in compressors(),
        big in any::<bool>(),
        sharded in any::<bool>(),
        at_start in any::<bool>(),
        seed in any::<u16>(),
    ) {
        let rank = counts.len();
        let inner = &inner[..rank];
        let shape: Vec<u64> = counts.iter().zip(inner).map(|(count, inner)| count * inner).collect();
        let mut codecs = Vec::new();
        if order.len() == rank {
            codecs.push(json!({"name": "transpose", "configuration": {"order": order}}));
        }
        codecs.extend(filters);
        codecs.push(json!({"name": "bytes", "configuration": {"endian": if big { "big" } else { "little" }}}));
        codecs.extend(compressors);
        if sharded {
            let location = if at_start { "start" } else { "end" };
            codecs = vec![json!({"name": "sharding_indexed", "configuration":
                {"chunk_shape": inner, "codecs": codecs, "index_location": location}})];
        }
        let chain = v3_chain(&json!("uint16"), &shape, &json!(codecs)).unwrap();
        // Some inner chunks are full of the fill value.
        let elements = (0..shape.iter().product::<u64>()).flat_map(|index| (index as u16 / 7).wrapping_mul(seed).to_le_bytes());
        let elements = Elements::Fixed(elements.collect::<Vec<_>>().into());
        let encoded = chain.encode(elements.clone()).unwrap();
        prop_assert!(encoded.len() as u64 <= chain.encoded_size().unwrap().max());
        prop_assert_eq!(chain.decode(encoded, 0).unwrap(), elements);
    }

    #[test]
    fn chunks_of_strings_roundtrip(
        texts in proptest::collection::vec(".{0,3}", 12),
        order in orders(2),
        id in prop_oneof![Just("vlen-utf8"), Just("vlen-bytes")],
        sharded in any::<bool>(),
    ) {
        let mut codecs = json!([{"name": "transpose", "configuration": {"order": order}}, id, {"name": "gzip", "configuration": {"level": 1}}]);
        if sharded {
            codecs = json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [3, 2], "codecs": codecs}}]);
        }
        let chain = v3_chain(&json!("string"), &[3, 4], &codecs).unwrap();
        let elements = variable(&texts.into_iter().map(String::into_bytes).collect::<Vec<_>>());
        let encoded = chain.encode(elements.clone()).unwrap();
        prop_assert_eq!(chain.decode(encoded, BUDGET).unwrap(), elements);
    }

    #[test]
    fn random_bytes_never_panic(row in 0..ROWS.len(), junk in proptest::collection::vec(any::<u8>(), 0..200)) {
        let chain = ROWS[row].chain();
        if let Ok(Elements::Fixed(bytes)) = chain.decode(junk.into(), BUDGET) {
            prop_assert_eq!(Some(bytes.len() as u64), chain.representation().fixed_size());
        }
    }
}
