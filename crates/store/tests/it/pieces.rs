//! A store that is read through a cache of pieces.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, future::join_all, stream};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::{
    sync::Semaphore,
    time::{Duration, advance},
};
use zarrd_store::{
    ByteRange, CachedStore, GetResult, Key, MemoryStore, PIECE_LEN, PieceCache, PieceCacheStatus, PieceId, PieceStore,
    Pieces, Precondition, ReadableStore, Recheck, StoreError, StoreId, ValueMeta, Version, WriteableStore,
};

const RECHECK: Duration = Duration::from_secs(5);

/// A cache in memory that never evicts.
#[derive(Debug, Default)]
pub(crate) struct MemoryPieces(Mutex<HashMap<PieceId, Bytes>>);

#[async_trait]
impl PieceCache for MemoryPieces {
    fn may_contain(&self, piece: &PieceId) -> bool {
        self.0.lock().contains_key(piece)
    }

    fn may_contain_key(&self, store: StoreId, key: &Key) -> bool {
        self.0.lock().keys().any(|id| id.store == store && id.key == *key && id.index == 0)
    }

    async fn get(&self, piece: &PieceId) -> Option<Bytes> {
        tokio::task::yield_now().await;
        self.0.lock().get(piece).cloned()
    }

    async fn insert(&self, piece: PieceId, bytes: Bytes) {
        tokio::task::yield_now().await;
        assert!(bytes.len() as u64 <= PIECE_LEN && !bytes.is_empty(), "{piece:?}");
        self.0.lock().insert(piece, bytes);
    }

    fn status(&self) -> PieceCacheStatus {
        PieceCacheStatus::default()
    }
}

/// A store that counts requests, and the bytes that it sends.
#[derive(Clone, Default)]
struct Counting(Arc<Counts>);

#[derive(Default)]
struct Counts {
    memory: MemoryStore,
    heads: AtomicU64,
    gets: AtomicU64,
    bytes: AtomicU64,
    /// The number of reads that fail midway.
    failing: AtomicU64,
    /// Without permits, streams wait.
    gate: Mutex<Option<Arc<Semaphore>>>,
}

impl Counting {
    async fn set(&self, name: &str, value: impl Into<Bytes>) -> Version {
        self.0.memory.set(&key(name), value.into().into(), Precondition::none()).await.unwrap().version
    }

    /// The heads, gets and bytes since the last call.
    fn take(&self) -> (u64, u64, u64) {
        let Counts { heads, gets, bytes, .. } = &*self.0;
        (heads.swap(0, Relaxed), gets.swap(0, Relaxed), bytes.swap(0, Relaxed))
    }
}

#[async_trait]
impl ReadableStore for Counting {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.0.gets.fetch_add(1, Relaxed);
        tokio::task::yield_now().await;
        let Some(GetResult { meta, range, stream }) = self.0.memory.get(key, range).await? else { return Ok(None) };
        let bytes = stream.try_collect::<Vec<_>>().await?.concat();
        let mut parts: Vec<Result<Bytes, StoreError>> =
            bytes.chunks(100_000).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        if self.0.failing.load(Relaxed) > 0 {
            self.0.failing.fetch_sub(1, Relaxed);
            parts.truncate(1);
            parts.push(Err(StoreError::backend(zarrd_store::BackendErrorKind::Timeout, "the connection broke")));
        }
        let (counts, gate) = (Arc::clone(&self.0), self.0.gate.lock().clone());
        let stream = stream::iter(parts).then(move |part| {
            let (counts, gate) = (Arc::clone(&counts), gate.clone());
            async move {
                if let Some(gate) = gate {
                    gate.acquire().await.unwrap().forget();
                }
                tokio::task::yield_now().await;
                counts.bytes.fetch_add(part.as_ref().map_or(0, |part| part.len() as u64), Relaxed);
                part
            }
        });
        Ok(Some(GetResult { meta, range, stream: stream.boxed() }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.0.heads.fetch_add(1, Relaxed);
        self.0.memory.head(key).await
    }
}

type Store = PieceStore<CachedStore<Counting>>;

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn pieces() -> Pieces {
    Pieces::new(Arc::new(MemoryPieces::default()))
}

fn reading(recheck: Recheck) -> (Counting, Store) {
    let store = Counting::default();
    (store.clone(), PieceStore::new(CachedStore::new(store, recheck), pieces().of_store("memory")))
}

/// A value whose bytes differ at each position, and for each seed.
fn value(len: u64, seed: u8) -> Bytes {
    (0..len).map(|at| (at % 251) as u8 ^ (at >> 20) as u8 ^ seed.wrapping_mul(37)).collect::<Vec<_>>().into()
}

async fn read(store: &Store, name: &str, range: Option<ByteRange>) -> Option<Bytes> {
    match store.get(&key(name), range).await {
        Ok(found) => Some(found?.bytes().await.unwrap()),
        Err(error) => panic!("{name}: {error:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn values_of_all_sizes_are_fetched_once() {
    let (store, cached) = reading(Recheck::After(RECHECK));
    for (number, len) in
        [0, 1, PIECE_LEN - 1, PIECE_LEN, PIECE_LEN + 1, 2 * PIECE_LEN + 5, 21 * PIECE_LEN + 3].into_iter().enumerate()
    {
        let (name, value) = (format!("c/{number}"), value(len, number as u8));
        store.set(&name, value.clone()).await;
        assert!(read(&cached, &name, None).await.unwrap() == value, "{len}");
        assert_eq!(store.take(), (0, 1, len), "one request");
        tokio::task::yield_now().await;
        assert!(read(&cached, &name, None).await.unwrap() == value, "{len}");
        assert_eq!(store.take(), (0, 0, 0), "no request within the time, {len}");
        advance(RECHECK).await;
        assert!(read(&cached, &name, None).await.unwrap() == value, "{len}");
        let expected = if len == 0 { (0, 1, 0) } else { (1, 0, 0) };
        assert_eq!(store.take(), expected, "a HEAD later, {len}");
    }
    assert_eq!(read(&cached, "c/none", None).await, None);
}

#[tokio::test(start_paused = true)]
async fn results_are_those_of_the_store() {
    let (store, cached) = reading(Recheck::Always);
    let len = 3 * PIECE_LEN + 100;
    store.set("c/0", value(len, 0)).await;
    let edges = [0, 1, PIECE_LEN - 1, PIECE_LEN, PIECE_LEN + 1, 2 * PIECE_LEN, len - 1, len, len + 1, u64::MAX];
    let mut ranges = vec![None];
    for start in edges {
        ranges.push(Some(ByteRange::From(start)));
        ranges.extend(edges.into_iter().filter_map(|end| ByteRange::bounded(start, end).ok()).map(Some));
        ranges.extend(ByteRange::last(start).ok().map(Some));
    }
    for pass in 0..2 {
        for range in &ranges {
            let (expected, found) =
                (store.0.memory.get(&key("c/0"), *range).await, cached.get(&key("c/0"), *range).await);
            match (expected, found) {
                (Ok(Some(expected)), Ok(Some(found))) => {
                    assert_eq!((&found.meta, &found.range), (&expected.meta, &expected.range), "{range:?}");
                    assert!(found.bytes().await.unwrap() == expected.bytes().await.unwrap(), "{range:?}");
                }
                (
                    Err(StoreError::RangeNotSatisfiable { meta }),
                    Err(StoreError::RangeNotSatisfiable { meta: found }),
                ) => assert_eq!(found, meta, "{range:?}"),
                (expected, found) => panic!("{range:?}: {expected:?}, {found:?}"),
            }
        }
        let (_, gets, bytes) = store.take();
        let most = if pass == 0 { 4 } else { 0 };
        assert!(gets <= most && bytes <= len * u64::from(pass == 0), "{gets} requests for {bytes} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_range_fetches_the_pieces_that_it_needs_in_one_request_for_each_gap() {
    let (store, cached) = reading(Recheck::Never);
    let value = value(10 * PIECE_LEN, 1);
    store.set("c/0", value.clone()).await;
    let range = ByteRange::bounded(4 * PIECE_LEN + 7, 5 * PIECE_LEN - 7).unwrap();
    assert!(read(&cached, "c/0", Some(range)).await.unwrap().len() as u64 == PIECE_LEN - 14);
    assert_eq!(store.take(), (1, 1, PIECE_LEN), "the piece in the middle");
    assert!(read(&cached, "c/0", None).await.unwrap() == value);
    assert_eq!(store.take(), (0, 2, 9 * PIECE_LEN), "those before and after it");
}

#[tokio::test(start_paused = true)]
async fn a_value_that_changes_is_read_as_it_is() {
    for recheck in [Recheck::Always, Recheck::After(RECHECK)] {
        let (store, cached) = reading(recheck);
        for seed in 0..6 {
            let value = value(2 * PIECE_LEN + u64::from(seed), seed % 4);
            store.set("c/0", value.clone()).await;
            advance(RECHECK).await;
            for range in [None, Some(ByteRange::From(PIECE_LEN + 3)), Some(ByteRange::Last(1))] {
                let expected = match range {
                    Some(range) => {
                        let range = range.resolve(value.len() as u64).unwrap();
                        value.slice(range.start as usize..range.end as usize)
                    }
                    None => value.clone(),
                };
                assert!(read(&cached, "c/0", range).await.unwrap() == expected, "{seed} {range:?}");
            }
        }
        store.0.memory.erase(&key("c/0"), Precondition::none()).await.unwrap();
        advance(RECHECK).await;
        assert_eq!(read(&cached, "c/0", None).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_changed_since_its_metadata_were_cached_is_no_error() {
    let (store, cached) = reading(Recheck::After(RECHECK));
    let first = store.set("c/0", value(100, 1)).await;
    assert_eq!(cached.head(&key("c/0")).await.unwrap().unwrap().version, first);
    let second = store.set("c/0", value(200, 2)).await;
    let found = cached.get(&key("c/0"), None).await.unwrap().unwrap();
    assert_eq!((found.meta.version, found.meta.size), (second, 200));
    assert!(found.bytes().await.unwrap() == value(200, 2));
    let wanted = cached.get_if_match(&key("c/0"), None, first).await;
    match wanted {
        Ok(found) => assert_eq!(found.unwrap().meta.version, second),
        Err(error) => assert!(matches!(error, StoreError::Changed { .. }), "{error:?}"),
    }
    let found = cached.get_if_match(&key("c/0"), Some(ByteRange::Last(7)), second).await.unwrap().unwrap();
    assert!(found.bytes().await.unwrap() == value(200, 2).slice(193..));
}

#[tokio::test]
async fn concurrent_reads_fetch_each_piece_once() {
    for (recheck, len) in [(Recheck::Never, 8 * PIECE_LEN), (Recheck::Always, 8 * PIECE_LEN), (Recheck::Never, 5)] {
        let (store, cached) = reading(recheck);
        let value = value(len, 3);
        store.set("c/0", value.clone()).await;
        let values = join_all((0..20).map(|_| read(&cached, "c/0", None))).await;
        assert!(values.into_iter().all(|found| found.unwrap() == value));
        let (_, gets, bytes) = store.take();
        assert_eq!((gets, bytes), (1, len), "{recheck:?}");
    }
    // Longer values are fetched in parts by whoever comes first, each part once.
    let (store, cached) = reading(Recheck::Never);
    let value = value(40 * PIECE_LEN, 4);
    store.set("c/0", value.clone()).await;
    let values = join_all((0..20).map(|_| read(&cached, "c/0", None))).await;
    assert!(values.into_iter().all(|found| found.unwrap() == value));
    let (_, gets, bytes) = store.take();
    assert!(gets <= 10 && bytes <= 42 * PIECE_LEN, "{gets} requests for {bytes} bytes");
}

#[tokio::test]
async fn a_reader_that_stops_or_goes_delays_no_other() {
    let (store, cached) = reading(Recheck::Never);
    let value = value(20 * PIECE_LEN, 5);
    store.set("c/0", value.clone()).await;
    let mut stopped = cached.get(&key("c/0"), None).await.unwrap().unwrap();
    assert!(stopped.stream.try_next().await.unwrap().is_some());
    let found = tokio::time::timeout(Duration::from_secs(20), read(&cached, "c/0", None)).await;
    assert!(found.expect("the other one has stopped").unwrap() == value);
    drop(stopped);
    store.set("c/1", value.clone()).await;
    let gate = Arc::new(Semaphore::new(0));
    *store.0.gate.lock() = Some(Arc::clone(&gate));
    let gone = cached.get(&key("c/1"), None).await.unwrap();
    let mut waiting = Box::pin(read(&cached, "c/1", None));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(gone);
    gate.add_permits(100_000);
    let found = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(found.expect("the first reader has gone").unwrap() == value);
}

#[tokio::test]
async fn a_failure_fails_only_its_reader_and_leaves_nothing_behind() {
    let (store, cached) = reading(Recheck::Never);
    let value = value(3 * PIECE_LEN, 6);
    store.set("c/0", value.clone()).await;
    store.0.failing.store(1, Relaxed);
    assert!(read(&cached, "c/0", None).await.unwrap() == value, "a request of its own succeeds");
    store.0.failing.store(1, Relaxed);
    let values = join_all((0..5).map(|_| read(&cached, "c/0", None))).await;
    assert!(values.into_iter().all(|found| found.unwrap() == value));
    store.0.failing.store(100, Relaxed);
    store.set("c/1", value.clone()).await;
    let failed = async { cached.get(&key("c/1"), None).await?.unwrap().bytes().await }.await;
    assert!(failed.is_err(), "all requests fail");
    store.0.failing.store(0, Relaxed);
    assert!(read(&cached, "c/1", None).await.unwrap() == value);
}

#[tokio::test]
async fn many_readers_that_stop_take_bounded_memory_and_block_no_other() {
    let (store, cached) = reading(Recheck::Never);
    let value = value(16 * PIECE_LEN, 7);
    let mut stopped = Vec::new();
    for number in 0..24 {
        let name = format!("c/{number}");
        store.set(&name, value.clone()).await;
        stopped.push(cached.get(&key(&name), None).await.unwrap().unwrap());
    }
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    let (_, _, bytes) = store.take();
    assert!(bytes <= 65 * PIECE_LEN, "{bytes} bytes were fetched for readers that do not read");
    for (number, found) in stopped.into_iter().enumerate() {
        assert!(found.bytes().await.unwrap() == value, "{number}");
    }
    assert!(read(&cached, "c/0", None).await.unwrap() == value);
}

#[tokio::test(start_paused = true)]
async fn documents_are_left_to_the_cache_in_memory() {
    let (store, cached) = reading(Recheck::After(RECHECK));
    store.set("a/zarr.json", "document").await;
    for _ in 0..3 {
        assert_eq!(read(&cached, "a/zarr.json", None).await.unwrap(), "document");
    }
    assert_eq!(store.take(), (0, 1, 8));
}

#[tokio::test(start_paused = true)]
async fn stores_of_one_cache_have_pieces_of_their_own() {
    let (store, pieces) = (Counting::default(), pieces());
    let [one, other] = ["s3://a", "s3://b"]
        .map(|name| PieceStore::new(CachedStore::new(store.clone(), Recheck::Never), pieces.of_store(name)));
    store.set("c/0", "value").await;
    for cached in [&one, &other, &one, &other] {
        assert_eq!(read(cached, "c/0", None).await.unwrap(), "value");
    }
    assert_eq!(store.take(), (0, 2, 10), "each fetched it once");
}

/// An event that concerns two keys.
#[derive(Clone, Debug)]
enum Step {
    Set(u8, u64),
    Erase(u8),
    Read(u8, Option<(u64, u64)>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![0..3_u64, Just(PIECE_LEN), PIECE_LEN - 2..PIECE_LEN + 2, 2 * PIECE_LEN..2 * PIECE_LEN + 2];
    let range = prop_oneof![Just(None), (0..2 * PIECE_LEN + 4, 1..PIECE_LEN + 4).prop_map(Some)];
    let step = prop_oneof![
        (0..2_u8, len).prop_map(|(key, len)| Step::Set(key, len)),
        (0..2_u8).prop_map(Step::Erase),
        (0..2_u8, range.clone()).prop_map(|(key, range)| Step::Read(key, range)),
        (0..2_u8, range).prop_map(|(key, range)| Step::Read(key, range)),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn reads_agree_with_a_model(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (store, cached) = reading(Recheck::Always);
            for (seed, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Set(name, len) => {
                        store.set(&name.to_string(), value(len, seed as u8)).await;
                    }
                    Step::Erase(name) => {
                        store.0.memory.erase(&key(&name.to_string()), Precondition::none()).await.unwrap();
                    }
                    Step::Read(name, range) => {
                        let key = key(&name.to_string());
                        let range = range.map(|(start, len)| ByteRange::bounded(start, start + len).unwrap());
                        let bytes = async |found: Result<Option<GetResult>, StoreError>| match found {
                            Ok(Some(found)) => Ok(Some((found.meta.clone(), found.bytes().await.unwrap()))),
                            Ok(None) => Ok(None),
                            Err(StoreError::RangeNotSatisfiable { meta }) => Err(meta),
                            Err(error) => panic!("{error:?}"),
                        };
                        let expected = bytes(store.0.memory.get(&key, range).await).await;
                        assert!(bytes(cached.get(&key, range).await).await == expected);
                    }
                }
            }
        });
    }
}
