//! The rights to read batches of listings.

use std::{collections::BTreeMap, num::NonZeroUsize, thread::available_parallelism};

use tokio::sync::{Semaphore, SemaphorePermit};
use zarrd_store::{Guarantees, Prefix, Reads, SnapshotStore};

/// The number of batches that are read at a time from a store whose answers may have to be waited for.
const AWAITED_BATCHES: usize = 16;

/// The rights to read batches of listings: each store that is shown has its own, so that listings of one that does not
/// answer delay no others.
///
/// Those of a store with commits, which answers at once, equal the number of cores, so that a request for a small value
/// does not wait for every listing in progress.
#[derive(Debug)]
pub(crate) struct ListingPermits {
    root: Semaphore,
    /// By the name below which the store is mounted.
    mounts: BTreeMap<String, Semaphore>,
}

impl ListingPermits {
    /// The rights for each part of a store.
    pub(crate) fn new(store: &dyn SnapshotStore) -> Self {
        let mut permits = Self { root: of(store.guarantees()), mounts: BTreeMap::new() };
        for (name, guarantees) in store.parts() {
            match name {
                None => permits.root = of(guarantees),
                Some(name) => drop(permits.mounts.insert(name, of(guarantees))),
            }
        }
        permits
    }

    /// Waits for the right to read one batch of a listing of a prefix.
    pub(crate) async fn acquire(&self, prefix: &Prefix) -> Option<SemaphorePermit<'_>> {
        let mount = prefix.as_str().split('/').next().and_then(|name| self.mounts.get(name));
        // The semaphores are never closed.
        mount.unwrap_or(&self.root).acquire().await.ok()
    }
}

fn of(guarantees: Guarantees) -> Semaphore {
    let cores = available_parallelism().map_or(1, NonZeroUsize::get);
    Semaphore::new(match guarantees.reads {
        Reads::Commit => cores,
        Reads::Key => cores.max(AWAITED_BATCHES),
    })
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use futures::FutureExt;
    use zarrd_store::{MemoryStore, Mounts, ServedStore};

    use super::*;

    #[test]
    fn listings_of_a_mounted_store_leave_those_of_the_others_alone() {
        let mounted: Arc<dyn SnapshotStore> = Arc::new(MemoryStore::default());
        let root = ServedStore::from(Arc::new(MemoryStore::default()));
        let mounts = Mounts::new("", root, BTreeMap::from([("slow".parse().unwrap(), mounted)]));
        let permits = ListingPermits::new(&mounts);
        let below = |prefix: &str| Prefix::parse(prefix).unwrap();
        let mut taken = Vec::new();
        while let Some(permit) = permits.acquire(&below("slow/a/")).now_or_never() {
            taken.push(permit);
        }
        assert!(!taken.is_empty());
        assert!(permits.acquire(&below("slow/")).now_or_never().is_none());
        for other in ["", "slower/", "lab/slow/"] {
            assert!(permits.acquire(&below(other)).now_or_never().is_some(), "{other:?}");
        }
    }
}
