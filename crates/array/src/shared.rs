//! What all who read and write share.

use std::sync::Arc;

use meta::{Dialect, NodePath};
use store::TransactionalStore;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{
    ArrayError, Options,
    cache::ChunkCache,
    find::{Found, Sight, Sighting},
    hierarchy::{PathGuard, PathLocks, Scope},
    write::Locks,
};

/// In what memory is counted, so that a semaphore can count it.
pub(crate) const UNIT: u64 = 1 << 10;

/// A store with what is kept and bounded for all who read from it.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn TransactionalStore>,
    pub(crate) options: Options,
    pub(crate) cache: ChunkCache,
    /// The arrays that were found, so that documents are parsed once for each version.
    pub(crate) found: Found,
    /// Held while a change of structure is planned and committed.
    paths: PathLocks,
    /// The places to which hierarchies are being copied, where nobody else creates nodes.
    pub(crate) copied_to: parking_lot::Mutex<Vec<NodePath>>,
    /// Locks on chunks, for writers who lost against others too often; and on the documents of arrays that are appended to.
    pub(crate) locks: Locks,
    pub(crate) appends: Locks,
    /// Permits for memory, in [`UNIT`]s, and how many there are.
    memory: Arc<Semaphore>,
    units: u32,
    /// One permit for each thread that decodes: two for each core, so that none is idle while a permit goes from one to the next.
    pub(crate) decoders: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn TransactionalStore>, options: Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let units = u32::try_from(options.memory / UNIT).unwrap_or(u32::MAX);
        Self {
            store,
            options,
            cache: ChunkCache::new(options.cache),
            found: Found::default(),
            paths: PathLocks::default(),
            copied_to: parking_lot::Mutex::default(),
            locks: Locks::default(),
            appends: Locks::default(),
            memory: Arc::new(Semaphore::new((units as usize).min(Semaphore::MAX_PERMITS))),
            units,
            decoders: Arc::new(Semaphore::new(cores.saturating_mul(2))),
        }
    }
}

impl Shared {
    /// Looks at what is at a path.
    pub(crate) async fn look(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<Arc<Sighting>, ArrayError> {
        self.found.look(self, path, dialect).await
    }

    /// Looks at what is at a path, be it an array or a group.
    pub(crate) async fn see(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Sight>, ArrayError> {
        self.found.see(self, path, dialect).await
    }

    /// Locks a part of the hierarchy for a change of its structure.
    pub(crate) async fn lock_path(&self, path: &NodePath, scope: Scope) -> Result<PathGuard<'_>, ArrayError> {
        timeout(self.options.patience, self.paths.lock(path, scope)).await.map_err(|_| ArrayError::Busy)
    }

    /// Runs what takes long where it keeps no request waiting; a bounded number at a time.
    pub(crate) async fn on_blocking_pool<T: Send + 'static, E: From<ArrayError> + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let permit = self.decoders.clone().acquire_owned().await.map_err(|_| ArrayError::Stopped)?;
        let work = move || {
            let _permit = permit;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|_| ArrayError::Stopped)?
    }

    /// A reservation of memory, waited for with patience.
    pub(crate) async fn admit(&self, bytes: u64) -> Result<OwnedSemaphorePermit, ArrayError> {
        // What takes more than there is gets all of it.
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        if let Ok(permit) = self.memory.clone().try_acquire_many_owned(units) {
            return Ok(permit);
        }
        match timeout(self.options.patience, self.memory.clone().acquire_many_owned(units)).await {
            Ok(permit) => permit.map_err(|_| ArrayError::Stopped),
            Err(_) => Err(ArrayError::Busy),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
