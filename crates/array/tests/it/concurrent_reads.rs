//! Concurrent reads and writes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use zarrd_array::{ArrayError, ArrayRead, Arrays, Caller, MemoryError, Options};
use zarrd_codec::{ChunkRepresentation, CodecChain, Elements};
use zarrd_meta::{
    NodePath,
    codecs::CodecSpec,
    data_type::parse_v3,
    selection::{ReadRequest, Selection},
};
use zarrd_store::{BatchStore, Change, Key, MemoryStore, Precondition, TransactionalStore, WriteableStore};

const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn document(shape: &[u64], chunk: &[u64], codecs: &Value, fill: u8) -> Vec<u8> {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": fill,
        "codecs": codecs,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"}})
    .to_string()
    .into_bytes()
}

pub(crate) fn gzip() -> Value {
    json!([{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}])
}

pub(crate) fn encoded(codecs: &Value, elements: Vec<u8>) -> Vec<u8> {
    let specs: Vec<CodecSpec> =
        codecs.as_array().unwrap().iter().map(|codec| CodecSpec::parse_v3(codec).unwrap()).collect();
    let array =
        ChunkRepresentation::new(parse_v3(&json!("uint8")).unwrap(), vec![elements.len() as u64], vec![0]).unwrap();
    CodecChain::new(&specs, array).unwrap().encode(Elements::Fixed(elements.into())).unwrap().to_vec()
}

pub(crate) async fn commit(store: &MemoryStore, values: Vec<(&str, Vec<u8>)>) {
    let mut changes = Vec::new();
    for (key, value) in values {
        let staged = store.stage(&Key::parse(key).unwrap(), value.into()).await.unwrap();
        changes.push(Change::Set { staged, precondition: Precondition::default() });
    }
    store.commit(changes).await.unwrap();
}

async fn reading(arrays: &Arrays, select: &str) -> Result<ArrayRead, ArrayError> {
    let request = ReadRequest::Select(Selection::parse(select).unwrap());
    arrays.read(&NodePath::parse("/a").unwrap(), None, &request, 1 << 30).await
}

pub(crate) async fn elements(reading: ArrayRead) -> Result<Vec<u8>, ArrayError> {
    let parts = reading.into_stream().map_ok(|part| match part {
        Elements::Fixed(bytes) => bytes.to_vec(),
        Elements::Variable(_) => panic!("elements of variable length"),
    });
    parts.try_concat().await
}

/// Every commit sets all chunks and the metadata (the fill value represents a chunk that is always missing) to one
/// number.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slice_reflects_one_commit() {
    let store = Arc::new(MemoryStore::new());
    let stop = Arc::new(AtomicBool::new(false));
    let version = |number: u8| {
        vec![
            ("a/zarr.json", document(&[64], &[16], &gzip(), number)),
            ("a/c/0", encoded(&gzip(), vec![number; 16])),
            ("a/c/1", encoded(&gzip(), vec![number; 16])),
            ("a/c/3", encoded(&gzip(), vec![number; 16])),
        ]
    };
    commit(&store, version(0)).await;
    let writer = tokio::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        async move {
            let mut number = 0_u8;
            while !stop.load(Ordering::Relaxed) {
                number = number.wrapping_add(1);
                commit(&store, version(number)).await;
                tokio::task::yield_now().await;
            }
        }
    });
    let arrays = Arrays::new(store, Options::default());
    let (mut read, mut seen) = (0, std::collections::HashSet::new());
    let all_read = async {
        while read < 1000 || seen.len() < 100 {
            let reading = match reading(&arrays, "").await {
                Ok(reading) => reading,
                // If the writer is faster eight times in a row, the read fails.
                Err(ArrayError::TooManyConflicts { .. }) => continue,
                Err(error) => panic!("{error}"),
            };
            let all = elements(reading).await.unwrap();
            assert!(all.len() == 64 && all.windows(2).all(|two| two.first() == two.last()), "{all:?}");
            read += 1;
            seen.extend(all.first().copied());
        }
    };
    timeout(TIMEOUT, all_read).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
}

/// Paused readers hold neither chunks nor threads that others wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_block_no_one() {
    let store = Arc::new(MemoryStore::new());
    let chunk = encoded(&gzip(), vec![7; 256 << 10]);
    store
        .set(
            &Key::parse("a/zarr.json").unwrap(),
            document(&[64 << 18], &[1 << 18], &gzip(), 0).into(),
            Precondition::default(),
        )
        .await
        .unwrap();
    for number in 0..64 {
        store
            .set(&Key::parse(&format!("a/c/{number}")).unwrap(), chunk.clone().into(), Precondition::default())
            .await
            .unwrap();
    }
    let arrays = Arrays::new(store, Options { slab_memory: 4 << 20, ..Options::default() });
    let mut paused = Vec::new();
    for _ in 0..16 {
        let mut parts = Box::pin(reading(&arrays, "").await.unwrap().into_stream());
        parts.next().await.unwrap().unwrap();
        paused.push(parts);
    }
    for number in 0..64 {
        let one = elements(reading(&arrays, &format!("{}", number << 18)).await.unwrap());
        assert_eq!(timeout(TIMEOUT, one).await.unwrap().unwrap(), [7]);
    }
    let complete = timeout(TIMEOUT, elements(reading(&arrays, "").await.unwrap())).await.unwrap().unwrap();
    assert!(complete.len() == 64 << 18 && complete.iter().all(|&element| element == 7));
    drop(paused);
}

/// If other reads hold all memory, a read fails after the timeout; once they are dropped, it succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exhausted_memory_rejects_reads_until_released() {
    let store = Arc::new(MemoryStore::new());
    let raw = json!([{"name": "bytes"}]);
    store
        .set(
            &Key::parse("a/zarr.json").unwrap(),
            document(&[32 << 20], &[1 << 20], &raw, 3).into(),
            Precondition::default(),
        )
        .await
        .unwrap();
    let patience = Duration::from_millis(200);
    let arrays = Arrays::new(
        store,
        Options { max_memory: 32 << 20, slab_memory: 16 << 20, memory_timeout: patience, ..Options::default() },
    );
    let mut readers = Vec::new();
    let error = loop {
        let mut parts = Box::pin(reading(&arrays, "").await.unwrap().into_stream());
        match parts.next().await.unwrap() {
            Ok(_) => readers.push(parts),
            Err(error) => break error,
        }
        assert!(readers.len() < 10, "more reads than the memory allows");
    };
    let own_limit = matches!(error, ArrayError::Memory(MemoryError::TooManyRequests { .. }));
    assert!(own_limit && !readers.is_empty(), "{error} after {}", readers.len());
    let other = reading(&arrays.for_request(arrays.memory().claim(Caller::new(1)), None), "").await.unwrap();
    let rejected = elements(other).await.unwrap_err();
    assert!(matches!(rejected, ArrayError::Memory(MemoryError::Busy { .. })), "it is not the doing of another caller");
    readers.clear();
    assert_eq!(arrays.memory().usage().taken, 0);
    assert_eq!(elements(reading(&arrays, "").await.unwrap()).await.unwrap().len(), 32 << 20);
}

/// A running read is unaffected by an overwrite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn read_survives_overwrite_and_erase() {
    let store = Arc::new(MemoryStore::new());
    let values = |number: u8| {
        vec![
            ("a/zarr.json", document(&[2 << 20], &[1 << 20], &gzip(), 0)),
            ("a/c/1", encoded(&gzip(), vec![number; 1 << 20])),
        ]
    };
    commit(&store, values(1)).await;
    let arrays = Arrays::new(store.clone(), Options::default());
    let array_read = reading(&arrays, "-1").await.unwrap();
    commit(&store, values(2)).await;
    store.erase_prefix(&zarrd_store::Prefix::parse("a/").unwrap()).await.unwrap();
    assert_eq!(elements(array_read).await.unwrap(), [1]);
    assert!(matches!(reading(&arrays, "-1").await, Err(ArrayError::NoSuchNode { .. })));
}

/// Missing chunks are not decoded, whatever their size.
#[tokio::test]
async fn missing_chunks_reserve_no_memory() {
    let store = Arc::new(MemoryStore::new());
    let document = document(&[10], &[1 << 40], &gzip(), 3);
    store.set(&Key::parse("a/zarr.json").unwrap(), document.into(), Precondition::default()).await.unwrap();
    let arrays = Arrays::new(store, Options { max_memory: 32 << 20, ..Options::default() });
    let mut parts = Box::pin(reading(&arrays, "").await.unwrap().into_stream());
    let first = parts.next().await.unwrap().unwrap();
    let taken = arrays.memory().usage().taken;
    assert!(matches!(first, Elements::Fixed(bytes) if bytes[..] == [3; 10]));
    assert!(taken < 2 << 20, "{taken} bytes");
}

/// Chunks that are too large to be written on the async threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn cached_chunks_are_read_as_they_were_decoded() {
    const CHUNKS: u32 = 48;
    const CHUNK: u32 = 128 << 10;
    let element = |at: u32| (at ^ at >> 8 ^ at >> 16) as u8;
    let store = Arc::new(MemoryStore::new());
    commit(&store, vec![("a/zarr.json", document(&[u64::from(CHUNKS * CHUNK)], &[CHUNK.into()], &gzip(), 0))]).await;
    for chunk in 0..CHUNKS {
        let values = (chunk * CHUNK..(chunk + 1) * CHUNK).map(element).collect();
        commit(&store, vec![(&format!("a/c/{chunk}"), encoded(&gzip(), values))]).await;
    }
    let expected: Vec<u8> = (0..CHUNKS * CHUNK).map(element).collect();
    for parallelism in [1, 2, 8] {
        let arrays = Arrays::new(store.clone(), Options { parallelism, ..Options::default() });
        assert!(elements(reading(&arrays, "").await.unwrap()).await.unwrap() == expected);
        let read = async |select: &'static str| {
            let read = reading(&arrays, select).await.unwrap();
            let metrics = read.metrics();
            let found = timeout(TIMEOUT, elements(read)).await.unwrap().unwrap();
            assert_eq!((metrics.stats().decoded, metrics.stats().cached), (0, CHUNKS.into()));
            found
        };
        let step = async { assert!(read("::3").await.iter().eq(expected.iter().step_by(3))) };
        let leaves = async {
            let mut parts = Box::pin(reading(&arrays, "").await.unwrap().into_stream());
            parts.next().await.unwrap().unwrap();
        };
        let (all, again, ..) = tokio::join!(read(""), read(""), step, leaves);
        assert!(all == expected && again == expected, "{parallelism} jobs");
    }
}
