//! Striped locks on names.
//!
//! On the keys that are written, for writers that lost against others too often: they read what they change, and commit it if it is still so. That fails for a writer that is always slower
//! than others, so after a few tries it locks what it changes. All others hold the same locks, together, while they commit.
//!
//! On the paths of arrays, as fences: whoever writes elements holds that of the array, together with others, while it commits. Who has it alone sees no commit of elements meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use xxhash_rust::xxh3::xxh3_64;

/// How many locks there are. Names share them.
const STRIPES: u64 = 1024;

/// Locks for all names.
#[derive(Debug)]
pub(crate) struct StripedLocks(Vec<RwLock<()>>);

/// How somebody holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LockMode {
    /// Together with others.
    Shared,
    /// Alone.
    Exclusive,
}

/// Locks that are held.
#[derive(Debug)]
#[allow(dead_code, reason = "they are held, not looked at")]
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
    /// The locks of these names, held together with others.
    pub(crate) async fn lock_shared<'n>(&self, names: impl IntoIterator<Item = &'n [u8]>) -> Vec<StripeGuard<'_>> {
        self.lock_all(names.into_iter().map(|name| (stripe_of(name), LockMode::Shared)).collect()).await
    }

    /// The locks of `alone`, held by nobody else, and those of `shared`.
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
        // Everybody takes them in the same order, so nobody waits in a circle. Of two ways to hold one the second of the order is the stronger.
        let wanted: BTreeMap<u64, LockMode> = wanted.into_iter().collect();
        let mut held = Vec::with_capacity(wanted.len());
        for (number, hold) in wanted {
            let Some(lock) = usize::try_from(number).ok().and_then(|number| self.0.get(number)) else { continue };
            held.push(match hold {
                LockMode::Shared => StripeGuard::Shared(lock.read().await),
                LockMode::Exclusive => StripeGuard::Exclusive(lock.write().await),
            });
        }
        held
    }
}

fn stripe_of(name: &[u8]) -> u64 {
    xxh3_64(name) % STRIPES
}
