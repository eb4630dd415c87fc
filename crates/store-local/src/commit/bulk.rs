//! Large commits: prepared by their callers, joined by the committer.

use std::{collections::HashMap, sync::Arc};

use store::{IntentId, Key, Prefix, StoreError};

use super::{
    Action, PlainChange,
    judge::{Current, State, judge_change, judge_number_of_intents},
    recent::{Changed, Watcher},
};
use crate::{
    log::{BulkEntry, PreparedBulk},
    view::View,
};

/// The most changes of a commit that is written into the log itself.
const MAX_CHANGES: usize = 512;
/// The most bytes of small values and keys of such a commit.
const MAX_BYTES: u64 = 192 << 10;

/// A large commit that is durable but for its number.
pub(crate) struct Bulk {
    pub(super) changes: Vec<PlainChange>,
    /// The state of the changed keys, in the order of the changes.
    pub(super) current: Vec<Option<Current>>,
    pub(super) prepared: PreparedBulk,
    /// The position of each key among the changes.
    places: HashMap<Key, usize>,
    pub(super) watcher: Watcher,
}

/// True if a commit goes to a file of its own.
pub(crate) fn is_bulk(changes: &[PlainChange]) -> bool {
    let bytes = changes.iter().map(|change| match change {
        PlainChange::Key { key, action: Action::Set(value), .. } => {
            let value = if value.file().is_some() { 64 } else { value.size() };
            value.saturating_add(key.as_bytes().len() as u64)
        }
        PlainChange::Key { key, .. } => key.as_bytes().len() as u64,
        PlainChange::ErasePrefix(prefix) | PlainChange::CheckEmpty(prefix) => prefix.as_bytes().len() as u64,
        PlainChange::Intent { record, .. } => record.as_ref().map_or(0, |record| record.len() as u64),
    });
    changes.len() > MAX_CHANGES || bytes.fold(0, u64::saturating_add) > MAX_BYTES
}

impl Bulk {
    /// Joins the changes of a commit with the file that was written of them. `current` is the state of the changed keys, in
    /// the order of the changes, and `watcher` retains what has changed since.
    pub(crate) fn new(
        changes: Vec<PlainChange>,
        current: Vec<Option<Current>>,
        prepared: PreparedBulk,
        watcher: Watcher,
    ) -> Self {
        let places = changes.iter().enumerate().filter_map(|(place, change)| Some((change.key()?.clone(), place)));
        let places = places.collect();
        Self { changes, current, prepared, places, watcher }
    }

    /// Judges again what has changed since, against what is visible now.
    pub(super) fn judge_again(
        &mut self,
        rounds: &[Arc<Vec<Changed>>],
        state: &impl State,
        store_id: u64,
    ) -> Result<(), StoreError> {
        let mut again = Vec::new();
        for changed in rounds.iter().flat_map(|round| round.iter()) {
            match changed {
                Changed::Key(key) => again.extend(self.places.get(key).copied()),
                Changed::Bulk(bulk) => {
                    again.extend(bulk.entries().iter().filter_map(|entry| self.places.get(&entry.key).copied()));
                }
                Changed::Prefix(prefix) => again.extend(self.places_below(prefix)),
            }
        }
        again.sort_unstable();
        again.dedup();
        let always = |change: &PlainChange| matches!(change, PlainChange::CheckEmpty(_) | PlainChange::Intent { .. });
        let always_judged = self.changes.iter().enumerate().filter(|(_, change)| always(change));
        // In the order of the changes, so that the first one that does not hold is named.
        let mut all: Vec<usize> = always_judged.map(|(place, _)| place).chain(again).collect();
        all.sort_unstable();
        for place in all {
            let (Some(change), Some(current)) = (self.changes.get(place), self.current.get_mut(place)) else {
                continue;
            };
            *current = judge_change(change, state, store_id)?;
        }
        judge_number_of_intents(&self.changes, state)
    }

    fn places_below<'a>(&'a self, prefix: &'a Prefix) -> impl Iterator<Item = usize> + use<'a> {
        self.places.iter().filter(|(key, _)| prefix.contains(key)).map(|(_, place)| *place)
    }

    /// The places of the changes that have an entry in the file, by the order of the file.
    pub(super) fn entries(&self) -> &[BulkEntry] {
        self.prepared.entries()
    }

    pub(super) fn place_of(&self, key: &Key) -> Option<usize> {
        self.entries().binary_search_by(|entry| entry.key.cmp(key)).ok()
    }
}

/// The visible state, without any round's changes.
pub(crate) struct Visible<'v>(pub(crate) &'v View);

impl State for Visible<'_> {
    fn current(&self, key: &Key) -> Result<Option<Current>, StoreError> {
        Ok(self.0.record(key)?.as_ref().map(Current::of))
    }

    fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
        self.0.first_below(prefix)
    }

    fn has_intent(&self, id: IntentId) -> Result<bool, StoreError> {
        self.0.has_intent(id)
    }

    fn intents(&self) -> Result<usize, StoreError> {
        Ok(self.0.intents()?.len())
    }
}
