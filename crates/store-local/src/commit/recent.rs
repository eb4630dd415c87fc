//! Recent changes, which large commits are checked against again.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use zarrd_store::{Key, Prefix};

use crate::log::BulkCommit;

/// The changes of recent groups, retained while large commits are being prepared.
#[derive(Default)]
pub(crate) struct RecentChanges {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// The large commits being prepared, with the last change that each was checked against.
    watchers: BTreeMap<u64, u64>,
    groups: VecDeque<(u64, Arc<Vec<Changed>>)>,
}

/// The changes of a group.
pub(crate) enum Changed {
    Key(Key),
    Prefix(Prefix),
    Bulk(Arc<BulkCommit>),
}

/// Retains the changes of later groups until it is dropped.
pub(crate) struct Watcher {
    number: u64,
    since: u64,
    recent: Weak<RecentChanges>,
}

impl RecentChanges {
    /// Retains the changes after the number that `visible` returns.
    pub(crate) fn watch(self: &Arc<Self>, visible: impl FnOnce() -> u64) -> Watcher {
        let mut state = self.state.lock();
        let (number, since) = (state.next, visible());
        state.next = number.wrapping_add(1);
        state.watchers.insert(number, since);
        Watcher { number, since, recent: Arc::downgrade(self) }
    }

    /// Records the changes of a group that is visible up to `number`.
    pub(super) fn record(&self, number: u64, changed: impl FnOnce() -> Vec<Changed>) {
        let mut state = self.state.lock();
        if state.watchers.values().any(|since| *since < number) {
            state.groups.push_back((number, Arc::new(changed())));
        }
    }

    /// The changes since a watcher was created.
    pub(super) fn since(&self, watcher: &Watcher) -> Vec<Arc<Vec<Changed>>> {
        let state = self.state.lock();
        let later = state.groups.iter().filter(|(number, _)| *number > watcher.since);
        later.map(|(_, changed)| Arc::clone(changed)).collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let Some(recent) = self.recent.upgrade() else { return };
        let mut state = recent.state.lock();
        state.watchers.remove(&self.number);
        let oldest = state.watchers.values().min().copied();
        while state.groups.front().is_some_and(|(number, _)| oldest.is_none_or(|oldest| *number <= oldest)) {
            state.groups.pop_front();
        }
    }
}
