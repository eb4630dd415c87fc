//! What a run changed and what was acknowledged, and what a state may therefore hold.

use std::collections::{BTreeMap, BTreeSet};

use crate::{image::At, trace::Event};

/// A change of a key: a value of this length, or `None` for an erase.
pub(crate) type Change = (String, Option<u32>);

/// One or more changes that are made together.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) id: u64,
    pub(crate) changes: Vec<Change>,
    /// How many events there were then, it included; 0 for those of earlier runs.
    begun: At,
    /// The same; `At::MAX` where it never was.
    acknowledged: At,
}

/// The operations of a run and of those before it on the same store, in the order in which they began. The operations of
/// one key never overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    operations: Vec<Operation>,
    /// The operations of each key, by their numbers, with the length that each gives its value.
    keys: BTreeMap<String, Vec<(usize, Option<u32>)>>,
}

/// What was found of a key: the operation and the length of its value, or `None` where it has none.
pub(crate) type Found = Option<(u64, u32)>;

/// What is wrong with a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// It does not open.
    Refused,
    /// An acknowledged change is not there, or something is that never was.
    Lost,
    /// Some changes of a commit are there, others are not.
    Half,
    /// Anything else: the listing, the check, and what comes after the opening.
    Unsound,
}

impl History {
    fn push(&mut self, operation: Operation) {
        for (key, len) in &operation.changes {
            self.keys.entry(key.clone()).or_default().push((self.operations.len(), *len));
        }
        self.operations.push(operation);
    }

    /// The history with what the notes of a run say: `b ID KEY LEN|- …` and `a ID`.
    pub(crate) fn with_run(mut self, events: &[Event]) -> Self {
        for (event, at) in events.iter().zip(1..) {
            let Event::Note(text) = event else { continue };
            let mut words = text.trim_end().split(' ');
            match words.next() {
                Some("b") => self.push(operation(words, at, At::MAX)),
                Some("a") => {
                    let id: u64 = words.next().expect("an id").parse().expect("an id");
                    let mut begun = self.operations.iter_mut().rev();
                    begun.find(|operation| operation.id == id).expect("it was begun").acknowledged = at;
                }
                _ => {}
            }
        }
        self
    }

    /// What was begun and acknowledged up to a moment, as the history that a later run begins with.
    pub(crate) fn until(&self, now: At) -> Self {
        let mut history = Self::default();
        for operation in self.operations.iter().filter(|operation| operation.begun <= now) {
            let acknowledged = if operation.acknowledged <= now { 0 } else { At::MAX };
            history.push(Operation { begun: 0, acknowledged, ..operation.clone() });
        }
        history
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.keys().map(String::as_str)
    }

    pub(crate) fn save(&self) -> String {
        let line = |operation: &Operation| {
            let mark = if operation.acknowledged == At::MAX { "b" } else { "a" };
            format!("{mark} {}\n", words(operation.id, &operation.changes))
        };
        self.operations.iter().map(line).collect()
    }

    pub(crate) fn load(text: &str) -> Self {
        let mut history = Self::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            let acknowledged = if words.next() == Some("a") { 0 } else { At::MAX };
            history.push(operation(words, 0, acknowledged));
        }
        history
    }

    /// What is wrong with what was found in a state of this moment.
    pub(crate) fn judge(&self, now: At, found: &BTreeMap<String, Found>) -> Vec<(Fault, String)> {
        let mut faults = Vec::new();
        let mut spans = BTreeMap::new();
        for (key, operations) in &self.keys {
            let begun = operations.iter().take_while(|(number, _)| self.operations[*number].begun <= now).count();
            let operations = &operations[..begun];
            let acknowledged = operations.iter().rposition(|(number, _)| self.operations[*number].acknowledged <= now);
            let found = found.get(key).copied().flatten();
            // Positions count from 1; 0 is the time before all.
            let first = acknowledged.map_or(0, |position| position + 1);
            let fits = |position: &usize| self.outcome(operations, *position) == found;
            let fitting: Vec<usize> = (first..=operations.len()).filter(fits).collect();
            match (fitting.first(), fitting.last()) {
                (Some(low), Some(high)) => {
                    spans.insert(key.as_str(), (*low, *high));
                }
                _ => {
                    let wanted: Vec<String> =
                        (first..=operations.len()).map(|position| show(self.outcome(operations, position))).collect();
                    faults.push((Fault::Lost, format!("{key}: found {}, not {}", show(found), wanted.join(" or "))));
                }
            }
        }
        faults.extend(self.halves(now, &spans).map(|text| (Fault::Half, text)));
        faults
    }

    /// What the key holds after the operation at a position.
    fn outcome(&self, operations: &[(usize, Option<u32>)], position: usize) -> Found {
        let (number, len) = operations[position.checked_sub(1)?];
        len.map(|len| (self.operations[number].id, len))
    }

    /// The commits of which some keys show that they were made, and others that they were not.
    fn halves<'a>(
        &'a self,
        now: At,
        spans: &'a BTreeMap<&str, (usize, usize)>,
    ) -> impl Iterator<Item = String> + use<'a> {
        // Those that were acknowledged are made, or else keys are lost.
        let open = self.operations.iter().enumerate().filter(move |(_, operation)| {
            operation.begun <= now && operation.acknowledged > now && operation.changes.len() > 1
        });
        open.filter_map(|(number, operation)| {
            let (mut made, mut missing) = (BTreeSet::new(), BTreeSet::new());
            for (key, _) in &operation.changes {
                let Some((low, high)) = spans.get(key.as_str()) else { continue };
                let position = self.keys[key].binary_search_by_key(&number, |(number, _)| *number);
                let position = position.expect("an operation of the key") + 1;
                // A key that shows a later operation says nothing: after a crash that one may follow a commit that was
                // never made.
                if (*low, *high) == (position, position) {
                    made.insert(key);
                } else if *high < position {
                    missing.insert(key);
                }
            }
            let (one, other) = (made.first()?, missing.first()?);
            let (some, others) = (made.len(), missing.len());
            Some(format!("{}: made of {some} keys ({one}), not of {others} ({other})", id(operation.id)))
        })
    }
}

/// An operation's id and changes in words.
pub(crate) fn words(id: u64, changes: &[Change]) -> String {
    let mut text = id.to_string();
    for (key, len) in changes {
        text.push_str(&match len {
            Some(len) => format!(" {key} {len}"),
            None => format!(" {key} -"),
        });
    }
    text
}

fn operation<'w>(mut words: impl Iterator<Item = &'w str>, begun: At, acknowledged: At) -> Operation {
    let id = words.next().expect("an id").parse().expect("an id");
    let mut changes = Vec::new();
    while let (Some(key), Some(len)) = (words.next(), words.next()) {
        changes.push((key.to_owned(), len.parse().ok()));
    }
    Operation { id, changes, begun, acknowledged }
}

fn show(found: Found) -> String {
    match found {
        Some((operation, len)) => format!("{} ({len} bytes)", id(operation)),
        None => "nothing".to_owned(),
    }
}

/// An operation's id for readers: level, task and number.
fn id(id: u64) -> String {
    format!("{}.{}.{}", id >> 40, (id >> 32) & 0xff, id & 0xffff_ffff)
}
