//! Reads that run at the same time share what they decode, and nothing else.

mod attack;
mod scans;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{TryStreamExt, future::join_all};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    task::{JoinHandle, yield_now},
    time::timeout,
};
use zarrd_array::{ArrayError, ArrayRead, ArrayResult, Arrays, Options, ReadMetrics, Usage};
use zarrd_codec::Elements;
use zarrd_meta::{
    NodePath,
    selection::{ReadRequest, Selection},
};
use zarrd_store::{
    ByteRange, CachedMeta, GetResult, Key, MemoryStore, Precondition, Prefetch, Snapshot, SnapshotStore, StoreError,
    StoreWrapper, ValueMeta, WriteableStore,
};

use crate::{
    common::sharded,
    concurrent_reads::{commit, document, elements, encoded, gzip},
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The bytes up to which a request passes the gate: indexes of shards have fewer.
const SMALL: u64 = 4 << 10;

/// A store whose values are returned when its gate is open.
struct GatedStore {
    inner: MemoryStore,
    gate: Arc<Gate>,
}

struct Gate {
    open: watch::Sender<bool>,
    /// The requests for values that came to the gate.
    requests: AtomicUsize,
    came: Notify,
    /// One request of this number fails; 0 for none.
    failing: AtomicU64,
    failed: AtomicU64,
}

struct GatedSnapshot {
    inner: Box<dyn Snapshot>,
    gate: Arc<Gate>,
}

impl Gate {
    async fn pass(&self, key: &Key) -> Result<(), StoreError> {
        let number = self.requests.fetch_add(1, Relaxed) as u64 + 1;
        let failing = self.failing.load(Relaxed);
        self.came.notify_waiters();
        self.open.subscribe().wait_for(|open| *open).await.unwrap();
        match failing > 0 && number.is_multiple_of(failing) {
            true => {
                self.failed.fetch_add(1, Relaxed);
                Err(StoreError::NotInSnapshot { key: key.clone() })
            }
            false => Ok(()),
        }
    }

    /// Waits until this number of requests came to the gate.
    async fn wait_for(&self, requests: usize) {
        let all_came = async {
            loop {
                let mut came = std::pin::pin!(self.came.notified());
                came.as_mut().enable();
                if self.requests.load(Relaxed) >= requests {
                    return;
                }
                came.await;
            }
        };
        timeout(TIMEOUT, all_came).await.unwrap();
    }
}

#[async_trait]
impl StoreWrapper for GatedStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let inner = SnapshotStore::snapshot(&self.inner, keys).await?;
        Ok(Box::new(GatedSnapshot { inner, gate: self.gate.clone() }))
    }
}

#[async_trait]
impl Snapshot for GatedSnapshot {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        self.inner.cached(key)
    }

    async fn stat(&self, key: &Key, prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        self.inner.stat(key, prefetch).await
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let value = self.inner.get(key, range).await?;
        if value.as_ref().is_some_and(|value| value.range.end - value.range.start > SMALL) {
            self.gate.pass(key).await?;
        }
        Ok(value)
    }
}

/// The element at an index; `seed` distinguishes arrays.
fn element(seed: u8, index: u64) -> u8 {
    let mixed = (index >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 ^ seed
}

/// Elements that no codec makes smaller.
fn incompressible(index: u64) -> u8 {
    (index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        >> 56) as u8
}

/// A gated store with an array `/a` of `chunks` chunks of `chunk` elements.
async fn gated(chunks: u64, chunk: u64, codecs: &Value, element: impl Fn(u64) -> u8) -> (Arc<GatedStore>, Arc<Gate>) {
    let gate = Gate {
        open: watch::Sender::new(false),
        requests: AtomicUsize::new(0),
        came: Notify::new(),
        failing: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    };
    let (inner, gate) = (MemoryStore::new(), Arc::new(gate));
    set_array(&inner, "a", (chunks, chunk), codecs, element).await;
    (Arc::new(GatedStore { inner, gate: gate.clone() }), gate)
}

async fn set_array(
    store: &MemoryStore,
    name: &str,
    (chunks, chunk): (u64, u64),
    codecs: &Value,
    element: impl Fn(u64) -> u8,
) {
    let mut values = vec![(format!("{name}/zarr.json"), document(&[chunks * chunk], &[chunk], codecs, 0))];
    for number in 0..chunks {
        let of_chunk = (number * chunk..(number + 1) * chunk).map(&element).collect();
        values.push((format!("{name}/c/{number}"), encoded(codecs, of_chunk)));
    }
    commit(store, values.iter().map(|(key, value)| (key.as_str(), value.clone())).collect()).await;
}

async fn plan(arrays: &Arrays, path: &str, select: &str) -> Result<ArrayRead, ArrayError> {
    let request = ReadRequest::Select(Selection::parse(select).unwrap());
    arrays.read(&NodePath::parse(path).unwrap(), None, &request, 1 << 30).await
}

type Running = (JoinHandle<Result<Vec<u8>, ArrayError>>, ReadMetrics);

/// Starts to read `/a`.
async fn start(arrays: &Arrays, select: &str) -> Running {
    let read = plan(arrays, "/a", select).await.unwrap();
    let metrics = read.metrics();
    (tokio::spawn(elements(read)), metrics)
}

async fn finish(running: JoinHandle<Result<Vec<u8>, ArrayError>>) -> Result<Vec<u8>, ArrayError> {
    timeout(TIMEOUT, running).await.unwrap().unwrap()
}

/// Runs all tasks until they wait: in a runtime of one thread, where none waits for another thread.
async fn settle() {
    for _ in 0..1_000 {
        yield_now().await;
    }
}

async fn all_is_released(arrays: &Arrays) {
    let released = async {
        while arrays.threads().taken > 0 || arrays.memory().usage().taken > 0 {
            yield_now().await;
        }
    };
    timeout(TIMEOUT, released).await.unwrap();
    let Usage { waiting, .. } = arrays.memory().usage();
    assert_eq!((waiting, arrays.threads().waiting), (0, 0));
}

/// Options without caches, with which a read takes `parallelism` chunks at a time.
fn uncached(parallelism: usize) -> Options {
    Options { cache_capacity: 0, result_cache: 0, parallelism, ..Options::default() }
}

#[tokio::test]
async fn staggered_reads_of_different_slices_decode_each_chunk_once() {
    const CHUNK: u64 = 64 << 10;
    let (store, gate) = gated(16, CHUNK, &gzip(), |index| element(0, index)).await;
    let arrays = Arrays::new(store, uncached(16));
    let (first, first_metrics) = start(&arrays, &format!(":{}:5", 12 * CHUNK)).await;
    gate.wait_for(12).await;
    let (second, second_metrics) = start(&arrays, &format!("{}::3", 4 * CHUNK)).await;
    gate.wait_for(16).await;
    settle().await;
    assert_eq!(gate.requests.load(Relaxed), 16, "what one read fetches is fetched for both");
    gate.open.send_replace(true);
    let expected =
        |from: u64, to: u64, step: usize| (from..to).step_by(step).map(|at| element(0, at)).collect::<Vec<_>>();
    assert!(finish(first).await.unwrap() == expected(0, 12 * CHUNK, 5));
    assert!(finish(second).await.unwrap() == expected(4 * CHUNK, 16 * CHUNK, 3));
    let [first, second] = [first_metrics.stats(), second_metrics.stats()];
    assert_eq!(first.decoded + second.decoded, 16, "{first:?} {second:?}");
    assert_eq!((first.decoded + first.shared, second.decoded + second.shared), (12, 12));
    all_is_released(&arrays).await;
}

#[tokio::test]
async fn inner_chunks_of_shards_are_decoded_once() {
    const INNER: u64 = 512 << 10;
    let inner = json!([{"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "gzip", "configuration": {"level": 1}}]);
    let codecs = json!([sharded(&[INNER], &inner, "end")]);
    let (store, gate) = gated(8, INNER, &codecs, incompressible).await;
    let arrays = Arrays::new(store, uncached(16));
    let (first, first_metrics) = start(&arrays, "::7").await;
    gate.wait_for(8).await;
    let (second, second_metrics) = start(&arrays, "1::9").await;
    settle().await;
    gate.open.send_replace(true);
    assert!(finish(first).await.unwrap().into_iter().eq((0..8 * INNER).step_by(7).map(incompressible)));
    assert!(finish(second).await.unwrap().into_iter().eq((1..8 * INNER).step_by(9).map(incompressible)));
    assert_eq!(gate.requests.load(Relaxed), 8);
    assert_eq!(first_metrics.stats().decoded + second_metrics.stats().decoded, 8);
    all_is_released(&arrays).await;
}

#[tokio::test]
async fn read_that_leaves_or_fails_stops_no_other() {
    const CHUNK: u64 = 64 << 10;
    for failing in [0, 8] {
        let (store, gate) = gated(8, CHUNK, &gzip(), |index| element(0, index)).await;
        let arrays = Arrays::new(store, uncached(8));
        gate.failing.store(failing, Relaxed);
        let (first, _) = start(&arrays, "::5").await;
        gate.wait_for(8).await;
        gate.failing.store(0, Relaxed);
        let (second, metrics) = start(&arrays, "::3").await;
        settle().await;
        assert_eq!(gate.requests.load(Relaxed), 8);
        if failing == 0 {
            first.abort();
            settle().await;
        }
        gate.open.send_replace(true);
        assert!(first.await.map_or(true, |failed| failed.is_err()), "the first one left or failed");
        let found = finish(second).await.unwrap();
        assert!(found.into_iter().eq((0..8 * CHUNK).step_by(3).map(|index| element(0, index))));
        let stats = metrics.stats();
        assert_eq!(stats.decoded + stats.shared, 8);
        all_is_released(&arrays).await;
    }
}

const SLICE_CHUNKS: u64 = 64;
const SLICE_CHUNK: u64 = 256 << 10;
const SLICE_STEP: u64 = 64;
const SLICE_LEN: u64 = SLICE_CHUNKS * SLICE_CHUNK / SLICE_STEP;

/// A slice whose result is cached, of an array of 16 MiB.
async fn slice(arrays: &Arrays, path: &str, first: u64, limit: u64) -> Result<ArrayResult, ArrayError> {
    let select = Selection::parse(&format!("{first}::{SLICE_STEP}")).unwrap();
    let read = arrays.read(&NodePath::parse(path).unwrap(), None, &ReadRequest::Select(select), limit).await;
    read.map(ArrayResult::from)
}

async fn pieces(result: ArrayResult) -> Result<Vec<Bytes>, ArrayError> {
    let bytes = |piece| match piece {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => panic!("elements of variable length"),
    };
    result.into_stream().map_ok(bytes).try_collect().await
}

fn expected_slice(seed: u8, first: u64) -> Vec<u8> {
    (first..SLICE_CHUNKS * SLICE_CHUNK).step_by(SLICE_STEP as usize).map(|index| element(seed, index)).collect()
}

/// Options with a cache of results only.
fn sharing_slices() -> Options {
    Options { result_cache: 2 << 20, ..uncached(8) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn equal_slices_are_read_once() {
    let store = Arc::new(MemoryStore::new());
    for (name, seed) in [("a", 0), ("b", 1)] {
        set_array(&store, name, (SLICE_CHUNKS, SLICE_CHUNK), &gzip(), |index| element(seed, index)).await;
    }
    let arrays = Arrays::new(store.clone(), sharing_slices());
    let request = async |path: &'static str, first: u64| {
        let result = slice(&arrays, path, first, 1 << 30).await.unwrap();
        let metrics = result.metrics();
        (pieces(result).await.unwrap(), metrics.stats().decoded)
    };
    let equal = join_all((0..16).map(|_| request("/a", 0)));
    let (equal, other) = tokio::join!(equal, request("/b", 0));
    let shifted = request("/a", 1).await;
    assert_eq!(equal.iter().map(|(_, decoded)| decoded).sum::<u64>(), SLICE_CHUNKS);
    let expected = expected_slice(0, 0);
    assert!(equal.iter().all(|(found, _)| found.concat() == expected));
    assert!(other.0.concat() == expected_slice(1, 0) && shifted.0.concat() == expected_slice(0, 1));
    let taken = arrays.memory().usage().taken;
    assert!(taken >= 18 * SLICE_LEN, "each request has memory for what it returns: {taken}");
    drop((equal, other, shifted));
    all_is_released(&arrays).await;
    assert_eq!(request("/a", 0).await.1, 0, "it is cached");
    let changed = encoded(&gzip(), vec![7; SLICE_CHUNK as usize]);
    store.set(&Key::parse("a/c/0").unwrap(), changed.into(), Precondition::none()).await.unwrap();
    let (found, decoded) = request("/a", 0).await;
    assert_eq!((found.concat()[..4].to_vec(), decoded), (vec![7; 4], SLICE_CHUNKS), "another version is read again");
}

/// Results that are large, or of which little is decoded, are returned piece by piece, and not cached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slices_that_decode_little_are_not_cached() {
    let store = Arc::new(MemoryStore::new());
    set_array(&store, "a", (SLICE_CHUNKS, SLICE_CHUNK), &gzip(), |index| element(0, index)).await;
    set_array(&store, "raw", (SLICE_CHUNKS, SLICE_CHUNK), &json!([{"name": "bytes"}]), |index| element(0, index)).await;
    let arrays = Arrays::new(store, Options { result_cache: 16 << 20, ..uncached(8) });
    for (path, select) in [("/a", "::7"), ("/a", ":1000000:64"), ("/raw", "::64")] {
        pieces(plan(&arrays, path, select).await.unwrap().into()).await.unwrap();
        assert_eq!(arrays.result_cache_used(), 0, "{path} {select}");
    }
    pieces(plan(&arrays, "/a", "::8").await.unwrap().into()).await.unwrap();
    assert!(arrays.result_cache_used() >= SLICE_CHUNKS * SLICE_CHUNK / 8);
    all_is_released(&arrays).await;
}
