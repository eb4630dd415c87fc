//! Locks on parts of the hierarchy, held while a change of structure is planned and committed.
//!
//! A change locks its node, alone or with all nodes below it. Two changes wait for each other only if what they lock
//! overlaps, in the order in which they came. What changes of separate nodes have in common, such as the documents of
//! the groups above them, is validated by version when they commit.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use zarrd_meta::NodePath;

/// The locks of one store's hierarchies.
#[derive(Debug, Default)]
pub(crate) struct PathLocks(Mutex<Queue>);

/// The part of the hierarchy that a change locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The node alone.
    Node,
    /// The node and all nodes below it.
    Subtree,
}

/// A lock that is held, or waited for. Dropping it lets the next one go on.
#[derive(Debug)]
pub(crate) struct PathGuard<'a> {
    locks: &'a PathLocks,
    number: u64,
}

/// All locks that are held or waited for, in the order in which they were asked for.
#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    path: NodePath,
    scope: Scope,
    /// The number of entries before this one that overlap with it. It is held once there are none.
    blockers: usize,
    turn: Arc<Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    is_next: AtomicBool,
    notify: Notify,
}

impl PathLocks {
    /// Locks the node at a path, waiting for all who asked before and lock something of the same.
    pub(crate) async fn lock(&self, path: &NodePath, scope: Scope) -> PathGuard<'_> {
        let (guard, turn) = self.enqueue(path, scope);
        // A permit is stored for a notification that comes before it is waited for.
        while !turn.is_next.load(Acquire) {
            turn.notify.notified().await;
        }
        guard
    }

    fn enqueue(&self, path: &NodePath, scope: Scope) -> (PathGuard<'_>, Arc<Turn>) {
        let mut queue = self.0.lock();
        let number = queue.next;
        queue.next += 1;
        let blockers = queue.entries.iter().filter(|entry| entry.overlaps(path, scope)).count();
        let turn = Arc::new(Turn::default());
        turn.is_next.store(blockers == 0, Release);
        queue.entries.push(Entry { number, path: path.clone(), scope, blockers, turn: turn.clone() });
        (PathGuard { locks: self, number }, turn)
    }
}

impl Entry {
    fn overlaps(&self, path: &NodePath, scope: Scope) -> bool {
        self.path == *path
            || self.scope == Scope::Subtree && path.relative_to(&self.path).is_some()
            || scope == Scope::Subtree && self.path.relative_to(path).is_some()
    }
}

impl Drop for PathGuard<'_> {
    fn drop(&mut self) {
        let mut queue = self.locks.0.lock();
        let Some(at) = queue.entries.iter().position(|entry| entry.number == self.number) else { return };
        let released = queue.entries.remove(at);
        for entry in queue.entries.iter_mut().skip(at) {
            if !released.overlaps(&entry.path, entry.scope) {
                continue;
            }
            entry.blockers = entry.blockers.saturating_sub(1);
            if entry.blockers == 0 {
                entry.turn.is_next.store(true, Release);
                entry.turn.notify.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::{FutureExt, future::BoxFuture};
    use proptest::prelude::*;

    use super::*;

    fn path(path: &str) -> NodePath {
        NodePath::parse(path).unwrap()
    }

    fn is_granted(lock: &mut BoxFuture<'_, PathGuard<'_>>) -> bool {
        lock.now_or_never().is_some()
    }

    #[test]
    fn disjoint_nodes_do_not_block_each_other() {
        let locks = PathLocks::default();
        let _a = locks.lock(&path("/a/b"), Scope::Subtree).now_or_never().unwrap();
        assert!(locks.lock(&path("/a/c"), Scope::Subtree).now_or_never().is_some());
        assert!(locks.lock(&path("/a/bc"), Scope::Subtree).now_or_never().is_some());
        assert!(locks.lock(&path("/a"), Scope::Node).now_or_never().is_some());
        assert!(locks.lock(&path("/"), Scope::Node).now_or_never().is_some());
        for (at, scope) in
            [("/a/b", Scope::Node), ("/a/b/c", Scope::Node), ("/a", Scope::Subtree), ("/", Scope::Subtree)]
        {
            assert!(locks.lock(&path(at), scope).now_or_never().is_none(), "{at}");
        }
        assert!(locks.lock(&path("/"), Scope::Node).now_or_never().is_some(), "a cancelled waiter leaves the queue");
    }

    #[test]
    fn lock_is_granted_in_request_order() {
        let locks = PathLocks::default();
        let [root, b] = ["/", "/b"].map(path);
        let guard = locks.lock(&path("/a"), Scope::Node).now_or_never().unwrap();
        let mut all = locks.lock(&root, Scope::Subtree).boxed();
        assert!(!is_granted(&mut all));
        let mut other = locks.lock(&b, Scope::Node).boxed();
        assert!(!is_granted(&mut other), "an earlier request locks everything");
        drop(guard);
        let all = all.now_or_never().unwrap();
        assert!(!is_granted(&mut other));
        drop(all);
        assert!(is_granted(&mut other));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_waiter_gets_the_lock() {
        let locks = Arc::new(PathLocks::default());
        let paths = ["/", "/a", "/a/b", "/a/b/c", "/d"];
        let tasks: Vec<_> = (0..500_usize)
            .map(|number| {
                let locks = locks.clone();
                let scope = if number % 3 == 0 { Scope::Subtree } else { Scope::Node };
                let path = path(paths[number % paths.len()]);
                tokio::spawn(async move {
                    let lock = locks.lock(&path, scope);
                    match number % 7 {
                        // Some waiters give up.
                        0 => drop(tokio::time::timeout(Duration::from_micros(number as u64), lock).await),
                        _ => {
                            let _held = lock.await;
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            tokio::time::timeout(Duration::from_secs(20), task).await.expect("the task ends").unwrap();
        }
        assert!(locks.0.lock().entries.is_empty());
    }

    proptest! {
        /// Compared with a model that examines all earlier requests.
        #[test]
        fn lock_is_granted_unless_an_earlier_request_overlaps(
            steps in prop::collection::vec((0..4_usize, any::<bool>(), any::<prop::sample::Index>()), 1..60),
        ) {
            let locks = PathLocks::default();
            let paths = ["/", "/a", "/a/b", "/c"].map(path);
            let mut live: Vec<(NodePath, Scope, PathGuard<'_>, Arc<Turn>)> = Vec::new();
            for (at, adds, index) in steps {
                if adds || live.is_empty() {
                    let scope = if index.index(2) == 0 { Scope::Node } else { Scope::Subtree };
                    let (guard, turn) = locks.enqueue(&paths[at], scope);
                    live.push((paths[at].clone(), scope, guard, turn));
                } else {
                    live.remove(index.index(live.len()));
                }
                for (number, (path, scope, _, turn)) in live.iter().enumerate() {
                    let blocked = live[..number].iter().any(|(other, of, ..)| {
                        other == path
                            || *of == Scope::Subtree && path.relative_to(other).is_some()
                            || *scope == Scope::Subtree && other.relative_to(path).is_some()
                    });
                    prop_assert_eq!(turn.is_next.load(Acquire), !blocked);
                }
            }
        }
    }
}
