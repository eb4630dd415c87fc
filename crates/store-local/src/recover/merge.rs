//! The last value of each key, from index, log and value files.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    sync::Arc,
};

use bytes::Bytes;
use zarrd_store::{IntentId, Key};

use super::{
    footers::FoundFile,
    log_scan::{LogScan, LoggedChange},
    value::{Certainty, Loss, RecoverableValue, Source},
};
use crate::{
    index_pages::IndexState,
    log::{BulkCommit, Operation},
    record::{FileRef, Record},
};

/// The last change of a key in the log.
struct Logged {
    number: u64,
    group: u64,
    /// `None` if the key was erased.
    record: Option<LoggedValue>,
}

enum LoggedValue {
    Record(Bytes),
    Bulk(Arc<BulkCommit>, usize),
}

/// The findings of a recovery, before they are merged.
pub(super) struct Found {
    index: IndexState,
    /// The last changes of keys in the log.
    logged: BTreeMap<Key, Logged>,
    /// Prefixes that were erased, with the numbers of the last erases.
    erased: HashMap<String, u64>,
    /// The last commit group whose changes are unknown; 0 if there is none, `u64::MAX` if the end of the log is.
    last_missing: u64,
    /// True if commit groups are missing that the index does not have.
    misses_changes: bool,
    losses: Vec<Loss>,
    files: BTreeMap<Key, FileRef>,
    intents: BTreeSet<IntentId>,
    store_id: u64,
}

impl Found {
    /// What can be found without the identity of the store, by which records and the log are checked.
    pub(super) fn without_identity() -> Self {
        let cause =
            "zarrd.json and its copy are damaged or missing, without which small values cannot be read".to_owned();
        let losses = vec![Loss::Range { from: String::new(), to: None, cause }];
        Self {
            index: IndexState::default(),
            logged: BTreeMap::new(),
            erased: HashMap::new(),
            last_missing: u64::MAX,
            misses_changes: true,
            losses,
            files: BTreeMap::new(),
            intents: BTreeSet::new(),
            store_id: 0,
        }
    }

    /// Merges an index and a log. `clean` has the epoch and the last commit group after a clean shutdown.
    pub(super) fn new(mut index: IndexState, log: LogScan, clean: Option<(u64, u64)>, store_id: u64) -> Self {
        let end = LogEnd::of(&log, clean, &index);
        let mut repaired = Vec::new();
        if log.from_start && end.missing_after(&log, 0).is_none() {
            // The log has every change, so the index is not needed.
            repaired = index.lost.drain(..).map(|range| Loss::Damage { cause: range.place }).collect();
            index.applied = Some(index.applied.unwrap_or_default());
        }
        let applied = index.applied.unwrap_or_default();
        let missing = end.missing_after(&log, applied);
        let last_missing = end.missing_after(&log, 0).map_or(0, |(_, last)| last);
        let needed = log.damaged_commits.iter().filter(|(group, _)| *group > applied).map(|(_, cause)| cause);
        let damage = log.damage.iter().chain(needed).map(|cause| Loss::Damage { cause: cause.clone() });
        let mut losses: Vec<Loss> = damage.chain(repaired).collect();
        if let Some((first, last)) = missing {
            losses.push(Loss::Range { from: String::new(), to: None, cause: missing_groups(first, last) });
        }
        let mut found = Self {
            index,
            logged: BTreeMap::new(),
            erased: HashMap::new(),
            last_missing,
            misses_changes: missing.is_some(),
            losses,
            files: BTreeMap::new(),
            intents: BTreeSet::new(),
            store_id,
        };
        for (group, changes) in log.groups {
            for change in changes {
                found.apply(group, change);
            }
        }
        found
    }

    /// True if keys may exist that neither index nor log name.
    pub(super) fn needs_footers(&self) -> bool {
        self.misses_changes || self.index.applied.is_none() || !self.index.lost.is_empty()
    }

    /// Adds a value file, of which index and log may know nothing.
    pub(super) fn add_file(&mut self, found: FoundFile) {
        let FoundFile { key, file } = found;
        if self.index.records.contains_key(&key) || self.logged.contains_key(&key) {
            return;
        }
        if !self.misses_changes
            && self.index.applied.is_some()
            && !self.index.lost.iter().any(|range| range.contains(key.as_bytes()))
        {
            return;
        }
        match self.files.entry(key) {
            Entry::Vacant(place) => drop(place.insert(file)),
            Entry::Occupied(mut place) if place.get().id < file.id => drop(place.insert(file)),
            Entry::Occupied(_) => {}
        }
    }

    /// Adds damage that concerns no key.
    pub(super) fn add_damage(&mut self, cause: String) {
        self.losses.push(Loss::Damage { cause });
    }

    /// The values in the order of their keys, the losses, and the number of operations that were under way.
    pub(super) fn into_values(mut self) -> (Vec<RecoverableValue>, Vec<Loss>, u64) {
        let mut values = Vec::new();
        let mut losses = std::mem::take(&mut self.losses);
        let records = std::mem::take(&mut self.index.records);
        let mut logged = std::mem::take(&mut self.logged);
        for (key, found) in records {
            let is_certain = found.current && !self.misses_changes;
            // The same change in the log may be known better than in the index.
            let counts = |change: &Logged| match change.number.cmp(&found.record.commit) {
                Ordering::Greater => true,
                Ordering::Equal => !is_certain,
                Ordering::Less => false,
            };
            let change = logged.remove(&key).filter(counts);
            if let Some(change) = change {
                self.add_logged(key, change, &mut values, &mut losses);
            } else if !self.is_erased_after(&key, found.record.commit) {
                let certainty = self.certainty(is_certain);
                values.push(RecoverableValue { key, certainty, source: Source::Record(found.record) });
            }
        }
        for (key, change) in logged {
            self.add_logged(key, change, &mut values, &mut losses);
        }
        let named: BTreeSet<&Key> = values.iter().map(|value| &value.key).collect();
        let lost = self.index.damaged.iter().filter(|key| !named.contains(key));
        let cause = "its record in the index is damaged";
        losses.extend(lost.map(|key| Loss::Value { key: key.clone(), cause: cause.to_owned() }));
        for (key, file) in std::mem::take(&mut self.files) {
            values.push(RecoverableValue { key, certainty: Certainty::Doubtful, source: Source::File(file) });
        }
        let text = |key: &[u8]| String::from_utf8_lossy(key).trim_start_matches(|first| first < ' ').to_owned();
        losses.extend(self.index.lost.iter().map(|range| Loss::Range {
            from: text(&range.from),
            to: range.to.as_deref().map(text),
            cause: range.place.clone(),
        }));
        // Parts of uploads are of no use without their versions, which are those of this store.
        values.retain(|value| !value.key.is_hidden());
        losses.retain(|loss| !matches!(loss, Loss::Value { key, .. } if key.is_hidden()));
        values.sort_by(|one, other| one.key.cmp(&other.key));
        let operations = self.index.intents.max(self.intents.len() as u64);
        (values, losses, operations)
    }

    fn certainty(&self, is_certain: bool) -> Certainty {
        if is_certain { Certainty::Certain } else { Certainty::Doubtful }
    }

    /// Adds the value that the last change of a key in the log sets.
    fn add_logged(&self, key: Key, change: Logged, values: &mut Vec<RecoverableValue>, losses: &mut Vec<Loss>) {
        let Some(value) = change.record.filter(|_| !self.is_erased_after(&key, change.number)) else { return };
        let source = match value {
            LoggedValue::Bulk(bulk, index) => Some(Source::Bulk(bulk, index)),
            LoggedValue::Record(bytes) => Record::decode(key.as_bytes(), bytes, self.store_id).map(Source::Record),
        };
        match source {
            Some(source) => {
                let certainty = self.certainty(change.group > self.last_missing);
                values.push(RecoverableValue { key, certainty, source });
            }
            None => losses.push(Loss::Value { key, cause: "its record in the log is damaged".to_owned() }),
        }
    }

    fn is_erased_after(&self, key: &Key, number: u64) -> bool {
        let text = key.as_str();
        let slashes = text.match_indices('/').filter_map(|(at, _)| text.get(..=at));
        let mut prefixes = slashes.chain([""]);
        prefixes.any(|prefix| self.erased.get(prefix).is_some_and(|erase| *erase > number))
    }

    fn apply(&mut self, group: u64, change: LoggedChange) {
        match change {
            LoggedChange::Bulk(bulk) => {
                for (index, entry) in bulk.entries().iter().enumerate() {
                    let record = entry.is_set().then(|| LoggedValue::Bulk(Arc::clone(&bulk), index));
                    self.log(entry.key.clone(), Logged { number: bulk.number_of(index), group, record });
                }
            }
            LoggedChange::Operation(Operation::Set { key, number, record }) => {
                self.log(key, Logged { number, group, record: Some(LoggedValue::Record(record)) });
            }
            LoggedChange::Operation(Operation::Erase { key, number }) => {
                self.log(key, Logged { number, group, record: None });
            }
            LoggedChange::Operation(Operation::ErasePrefix { prefix, number }) => {
                let last = self.erased.entry(prefix.as_str().to_owned()).or_default();
                *last = number.max(*last);
            }
            LoggedChange::Operation(Operation::Intent { id, record, .. }) => {
                match record {
                    Some(_) => self.intents.insert(id),
                    None => self.intents.remove(&id),
                };
            }
            // Its file was read with its group.
            LoggedChange::Operation(Operation::Bulk { .. }) => {}
        }
    }

    fn log(&mut self, key: Key, change: Logged) {
        match self.logged.entry(key) {
            Entry::Vacant(place) => drop(place.insert(change)),
            Entry::Occupied(mut place) if place.get().number < change.number => drop(place.insert(change)),
            Entry::Occupied(_) => {}
        }
    }
}

/// The last commit group of the store, as far as it is known.
#[derive(Clone, Copy)]
enum LogEnd {
    /// After this group the store was shut down.
    Clean(u64),
    /// It is the last one in the log.
    Logged,
    Unknown,
}

impl LogEnd {
    fn of(log: &LogScan, clean: Option<(u64, u64)>, index: &IndexState) -> Self {
        match clean {
            Some((epoch, applied)) if epoch >= log.epoch.max(index.epoch) && applied >= log.last_group() => {
                Self::Clean(applied)
            }
            // A record of a later epoch tells that the segments of that epoch are missing, and so does a later group.
            _ if log.open_end || index.epoch > log.epoch => Self::Unknown,
            _ if index.applied.is_some_and(|applied| applied > log.last_group()) => Self::Unknown,
            _ => Self::Logged,
        }
    }

    /// The first and the last group after one whose changes are unknown.
    fn missing_after(self, log: &LogScan, applied: u64) -> Option<(u64, u64)> {
        let missing = log.missing_after(applied);
        let behind = log.last_group().max(applied).saturating_add(1);
        match self {
            Self::Clean(last) if last >= behind => Some((missing.map_or(behind, |(first, _)| first), last)),
            Self::Unknown => Some((missing.map_or(behind, |(first, _)| first), u64::MAX)),
            Self::Clean(_) | Self::Logged => missing,
        }
    }
}

fn missing_groups(first: u64, last: u64) -> String {
    match last {
        u64::MAX => format!("commit groups from {first} on may be missing from the log"),
        last => format!("commit groups {first} to {last} are missing from the log"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FileId;

    #[test]
    fn of_several_files_of_a_key_the_newest_is_taken() {
        let mut found = Found::without_identity();
        let key = Key::parse("a").unwrap();
        for (id, size) in [(5, 50), (9, 90), (7, 70)] {
            found.add_file(FoundFile { key: key.clone(), file: FileRef { id: FileId(id), size, checksum: 0 } });
        }
        let (values, ..) = found.into_values();
        assert_eq!(values.iter().map(RecoverableValue::size).collect::<Vec<_>>(), [90]);
        assert_eq!(values[0].certainty, Certainty::Doubtful);
    }

    #[test]
    fn files_of_keys_that_the_log_names_are_left_out() {
        let mut found = Found::without_identity();
        let key = Key::parse("a").unwrap();
        found.log(key.clone(), Logged { number: 1, group: 1, record: None });
        found.add_file(FoundFile { key, file: FileRef { id: FileId(5), size: 50, checksum: 0 } });
        let (values, ..) = found.into_values();
        assert!(values.is_empty(), "it was erased: {values:?}");
    }
}
