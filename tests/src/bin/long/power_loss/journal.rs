//! The writer's journal: operations that it starts, and operations that were acknowledged.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{BufRead, Write},
};

/// The valid states of each key after a loss of power.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal(BTreeMap<u32, Entry>);

/// The history of a key. A key has one writer, so at most one operation is unacknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The last acknowledged operation; 0 if there was none.
    acknowledged: Operation,
    /// The last started operation.
    started: Operation,
    count: u64,
}

/// A set with this number, or an erase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    #[default]
    Erase,
    Set(u32),
}

impl Journal {
    /// Records a line: `b` or `a` (begun, acknowledged), the key, and the number of the set, or `-` for an erase.
    pub(crate) fn note(&mut self, line: &str) {
        let mut words = line.split(' ');
        let (Some(kind), Some(key), Some(what)) = (words.next(), words.next(), words.next()) else { return };
        let operation = match what {
            "-" => Operation::Erase,
            number => Operation::Set(number.parse().expect("a number")),
        };
        let entry = self.0.entry(key.parse().expect("a key")).or_default();
        match kind {
            "b" => entry.started = operation,
            "a" => {
                entry.acknowledged = operation;
                entry.count += 1;
            }
            _ => panic!("the writer wrote {line:?}"),
        }
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.0.values().map(|entry| entry.count).sum()
    }

    pub(crate) fn live(&self) -> usize {
        self.0.values().filter(|entry| entry.acknowledged != Operation::Erase).count()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, Entry)> + '_ {
        self.0.iter().map(|(key, entry)| (*key, *entry))
    }

    pub(crate) fn save(&self, mut to: impl Write) {
        let mut text = String::new();
        for (key, entry) in &self.0 {
            let show = |operation| match operation {
                Operation::Erase => "-".to_owned(),
                Operation::Set(number) => number.to_string(),
            };
            writeln!(text, "a {key} {}", show(entry.acknowledged)).expect("text");
            writeln!(text, "b {key} {}", show(entry.started)).expect("text");
        }
        to.write_all(text.as_bytes()).expect("save the journal");
    }

    pub(crate) fn load(from: impl BufRead) -> Self {
        let mut journal = Self::default();
        for line in from.lines() {
            journal.note(&line.expect("a line"));
        }
        journal
    }
}

impl Entry {
    /// True if this state is valid: the last acknowledged operation, or the one started after it.
    pub(crate) fn allows(&self, state: Operation) -> bool {
        state == self.acknowledged || state == self.started
    }
}
