//! Large commits, which callers prepare and the committer only joins to the log.

use std::sync::Arc;

use zarrd_store::{Intent, IntentId, Key, Prefix, StoreError};

use super::{
    Action, PlainChange,
    preconditions::{KeyState, State, check_change, check_intent_limit},
    recent::{Changed, Watcher},
};
use crate::{
    log::{BulkEntry, PreparedBulk},
    view::View,
};

/// The maximum number of changes in a commit that is written into the log itself.
pub(crate) const MAX_CHANGES: usize = 512;
/// The maximum size of the keys and small values of such a commit, in bytes.
const MAX_BYTES: u64 = 192 << 10;

/// A large commit that is durable except for its number.
pub(crate) struct Bulk {
    pub(super) changes: Vec<PlainChange>,
    /// The state of the changed keys, in the order of the changes.
    pub(super) current: Vec<Option<KeyState>>,
    pub(super) prepared: PreparedBulk,
    /// The indices of the changes of keys, in the order of the keys.
    order: Vec<u32>,
    pub(super) watcher: Watcher,
}

/// True if a commit is written to a file of its own.
pub(crate) fn is_bulk(changes: &[PlainChange]) -> bool {
    let bytes = changes.iter().map(|change| match change {
        PlainChange::Key { key, action: Action::Set(value, _), .. } => {
            let value = if value.file().is_some() { 64 } else { value.size() };
            value.saturating_add(key.as_bytes().len() as u64)
        }
        PlainChange::Key { key, action: Action::Put(value), .. } => {
            (value.len() as u64).saturating_add(key.as_bytes().len() as u64)
        }
        PlainChange::Key { key, .. } => key.as_bytes().len() as u64,
        PlainChange::ErasePrefix(prefix) | PlainChange::CheckEmpty(prefix) => prefix.as_bytes().len() as u64,
        PlainChange::Intent { record, .. } => record.as_ref().map_or(0, |record| record.len() as u64),
        PlainChange::CheckIntent(_) | PlainChange::CheckNoIntent(_) => 0,
    });
    changes.len() > MAX_CHANGES || bytes.fold(0, u64::saturating_add) > MAX_BYTES
}

/// The indices of the changes of keys, in the order of the keys.
pub(crate) fn key_order(changes: &[PlainChange]) -> Vec<u32> {
    let key = |index: &u32| changes.get(*index as usize).and_then(PlainChange::key);
    // A commit has fewer than 2³² changes.
    let indices = 0..u32::try_from(changes.len()).unwrap_or(u32::MAX);
    let mut order = Vec::with_capacity(changes.len());
    order.extend(indices.filter(|index| key(index).is_some()));
    order.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
    order
}

impl Bulk {
    /// Combines the changes of a commit with the file that was written for them. `current` is the state of the changed
    /// keys, in the order of the changes; `order` has the [indices](key_order) of these; `watcher` retains later changes.
    pub(crate) fn new(
        changes: Vec<PlainChange>,
        current: Vec<Option<KeyState>>,
        prepared: PreparedBulk,
        order: Vec<u32>,
        watcher: Watcher,
    ) -> Self {
        Self { changes, current, prepared, order, watcher }
    }

    /// Checks again the changes of keys that were changed since the commit was prepared.
    pub(super) fn recheck(
        &mut self,
        groups: &[Arc<Vec<Changed>>],
        state: &impl State,
        store_id: u64,
    ) -> Result<(), StoreError> {
        let mut changed_positions = Vec::new();
        for changed in groups.iter().flat_map(|group| group.iter()) {
            match changed {
                Changed::Key(key) => changed_positions.extend(self.position_of_change(key)),
                Changed::Bulk(bulk) => {
                    let positions = bulk.entries().iter().filter_map(|entry| self.position_of_change(&entry.key));
                    changed_positions.extend(positions);
                }
                Changed::Prefix(prefix) => changed_positions.extend(self.positions_below(prefix)),
            }
        }
        changed_positions.sort_unstable();
        changed_positions.dedup();
        let always = |change: &PlainChange| change.key().is_none() && !matches!(change, PlainChange::ErasePrefix(_));
        let always_checked = self.changes.iter().enumerate().filter(|(_, change)| always(change));
        // In the order of the changes, so that the error names the first one that fails.
        let mut all: Vec<usize> = always_checked.map(|(index, _)| index).chain(changed_positions).collect();
        all.sort_unstable();
        for index in all {
            let (Some(change), Some(current)) = (self.changes.get(index), self.current.get_mut(index)) else {
                continue;
            };
            *current = check_change(change, state, store_id)?;
        }
        check_intent_limit(&self.changes, state)
    }

    fn positions_below<'a>(&'a self, prefix: &'a Prefix) -> impl Iterator<Item = usize> + use<'a> {
        let is_below = |change: &PlainChange| change.key().is_some_and(|key| prefix.contains(key));
        self.changes.iter().enumerate().filter(move |(_, change)| is_below(change)).map(|(index, _)| index)
    }

    /// The index of the change of a key.
    fn position_of_change(&self, key: &Key) -> Option<usize> {
        let key_of = |index: u32| self.changes.get(index as usize).and_then(PlainChange::key);
        let place = self.order.binary_search_by(|index| key_of(*index).cmp(&Some(key))).ok()?;
        self.order.get(place).map(|index| *index as usize)
    }

    /// The entries of the file, in the order of their keys.
    pub(super) fn entries(&self) -> &[BulkEntry] {
        self.prepared.entries()
    }

    pub(super) fn position_of(&self, key: &Key) -> Option<usize> {
        self.entries().binary_search_by(|entry| entry.key.cmp(key)).ok()
    }
}

/// The visible state, without the changes of any commit group.
pub(crate) struct VisibleState<'v>(pub(crate) &'v View);

impl State for VisibleState<'_> {
    fn current(&self, key: &Key) -> Result<Option<KeyState>, StoreError> {
        Ok(self.0.record(key)?.as_ref().map(KeyState::of))
    }

    fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
        self.0.first_below(prefix)
    }

    fn has_intent(&self, id: IntentId) -> Result<bool, StoreError> {
        self.0.has_intent(id)
    }

    fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        self.0.intents()
    }
}
