//! Cached results of reductions, statistics and slices, each computed once for all who request it at the same time.

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Either, Shared, WeakShared, select},
};
use parking_lot::Mutex;
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use tokio::sync::Notify;
use zarrd_executor::priority;

use crate::error::ArrayError;

/// The memory of an entry in addition to its elements, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// The size of a typical result in bytes.
const TYPICAL_SIZE: u64 = 4 << 10;

/// The number of parts of the cache, each of which has room for a result of the maximum size.
const SHARDS: usize = 2;

/// The number of computations from which on those without a waiting request are removed from the table.
const MANY_COMPUTATIONS: usize = 64;

/// The number of computations of others that a request waits for, if they fail, before it computes the result whatever
/// others do.
const MAX_JOINS: usize = 3;

/// An LRU cache of results.
pub(crate) struct ResultCache {
    entries: Cache<ResultKey, Bytes, ByteWeighter>,
    /// The maximum size of a cached result, in bytes.
    max_size: u64,
    running: Mutex<Running>,
    /// Wakes requests that wait for memory when a computation starts, which may be theirs.
    started: Notify,
}

/// The results that are being computed.
#[derive(Default)]
struct Running {
    computations: HashMap<ResultKey, RunningComputation>,
    /// The number of the last computation.
    last: u64,
}

struct RunningComputation {
    computation: WeakShared<Computation>,
    number: u64,
    /// The increment of the nice value of the thread that started it.
    nicer: i32,
}

/// A result that is being computed for all who wait for it.
type Computation = BoxFuture<'static, Result<Bytes, Failure>>;

/// The error of a computation, which the request that started it takes.
type Failure = Arc<Mutex<Option<ArrayError>>>;

/// A request that can compute a result.
#[async_trait]
pub(crate) trait Compute: Send {
    /// Waits for the memory that it takes. An error concerns the request alone.
    async fn prepare(&mut self) -> Result<(), ArrayError>;

    /// The computation, which continues without the request if others wait for it. Called once at most, after
    /// [`prepare`](Self::prepare).
    fn start(&mut self) -> BoxFuture<'static, Result<Bytes, ArrayError>>;
}

/// The state of a result when a request enters.
enum Entered {
    Known(Bytes),
    /// Another request started the computation.
    Joined(Shared<Computation>),
    /// The request started the computation.
    Started(Shared<Computation>),
    /// It is not being computed.
    Absent,
}

/// The identity of a result: a hash of the versions of all chunks and documents that it is made of, and one of what is
/// computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResultKey {
    pub(crate) input: u128,
    pub(crate) computation: u128,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl ResultCache {
    /// A cache of at most `capacity` bytes of memory.
    pub(crate) fn new(capacity: u64) -> Self {
        let entries = usize::try_from(capacity / TYPICAL_SIZE).unwrap_or(usize::MAX).clamp(16, 1 << 16);
        let options =
            OptionsBuilder::new().estimated_items_capacity(entries).weight_capacity(capacity).shards(SHARDS).build();
        let entries = match options {
            Ok(options) => {
                Cache::with_options(options, ByteWeighter, DefaultHashBuilder::default(), DefaultLifecycle::default())
            }
            // Only without a capacity, which is set.
            Err(_) => Cache::with_weighter(entries, capacity, ByteWeighter),
        };
        Self { entries, max_size: capacity / 4, running: Mutex::default(), started: Notify::new() }
    }

    /// The memory of the results, in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.entries.weight()
    }

    /// The memory of the results at most, in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.entries.capacity()
    }

    pub(crate) fn get(&self, key: &ResultKey) -> Option<Bytes> {
        self.entries.get(key)
    }

    /// The maximum size of a cached result, in bytes.
    pub(crate) fn max_size(&self) -> u64 {
        self.max_size
    }

    /// Caches a result, unless it is too large.
    pub(crate) fn insert(&self, key: ResultKey, result: Bytes) {
        if result.len() as u64 <= self.max_size {
            self.entries.insert(key, result);
        }
    }

    /// The result of a key: cached, computed by another request at the moment, or computed by `compute` and cached.
    ///
    /// A computation starts when its request has the memory for it. All who wait for it drive it, so it goes on as long as
    /// one of them does; they take no memory for it meanwhile. If it fails, its error is that of the request that started
    /// it, whose limits it may have exceeded, and one of the others starts it again. A request does not wait for a
    /// computation that was started at a lower priority than its own.
    pub(crate) async fn get_or_compute(
        self: &Arc<Self>,
        key: ResultKey,
        compute: &mut impl Compute,
    ) -> Result<Bytes, ArrayError> {
        let nicer = priority::nicer();
        for _ in 0..MAX_JOINS {
            let joined = match self.enter_prepared(key, nicer, compute).await? {
                Entered::Known(known) => return Ok(known),
                Entered::Joined(computation) => computation,
                Entered::Started(computation) => {
                    // No other request takes the error.
                    let error = |failure: Failure| failure.lock().take().unwrap_or(ArrayError::ShuttingDown);
                    return computation.await.map_err(error);
                }
                Entered::Absent => break,
            };
            if let Ok(result) = joined.await {
                return Ok(result);
            }
        }
        compute.prepare().await?;
        let result = compute.start().await?;
        self.insert(key, result.clone());
        Ok(result)
    }

    /// Enters a computation of another request, or starts it as soon as there is memory for it.
    async fn enter_prepared(
        self: &Arc<Self>,
        key: ResultKey,
        nicer: i32,
        compute: &mut impl Compute,
    ) -> Result<Entered, ArrayError> {
        {
            let mut prepared = compute.prepare();
            loop {
                let mut started = std::pin::pin!(self.started.notified());
                started.as_mut().enable();
                match self.enter(key, nicer, || None) {
                    Entered::Absent => {}
                    entered => return Ok(entered),
                }
                match select(&mut prepared, started).await {
                    Either::Left((prepared, _)) => break prepared?,
                    Either::Right(_) => {}
                }
            }
        }
        Ok(self.enter(key, nicer, || Some(compute.start())))
    }

    /// Enters a computation, or starts one.
    fn enter(
        self: &Arc<Self>,
        key: ResultKey,
        nicer: i32,
        start: impl FnOnce() -> Option<BoxFuture<'static, Result<Bytes, ArrayError>>>,
    ) -> Entered {
        let mut running = self.running.lock();
        if let Some(known) = self.get(&key) {
            return Entered::Known(known);
        }
        let entry = running.computations.get(&key).filter(|entry| entry.nicer <= nicer);
        if let Some(computation) = entry.and_then(|entry| entry.computation.upgrade()) {
            return Entered::Joined(computation);
        }
        let Some(compute) = start() else { return Entered::Absent };
        let number = running.last.wrapping_add(1);
        running.last = number;
        let computation = self.computation((key, number), compute);
        if running.computations.len() >= MANY_COMPUTATIONS {
            running.computations.retain(|_, entry| entry.computation.upgrade().is_some());
        }
        if let Some(weak) = computation.downgrade() {
            running.computations.insert(key, RunningComputation { computation: weak, number, nicer });
        }
        drop(running);
        self.started.notify_waiters();
        Entered::Started(computation)
    }

    /// A computation that caches its result.
    fn computation(
        self: &Arc<Self>,
        (key, number): (ResultKey, u64),
        compute: BoxFuture<'static, Result<Bytes, ArrayError>>,
    ) -> Shared<Computation> {
        let cache = Arc::clone(self);
        let computation = async move {
            let result = compute.await;
            if let Ok(result) = &result {
                cache.insert(key, result.clone());
            }
            let mut running = cache.running.lock();
            // Another one may have taken its place.
            if running.computations.get(&key).is_some_and(|entry| entry.number == number) {
                running.computations.remove(&key);
            }
            result.map_err(|error| Arc::new(Mutex::new(Some(error))))
        };
        computation.boxed().shared()
    }
}

impl fmt::Debug for ResultCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResultCache").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Weighter<ResultKey, Bytes> for ByteWeighter {
    fn weight(&self, _key: &ResultKey, value: &Bytes) -> u64 {
        (value.len() as u64).saturating_add(ENTRY_OVERHEAD)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tokio::sync::{Notify, Semaphore};
    use zarrd_executor::limits::BACKGROUND_NICER;

    use super::*;

    const KEY: ResultKey = ResultKey { input: 1, computation: 2 };

    /// Computations that wait for a signal and are counted.
    #[derive(Default)]
    struct Counted {
        started: AtomicUsize,
        proceed: Notify,
    }

    /// A request for a result, which would compute what it has.
    struct Request {
        counted: Arc<Counted>,
        memory: Arc<Semaphore>,
        result: Option<Result<&'static [u8], ArrayError>>,
    }

    #[async_trait]
    impl Compute for Request {
        async fn prepare(&mut self) -> Result<(), ArrayError> {
            self.memory.acquire().await.unwrap().forget();
            Ok(())
        }

        fn start(&mut self) -> BoxFuture<'static, Result<Bytes, ArrayError>> {
            let (counted, result) = (self.counted.clone(), self.result.take().unwrap());
            let compute = async move {
                counted.started.fetch_add(1, Relaxed);
                counted.proceed.notified().await;
                result.map(Bytes::from_static)
            };
            compute.boxed()
        }
    }

    /// `number` requests for the same result, each of which would compute what its number says.
    fn requests(
        cache: &Arc<ResultCache>,
        counted: &Arc<Counted>,
        number: usize,
        result: fn(usize) -> Result<&'static [u8], ArrayError>,
    ) -> Vec<BoxFuture<'static, Result<Bytes, ArrayError>>> {
        let memory = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        (0..number).map(|index| request(cache, counted, &memory, result(index))).collect()
    }

    /// A request that takes a permit before it computes its result.
    fn request(
        cache: &Arc<ResultCache>,
        counted: &Arc<Counted>,
        memory: &Arc<Semaphore>,
        result: Result<&'static [u8], ArrayError>,
    ) -> BoxFuture<'static, Result<Bytes, ArrayError>> {
        let cache = Arc::clone(cache);
        let mut request = Request { counted: Arc::clone(counted), memory: Arc::clone(memory), result: Some(result) };
        async move { cache.get_or_compute(KEY, &mut request).await }.boxed()
    }

    /// Polls each of some futures once; none is ready.
    fn poll_all(requests: &mut [BoxFuture<'static, Result<Bytes, ArrayError>>]) {
        for request in requests {
            assert!(request.now_or_never().is_none());
        }
    }

    #[test]
    fn result_of_the_maximum_size_is_cached() {
        for capacity in [64 << 10, 8 << 20, 1 << 30] {
            let cache = ResultCache::new(capacity);
            cache.insert(KEY, Bytes::from(vec![0; usize::try_from(cache.max_size()).unwrap()]));
            assert!(cache.get(&KEY).is_some(), "{capacity}");
        }
    }

    #[tokio::test]
    async fn equal_requests_are_computed_once() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let mut waiting = requests(&cache, &counted, 8, |_| Ok(b"result"));
        poll_all(&mut waiting);
        counted.proceed.notify_waiters();
        for result in futures::future::join_all(waiting).await {
            assert_eq!(result.unwrap(), "result");
        }
        assert_eq!(counted.started.load(Relaxed), 1);
        let cached = requests(&cache, &counted, 1, |_| Ok(b"another")).pop().unwrap().await;
        assert_eq!(cached.unwrap(), "result");
        assert!(cache.running.lock().computations.is_empty());
    }

    #[tokio::test]
    async fn a_computation_goes_on_without_the_request_that_started_it() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let mut waiting = requests(&cache, &counted, 3, |_| Ok(b"result"));
        poll_all(&mut waiting);
        drop(waiting.remove(0));
        poll_all(&mut waiting);
        drop(waiting.remove(0));
        counted.proceed.notify_waiters();
        assert_eq!(waiting.remove(0).await.unwrap(), "result");
        assert_eq!(counted.started.load(Relaxed), 1);
    }

    #[tokio::test]
    async fn a_computation_ends_when_no_request_waits_for_it() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        for _ in 0..2 * MANY_COMPUTATIONS {
            let mut waiting = requests(&cache, &counted, 2, |_| Ok(b"result"));
            poll_all(&mut waiting);
        }
        assert_eq!(Arc::strong_count(&counted), 1);
        assert_eq!(counted.started.load(Relaxed), 2 * MANY_COMPUTATIONS, "each starts anew");
        assert!(cache.running.lock().computations.len() <= MANY_COMPUTATIONS);
    }

    #[tokio::test]
    async fn an_error_is_that_of_the_request_that_started_the_computation() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let result = |index| if index == 0 { Err(ArrayError::ReducesPoints) } else { Ok(&b"result"[..]) };
        let mut waiting = requests(&cache, &counted, 8, result);
        poll_all(&mut waiting);
        counted.proceed.notify_waiters();
        assert!(matches!(waiting.remove(0).await, Err(ArrayError::ReducesPoints)));
        poll_all(&mut waiting);
        counted.proceed.notify_waiters();
        for request in waiting {
            assert_eq!(request.await.unwrap(), "result");
        }
        assert_eq!(counted.started.load(Relaxed), 2, "one of the others takes over");
    }

    #[tokio::test]
    async fn requests_compute_by_themselves_after_others_failed_repeatedly() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let result = |index| if index < MAX_JOINS { Err(ArrayError::ReducesPoints) } else { Ok(&b"result"[..]) };
        let mut waiting = requests(&cache, &counted, MAX_JOINS + 2, result);
        for _ in 0..MAX_JOINS {
            poll_all(&mut waiting);
            counted.proceed.notify_waiters();
            assert!(waiting.remove(0).await.is_err());
        }
        poll_all(&mut waiting);
        assert_eq!(counted.started.load(Relaxed), MAX_JOINS + 2, "both at the same time");
        counted.proceed.notify_waiters();
        for request in waiting {
            assert_eq!(request.await.unwrap(), "result");
        }
    }

    #[tokio::test]
    async fn computation_starts_with_the_first_request_that_has_memory() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let (none, some) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1)));
        let mut first = request(&cache, &counted, &none, Ok(b"first"));
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(counted.started.load(Relaxed), 0);
        let mut second = request(&cache, &counted, &some, Ok(b"second"));
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(counted.started.load(Relaxed), 1);
        assert!(first.as_mut().now_or_never().is_none());
        counted.proceed.notify_waiters();
        assert_eq!((first.await.unwrap(), second.await.unwrap()), ("second".into(), "second".into()));
        assert_eq!(counted.started.load(Relaxed), 1, "the first one needs no memory any more");
    }

    #[tokio::test]
    async fn computation_of_low_priority_is_not_waited_for() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let mut waiting = requests(&cache, &counted, 1, |_| Ok(b"low"));
        poll_all(&mut waiting);
        cache.running.lock().computations.get_mut(&KEY).unwrap().nicer = BACKGROUND_NICER;
        let mut normal = requests(&cache, &counted, 2, |_| Ok(b"normal"));
        poll_all(&mut normal);
        assert_eq!(counted.started.load(Relaxed), 2, "one takes over, and the other one joins it");
        drop(waiting);
        counted.proceed.notify_waiters();
        for request in normal {
            assert_eq!(request.await.unwrap(), "normal");
        }
        assert!(cache.running.lock().computations.is_empty());
    }
}
