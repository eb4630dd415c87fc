//! Shards, of which the index and the inner chunks are read apart.

use serde_json::{Value, json};
use zarrd_array::{ArrayError, Options};
use zarrd_codec::CodecError;
use zarrd_store::{ByteRange, Recheck};

use crate::latency::{
    crc32c,
    distant_store::{DistantStore, Request},
    document, plain, read, with_checksum,
};

/// Shards of inner chunks of `inner` elements, with the index at the end or at the start.
fn sharded(inner: u64, codecs: &Value, location: &str) -> Value {
    json!([{"name": "sharding_indexed", "configuration": {"chunk_shape": [inner], "codecs": codecs,
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "index_location": location}}])
}

/// A shard of these inner chunks, each at its offset in the part of the shard that is not the index.
fn shard(inner: &[(usize, Vec<u8>)], size: usize, location: &str) -> Vec<u8> {
    let index_size = inner.len() * 16 + 4;
    let shift = if location == "start" { index_size } else { 0 };
    let (mut data, mut index) = (vec![0; size], Vec::new());
    for (offset, bytes) in inner {
        data[*offset..offset + bytes.len()].copy_from_slice(bytes);
        index.extend((offset + shift).to_le_bytes());
        index.extend(bytes.len().to_le_bytes());
    }
    index.extend(crc32c(&index).to_le_bytes());
    if location == "start" { [index, data].concat() } else { [data, index].concat() }
}

/// An array of 100 shards of 4 inner chunks of 2 elements. Each tenth is not stored.
async fn store(location: &str) -> (DistantStore, Vec<u8>) {
    let store = DistantStore::new();
    let inner = json!([{"name": "bytes"}, {"name": "crc32c"}]);
    store.set("a/zarr.json", document(800, 8, &sharded(2, &inner, location))).await;
    let mut expected = Vec::new();
    for number in 0..100_u8 {
        if number % 10 == 3 {
            expected.extend([9; 8]);
            continue;
        }
        let chunks: Vec<_> = (0..4_u8).map(|at| (usize::from(at) * 6, with_checksum(&[number, at]))).collect();
        store.set(&format!("a/c/{number}"), shard(&chunks, 24, location)).await;
        expected.extend((0..4).flat_map(|at| [number, at]));
    }
    (store, expected)
}

#[tokio::test(start_paused = true)]
async fn the_index_of_a_shard_is_one_request_and_its_inner_chunks_another_one() {
    for location in ["end", "start"] {
        let (store, expected) = store(location).await;
        let arrays = store.arrays(Recheck::DISTANT, Options::default());
        let (elements, trips, requests) = store.measure(read(&arrays, "")).await;
        assert_eq!(elements.unwrap(), expected, "{location}");
        // The document, 100 indexes, and 90 shards of which the inner chunks are fetched together.
        assert_eq!((trips, requests.len()), (4, 191), "{location}");
        let index = if location == "end" { ByteRange::last(68) } else { ByteRange::bounded(0, 68) };
        assert!(requests.contains(&Request::Get("a/c/3".to_owned(), index.ok())), "{location}");
        let (elements, trips, _) = store.measure(read(&arrays, "")).await;
        assert_eq!((elements.unwrap(), trips), (expected, 0), "{location}");
    }
}

/// An element of a shard whose version is not known takes the index and the inner chunk.
#[tokio::test(start_paused = true)]
async fn elements_of_many_shards_take_two_requests_each() {
    let (store, expected) = store("end").await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let (elements, trips, requests) = store.measure(read(&arrays, "::8")).await;
    assert_eq!(elements.unwrap(), expected.iter().step_by(8).copied().collect::<Vec<_>>());
    assert_eq!((trips, requests.len()), (4, 191));
}

/// Parts of a shard are fetched together over gaps of up to 512 KiB, up to 8 MiB.
#[tokio::test(start_paused = true)]
async fn ranges_of_a_shard_are_merged_over_gaps() {
    const KIB: usize = 1 << 10;
    let store = DistantStore::new();
    let inner = 1_u64 << 20;
    let count = 20;
    store.set("a/zarr.json", document(inner * count, inner * count, &sharded(inner, &plain(), "end"))).await;
    // 1 MiB each; the gaps after the third and the fourth one are of 512 KiB, and of a byte more.
    let (mut at, mut chunks) = (0, Vec::new());
    for number in 0..count as u8 {
        chunks.push((at, vec![number; inner as usize]));
        at += inner as usize + [0, 0, 0, 512 * KIB, 512 * KIB + 1].get(usize::from(number)).copied().unwrap_or(0);
    }
    store.set("a/c/0", shard(&chunks, at, "end")).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let (elements, trips, requests) = store.measure(read(&arrays, "")).await;
    let expected: Vec<u8> = (0..count as u8).flat_map(|number| vec![number; inner as usize]).collect();
    assert!(elements.unwrap() == expected);
    let (document, shard) = ("a/zarr.json".to_owned(), "a/c/0".to_owned());
    let length = store.memory_len("a/c/0").await;
    assert_eq!(requests[..2], [Request::Get(document, None), Request::Head(shard)]);
    let mut ranges: Vec<_> = requests[2..]
        .iter()
        .map(|request| match request {
            Request::Get(_, Some(ByteRange::Bounded { start, end })) => (*start, *end),
            other => panic!("{other:?}"),
        })
        .collect();
    ranges.sort_unstable();
    let (mib, gap) = (1 << 20, 512 << 10);
    let second = 5 * mib + gap + gap + 1;
    assert_eq!(
        ranges,
        [(0, 5 * mib + gap), (second, second + 8 * mib), (second + 8 * mib, second + 15 * mib), (length - 324, length)]
    );
    assert_eq!(trips, 4, "the document, the version for the entity tag, the index, and the inner chunks");
}

#[tokio::test(start_paused = true)]
async fn shards_that_cannot_be_are_errors() {
    for (location, codec) in [("end", "sharding_indexed"), ("start", "sharding_indexed")] {
        for bytes in [vec![], vec![1; 67]] {
            let (store, _) = store(location).await;
            store.set("a/c/50", bytes.clone()).await;
            let arrays = store.arrays(Recheck::DISTANT, Options::default());
            let error = read(&arrays, "").await.unwrap_err();
            let ArrayError::Chunk { key, source: CodecError::LengthMismatch { codec: at, expected: 68, found } } =
                error
            else {
                panic!("{error:?}")
            };
            assert_eq!((key.as_str(), at, found), ("a/c/50", codec, bytes.len() as u64));
        }
        let (store, _) = store(location).await;
        store.set("a/c/50", vec![1; 100]).await;
        let arrays = store.arrays(Recheck::DISTANT, Options::default());
        let error = read(&arrays, "").await.unwrap_err();
        assert!(matches!(&error, ArrayError::Chunk { key, .. } if key.as_str() == "a/c/50"), "{error:?}");
    }
}
