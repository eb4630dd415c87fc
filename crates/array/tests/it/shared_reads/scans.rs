//! Scans: reads of more chunks than the cache is for.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use futures::FutureExt;
use serde_json::json;
use zarrd_array::{Arrays, Options, ReduceRequest, StatisticsOf};
use zarrd_compute::{Edge, ReducedDimensions, ReductionRequest, Statistics, StatisticsRequest};
use zarrd_meta::{
    NodePath,
    selection::{ReadRequest, Selection},
};
use zarrd_store::MemoryStore;

use super::{TIMEOUT, all_is_released, element, elements, gated, pieces, plan, set_array, settle, start, uncached};
use crate::concurrent_reads::{commit, gzip};

const CHUNKS: u64 = 64;
const CHUNK: u64 = 64 << 10;

/// Options with a cache that is too small for all chunks, though it could have most of them.
fn scanning(parallelism: usize) -> Options {
    Options { cache_capacity: 7 << 20, ..uncached(parallelism) }
}

/// Reads that exceed the cache scan the array; another scan of it that comes later finds what the first one decodes
/// meanwhile in the cache.
#[tokio::test]
async fn scans_that_run_together_cache_what_they_decode() {
    let (store, gate) = gated(CHUNKS, CHUNK, &gzip(), |index| element(0, index)).await;
    let arrays = Arrays::new(store, scanning(2));
    let alone = start(&arrays, "::7").await;
    gate.open.send_replace(true);
    super::finish(alone.0).await.unwrap();
    assert_eq!((alone.1.stats().decoded, arrays.cached_bytes()), (64, 0), "one scan sweeps through");
    let read = plan(&arrays, "/a", "::5").await.unwrap();
    let metrics = read.metrics();
    let mut second = Box::pin(elements(read));
    assert!(second.as_mut().now_or_never().is_none(), "it starts, and waits");
    let (first, first_metrics) = start(&arrays, "::7").await;
    super::finish(first).await.unwrap();
    assert!(arrays.cached_bytes() >= 32 * CHUNK, "{}", arrays.cached_bytes());
    let found = tokio::time::timeout(TIMEOUT, second).await.unwrap().unwrap();
    assert!(found.into_iter().eq((0..CHUNKS * CHUNK).step_by(5).map(|index| element(0, index))));
    let (first, second) = (first_metrics.stats(), metrics.stats());
    assert!(second.cached >= 32 && first.decoded + second.decoded <= 64 + 32, "{first:?} {second:?}");
    all_is_released(&arrays).await;
}

fn sum() -> ReduceRequest {
    let reduction = ReductionRequest {
        functions: vec!["sum".parse().unwrap()],
        axes: None,
        windows: Vec::new(),
        edge: Edge::Partial,
        reduced_dimensions: ReducedDimensions::Drop,
        ddof: 0,
    };
    ReduceRequest { reduction, decode: None, astype: None }
}

#[tokio::test]
async fn reduction_joins_a_running_scan_where_it_is_and_wraps_around() {
    let (store, gate) = gated(CHUNKS, CHUNK, &gzip(), |index| element(0, index)).await;
    let arrays = Arrays::new(store, scanning(2));
    let reduce = async |select: &str| {
        let select = ReadRequest::Select(Selection::parse(select).unwrap());
        arrays.reduce(&NodePath::parse("/a").unwrap(), None, (&select, &sum()), 1 << 20).await.unwrap()
    };
    let first = reduce(":").await;
    let first_metrics = first.metrics();
    let first = tokio::spawn(pieces(first));
    gate.wait_for(2).await;
    settle().await;
    let second = reduce("1:").await;
    let second_metrics = second.metrics();
    let second = tokio::spawn(pieces(second));
    gate.wait_for(4).await;
    settle().await;
    assert_eq!(gate.requests.load(Relaxed), 4, "it does not wait for the first chunks, but fetches others");
    gate.open.send_replace(true);
    let total = |from: u64| (from..CHUNKS * CHUNK).map(|index| u64::from(element(0, index))).sum::<u64>();
    for (running, expected) in [(first, total(0)), (second, total(1))] {
        let found = tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap().concat();
        assert_eq!(u64::from_le_bytes(found.try_into().unwrap()), expected);
    }
    let (first, second) = (first_metrics.stats(), second_metrics.stats());
    assert!(first.decoded + second.decoded <= CHUNKS + CHUNKS / 2, "{first:?} {second:?}");
    all_is_released(&arrays).await;
}

/// Statistics of `/a`, and the number of chunks that were decoded for them.
async fn statistics(arrays: &Arrays, quantiles: &[f64]) -> (Statistics, u64) {
    let of = StatisticsOf {
        statistics: StatisticsRequest { quantiles: quantiles.to_vec(), bins: 7, range: None },
        decode: None,
    };
    let all = ReadRequest::Select(Selection::default());
    let read = arrays.statistics(&NodePath::parse("/a").unwrap(), None, (&all, &of)).await.unwrap();
    let (metrics, (sender, found)) = (read.metrics(), tokio::sync::oneshot::channel());
    let render = |statistics| {
        sender.send(statistics).unwrap();
        Vec::new()
    };
    read.run(render).await.unwrap();
    (found.await.unwrap(), metrics.stats().decoded)
}

/// Integers of eight bits take one pass. The second pass of others begins with the chunks that the first one read last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_decode_again_what_no_longer_fits_into_the_cache() {
    let bytes = Arc::new(MemoryStore::new());
    set_array(&bytes, "a", (CHUNKS, CHUNK), &gzip(), |index| element(0, index)).await;
    let (_, decoded) = statistics(&Arrays::new(bytes, scanning(2)), &[0.5]).await;
    assert_eq!(decoded, CHUNKS);
    let floats = Arc::new(MemoryStore::new());
    let byte = |index: u64| {
        let number = (index / 4).wrapping_mul(2_654_435_761) % 100_000;
        (number as f32 / 7.0).to_le_bytes()[(index % 4) as usize]
    };
    set_array(&floats, "a", (CHUNKS, CHUNK), &gzip(), byte).await;
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [CHUNKS * CHUNK / 4], "data_type": "float32",
        "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK / 4]}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "gzip", "configuration": {"level": 1}}]});
    commit(&floats, vec![("a/zarr.json", document.to_string().into_bytes())]).await;
    let expected = statistics(&Arrays::new(floats.clone(), uncached(2)), &[0.1, 0.5]).await;
    assert_eq!(expected.1, 2 * CHUNKS, "nothing is cached");
    let arrays = Arrays::new(floats, scanning(2));
    let found = statistics(&arrays, &[0.1, 0.5]).await;
    assert_eq!(found.0, expected.0);
    assert!(found.1 <= CHUNKS + CHUNKS / 2, "{} decoded", found.1);
    all_is_released(&arrays).await;
}
