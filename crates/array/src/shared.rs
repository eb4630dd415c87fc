//! What all readings share.

use std::sync::Arc;

use store::TransactionalStore;
use tokio::sync::Semaphore;

use crate::{Options, cache::ChunkCache, find::Found};

/// A store with what is kept and bounded for all who read from it.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn TransactionalStore>,
    pub(crate) options: Options,
    pub(crate) cache: ChunkCache,
    /// The arrays that were found, so that documents are parsed once for each version.
    pub(crate) found: Found,
    /// Permits for memory, in KiB.
    pub(crate) memory: Arc<Semaphore>,
    /// One permit for each thread that decodes.
    pub(crate) decoders: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(store: Arc<dyn TransactionalStore>, options: Options) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let units = usize::try_from(options.memory / 1024).unwrap_or(usize::MAX).min(u32::MAX as usize);
        Self {
            store,
            options,
            cache: ChunkCache::new(options.cache),
            found: Found::default(),
            memory: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
            decoders: Arc::new(Semaphore::new(cores)),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}
