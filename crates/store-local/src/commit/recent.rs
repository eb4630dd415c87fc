//! Changes since large commits were judged.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use store::{Key, Prefix};

use crate::log::BulkCommit;

/// The changes of the latest rounds, as long as a commit is being prepared.
#[derive(Default)]
pub(crate) struct RecentChanges {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// The commits that are being prepared, with the number that each was judged at.
    watchers: BTreeMap<u64, u64>,
    groups: VecDeque<(u64, Arc<Vec<Changed>>)>,
}

/// A key, or keys, that a round changed.
pub(crate) enum Changed {
    Key(Key),
    Prefix(Prefix),
    Bulk(Arc<BulkCommit>),
}

/// Retains what changes from now on. Dropping it ends that.
pub(crate) struct Watcher {
    number: u64,
    since: u64,
    recent: Weak<RecentChanges>,
}

impl RecentChanges {
    /// Retains what changes after what `visible` gives.
    pub(crate) fn watch(self: &Arc<Self>, visible: impl FnOnce() -> u64) -> Watcher {
        let mut state = self.state.lock();
        let (number, since) = (state.next, visible());
        state.next = number.wrapping_add(1);
        state.watchers.insert(number, since);
        Watcher { number, since, recent: Arc::downgrade(self) }
    }

    /// Notes a round that is visible up to `number` now.
    pub(super) fn record(&self, number: u64, changed: impl FnOnce() -> Vec<Changed>) {
        let mut state = self.state.lock();
        if state.watchers.values().any(|since| *since < number) {
            state.groups.push_back((number, Arc::new(changed())));
        }
    }

    /// The rounds since a watcher began.
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
