//! Cached results of reductions, each computed once for all who request it at the same time.

use std::{collections::HashMap, fmt, future::Future, sync::Arc};

use bytes::Bytes;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use parking_lot::Mutex;
use quick_cache::{Weighter, sync::Cache};

use crate::error::ArrayError;

/// The memory of an entry in addition to its elements, in bytes.
const ENTRY_OVERHEAD: u64 = 256;

/// The size of a typical result in bytes.
const TYPICAL_SIZE: u64 = 4 << 10;

/// The number of computations from which on those without a waiting request are removed from the table.
const MANY_COMPUTATIONS: usize = 64;

/// An LRU cache of results.
pub(crate) struct ResultCache {
    entries: Cache<ResultKey, Bytes, ByteWeighter>,
    /// The maximum size of a cached result, in bytes.
    max_size: u64,
    running: Mutex<HashMap<ResultKey, WeakShared<Computation>>>,
}

/// A result that is being computed for all who wait for it.
type Computation = BoxFuture<'static, Result<Bytes, Failure>>;

/// The error of a computation, which the request that started it takes.
type Failure = Arc<Mutex<Option<ArrayError>>>;

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
        let entries = Cache::with_weighter(entries, capacity, ByteWeighter);
        Self { entries, max_size: capacity / 4, running: Mutex::default() }
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

    /// The result of a key: cached, computed by another request at the moment, or made by `compute` and cached.
    ///
    /// All who wait for a computation drive it, so it goes on as long as one of them does, with the memory of the request
    /// that started it; the others hold no memory of their own meanwhile. If it fails, its error is that of the request
    /// that started it, whose limits it may have exceeded, and each of the others computes the result for itself.
    pub(crate) async fn get_or_compute<F>(
        self: &Arc<Self>,
        key: ResultKey,
        compute: impl FnOnce() -> F,
    ) -> Result<Bytes, ArrayError>
    where
        F: Future<Output = Result<Bytes, ArrayError>> + Send + 'static,
    {
        let (computation, own) = {
            let mut running = self.running.lock();
            if let Some(known) = self.get(&key) {
                return Ok(known);
            }
            match running.get(&key).and_then(WeakShared::upgrade) {
                Some(computation) => (computation, Some(compute)),
                None => {
                    let computation = self.start(key, compute());
                    if running.len() >= MANY_COMPUTATIONS {
                        running.retain(|_, computation| computation.upgrade().is_some());
                    }
                    running.extend(computation.downgrade().map(|weak| (key, weak)));
                    (computation, None)
                }
            }
        };
        match (computation.await, own) {
            (Ok(result), _) => Ok(result),
            (Err(_), Some(compute)) => {
                let result = compute().await?;
                self.insert(key, result.clone());
                Ok(result)
            }
            // No other request takes it.
            (Err(failure), None) => Err(failure.lock().take().unwrap_or(ArrayError::ShuttingDown)),
        }
    }

    /// A computation that caches its result.
    fn start(
        self: &Arc<Self>,
        key: ResultKey,
        compute: impl Future<Output = Result<Bytes, ArrayError>> + Send + 'static,
    ) -> Shared<Computation> {
        let cache = Arc::clone(self);
        let computation = async move {
            let result = compute.await;
            if let Ok(result) = &result {
                cache.insert(key, result.clone());
            }
            cache.running.lock().remove(&key);
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

    use tokio::sync::Notify;

    use super::*;

    const KEY: ResultKey = ResultKey { input: 1, computation: 2 };

    /// Computations that wait for a signal and are counted.
    #[derive(Default)]
    struct Counted {
        started: AtomicUsize,
        proceed: Notify,
    }

    impl Counted {
        async fn compute(self: Arc<Self>, result: Result<&'static [u8], ArrayError>) -> Result<Bytes, ArrayError> {
            self.started.fetch_add(1, Relaxed);
            self.proceed.notified().await;
            result.map(Bytes::from_static)
        }
    }

    /// `number` requests for the same result, each of which would compute what its number says.
    fn requests(
        cache: &Arc<ResultCache>,
        counted: &Arc<Counted>,
        number: usize,
        result: fn(usize) -> Result<&'static [u8], ArrayError>,
    ) -> Vec<BoxFuture<'static, Result<Bytes, ArrayError>>> {
        let request = |index| {
            let (cache, counted) = (Arc::clone(cache), Arc::clone(counted));
            async move { cache.get_or_compute(KEY, || counted.compute(result(index))).await }.boxed()
        };
        (0..number).map(request).collect()
    }

    /// Polls each of some futures once; none is ready.
    fn poll_all(requests: &mut [BoxFuture<'static, Result<Bytes, ArrayError>>]) {
        for request in requests {
            assert!(request.now_or_never().is_none());
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
        assert!(cache.running.lock().is_empty());
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
        assert!(cache.running.lock().len() <= MANY_COMPUTATIONS);
    }

    #[tokio::test]
    async fn an_error_is_that_of_the_request_that_started_the_computation() {
        let (cache, counted) = (Arc::new(ResultCache::new(1 << 20)), Arc::<Counted>::default());
        let result = |index| if index == 0 { Err(ArrayError::ReducesPoints) } else { Ok(&b"result"[..]) };
        let mut waiting = requests(&cache, &counted, 3, result);
        poll_all(&mut waiting);
        counted.proceed.notify_waiters();
        assert!(matches!(waiting.remove(0).await, Err(ArrayError::ReducesPoints)));
        poll_all(&mut waiting);
        counted.proceed.notify_waiters();
        for request in waiting {
            assert_eq!(request.await.unwrap(), "result");
        }
        assert_eq!(counted.started.load(Relaxed), 3);
    }
}
