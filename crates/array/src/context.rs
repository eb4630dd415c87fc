//! The engine's context: the store with its caches, locks and budgets.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use zarrd_executor::{Caller, Cost, Executor, ExecutorError};
use zarrd_meta::NodePath;
use zarrd_store::{
    BatchStore, Conditions, Guarantees, IntentId, KeyTurns, MetadataCache, Prefix, Reads, ServedStore, StoreError,
    TransactionalStore, WaitTimes, Writes,
};

use crate::{
    buffer_pool::BufferPool,
    cache::ChunkCache,
    coordinate_cache::CoordinateCache,
    error::ArrayError,
    listing_states::ListingStates,
    locks::{
        path::{PathGuard, PathLocks, Scope},
        striped::StripedLocks,
    },
    memory::{
        account::Account,
        claim::{Claim, MemoryBudget, NoWaitGuard, Permit},
    },
    metadata::{commit_queue::SharedCommits, copy_update::RemovedCopies},
    node::{cache::NodeCache, document_cache::DocumentCache},
    options::Options,
    purpose::{Purpose, VersionSource},
    result_cache::ResultCache,
    rights::NodeRights,
    running_decodes::RunningDecodes,
    unavailable_mounts::UnavailableMounts,
};

/// The interval at which a request that an unfinished operation excludes asks whether it is settled.
const INTENT_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The divisor of the memory that gives what unused buffers may take in addition.
const UNUSED_BUFFERS: u64 = 16;

/// The time for which no versions are taken from listings after one was wrong.
const LISTING_FAILURE_TIME: Duration = Duration::from_secs(60);

/// A store with the caches, locks and budgets of all who use it, on behalf of one request. Clones share everything.
#[derive(Clone)]
pub(crate) struct Context {
    /// The store. Changes take it from [`writes`](Self::writes).
    pub(crate) store: ServedStore,
    /// True if each answer of the store, or of a part of it, may take a round trip.
    distant: bool,
    /// The last time at which a value was not as a listing had shown it.
    listing_failed: Arc<Mutex<Option<Instant>>>,
    /// The purpose of the request's reads.
    pub(crate) purpose: Purpose,
    pub(crate) versions: VersionSource,
    /// The first requests for keys; `None` if the store caches nothing, so that each read makes its own.
    first_requests: Option<KeyTurns>,
    pub(crate) options: Options,
    pub(crate) cache: Arc<ChunkCache>,
    /// The chunks that are being decoded.
    pub(crate) decodes: Arc<RunningDecodes>,
    /// The buffers of elements that are sent or received.
    pub(crate) buffers: Arc<BufferPool>,
    /// Resolved arrays, so that documents are parsed once for each version.
    pub(crate) nodes: Arc<NodeCache>,
    /// Documents that walks have checked.
    pub(crate) documents: Arc<DocumentCache>,
    /// The states of the listings that walks have scanned.
    pub(crate) listing_states: Arc<ListingStates>,
    /// Results of reductions, statistics and slices.
    pub(crate) results: Arc<ResultCache>,
    /// Decoded coordinates.
    pub(crate) coordinates: Arc<CoordinateCache>,
    /// Locks on paths, held while a change of structure is planned and committed.
    path_locks: Arc<PathLocks>,
    /// Locks on chunks, for writers that lost against others too often.
    pub(crate) chunk_locks: Arc<StripedLocks>,
    /// Locks on the documents of arrays, by path, for appends and updates that lost against others too often.
    pub(crate) document_locks: Arc<StripedLocks>,
    /// Locks on the paths of arrays: shared by commits of elements, exclusive for a copy.
    pub(crate) array_locks: Arc<StripedLocks>,
    /// The consolidated metadata that the changes of the request removed.
    pub(crate) removed_copies: RemovedCopies,
    /// Commits of writers that update the same consolidated metadata.
    pub(crate) shared_commits: Arc<SharedCommits>,
    /// The mounted stores that failed lately.
    pub(crate) unavailable: Arc<UnavailableMounts>,
    memory: MemoryBudget,
    executor: Executor,
    /// The claim of the request; `None` if each operation is a request of its own.
    claim: Option<Claim>,
    /// The rights of the request; `None` for all.
    rights: Option<Arc<dyn NodeRights>>,
}

impl Context {
    pub(crate) fn new(store: ServedStore, options: Options) -> Self {
        let caches_requests = store.reads().metadata_cache().is_some_and(MetadataCache::is_filled_by_requests);
        Self {
            distant: store.reads().guarantees().reads == Reads::Key,
            listing_failed: Arc::default(),
            purpose: Purpose::Elements,
            versions: VersionSource::Listings,
            first_requests: caches_requests.then(KeyTurns::default),
            store,
            options,
            cache: Arc::new(ChunkCache::new(options.cache_capacity)),
            decodes: Arc::default(),
            buffers: Arc::new(BufferPool::new(options.max_memory / UNUSED_BUFFERS)),
            nodes: Arc::default(),
            documents: Arc::default(),
            listing_states: Arc::default(),
            results: Arc::new(ResultCache::new(options.result_cache)),
            coordinates: Arc::default(),
            path_locks: Arc::default(),
            chunk_locks: Arc::default(),
            document_locks: Arc::default(),
            array_locks: Arc::default(),
            removed_copies: RemovedCopies::default(),
            shared_commits: Arc::default(),
            unavailable: Arc::default(),
            memory: MemoryBudget::new(options.max_memory, options.memory_timeout),
            executor: Executor::new(),
            claim: None,
            rights: None,
        }
    }

    /// The same context on behalf of a request, with limited rights if it has some.
    pub(crate) fn for_request(&self, claim: Claim, rights: Option<Arc<dyn NodeRights>>) -> Self {
        let executor = self.executor.for_caller(claim.caller());
        Self { claim: Some(claim), rights, removed_copies: RemovedCopies::default(), executor, ..self.clone() }
    }

    /// True if the request may read the node at `path`, which it does not name.
    pub(crate) fn can_read(&self, path: &NodePath) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.can_read(path))
    }

    /// True if the request may change the node at `path`, which it does not name.
    pub(crate) fn can_write(&self, path: &NodePath) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.can_write(path))
    }

    /// The same context on behalf of its request, or of a new one.
    pub(crate) fn for_operation(self: &Arc<Self>) -> Arc<Self> {
        match self.claim {
            Some(_) => self.clone(),
            None => Arc::new(self.for_request(self.claim(), self.rights.clone())),
        }
    }

    /// The store, for writing. Fails with [`StoreError::Unsupported`] if it is served for reading only.
    pub(crate) fn writes(&self) -> Result<&Arc<dyn BatchStore>, StoreError> {
        self.store.writes()
    }

    /// True if the keys at and below a path change one by one.
    pub(crate) fn is_keyed_at(&self, path: &NodePath) -> bool {
        match self.store.commits() {
            Ok(_) => !path.is_root() && self.guarantees_at(path).writes == Writes::Key,
            Err(_) => true,
        }
    }

    /// True if what is at and below a path can be changed, be it key by key.
    pub(crate) fn is_written_at(&self, path: &NodePath) -> bool {
        self.store.is_writable() && self.guarantees_at(path).writes != Writes::None
    }

    /// Fails with [`StoreError::Unsupported`] unless what is at and below a path changes in commits.
    pub(crate) fn check_commits(&self, path: &NodePath, what: &'static str) -> Result<(), StoreError> {
        self.writes()?;
        match self.is_keyed_at(path) {
            true => Err(StoreError::Unsupported { what }),
            false => Ok(()),
        }
    }

    /// Fails with [`StoreError::Unsupported`] if the array at a path cannot be appended to: where keys change one by one on no
    /// conditions, so that two appends at the same time would write over each other.
    pub(crate) fn check_append(&self, path: &NodePath) -> Result<(), StoreError> {
        self.writes()?;
        match (self.is_keyed_at(path), self.guarantees_at(path).conditions) {
            (true, Conditions::None | Conditions::CreateOnly) => {
                Err(StoreError::Unsupported { what: "appends to a store that does not check conditions" })
            }
            _ => Ok(()),
        }
    }

    /// True if other servers change the array at a path at the same time, key by key, so that a change of what is outside of
    /// its shape needs the [claim](crate::growth) of it.
    pub(crate) fn needs_claim(&self, path: &NodePath) -> bool {
        self.is_keyed_at(path) && self.guarantees_at(path).conditions == Conditions::Atomic
    }

    /// The store, for writing in commits. Each change that needs them asks for it before it reads anything. Fails with
    /// [`StoreError::Unsupported`] if the store has none, or is served for reading only.
    pub(crate) fn commits(&self) -> Result<&Arc<dyn TransactionalStore>, StoreError> {
        self.store.commits()
    }

    /// True if each answer about what is at or below a path may take a round trip: it is of other programs, in a bucket
    /// or in a directory that may be on another machine.
    pub(crate) fn is_distant_at(&self, path: &NodePath) -> bool {
        self.distant
            && Prefix::parse(&path.key_prefix())
                .ok()
                .is_none_or(|prefix| self.store.guarantees_below(&prefix).reads == Reads::Key)
    }

    /// True if no request below a path takes a round trip to another machine.
    pub(crate) fn is_near_at(&self, path: &NodePath) -> bool {
        let is_near = |prefix: Prefix| self.store.guarantees_below(&prefix).near;
        !self.is_distant_at(path) || Prefix::parse(&path.key_prefix()).is_ok_and(is_near)
    }

    /// True if the versions of keys below a prefix are best taken from listings.
    pub(crate) fn lists_versions(&self, prefix: &Prefix) -> bool {
        let failed = *self.listing_failed.lock();
        self.versions == VersionSource::Listings
            && self.store.guarantees_below(prefix).listed_versions
            && failed.is_none_or(|failed| failed.elapsed() >= LISTING_FAILURE_TIME)
    }

    /// Takes note that a value is not as it was expected. If that was known from a listing, the service may be slow to
    /// bring its listings up to date, so a second attempt does not rely on them.
    pub(crate) fn listing_failed(&self) {
        if self.distant {
            *self.listing_failed.lock() = Some(Instant::now());
        }
    }

    /// The guarantees of the store for what is at or below a path.
    pub(crate) fn guarantees_at(&self, path: &NodePath) -> Guarantees {
        let prefix = Prefix::parse(&path.key_prefix());
        prefix.map_or_else(|_| self.store.guarantees(), |prefix| self.store.guarantees_below(&prefix))
    }

    /// The turns of the first requests for a key; `None` if the store caches nothing.
    pub(crate) fn first_requests(&self) -> Option<&KeyTurns> {
        self.first_requests.as_ref()
    }

    pub(crate) fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// The executor, on behalf of the request.
    pub(crate) fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The queues in which requests wait, by name, with the times of waits in each.
    pub(crate) fn queues(&self) -> Vec<(&'static str, Arc<WaitTimes>)> {
        let mut queues =
            vec![("memory", Arc::clone(self.memory.waits())), ("decoding_threads", Arc::clone(self.executor.waits()))];
        queues.extend(self.store.queues());
        queues
    }

    fn claim(&self) -> Claim {
        self.claim.clone().unwrap_or_else(|| self.memory.claim(Caller::UNKNOWN))
    }
}

impl Context {
    /// Locks a node or subtree for a change of its structure, and gives up the request's right to wait for memory,
    /// since requests that hold some may be waiting for the lock.
    pub(crate) async fn lock_path(&self, path: &NodePath, scope: Scope) -> Result<PathGuard<'_>, ArrayError> {
        let lock = timeout(self.options.memory_timeout, self.path_locks.lock(path, scope))
            .await
            .map_err(|_| ArrayError::Busy)?;
        if let Some(claim) = &self.claim {
            claim.never_wait();
        }
        Ok(lock)
    }

    /// Waits until an operation at a path is settled, by whichever process makes it; fails if that takes longer than a
    /// request waits for memory.
    pub(crate) async fn wait_until_settled(&self, path: &NodePath, id: IntentId) -> Result<(), ArrayError> {
        let store = self.commits()?;
        let settled = async {
            while store.intents().await?.iter().any(|intent| intent.id == id) {
                sleep(INTENT_POLL_INTERVAL).await;
            }
            Ok(())
        };
        timeout(self.options.memory_timeout, settled)
            .await
            .unwrap_or_else(|_| Err(ArrayError::Unfinished { path: path.clone() }))
    }

    /// Forbids the request to wait for memory until the guard is dropped: taken with a lock that others wait for.
    pub(crate) fn no_waiting(&self) -> Option<NoWaitGuard> {
        self.claim.as_ref().map(Claim::no_waiting)
    }

    /// Runs a job where the executor decides, on behalf of the request.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        cost: Cost,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ArrayError> {
        Ok(self.executor.run(cost, job).await?)
    }

    /// Runs a future that keeps its worker busy where the executor decides, on behalf of the request. It is boxed, since each
    /// future on the way to it would have room for it.
    pub(crate) fn run_future<T>(
        &self,
        cost: Cost,
        busy: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T, ArrayError>> {
        let busy = Box::pin(busy);
        async move { Ok(self.executor.run_future(cost, busy).await?) }
    }

    /// A new memory account for one operation.
    pub(crate) fn account(&self) -> Account {
        Account::new(self.claim())
    }

    /// Reserves `bytes`, or the most that one request can have if that is less. A request that holds nothing may wait
    /// for it; one with `permits` gets it now or not at all.
    pub(crate) async fn reserve_memory(&self, permits: &[Permit], bytes: u64) -> Result<Permit, ArrayError> {
        let claim = permits.first().map_or_else(|| self.claim(), |permit| permit.claim().clone());
        Ok(claim.take(bytes.min(self.memory.max_per_request())).await?)
    }

    /// The most memory that one request can have, in bytes.
    pub(crate) fn max_memory(&self) -> u64 {
        self.memory.max_per_request()
    }

    /// Reserves optional memory, if it is free.
    pub(crate) fn try_reserve_memory(&self, bytes: u64) -> Option<Permit> {
        self.claim().try_more(bytes).ok()
    }
}

impl From<ExecutorError> for ArrayError {
    fn from(error: ExecutorError) -> Self {
        match error {
            ExecutorError::Busy => Self::Busy,
            ExecutorError::ShareExhausted => Self::TooManyRequests,
            ExecutorError::ShuttingDown => Self::ShuttingDown,
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("options", &self.options).finish_non_exhaustive()
    }
}
