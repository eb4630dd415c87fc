//! The records of an index, from the entries of its pages.

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry};

use bytes::Bytes;
use zarrd_store::Key;

use super::pages::{IndexPages, LostRange, ScannedEntry};
use crate::{
    damage::{GONE, LOST, LostKeys, is_placeholder},
    keyspace::{INTENTS, META_KEY, Meta, SWEEP, Sweeps, fingerprint, is_internal, logical_key},
    record::Record,
};

/// The records of an index, and how far they are known to be the last ones.
#[derive(Default)]
pub(crate) struct IndexState {
    pub(crate) records: BTreeMap<Key, IndexRecord>,
    /// The keys whose records are damaged.
    pub(crate) damaged: Vec<Key>,
    pub(crate) lost: Vec<LostRange>,
    /// The last commit group that the index has completely; `None` if that is unknown.
    pub(crate) applied: Option<u64>,
    /// The latest epoch of a record.
    pub(crate) epoch: u64,
    /// The number of intents.
    pub(crate) intents: u64,
}

/// A record in an index.
pub(crate) struct IndexRecord {
    pub(crate) record: Record,
    /// True if it is the last one of its key up to the commit group that the index has.
    pub(crate) current: bool,
}

/// The newest record of a physical key.
pub(crate) struct Newest {
    pub(crate) entry: ScannedEntry,
    pub(crate) record: Record,
}

/// The entries of an index, of which physical keys are not resolved yet.
pub(crate) struct Decoded {
    /// The newest records.
    pub(crate) newest: HashMap<Bytes, Newest>,
    /// The physical keys of damaged records.
    pub(crate) damaged: BTreeSet<Bytes>,
    /// Current entries of the damage that is known already.
    pub(crate) known_damage: BTreeMap<Bytes, Bytes>,
    pub(crate) sweeps: Sweeps,
    pub(crate) lost: Vec<LostRange>,
    /// True if the entries are all that the metadata entry counts.
    pub(crate) is_whole: bool,
    /// The last commit group that the index has completely; `None` if that is unknown.
    pub(crate) applied: Option<u64>,
    /// The number of entries according to the metadata entry.
    pub(crate) counted: u64,
}

impl Decoded {
    /// Decodes entries. Of several records of a key the one with the highest commit counts.
    pub(crate) fn new(entries: Vec<ScannedEntry>, mut lost: Vec<LostRange>, store_id: u64) -> Self {
        let (mut meta, mut sweeps, mut internal_is_current) = (None, Sweeps::default(), true);
        let mut newest: HashMap<Bytes, Newest> = HashMap::new();
        let (mut damaged, mut known_damage) = (BTreeSet::new(), BTreeMap::new());
        for entry in entries {
            if entry.key.starts_with(LOST) || entry.key.starts_with(GONE) {
                known_damage.extend(entry.current.then_some((entry.key, entry.value)));
                continue;
            }
            if is_internal(&entry.key) {
                internal_is_current &= entry.current;
                add_internal(&entry, &mut meta, &mut sweeps);
                continue;
            }
            match Record::decode(logical_key(&entry.key), entry.value.clone(), store_id) {
                Some(record) => add_newest(&mut newest, Newest { entry, record }),
                None => {
                    if entry.current && is_placeholder(&entry.value) {
                        known_damage.insert(entry.key.clone(), entry.value);
                    }
                    damaged.insert(entry.key);
                }
            }
        }
        let placeholders = || known_damage.iter().filter(|(key, _)| !is_internal(key));
        let is_whole = meta.as_ref().is_some_and(|(meta, _)| make_whole(&mut newest, placeholders(), meta));
        if is_whole {
            lost.clear();
            damaged.retain(|key| known_damage.contains_key(key));
        }
        let knows_sweeps =
            is_whole || internal_is_current && !lost.iter().any(|range| is_part(range) && range.contains(SWEEP));
        let counted = meta.as_ref().map_or(0, |(meta, _)| meta.entries);
        let applied = meta.filter(|(_, current)| is_whole || *current && knows_sweeps).map(|(meta, _)| meta.applied);
        Self { newest, damaged, known_damage, sweeps, lost, is_whole, applied, counted }
    }
}

impl IndexState {
    /// Resolves the keys of entries.
    pub(crate) fn new(pages: IndexPages, store_id: u64) -> Self {
        let Decoded { newest, damaged, known_damage, sweeps, lost, is_whole, applied, .. } =
            Decoded::new(pages.entries, pages.lost, store_id);
        let mut state = Self { lost, applied, ..Self::default() };
        // Names that were lost before are so still.
        state.lost.extend(
            known_damage.iter().filter_map(|(key, value)| LostKeys::decode(key, value)).map(|lost| LostRange {
                from: lost.from,
                to: lost.to,
                place: "index: an earlier damage".to_owned(),
            }),
        );
        // If no page and no record is damaged, the wrong entries can be any.
        let has_damage =
            || !state.lost.is_empty() || !damaged.is_empty() || newest.values().any(|it| !it.entry.current);
        let is_known = applied.is_some() && (is_whole || has_damage());
        state.add_records(newest, &sweeps, is_whole, is_known);
        state.add_damaged(damaged.into_iter());
        state
    }

    fn add_records(&mut self, newest: HashMap<Bytes, Newest>, sweeps: &Sweeps, is_whole: bool, is_known: bool) {
        for (physical, Newest { entry, record }) in newest {
            self.epoch = self.epoch.max(record.commit >> 40);
            if physical.starts_with(INTENTS) {
                self.intents = self.intents.saturating_add(1);
                continue;
            }
            let Some(key) = sweeps.is_live(&physical).then(|| Key::from_bytes(logical_key(&physical)).ok()).flatten()
            else {
                continue;
            };
            let found = IndexRecord { record, current: is_known && (is_whole || entry.current) };
            match self.records.entry(key) {
                Entry::Vacant(place) => drop(place.insert(found)),
                Entry::Occupied(mut place) if place.get().record.commit < found.record.commit => {
                    drop(place.insert(found))
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// Names the keys of damaged records that have no other one. Of a key that is damaged itself, another one is named.
    fn add_damaged(&mut self, damaged: impl Iterator<Item = Bytes>) {
        let keys = damaged.filter_map(|physical| Key::from_bytes(logical_key(&physical)).ok());
        self.damaged = keys.filter(|key| !self.records.get(key).is_some_and(|record| record.current)).collect();
    }
}

/// True if the range is not the whole of the index.
pub(crate) fn is_part(range: &LostRange) -> bool {
    !range.from.is_empty() || range.to.is_some()
}

/// Takes the newest metadata entry, and sweeps.
fn add_internal(entry: &ScannedEntry, meta: &mut Option<(Meta, bool)>, sweeps: &mut Sweeps) {
    if entry.key != META_KEY {
        return sweeps.add_entry(&entry.key, &entry.value);
    }
    let Some(found) = Meta::decode(&entry.value) else { return };
    if meta.as_ref().is_none_or(|(meta, current)| (meta.applied, *current) < (found.applied, entry.current)) {
        *meta = Some((found, entry.current));
    }
}

fn add_newest(newest: &mut HashMap<Bytes, Newest>, found: Newest) {
    use std::collections::hash_map::Entry;
    match newest.entry(found.entry.key.clone()) {
        Entry::Vacant(place) => drop(place.insert(found)),
        Entry::Occupied(mut place) => {
            let before = place.get();
            let is_newer = (before.record.commit, before.entry.current) < (found.record.commit, found.entry.current);
            if is_newer {
                place.insert(found);
            }
        }
    }
}

/// True if the entries are those that the metadata entry counts, whatever pages they are from. One that is not current
/// may be removed for that: it was erased, and an old page still has it.
fn make_whole<'p>(
    newest: &mut HashMap<Bytes, Newest>,
    placeholders: impl Iterator<Item = (&'p Bytes, &'p Bytes)>,
    meta: &Meta,
) -> bool {
    let mut counted = Meta::default();
    for (key, value) in placeholders {
        counted.add(key, value);
    }
    for (key, found) in newest.iter() {
        counted.add(key, &found.entry.value);
    }
    if counted.same_entries(meta) {
        return true;
    }
    if counted.entries != meta.entries.saturating_add(1) {
        return false;
    }
    let difference = counted.digest ^ meta.digest;
    let erased =
        newest.iter().find(|(key, found)| !found.entry.current && fingerprint(key, &found.entry.value) == difference);
    let Some(erased) = erased.map(|(key, _)| key.clone()) else { return false };
    newest.remove(&erased);
    true
}

#[cfg(test)]
mod tests {
    use zarrd_store::Prefix;

    use super::*;
    use crate::{
        keyspace::{Phase, Sweep, sweep_space_key},
        record::Location,
    };

    const STORE: u64 = 42;

    fn entry(physical: &[u8], commit: u64, current: bool) -> ScannedEntry {
        let record = Record {
            commit,
            modified: 1,
            attributes: zarrd_store::Attributes::NONE,
            location: Location::Inline(Bytes::from(commit.to_string())),
        };
        let value = record.encode(logical_key(physical), STORE);
        ScannedEntry { key: Bytes::copy_from_slice(physical), value, current }
    }

    fn meta(applied: u64, entries: u64) -> ScannedEntry {
        let meta = Meta { applied, entries, ..Meta::default() };
        ScannedEntry { key: Bytes::from_static(META_KEY), value: meta.encode(), current: true }
    }

    fn state(entries: Vec<ScannedEntry>) -> IndexState {
        IndexState::new(IndexPages { entries, lost: vec![LostRange::all("index: a page")], is_uncertain: true }, STORE)
    }

    fn commits(state: &IndexState) -> Vec<(&str, u64)> {
        state.records.iter().map(|(key, found)| (key.as_str(), found.record.commit)).collect()
    }

    #[test]
    fn of_several_records_of_a_key_the_highest_commit_counts() {
        let pages = [5, 9, 7].map(|commit| entry(b"a", commit, commit == 7));
        let found = state(pages.to_vec());
        assert_eq!(commits(&found), [("a", 9)]);
        assert!(!found.records.values().any(|record| record.current), "the index is not known to be whole");
    }

    #[test]
    fn entries_that_are_not_those_counted_are_uncertain_without_damage_that_explains_it() {
        let entries = || vec![entry(b"a", 1, true), entry(b"b", 2, true)];
        let current = |entries: Vec<ScannedEntry>, lost: Vec<LostRange>| {
            let state = IndexState::new(IndexPages { entries, lost, is_uncertain: false }, STORE);
            state.records.values().filter(|record| record.current).count()
        };
        let mut counted = Meta { applied: 9, ..Meta::default() };
        entries().iter().for_each(|entry| counted.add(&entry.key, &entry.value));
        let meta_key = Bytes::from_static(META_KEY);
        let all = || [entries(), vec![ScannedEntry { key: meta_key.clone(), value: counted.encode(), current: true }]];
        assert_eq!(current(all().concat(), Vec::new()), 2);
        let stale = [vec![entry(b"a", 0, true)], all().concat().split_off(1)].concat();
        assert_eq!(current(stale.clone(), Vec::new()), 0);
        let lost = LostRange { from: Bytes::from_static(b"c"), to: None, place: "index: a page".to_owned() };
        assert_eq!(current(stale, vec![lost]), 2, "the lost page may have had what is missing");
    }

    #[test]
    fn keys_of_damaged_records_are_named_unless_a_current_one_is_known() {
        let mut damaged = [entry(b"a", 5, true), entry(b"b", 6, false), entry(b"c", 6, false)];
        for entry in &mut damaged {
            entry.value = Bytes::from_static(b"noise, longer than a checksum");
        }
        let mut entries = vec![meta(9, 7), entry(b"b", 4, false), entry(b"c", 8, true)];
        entries.extend(damaged);
        let pages = IndexPages { entries, ..IndexPages::default() };
        let found = IndexState::new(pages, STORE);
        let named: Vec<&str> = found.damaged.iter().map(Key::as_str).collect();
        assert_eq!((found.applied, named), (Some(9), vec!["a", "b"]));
        assert_eq!(commits(&found), [("b", 4), ("c", 8)]);
    }

    #[test]
    fn entries_below_an_erased_prefix_are_dead() {
        let sweep = Sweep { number: 3, prefix: Prefix::parse("a/").unwrap(), phase: Phase::Deleting };
        let sweep = ScannedEntry { key: sweep.key(), value: sweep.encode(), current: true };
        let again = entry(&sweep_space_key(3, b"a/again"), 8, true);
        let earlier = entry(&sweep_space_key(2, b"a/earlier"), 2, true);
        let found = state(vec![meta(9, 4), sweep, entry(b"a/dead", 2, true), entry(b"b", 1, true), again, earlier]);
        assert_eq!(commits(&found), [("a/again", 8), ("b", 1)]);
    }
}
