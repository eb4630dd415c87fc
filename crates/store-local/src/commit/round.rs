//! The commits that one sync makes durable.

use std::{collections::HashMap, sync::Arc};

use bytes::{Bytes, BytesMut};
use store::{ChangeOutcome, IntentId, Key, Prefix, StoreError};

use super::{
    Action, PlainChange, Reply, StagedValue, answer,
    bulk::{Bulk, Visible},
    judge::{Current, State, judge, outcome},
    recent::Changed,
};
use crate::{
    gc::ReplacedFile,
    keyspace::intent_key,
    log::{BulkCommit, Operation},
    record::{Location, Record, now_millis},
    view::{Memtable, View},
};

/// Answers a commit with what became of its round.
type Acknowledge = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Changes on top of what is visible.
pub(crate) struct Round {
    pub(super) operations: Vec<Operation>,
    /// The bytes that the operations take in the log.
    pub(super) bytes: usize,
    /// The state of the keys that the round itself has changed.
    current: HashMap<Key, Option<Current>>,
    bulk: Option<Arc<BulkCommit>>,
    /// The number of the last change.
    pub(super) number: u64,
    pub(super) replaced: Vec<ReplacedFile>,
    pub(super) staged: Vec<Arc<StagedValue>>,
    acknowledge: Vec<Acknowledge>,
    store_id: u64,
}

/// The visible state, with the round's changes on top.
struct RoundState<'r> {
    round: &'r Round,
    visible: Visible<'r>,
}

impl State for RoundState<'_> {
    fn current(&self, key: &Key) -> Result<Option<Current>, StoreError> {
        match self.round.current.get(key) {
            Some(current) => Ok(*current),
            None => self.visible.current(key),
        }
    }

    fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
        // A commit that asks for this has a round of its own.
        self.visible.first_below(prefix)
    }

    fn has_intent(&self, id: IntentId) -> Result<bool, StoreError> {
        // As above.
        self.visible.has_intent(id)
    }

    fn intents(&self) -> Result<usize, StoreError> {
        self.visible.intents()
    }
}

impl Round {
    pub(super) fn new(number: u64, store_id: u64) -> Self {
        Self {
            operations: Vec::new(),
            bytes: 0,
            current: HashMap::new(),
            bulk: None,
            number,
            replaced: Vec::new(),
            staged: Vec::new(),
            acknowledge: Vec::new(),
            store_id,
        }
    }

    /// True if there is anything to make durable.
    pub(super) fn has_changes(&self) -> bool {
        !self.operations.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.acknowledge.is_empty()
    }

    pub(super) fn commits(&self) -> usize {
        self.acknowledge.len()
    }

    pub(super) fn bulk(&self) -> Option<&Arc<BulkCommit>> {
        self.bulk.as_ref()
    }

    /// Judges a commit and takes it in as a whole, or answers that it fails.
    pub(super) fn take(&mut self, view: &View, changes: Vec<PlainChange>, reply: Reply<Vec<ChangeOutcome>>) {
        let state = RoundState { round: self, visible: Visible(view) };
        let locations = judge(&changes, &state, self.store_id).and_then(|current| Ok((current, locations(&changes)?)));
        match locations {
            Ok((current, locations)) => {
                let outcomes = self.apply(changes, &current, locations);
                self.acknowledge(reply, Ok(outcomes));
            }
            Err(error) => self.refuse(reply, error),
        }
    }

    /// Takes in a large commit, which has been judged.
    pub(super) fn take_bulk(&mut self, bulk: Bulk, reply: Reply<Vec<ChangeOutcome>>) {
        self.erase_prefixes(&bulk.changes);
        let places: Vec<Option<usize>> =
            bulk.changes.iter().map(|change| change.key().and_then(|key| bulk.place_of(key))).collect();
        let Bulk { changes, current, prepared, .. } = bulk;
        let commit = Arc::new(prepared.numbered(self.number));
        self.number = commit.number().max(self.number);
        let mut outcomes = Vec::with_capacity(changes.len());
        for ((change, current), place) in changes.into_iter().zip(current).zip(places) {
            let number = place.map_or(self.number, |place| commit.number_of(place));
            outcomes.push(outcome(&change, current, number, self.store_id));
            match change {
                PlainChange::Key { action: Action::Set(value), .. } => {
                    value.mark_committed();
                    self.replaced.extend(current.and_then(|current| current.file()));
                    if value.file().is_some() {
                        self.staged.push(value);
                    }
                }
                PlainChange::Key { action: Action::Erase, .. } => {
                    self.replaced.extend(current.and_then(|current| current.file()));
                }
                PlainChange::Intent { id, record } => self.change_intent(id, record),
                PlainChange::Key { action: Action::Check, .. } => {}
                PlainChange::ErasePrefix(_) | PlainChange::CheckEmpty(_) => {}
            }
        }
        self.push(Operation::Bulk {
            id: commit.id(),
            number: commit.base(),
            entries: u32::try_from(commit.entries().len()).unwrap_or(u32::MAX),
            checksum: commit.checksum(),
        });
        self.bulk = Some(commit);
        self.acknowledge(reply, Ok(outcomes));
    }

    /// Answers a commit that fails: once what it was judged against is durable, since it may be this round.
    pub(super) fn refuse<T: Send + 'static>(&mut self, reply: Reply<T>, error: StoreError) {
        if self.has_changes() {
            self.acknowledge(reply, Err(error));
        } else {
            answer(reply, Err(error));
        }
    }

    /// The frame's payload.
    pub(super) fn encode(&self) -> BytesMut {
        let mut payload = BytesMut::with_capacity(self.bytes);
        self.operations.iter().for_each(|operation| operation.encode(&mut payload));
        payload
    }

    /// Inserts the changes, which are durable. They are seen once their number is published.
    pub(super) fn insert_into(&self, memtable: &Memtable) {
        memtable.insert_operations(&self.operations, self.bulk.as_ref());
    }

    /// The keys and prefixes that it changes.
    pub(super) fn changed(&self) -> Vec<Changed> {
        let changed = self.operations.iter().filter_map(|operation| match operation {
            Operation::Set { key, .. } | Operation::Erase { key, .. } => Some(Changed::Key(key.clone())),
            Operation::ErasePrefix { prefix, .. } => Some(Changed::Prefix(prefix.clone())),
            Operation::Bulk { .. } => self.bulk.clone().map(Changed::Bulk),
            // Large commits judge their intents again in any case.
            Operation::Intent { .. } => None,
        });
        changed.collect()
    }

    /// Answers all commits.
    pub(super) fn answer(&mut self, result: impl Fn() -> Result<(), StoreError>) {
        for acknowledge in self.acknowledge.drain(..) {
            acknowledge(result());
        }
    }

    fn apply(
        &mut self,
        changes: Vec<PlainChange>,
        current: &[Option<Current>],
        locations: Vec<Option<Location>>,
    ) -> Vec<ChangeOutcome> {
        let modified = now_millis();
        self.erase_prefixes(&changes);
        let mut outcomes = Vec::with_capacity(changes.len());
        for ((change, current), location) in changes.into_iter().zip(current.iter().copied()).zip(locations) {
            // Every change has a number of its own, so that no two sets give the same version.
            let number = self.number.saturating_add(1);
            outcomes.push(outcome(&change, current, number, self.store_id));
            match (change, location) {
                (PlainChange::Key { key, action: Action::Set(value), .. }, Some(location)) => {
                    self.number = number;
                    value.mark_committed();
                    self.replaced.extend(current.and_then(|current| current.file()));
                    let record = Record { commit: number, modified, location };
                    self.current.insert(key.clone(), Some(Current::of(&record)));
                    let record = record.encode(key.as_bytes(), self.store_id);
                    self.push(Operation::Set { key, number, record });
                    if value.file().is_some() {
                        self.staged.push(value);
                    }
                }
                (PlainChange::Key { key, action: Action::Erase, .. }, _) if current.is_some() => {
                    self.number = number;
                    self.replaced.extend(current.and_then(|current| current.file()));
                    self.current.insert(key.clone(), None);
                    self.push(Operation::Erase { key, number });
                }
                (PlainChange::Intent { id, record }, _) => self.change_intent(id, record),
                _ => {}
            }
        }
        outcomes
    }

    /// Erases of prefixes come before all other changes of their commit.
    fn erase_prefixes(&mut self, changes: &[PlainChange]) {
        for change in changes {
            if let PlainChange::ErasePrefix(prefix) = change {
                self.number = self.number.saturating_add(1);
                self.push(Operation::ErasePrefix { prefix: prefix.clone(), number: self.number });
            }
        }
    }

    fn change_intent(&mut self, id: IntentId, record: Option<Bytes>) {
        self.number = self.number.saturating_add(1);
        let number = self.number;
        let record = record.map(|record| {
            let record = Record { commit: number, modified: now_millis(), location: Location::Inline(record) };
            record.encode(&intent_key(id), self.store_id)
        });
        self.push(Operation::Intent { id, number, record });
    }

    fn push(&mut self, operation: Operation) {
        self.bytes = self.bytes.saturating_add(operation.encoded_len());
        self.operations.push(operation);
    }

    fn acknowledge<T: Send + 'static>(&mut self, reply: Reply<T>, outcome: Result<T, StoreError>) {
        self.acknowledge.push(Box::new(move |result| answer(reply, result.and(outcome))));
    }
}

/// The locations of the changes' values, read before anything is changed.
fn locations(changes: &[PlainChange]) -> Result<Vec<Option<Location>>, StoreError> {
    let locations = changes.iter().map(|change| match change {
        PlainChange::Key { action: Action::Set(value), .. } => value.location().map(Some),
        _ => Ok(None),
    });
    locations.collect()
}
