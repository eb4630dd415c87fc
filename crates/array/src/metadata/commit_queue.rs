//! The queue of writers that update the same consolidated metadata.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use zarrd_store::{Change, ChangeOutcome, Key, StoreError};

use super::copy_update::ConsolidatedUpdate;
use crate::locks::striped::StripedLocks;

/// The maximum number of writers for whom one commit is made.
const MAX_WRITERS: usize = 64;

/// The number of changes up to which a commit can be repeated with those of others.
pub(crate) const MAX_CHANGES: usize = 4096;

/// The outcomes of the changes of one writer, in order.
pub(crate) type Outcomes = Result<Vec<ChangeOutcome>, StoreError>;

/// The changes of writers that wait, by the keys of the consolidated metadata that they update.
#[derive(Debug, Default)]
pub(crate) struct SharedCommits {
    queues: Mutex<HashMap<Vec<Key>, VecDeque<Waiting>>>,
    /// The number of commits for many that were announced and have not ended.
    running: Mutex<HashMap<Vec<Key>, usize>>,
    /// Locks on consolidated metadata: shared by commits of one writer, exclusive for those of many.
    pub(crate) locks: StripedLocks,
}

/// A writer that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) changes: Vec<Change>,
    pub(crate) update: Arc<ConsolidatedUpdate>,
    pub(crate) outcomes: oneshot::Sender<Outcomes>,
}

/// A commit for many, from its announcement to its end.
#[derive(Debug)]
pub(crate) struct RunningCommit {
    shared: Arc<SharedCommits>,
    keys: Vec<Key>,
}

/// The changes of several writers as one list without consolidated metadata.
#[derive(Debug, Default)]
pub(crate) struct JoinedChanges {
    pub(crate) changes: Vec<Change>,
    /// The index of the change of each key.
    places: HashMap<Key, usize>,
}

impl SharedCommits {
    /// Announces a commit for those who wait for these copies.
    pub(crate) fn announce(shared: &Arc<Self>, keys: &[Key]) -> RunningCommit {
        let mut running = shared.running.lock();
        let count = running.entry(keys.to_vec()).or_default();
        *count = count.saturating_add(1);
        RunningCommit { shared: Arc::clone(shared), keys: keys.to_vec() }
    }

    /// True if a commit for those who wait for these copies has not ended: one writer alone would lose against it.
    pub(crate) fn is_running(&self, keys: &[Key]) -> bool {
        self.running.lock().contains_key(keys)
    }

    /// Adds a writer to the queue of the consolidated metadata with these keys.
    pub(crate) fn push(&self, keys: &[Key], writer: Waiting) {
        self.queues.lock().entry(keys.to_vec()).or_default().push_back(writer);
    }

    /// Takes the first writers of a queue whose changes fit into one commit.
    pub(crate) fn take(&self, keys: &[Key]) -> Vec<Waiting> {
        let mut queues = self.queues.lock();
        let Some(queue) = queues.get_mut(keys) else { return Vec::new() };
        let mut joined = JoinedChanges::default();
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for writer in queue.drain(..).filter(|writer| !writer.outcomes.is_closed()) {
            let fits = taken.len() < MAX_WRITERS && joined.accepts(&writer.changes, keys);
            if !fits {
                left.push_back(writer);
                continue;
            }
            joined.add(&writer.changes);
            taken.push(writer);
        }
        *queue = left;
        if queue.is_empty() {
            queues.remove(keys);
        }
        taken
    }
}

impl RunningCommit {
    /// The keys of the copies.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }
}

impl Drop for RunningCommit {
    fn drop(&mut self) {
        let mut running = self.shared.running.lock();
        if let Some(count) = running.get_mut(&self.keys) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                running.remove(&self.keys);
            }
        }
    }
}

impl JoinedChanges {
    /// True if the changes of another writer fit beside these: they change other keys, and depend on the same versions. A
    /// change of a whole prefix fits beside no other.
    fn accepts(&self, changes: &[Change], copies: &[Key]) -> bool {
        if self.changes.is_empty() {
            return true;
        }
        let is_of_prefix = |change: &Change| change.key().is_none() && !matches!(change, Change::CheckNoIntent { .. });
        let has_prefixes = |changes: &[Change]| changes.iter().any(is_of_prefix);
        if has_prefixes(changes) || has_prefixes(&self.changes) {
            return false;
        }
        if self.changes.len().saturating_add(changes.len()) > MAX_CHANGES {
            return false;
        }
        changes.iter().all(|change| {
            let Some(key) = change.key() else { return true };
            copies.contains(key) || self.place(key).is_none_or(|other| is_same_check(change, other))
        })
    }

    fn place(&self, key: &Key) -> Option<&Change> {
        self.places.get(key).and_then(|index| self.changes.get(*index))
    }

    /// Adds the changes of a writer whose keys are not there yet; returns the index of each.
    pub(crate) fn add(&mut self, changes: &[Change]) -> Vec<usize> {
        let index = |change: &Change| match change.key().and_then(|key| self.places.get(key)) {
            Some(index) => *index,
            None => self.push(change.clone()),
        };
        changes.iter().map(index).collect()
    }

    /// Adds a change; returns its index.
    pub(crate) fn push(&mut self, change: Change) -> usize {
        let index = self.changes.len();
        if let Some(key) = change.key() {
            self.places.insert(key.clone(), index);
        }
        self.changes.push(change);
        index
    }
}

/// True if both only check the same version.
fn is_same_check(one: &Change, other: &Change) -> bool {
    match (one, other) {
        (Change::Check { precondition: one, .. }, Change::Check { precondition: other, .. }) => one == other,
        _ => false,
    }
}
