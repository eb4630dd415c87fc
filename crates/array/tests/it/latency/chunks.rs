//! Chunks, each of which is a value.

use tokio::time::{Duration, advance};
use zarrd_array::{ArrayError, Options, Purpose};
use zarrd_codec::CodecError;
use zarrd_store::Recheck;

use crate::latency::{
    checked,
    distant_store::{DistantStore, Request},
    document, plain, plan, read, with_checksum,
};

/// An array of 200 chunks of 4 elements, which are the number of their chunk. Each tenth is not stored.
async fn store(codecs: &serde_json::Value, encode: impl Fn(&[u8]) -> Vec<u8>) -> (DistantStore, Vec<u8>) {
    let store = DistantStore::new();
    store.set("a/zarr.json", document(800, 4, codecs)).await;
    let mut expected = Vec::new();
    for chunk in 0..200_u8 {
        if chunk % 10 == 3 {
            expected.extend([9; 4]);
            continue;
        }
        store.set(&format!("a/c/{chunk}"), encode(&[chunk; 4])).await;
        expected.extend([chunk; 4]);
    }
    (store, expected)
}

fn gets(requests: &[Request], below: &str) -> usize {
    requests.iter().filter(|request| matches!(request, Request::Get(key, _) if key.starts_with(below))).count()
}

#[tokio::test(start_paused = true)]
async fn a_slice_of_200_chunks_takes_five_round_trips() {
    for (codecs, encode) in [(plain(), (|bytes| bytes.to_vec()) as fn(&[u8]) -> Vec<u8>), (checked(), with_checksum)] {
        let (store, expected) = store(&codecs, encode).await;
        let arrays = store.arrays(Recheck::DISTANT, Options::default());
        let (elements, trips, requests) = store.measure(read(&arrays, "")).await;
        assert_eq!(elements.unwrap(), expected);
        // The document, and 200 chunks, of which 64 are asked for at a time.
        assert_eq!((trips, requests.len(), gets(&requests, "a/")), (5, 201, 201));
        let (elements, trips, requests) = store.measure(read(&arrays, "")).await;
        assert_eq!(elements.unwrap(), expected);
        // Chunks that are not encoded are not cached, as their elements are the store's own bytes.
        assert!((trips, requests.len()) == (0, 0), "{trips} {}", requests.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slice_takes_at_most_twelve_round_trips_if_one_request_of_fifty_fails() {
    let (store, expected) = store(&checked(), with_checksum).await;
    store.fail_one_of(50);
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let (elements, trips, _) = store.measure(read(&arrays, "")).await;
    assert_eq!(elements.unwrap(), expected);
    assert!(trips <= 12, "{trips} round trips");
    assert_eq!(trips, 6);
}

#[tokio::test(start_paused = true)]
async fn without_memory_of_reads_the_document_is_looked_at_once_more() {
    let (store, expected) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::Always, Options::default());
    let (elements, trips, requests) = store.measure(read(&arrays, "")).await;
    assert_eq!(elements.unwrap(), expected);
    assert_eq!((trips, requests.len()), (6, 202));
}

#[tokio::test(start_paused = true)]
async fn an_element_takes_a_round_trip_for_each_of_document_and_chunk() {
    let (store, _) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let (elements, trips, requests) = store.measure(read(&arrays, "5")).await;
    assert_eq!(elements.unwrap(), [1]);
    let (document, chunk) = ("a/zarr.json".to_owned(), "a/c/1".to_owned());
    assert_eq!(requests, [Request::Get(document, None), Request::Get(chunk, None)]);
    assert_eq!(trips, 2);
    // Of an array whose document is known, it takes one round trip less.
    let (elements, trips, _) = store.measure(read(&arrays, "9")).await;
    assert_eq!((elements.unwrap(), trips), (vec![2], 1));
    let (elements, trips, _) = store.measure(read(&arrays, "10")).await;
    assert_eq!((elements.unwrap(), trips), (vec![2], 0));
}

/// The version of a chunk that is not cached comes with its bytes; one that is cached is looked at.
#[tokio::test(start_paused = true)]
async fn few_chunks_are_read_while_the_document_is_looked_at() {
    let (store, expected) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    read(&arrays, "8:12").await.unwrap();
    advance(Duration::from_secs(5)).await;
    let (elements, trips, requests) = store.measure(read(&arrays, "4:16")).await;
    assert_eq!((elements.unwrap(), trips), (expected[4..16].to_vec(), 1));
    let [first, second, third] = [1, 2, 3].map(|chunk| format!("a/c/{chunk}"));
    let mut wanted = vec![
        Request::Head("a/zarr.json".to_owned()),
        Request::Get(first, None),
        Request::Head(second),
        Request::Get(third, None),
    ];
    let mut requests = requests;
    let order = |request: &Request| format!("{request:?}");
    requests.sort_by_key(order);
    wanted.sort_by_key(order);
    assert_eq!(requests, wanted);
}

/// Nobody reads the chunks of a plan whose response has no elements.
#[tokio::test(start_paused = true)]
async fn chunks_are_looked_at_if_only_the_plan_is_wanted() {
    let (store, _) = store(&checked(), with_checksum).await;
    for purpose in [Purpose::Description, Purpose::Comparison] {
        let arrays = store.arrays(Recheck::DISTANT, Options::default()).with_purpose(purpose);
        let (planned, _, requests) = store.measure(plan(&arrays, "4:16")).await;
        assert!(planned.unwrap().fingerprint().is_some());
        assert_eq!(requests.iter().filter(|request| matches!(request, Request::Head(_))).count(), 3, "{purpose:?}");
    }
}

/// Reads of a few chunks at the same time begin to read each once.
#[tokio::test(start_paused = true)]
async fn few_chunks_are_fetched_once_at_the_same_time() {
    let (store, expected) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let some = || read(&arrays, "4:16");
    let ((first, second), _, requests) = store.measure(async { tokio::join!(some(), some()) }).await;
    assert_eq!((first.unwrap(), second.unwrap()), (expected[4..16].to_vec(), expected[4..16].to_vec()));
    assert_eq!(gets(&requests, "a/c/"), 3, "{requests:?}");
}

/// The versions of up to 64 chunks are learnt at a time, so their entity tag costs one round trip.
#[tokio::test(start_paused = true)]
async fn versions_for_an_entity_tag_are_learnt_in_one_round_trip() {
    let (store, expected) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    read(&arrays, "0").await.unwrap();
    let (planned, trips, _) = store.measure(plan(&arrays, "4:260")).await;
    assert!(planned.unwrap().fingerprint().is_some());
    assert_eq!(trips, 1);
    let (elements, trips, _) = store.measure(read(&arrays, "4:260")).await;
    assert_eq!((elements.unwrap(), trips), (expected[4..260].to_vec(), 1));
}

/// Reads of one chunk at the same time fetch it once.
#[tokio::test(start_paused = true)]
async fn equal_reads_at_the_same_time_share_their_requests() {
    let (store, expected) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let all = || read(&arrays, "");
    let ((first, second, third), trips, requests) = store.measure(async { tokio::join!(all(), all(), all()) }).await;
    for elements in [first, second, third] {
        assert_eq!(elements.unwrap(), expected);
    }
    assert_eq!((trips, requests.len()), (5, 201));
}

/// Without memory of what was read, each read has to look for itself.
#[tokio::test(start_paused = true)]
async fn reads_at_the_same_time_look_for_themselves_if_nothing_is_remembered() {
    let (store, expected) = store(&checked(), with_checksum).await;
    let arrays = store.arrays(Recheck::Always, Options::default());
    let all = || read(&arrays, "");
    let ((first, second), _, requests) = store.measure(async { tokio::join!(all(), all()) }).await;
    assert_eq!((first.unwrap(), second.unwrap()), (expected.clone(), expected));
    assert_eq!(requests.len(), 404);
}

/// Chunks are asked for as far as memory allows: what is in flight never takes more.
#[tokio::test(start_paused = true)]
async fn fetches_run_ahead_within_the_memory_of_jobs() {
    let store = DistantStore::new();
    let chunk = 64 << 10;
    store.set("a/zarr.json", document(100 * chunk, chunk, &checked())).await;
    for index in 0..100 {
        store.set(&format!("a/c/{index}"), with_checksum(&vec![index; chunk as usize])).await;
    }
    let options = Options { max_memory: 5 << 20, ..Options::default() };
    let arrays = store.arrays(Recheck::DISTANT, options);
    let select = format!("0:{}:{chunk}", 100 * chunk);
    let (elements, trips, _) = store.measure(read(&arrays, &select)).await;
    assert_eq!(elements.unwrap(), (0..100).collect::<Vec<u8>>());
    // A chunk takes 192 KiB and some bytes, encoded, decoded and in between, and all jobs together a quarter of the
    // memory.
    assert_eq!(trips, 1 + 100_u128.div_ceil(6));
}

#[tokio::test(start_paused = true)]
async fn chunks_that_cannot_be_are_errors() {
    let (store, _) = store(&plain(), |bytes| bytes.to_vec()).await;
    store.set("a/c/0", [1, 2, 3]).await;
    store.set("a/c/1", []).await;
    store.set("a/c/2", [1; 5]).await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    for (select, length) in [("0:800:799", 3), ("", 3), ("4:800", 0), ("8:800", 5)] {
        let error = read(&arrays, select).await.unwrap_err();
        let ArrayError::Chunk { source: CodecError::LengthMismatch { found, expected: 4, .. }, .. } = error else {
            panic!("{select}: {error:?}")
        };
        assert_eq!(found, length, "{select}");
    }
}
