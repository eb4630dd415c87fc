//! What all who read and write share.

use std::{sync::Arc, time::Duration};

use meta::NodePath;
use store::TransactionalStore;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    time::timeout,
};

use crate::{
    cache::ChunkCache,
    error::ArrayError,
    locks::{
        path::{PathGuard, PathLocks, Scope},
        reserved_paths::ReservedPaths,
        striped::StripedLocks,
    },
    memory::{
        account::Account,
        caller::{Caller, Usage},
        claim::{Claim, MemoryBudget, NoWaitGuard, Permit},
        pool::{JobSize, Rejection, ThreadPermits},
    },
    node::cache::NodeCache,
    options::Options,
};

/// Up to how many steps a piece of work is small: a thread is kept for these.
const SMALL_JOB_STEPS: u64 = 4 << 20;

/// How many steps a byte of a document is: it is parsed, looked into, and written.
const STEPS_PER_DOCUMENT_BYTE: u64 = 16;

/// Up to so many keys are looked up out of turn.
const INLINE_LOOKUPS: usize = 256;

/// How long work waits for a thread. What it is part of has its memory by then, so that there is only so much of it.
const THREAD_TIMEOUT: Duration = Duration::from_secs(60);

/// A store with what is kept and bounded for all who use it, on behalf of one request. Clones share everything.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) store: Arc<dyn TransactionalStore>,
    pub(crate) options: Options,
    pub(crate) cache: Arc<ChunkCache>,
    /// The arrays that were found, so that documents are parsed once for each version.
    pub(crate) nodes: Arc<NodeCache>,
    /// Held while a change of structure is planned and committed.
    path_locks: Arc<PathLocks>,
    /// The places to which hierarchies are being copied, where nobody else creates nodes.
    pub(crate) copy_targets: Arc<ReservedPaths>,
    /// The arrays whose chunks outside of a smaller shape are being erased, which do not grow meanwhile.
    pub(crate) shrinking: Arc<ReservedPaths>,
    /// Locks on chunks, for writers who lost against others too often; and on the documents of arrays that are appended to.
    pub(crate) chunk_locks: Arc<StripedLocks>,
    pub(crate) append_locks: Arc<StripedLocks>,
    /// Locks on the paths of arrays, which commits of elements share.
    pub(crate) array_locks: Arc<StripedLocks>,
    memory: MemoryBudget,
    /// Threads that decode and encode.
    threads: Arc<ThreadPermits>,
    /// That of the request; where there is none, each piece of work is a request of its own.
    claim: Option<Claim>,
}

impl Context {
    pub(crate) fn new(store: Arc<dyn TransactionalStore>, options: Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as u64;
        Self {
            store,
            options,
            cache: Arc::new(ChunkCache::new(options.cache_capacity)),
            nodes: Arc::default(),
            path_locks: Arc::default(),
            copy_targets: Arc::default(),
            shrinking: Arc::default(),
            chunk_locks: Arc::default(),
            append_locks: Arc::default(),
            array_locks: Arc::default(),
            memory: MemoryBudget::new(options.max_memory, options.memory_timeout),
            // Two for each core, so that none is idle while a permit goes from one to the next.
            threads: Arc::new(ThreadPermits::new(cores.saturating_mul(2), 1)),
            claim: None,
        }
    }

    /// The same on behalf of a request.
    pub(crate) fn for_request(&self, claim: Claim) -> Self {
        Self { claim: Some(claim), ..self.clone() }
    }

    /// The same on behalf of its request, or of one that begins now.
    pub(crate) fn for_operation(self: &Arc<Self>) -> Arc<Self> {
        match self.claim {
            Some(_) => self.clone(),
            None => Arc::new(self.for_request(self.claim())),
        }
    }

    pub(crate) fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// The threads that decode and encode.
    pub(crate) fn threads(&self) -> Usage {
        self.threads.usage()
    }

    fn claim(&self) -> Claim {
        self.claim.clone().unwrap_or_else(|| self.memory.claim(Caller::UNKNOWN))
    }
}

impl Context {
    /// Locks a part of the hierarchy for a change of its structure, and gives up the right to wait for memory: others wait for the lock who may have some.
    pub(crate) async fn lock_path(&self, path: &NodePath, scope: Scope) -> Result<PathGuard<'_>, ArrayError> {
        let lock = timeout(self.options.memory_timeout, self.path_locks.lock(path, scope))
            .await
            .map_err(|_| ArrayError::Busy)?;
        if let Some(claim) = &self.claim {
            claim.never_wait();
        }
        Ok(lock)
    }

    /// Waits until the chunks outside of an array are erased, if it was made smaller: before that it must not grow.
    pub(crate) async fn wait_until_shrunk(&self, path: &NodePath) -> Result<(), ArrayError> {
        match self.shrinking.wait_until_free(path, self.options.memory_timeout).await {
            true => Ok(()),
            false => Err(ArrayError::Unfinished { path: path.clone() }),
        }
    }

    /// Has memory not be waited for as long as a lock is held that others wait for who may have some.
    pub(crate) fn no_waiting(&self) -> Option<NoWaitGuard> {
        self.claim.as_ref().map(Claim::no_waiting)
    }

    /// Runs work of so many steps where it keeps no request waiting; a bounded number at a time, of which each caller has a share.
    pub(crate) async fn run_blocking<T: Send + 'static, E: From<ArrayError> + Send + 'static>(
        &self,
        steps: u64,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let class = if steps <= SMALL_JOB_STEPS { JobSize::Small } else { JobSize::Large };
        let permit = self.threads.take(self.caller(), 1, class, THREAD_TIMEOUT).await.map_err(ArrayError::from)?;
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| ArrayError::ShuttingDown)?
    }

    /// Runs work on so many bytes of documents where it keeps no request waiting, as [`on_blocking_pool`](Self::on_blocking_pool) does.
    pub(crate) async fn run_on_documents<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ArrayError> {
        self.run_blocking(bytes.saturating_mul(STEPS_PER_DOCUMENT_BYTE), || Ok::<_, ArrayError>(work())).await
    }

    /// Looks up so many keys: few of them at once, many in turn, with as many requests at a time as there are threads for work elsewhere, and off the runtime's workers. Otherwise a small
    /// request would wait for every walk over a large tree. `lookups` must not wait for memory.
    pub(crate) async fn run_lookups<T>(&self, keys: usize, lookups: impl Future<Output = T>) -> Result<T, ArrayError> {
        if keys <= INLINE_LOOKUPS {
            return Ok(lookups.await);
        }
        let _turn = self.threads.take(self.caller(), 1, JobSize::Large, THREAD_TIMEOUT).await?;
        Ok(block_in_place(lookups).await)
    }

    /// An account for a piece of work.
    pub(crate) fn account(&self) -> Account {
        Account::new(self.claim())
    }

    /// A reservation of memory, or all that one request can have where that is less, for who has `held` already: where the request has nothing it may be waited for, else it is
    /// there now or not at all.
    pub(crate) async fn reserve_memory(&self, held: &[Permit], bytes: u64) -> Result<Permit, ArrayError> {
        let claim = held.first().map_or_else(|| self.claim(), |permit| permit.claim().clone());
        Ok(claim.take(bytes.min(self.memory.max_per_request())).await?)
    }

    /// How much memory one request can have at the most.
    pub(crate) fn max_memory(&self) -> u64 {
        self.memory.max_per_request()
    }

    /// A reservation of memory that one can do without, if it is free.
    pub(crate) fn try_reserve_memory(&self, bytes: u64) -> Option<Permit> {
        self.claim().try_more(bytes).ok()
    }

    fn caller(&self) -> Caller {
        self.claim.as_ref().map_or(Caller::UNKNOWN, Claim::caller)
    }
}

/// Polls a future that is busy for long without waiting: the tasks behind it on the same worker of the runtime move to another thread. A runtime of one thread has nowhere to move them.
pub(crate) async fn block_in_place<T>(busy: impl Future<Output = T>) -> T {
    let runtime = Handle::current();
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(|| runtime.block_on(busy)),
        _ => busy.await,
    }
}

impl From<Rejection> for ArrayError {
    fn from(refused: Rejection) -> Self {
        match refused {
            Rejection::PoolExhausted => Self::Busy,
            Rejection::ShareExhausted => Self::TooManyRequests,
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
