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
const LOCKS: u64 = 1024;

/// Locks for all names.
#[derive(Debug)]
pub(crate) struct Locks(Vec<RwLock<()>>);

/// How somebody holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    /// Together with others.
    Shared,
    /// Alone.
    Alone,
}

/// Locks that are held.
#[derive(Debug)]
#[allow(dead_code, reason = "they are held, not looked at")]
pub(crate) enum Held<'a> {
    Shared(RwLockReadGuard<'a, ()>),
    Alone(RwLockWriteGuard<'a, ()>),
}

impl Default for Locks {
    fn default() -> Self {
        Self((0..LOCKS).map(|_| RwLock::new(())).collect())
    }
}

impl Locks {
    /// The locks of these names, held together with others.
    pub(crate) async fn share<'n>(&self, names: impl IntoIterator<Item = &'n [u8]>) -> Vec<Held<'_>> {
        self.hold(names.into_iter().map(|name| (lock_of(name), Hold::Shared)).collect()).await
    }

    /// The locks of `alone`, held by nobody else, and those of `shared`.
    pub(crate) async fn hold_alone<'n>(
        &self,
        alone: impl IntoIterator<Item = &'n [u8]>,
        shared: impl IntoIterator<Item = &'n [u8]>,
    ) -> Vec<Held<'_>> {
        let shared = shared.into_iter().map(|name| (lock_of(name), Hold::Shared));
        self.hold(shared.chain(alone.into_iter().map(|name| (lock_of(name), Hold::Alone))).collect()).await
    }

    async fn hold(&self, wanted: BTreeSet<(u64, Hold)>) -> Vec<Held<'_>> {
        // Everybody takes them in the same order, so nobody waits in a circle. Of two ways to hold one the second of the order is the stronger.
        let wanted: BTreeMap<u64, Hold> = wanted.into_iter().collect();
        let mut held = Vec::with_capacity(wanted.len());
        for (number, hold) in wanted {
            let Some(lock) = usize::try_from(number).ok().and_then(|number| self.0.get(number)) else { continue };
            held.push(match hold {
                Hold::Shared => Held::Shared(lock.read().await),
                Hold::Alone => Held::Alone(lock.write().await),
            });
        }
        held
    }
}

fn lock_of(name: &[u8]) -> u64 {
    xxh3_64(name) % LOCKS
}
