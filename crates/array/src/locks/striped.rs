//! Striped read–write locks by name.
//!
//! Keys that are written: a writer reads what it changes and commits on condition that it has not changed, which fails
//! for one that is always slower than others. After a few attempts it locks its keys exclusively; all other writers
//! hold the locks of theirs shared while they commit.
//!
//! Paths of arrays: writers of elements hold the array's lock shared while they commit, so whoever holds it exclusively
//! knows that no such commit happens meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::xxh3_64;

/// The number of locks; names with the same hash share one.
const STRIPES: u64 = 1024;

/// Read–write locks for any number of names.
#[derive(Debug)]
pub(crate) struct StripedLocks(Vec<RwLock<()>>);

/// The mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LockMode {
    /// Shared with others in this mode.
    Shared,
    /// Exclusive.
    Exclusive,
}

/// A lock that is held.
#[derive(Debug)]
#[allow(dead_code, reason = "a guard has an effect when it is dropped")]
pub(crate) enum StripeGuard<'a> {
    Shared(RwLockReadGuard<'a, ()>),
    Exclusive(RwLockWriteGuard<'a, ()>),
}

impl Default for StripedLocks {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| RwLock::new(())).collect())
    }
}

impl StripedLocks {
    /// Locks these names shared.
    pub(crate) async fn lock_shared<'n>(&self, names: impl IntoIterator<Item = &'n [u8]>) -> Vec<StripeGuard<'_>> {
        self.lock_all(names.into_iter().map(|name| (stripe_of(name), LockMode::Shared)).collect()).await
    }

    /// Locks the names of `alone` exclusively, and those of `shared` shared.
    pub(crate) async fn lock_exclusive<'n>(
        &self,
        alone: impl IntoIterator<Item = &'n [u8]>,
        shared: impl IntoIterator<Item = &'n [u8]>,
    ) -> Vec<StripeGuard<'_>> {
        let shared = shared.into_iter().map(|name| (stripe_of(name), LockMode::Shared));
        self.lock_all(shared.chain(alone.into_iter().map(|name| (stripe_of(name), LockMode::Exclusive))).collect())
            .await
    }

    async fn lock_all(&self, wanted: BTreeSet<(u64, LockMode)>) -> Vec<StripeGuard<'_>> {
        // A common order prevents deadlocks. Of two modes for one lock, the map keeps the later and stronger one.
        let wanted: BTreeMap<u64, LockMode> = wanted.into_iter().collect();
        let mut guards = Vec::with_capacity(wanted.len());
        for (number, mode) in wanted {
            let Some(lock) = usize::try_from(number).ok().and_then(|number| self.0.get(number)) else { continue };
            guards.push(match mode {
                LockMode::Shared => StripeGuard::Shared(lock.read().await),
                LockMode::Exclusive => StripeGuard::Exclusive(lock.write().await),
            });
        }
        guards
    }
}

fn stripe_of(name: &[u8]) -> u64 {
    xxh3_64(name) % STRIPES
}
