//! Shards with any index.

use super::*;

/// 4 × 4 elements in inner chunks of 2 × 2, with an index without a checksum.
fn shard_chain(location: &str) -> CodecChain {
    let codecs = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 2],
        "codecs": ["bytes"],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_location": location,
    }}]);
    v3_chain(&json!("uint8"), &[4, 4], &codecs).unwrap()
}

/// A shard with these bytes beside its index.
fn shard(location: &str, chunks: &[u8], entries: [[u64; 2]; 4]) -> Bytes {
    let index: Vec<u8> = entries.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    if location == "start" { [&index, chunks].concat().into() } else { [chunks, &index].concat().into() }
}

#[test]
fn shards_with_gaps_and_shared_chunks_are_decoded() {
    const NONE: [u64; 2] = [u64::MAX; 2];
    let chunks = [0, 0, 1, 2, 3, 4, 9];
    for (location, base) in [("end", 0), ("start", 64)] {
        let chain = shard_chain(location);
        assert!(matches!(chain.partial_access(), PartialAccess::Shard(_)));
        let bytes = shard(location, &chunks, [[base + 2, 4], NONE, NONE, [base + 2, 4]]);
        let expected = vec![1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4];
        assert_eq!(chain.decode(bytes, 0).unwrap(), Elements::Fixed(expected.into()), "{location}");
    }
}

#[test]
fn invalid_index_entries_are_rejected() {
    const NONE: [u64; 2] = [u64::MAX; 2];
    let chunks = [1, 2, 3, 4, 5, 6, 7, 8];
    for (location, base, index) in [("end", 0, 8), ("start", 64, 0)] {
        let chain = shard_chain(location);
        let good = [base, 4];
        let lies = [
            ("wraps around", [u64::MAX - 3, 8]),
            ("wraps around to 0", [u64::MAX - 3, 4]),
            ("ends at 2^64 - 1", [1, u64::MAX - 1]),
            ("has only half of what is missing", [u64::MAX, 4]),
            ("has only the other half", [base, u64::MAX]),
            ("begins after the end", [72, 4]),
            ("ends after the end", [base + 64 + 6, 4]),
            ("is far away", [1 << 60, 4]),
            ("is the index", [index, 4]),
            ("ends within the index", [index.saturating_sub(2), 4]),
            ("begins within the index", [index + 62, 4]),
            ("is too short", [base, 3]),
            ("is too long", [base, 5]),
            ("is empty", [base, 0]),
        ];
        for (name, lie) in lies {
            let decoded = chain.decode(shard(location, &chunks, [good, NONE, lie, NONE]), BUDGET);
            assert!(decoded.is_err(), "{location}: {name} {decoded:?}");
        }
        for end in 0..72 {
            let bytes = shard(location, &chunks, [good, [base + 4, 4], good, [base + 4, 4]]);
            assert!(chain.decode(bytes.slice(..end), BUDGET).is_err(), "{location}: {end}");
        }
    }
}

#[test]
fn index_with_a_wrong_checksum_is_rejected() {
    let codecs = json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": ["bytes"]}}]);
    let chain = v3_chain(&json!("uint8"), &[4], &codecs).unwrap();
    let elements = Elements::Fixed(vec![1, 2, 3, 4].into());
    let bytes = chain.encode(elements.clone()).unwrap();
    assert_eq!((bytes.len(), chain.decode(bytes.clone(), 0).unwrap()), (4 + 32 + 4, elements));
    for position in 4..bytes.len() {
        let mut flipped = bytes.to_vec();
        flipped[position] ^= 1;
        let error = chain.decode(flipped.into(), 0).unwrap_err();
        assert!(matches!(error, CodecError::ChecksumMismatch { codec: "crc32c" }), "{position} {error:?}");
    }
}

#[test]
fn shards_beyond_the_limits_are_rejected() {
    let sharded =
        |inner: Value| json!({"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [inner]}});
    let codecs = json!([sharded(json!("bytes"))]);
    let chain = v3_chain(&json!("uint8"), &[1 << 16, 1 << 16], &codecs).unwrap();
    assert!(matches!(
        chain.decode(vec![0; 100].into(), BUDGET),
        Err(CodecError::Malformed { .. } | CodecError::LengthMismatch { .. })
    ));
    let deep = (0..20).fold(json!("bytes"), |inner, _| sharded(inner));
    assert!(matches!(v3_chain(&json!("uint8"), &[1, 1], &json!([deep])), Err(ChainError::ShardsTooDeep)));
    for chunk_shape in [
        json!([0, 1]),
        json!([3, 2]),
        json!([2]),
        json!([2, 2, 1]),
        json!([8, 8]),
        json!([u64::MAX, 1]),
        json!([-1, 1]),
    ] {
        let codecs =
            json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": chunk_shape, "codecs": ["bytes"]}}]);
        assert!(v3_chain(&json!("uint8"), &[4, 4], &codecs).is_err(), "{codecs}");
    }
    let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
    let codecs = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 2], "codecs": ["bytes"], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, gzip],
    }}]);
    assert!(matches!(v3_chain(&json!("uint8"), &[4, 4], &codecs), Err(ChainError::InvalidConfiguration { .. })));
}

/// A codec that makes shards of inner chunks of this shape, with an index without a checksum.
fn sharded(chunk_shape: &[u64], inner: &Value) -> Value {
    let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunk_shape, "codecs": [inner], "index_codecs": index,
    }})
}

#[test]
fn shards_of_elements_without_bytes_are_decoded_at_once() {
    let (none, _) =
        zarrd_meta::data_type::parse_v2(&json!("|S0"), zarrd_meta::data_type::V2Context::default()).unwrap();
    let codecs = json!([sharded(&[1 << 40, 1], &json!("bytes"))]);
    let chain = chain(&none, &[1 << 40, 1], &v3(&codecs)).unwrap();
    let nothing = Elements::Fixed(Bytes::new());
    for entry in [0, u64::MAX] {
        let shard = [entry.to_le_bytes(), entry.to_le_bytes()].concat();
        assert_eq!(chain.decode(shard.into(), BUDGET).unwrap(), nothing);
    }
    assert_eq!(chain.encode(nothing).unwrap(), vec![255; 16]);
}

#[test]
fn inner_shards_that_share_bytes_are_rejected() {
    // Of 32 shards of 32 shards … each has the same bytes in all its places: 4 KiB for 2⁴⁰ inner chunks.
    let (codecs, _) = (0..8).fold((json!("bytes"), 1), |(inner, len), _| (sharded(&[len], &inner), len * 32));
    let chain = v3_chain(&json!("uint8"), &[1 << 40], &json!([codecs])).unwrap();
    let PartialAccess::Shard(outer) = chain.partial_access() else { panic!("it is a shard") };
    let shard = (0..8).fold(vec![7], |inner, _| {
        let entry = [0_u64.to_le_bytes(), (inner.len() as u64).to_le_bytes()].concat();
        [inner, entry.repeat(32)].concat()
    });
    let len = shard.len() as u64;
    let index =
        Bytes::from(shard).slice(outer.index_range(len).map(|range| range.start as usize..range.end as usize).unwrap());
    let found = outer.read_index(index, len);
    assert!(matches!(found, Err(CodecError::Malformed { reason: "inner shards share bytes", .. })), "{found:?}");
}

/// Of one byte, as measured in November 2026: 89 µs to encode and 40 µs to decode.
#[test]
fn chunks_are_work_however_small_they_are() {
    const STEPS: [u64; 2] = [89_000, 40_000];
    const INNER: u64 = 1 << 19;
    let codecs = json!(["bytes", {"name": "numcodecs.bz2", "configuration": {"level": 9}}]);
    let work = |chain: &CodecChain| [chain.encode_work(0), chain.decode_work(0)];
    let single = work(&v3_chain(&json!("uint8"), &[1], &codecs).unwrap());
    assert!(single[0] >= STEPS[0] && single[1] >= STEPS[1], "{single:?}");
    let sharding = json!([{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1],
        "codecs": codecs,
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }}]);
    let shard = work(&v3_chain(&json!("uint8"), &[INNER], &sharding).unwrap());
    assert!(shard[0] >= STEPS[0] * INNER && shard[1] >= STEPS[1] * INNER, "{shard:?}");
}
