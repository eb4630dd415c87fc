//! The changes of a run and their acknowledgements, which determine the valid contents of a crash state.

use std::collections::{BTreeMap, BTreeSet};

use crate::crash_states::{image::EventIndex, trace::Event};

/// A change of a key: a value of this length, or `None` for an erase.
pub(crate) type Change = (String, Option<u32>);

/// Changes that are committed together.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: u64,
    pub(crate) changes: Vec<Change>,
    /// The number of events up to and including the start; 0 for operations of earlier runs.
    started: EventIndex,
    /// The same for the acknowledgement; `EventIndex::MAX` if there was none.
    acknowledged: EventIndex,
}

/// The operations of a run and of earlier runs on the same store, in the order in which they started. The operations of
/// one key never overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    operations: Vec<Operation>,
    /// The operations of each key by number, each with the length of the value that it sets.
    keys: BTreeMap<String, Vec<(usize, Option<u32>)>>,
}

/// The observed state of a key: the operation and length of its value, or `None` if it has none.
pub(crate) type KeyState = Option<(u64, u32)>;

/// A defect of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The store does not open.
    Unopened,
    /// An acknowledged change is missing, or a value exists that was never written.
    Lost,
    /// A commit was applied partially.
    Partial,
    /// Any other defect: of the listing, of the check, or of operations after opening.
    Unsound,
}

impl History {
    fn push(&mut self, operation: Operation) {
        for (key, len) in &operation.changes {
            self.keys.entry(key.clone()).or_default().push((self.operations.len(), *len));
        }
        self.operations.push(operation);
    }

    /// The history extended by the notes of a run: `b ID KEY LEN|- …` and `a ID`.
    pub(crate) fn with_run(mut self, events: &[Event]) -> Self {
        for (event, at) in events.iter().zip(1..) {
            let Event::Note(text) = event else { continue };
            let mut describe = text.trim_end().split(' ');
            match describe.next() {
                Some("b") => self.push(operation(describe, at, EventIndex::MAX)),
                Some("a") => {
                    let id: u64 = describe.next().expect("an id").parse().expect("an id");
                    let mut started = self.operations.iter_mut().rev();
                    started.find(|operation| operation.id == id).expect("it was begun").acknowledged = at;
                }
                _ => {}
            }
        }
        self
    }

    /// The operations started and acknowledged up to an event, as the initial history of a later run.
    pub(crate) fn until(&self, now: EventIndex) -> Self {
        let mut history = Self::default();
        for operation in self.operations.iter().filter(|operation| operation.started <= now) {
            let acknowledged = if operation.acknowledged <= now { 0 } else { EventIndex::MAX };
            history.push(Operation { started: 0, acknowledged, ..operation.clone() });
        }
        history
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    pub(crate) fn save(&self) -> String {
        let line = |operation: &Operation| {
            let mark = if operation.acknowledged == EventIndex::MAX { "b" } else { "a" };
            format!("{mark} {}\n", describe(operation.id, &operation.changes))
        };
        self.operations.iter().map(line).collect()
    }

    pub(crate) fn load(text: &str) -> Self {
        let mut history = Self::default();
        for line in text.lines() {
            let mut describe = line.split(' ');
            let acknowledged = if describe.next() == Some("a") { 0 } else { EventIndex::MAX };
            history.push(operation(describe, 0, acknowledged));
        }
        history
    }

    /// The faults of a state at this event, given its observed keys.
    pub(crate) fn find_faults(&self, now: EventIndex, found: &BTreeMap<String, KeyState>) -> Vec<(Fault, String)> {
        let mut faults = Vec::new();
        let mut spans = BTreeMap::new();
        for (key, operations) in &self.keys {
            let started = operations.iter().take_while(|(number, _)| self.operations[*number].started <= now).count();
            let operations = &operations[..started];
            let acknowledged = operations.iter().rposition(|(number, _)| self.operations[*number].acknowledged <= now);
            let found = found.get(key).copied().flatten();
            // Positions count from 1; 0 stands for the time before all operations.
            let first = acknowledged.map_or(0, |position| position + 1);
            let fits = |position: &usize| self.outcome(operations, *position) == found;
            let fitting: Vec<usize> = (first..=operations.len()).filter(fits).collect();
            match (fitting.first(), fitting.last()) {
                (Some(low), Some(high)) => {
                    spans.insert(key.as_str(), (*low, *high));
                }
                _ => {
                    let expected: Vec<String> =
                        (first..=operations.len()).map(|position| show(self.outcome(operations, position))).collect();
                    faults.push((Fault::Lost, format!("{key}: found {}, not {}", show(found), expected.join(" or "))));
                }
            }
        }
        faults.extend(self.partial_commits(now, &spans).map(|text| (Fault::Partial, text)));
        faults
    }

    /// The state of a key after the operation at a position.
    fn outcome(&self, operations: &[(usize, Option<u32>)], position: usize) -> KeyState {
        let (number, len) = operations[position.checked_sub(1)?];
        len.map(|len| (self.operations[number].id, len))
    }

    /// The commits that some keys show as applied and others as not applied.
    fn partial_commits<'a>(
        &'a self,
        now: EventIndex,
        spans: &'a BTreeMap<&str, (usize, usize)>,
    ) -> impl Iterator<Item = String> + use<'a> {
        // Acknowledged operations were applied; otherwise keys are reported as lost.
        let open = self.operations.iter().enumerate().filter(move |(_, operation)| {
            operation.started <= now && operation.acknowledged > now && operation.changes.len() > 1
        });
        open.filter_map(|(number, operation)| {
            let (mut made, mut missing) = (BTreeSet::new(), BTreeSet::new());
            for (key, _) in &operation.changes {
                let Some((low, high)) = spans.get(key.as_str()) else { continue };
                let position = self.keys[key].binary_search_by_key(&number, |(number, _)| *number);
                let position = position.expect("an operation of the key") + 1;
                // A key that shows a later operation gives no evidence: after a crash, that operation may follow a
                // commit that was never applied.
                if (*low, *high) == (position, position) {
                    made.insert(key);
                } else if *high < position {
                    missing.insert(key);
                }
            }
            let (one, other) = (made.first()?, missing.first()?);
            let (applied, unapplied) = (made.len(), missing.len());
            Some(format!("{}: made of {applied} keys ({one}), not of {unapplied} ({other})", id(operation.id)))
        })
    }
}

/// Describes an operation's id and changes.
pub(crate) fn describe(id: u64, changes: &[Change]) -> String {
    let mut text = id.to_string();
    for (key, len) in changes {
        text.push_str(&match len {
            Some(len) => format!(" {key} {len}"),
            None => format!(" {key} -"),
        });
    }
    text
}

fn operation<'w>(
    mut describe: impl Iterator<Item = &'w str>,
    started: EventIndex,
    acknowledged: EventIndex,
) -> Operation {
    let id = describe.next().expect("an id").parse().expect("an id");
    let mut changes = Vec::new();
    while let (Some(key), Some(len)) = (describe.next(), describe.next()) {
        changes.push((key.to_owned(), len.parse().ok()));
    }
    Operation { id, changes, started, acknowledged }
}

fn show(found: KeyState) -> String {
    match found {
        Some((operation, len)) => format!("{} ({len} bytes)", id(operation)),
        None => "nothing".to_owned(),
    }
}

/// An operation's id in readable form: level, task and number.
fn id(id: u64) -> String {
    format!("{}.{}.{}", id >> 40, (id >> 32) & 0xff, id & 0xffff_ffff)
}
