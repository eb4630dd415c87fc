//! Commit groups: the commits that one sync makes durable.

use std::{collections::HashMap, sync::Arc};

use bytes::{Bytes, BytesMut};
use zarrd_store::{Attributes, ChangeOutcome, Intent, IntentId, Key, Prefix, StoreError};

use super::{
    Action, PlainChange, Reply, StagedValue, answer,
    bulk::{Bulk, VisibleState},
    preconditions::{KeyState, State, check_changes, outcome},
    recent::Changed,
};
use crate::{
    gc::ReplacedFile,
    keyspace::intent_key,
    log::{BulkCommit, Operation},
    record::{Location, Record, now_millis},
    view::{Memtable, View},
};

/// The changes of a commit, and its reply.
pub(super) type PlainCommit = (Vec<PlainChange>, Reply<Vec<ChangeOutcome>>);

/// Acknowledges a commit with the result of its group.
type Acknowledge = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Commits that are checked and not yet durable.
pub(crate) struct CommitGroup {
    pub(super) operations: Vec<Operation>,
    /// The size of the operations in the log, in bytes.
    pub(super) bytes: usize,
    /// The state of the keys that the group itself changes.
    current: HashMap<Key, Option<KeyState>>,
    bulk: Option<Arc<BulkCommit>>,
    /// The number of the last change.
    pub(super) number: u64,
    pub(super) replaced: Vec<ReplacedFile>,
    pub(super) staged: Vec<Arc<StagedValue>>,
    acknowledge: Vec<Acknowledge>,
    store_id: u64,
}

/// The visible state with the group's changes applied.
struct GroupState<'r> {
    group: &'r CommitGroup,
    visible: VisibleState<'r>,
}

impl State for GroupState<'_> {
    fn current(&self, key: &Key) -> Result<Option<KeyState>, StoreError> {
        match self.group.current.get(key) {
            Some(current) => Ok(*current),
            None => self.visible.current(key),
        }
    }

    fn first_below(&self, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
        // A commit that checks prefixes is a group by itself.
        self.visible.first_below(prefix)
    }

    fn has_intent(&self, id: IntentId) -> Result<bool, StoreError> {
        // As above.
        self.visible.has_intent(id)
    }

    fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        self.visible.intents()
    }
}

impl CommitGroup {
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

    /// True if the group has anything to make durable.
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

    /// Adds a commit if its preconditions hold, and rejects it otherwise. Returns it if the index cannot be read now.
    pub(super) fn add(&mut self, view: &View, commit: PlainCommit) -> Result<(), PlainCommit> {
        let (changes, reply) = commit;
        let state = GroupState { group: self, visible: VisibleState(view) };
        let locations =
            check_changes(&changes, &state, self.store_id).and_then(|current| Ok((current, locations(&changes)?)));
        match locations {
            Ok((current, locations)) => {
                let outcomes = self.apply(changes, &current, locations);
                self.acknowledge(reply, Ok(outcomes));
            }
            Err(StoreError::Busy { .. }) => return Err((changes, reply)),
            Err(error) => self.reject(reply, error),
        }
        Ok(())
    }

    /// Adds a large commit, which has been checked.
    pub(super) fn add_bulk(&mut self, bulk: Bulk, reply: Reply<Vec<ChangeOutcome>>) {
        self.erase_prefixes(&bulk.changes);
        let positions: Vec<Option<usize>> =
            bulk.changes.iter().map(|change| change.key().and_then(|key| bulk.position_of(key))).collect();
        let Bulk { changes, current, prepared, .. } = bulk;
        let commit = Arc::new(prepared.with_number(self.number));
        self.number = commit.number().max(self.number);
        let mut outcomes = Vec::with_capacity(changes.len());
        for ((change, current), index) in changes.into_iter().zip(current).zip(positions) {
            let number = index.map_or(self.number, |index| commit.number_of(index));
            outcomes.push(outcome(&change, current, number, self.store_id));
            match change {
                PlainChange::Key { action: Action::Set(value, _), .. } => {
                    value.mark_committed();
                    self.replaced.extend(current.and_then(|current| current.file()));
                    if value.file().is_some() {
                        self.staged.push(value);
                    }
                }
                PlainChange::Key { action: Action::Put(_) | Action::Written | Action::Erase, .. } => {
                    self.replaced.extend(current.and_then(|current| current.file()));
                }
                PlainChange::Intent { id, record } => self.change_intent(id, record),
                PlainChange::Key { action: Action::Check, .. } => {}
                PlainChange::ErasePrefix(_) | PlainChange::CheckEmpty(_) => {}
                PlainChange::CheckIntent(_) | PlainChange::CheckNoIntent(_) => {}
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

    /// Rejects a commit. The reply waits until the group is durable, because the conflicting change may be in it.
    pub(super) fn reject<T: Send + 'static>(&mut self, reply: Reply<T>, error: StoreError) {
        if self.has_changes() {
            self.acknowledge(reply, Err(error));
        } else {
            answer(reply, Err(error));
        }
    }

    /// The payload of the group's frame.
    pub(super) fn encode(&self) -> BytesMut {
        let mut payload = BytesMut::with_capacity(self.bytes);
        self.operations.iter().for_each(|operation| operation.encode(&mut payload));
        payload
    }

    /// Inserts the changes into a memtable. Readers see them once their number is published.
    pub(super) fn insert_into(&self, memtable: &Memtable) {
        memtable.insert_operations(&self.operations, self.bulk.as_ref());
    }

    /// The keys and prefixes that the group changes.
    pub(super) fn changed(&self) -> Vec<Changed> {
        let changed = self.operations.iter().filter_map(|operation| match operation {
            Operation::Set { key, .. } | Operation::Erase { key, .. } => Some(Changed::Key(key.clone())),
            Operation::ErasePrefix { prefix, .. } => Some(Changed::Prefix(prefix.clone())),
            Operation::Bulk { .. } => self.bulk.clone().map(Changed::Bulk),
            // Large commits always check their intents again.
            Operation::Intent { .. } => None,
        });
        changed.collect()
    }

    /// Replies to all commits.
    pub(super) fn answer(&mut self, result: impl Fn() -> Result<(), StoreError>) {
        for acknowledge in self.acknowledge.drain(..) {
            acknowledge(result());
        }
    }

    fn apply(
        &mut self,
        changes: Vec<PlainChange>,
        current: &[Option<KeyState>],
        locations: Vec<Option<Location>>,
    ) -> Vec<ChangeOutcome> {
        let modified = now_millis();
        self.erase_prefixes(&changes);
        let mut outcomes = Vec::with_capacity(changes.len());
        for ((change, current), location) in changes.into_iter().zip(current.iter().copied()).zip(locations) {
            // Each change has its own number, so that no two sets have the same version.
            let number = self.number.saturating_add(1);
            outcomes.push(outcome(&change, current, number, self.store_id));
            match (change, location) {
                (PlainChange::Key { key, action: action @ (Action::Set(..) | Action::Put(_)), .. }, Some(location)) => {
                    self.number = number;
                    self.replaced.extend(current.and_then(|current| current.file()));
                    let attributes = match &action {
                        Action::Set(_, attributes) => attributes.clone(),
                        _ => Attributes::NONE,
                    };
                    let record = Record { commit: number, modified, attributes, location };
                    self.current.insert(key.clone(), Some(KeyState::of(&record)));
                    let record = record.encode(key.as_bytes(), self.store_id);
                    self.push(Operation::Set { key, number, record });
                    if let Action::Set(value, _) = action {
                        value.mark_committed();
                        self.staged.extend(Some(value).filter(|value| value.file().is_some()));
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

    /// Applies the erases of prefixes, which precede all other changes of their commit.
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
            let (modified, attributes) = (now_millis(), Attributes::NONE);
            let record = Record { commit: number, modified, attributes, location: Location::Inline(record) };
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

/// The locations of the changes' values. Spilled values are read here, before anything changes.
fn locations(changes: &[PlainChange]) -> Result<Vec<Option<Location>>, StoreError> {
    let locations = changes.iter().map(|change| match change {
        PlainChange::Key { action: Action::Set(value, _), .. } => value.location().map(Some),
        PlainChange::Key { action: Action::Put(value), .. } => Ok(Some(Location::Inline(value.clone()))),
        _ => Ok(None),
    });
    locations.collect()
}
