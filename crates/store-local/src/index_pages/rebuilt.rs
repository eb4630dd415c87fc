//! The certain entries of a damaged index, from which a new one is made.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::{Key, Prefix};

use super::{
    index_state::{Decoded, Newest, is_part},
    pages::{IndexPages, LostRange},
};
use crate::{
    damage::{LostKeys, MAX_LOST_RANGES, placeholder},
    keyspace::{FIRST_HIDDEN, FIRST_KEY, INTENTS, is_internal, logical_key},
};

/// The name of placeholders of lost names, with a number behind it.
const LOST_NAMES: &str = "damaged-keys-";

/// The entries of a new index. None of them is in the space of a sweep.
#[derive(Debug)]
pub(crate) struct RebuiltIndex {
    /// Records, placeholders, intents and the known damage, by their physical keys.
    pub(crate) entries: BTreeMap<Bytes, Bytes>,
    /// The last commit group that they have completely.
    pub(crate) applied: u64,
    /// The number of keys whose records are lost.
    pub(crate) lost_records: usize,
    /// The number of ranges of keys whose names are lost.
    pub(crate) lost_ranges: usize,
}

impl RebuiltIndex {
    pub(super) fn of(pages: IndexPages, store_id: u64) -> Option<Self> {
        let is_uncertain = pages.is_uncertain;
        let Decoded { newest, damaged, known_damage, sweeps, lost, is_whole, applied, counted } =
            Decoded::new(pages.entries, pages.lost, store_id);
        let applied = applied?;
        // What is lost of internal entries, intents and sweeps cannot be named.
        let can_be_named = |range: &LostRange| is_part(range) && &*range.from >= FIRST_HIDDEN.as_bytes();
        let is_bounded = !is_uncertain && lost.iter().all(can_be_named) && sweeps.0.is_empty();
        if !is_whole && (!is_bounded || lost.len() > MAX_LOST_RANGES / 64) {
            return None;
        }
        // The keys of the lost records that are known. One that is in an earlier state of a page may be among them.
        let mut names: BTreeSet<Bytes> = damaged.into_iter().filter(|key| !key.starts_with(INTENTS)).collect();
        let mut records: BTreeMap<Bytes, (u64, Bytes)> = BTreeMap::new();
        let mut entries = BTreeMap::new();
        for (physical, Newest { entry, record }) in newest {
            let is_certain = is_whole || entry.current;
            if physical.starts_with(INTENTS) {
                entries.extend(is_certain.then_some((physical, entry.value)));
                continue;
            }
            if !sweeps.is_live(&physical) {
                continue;
            }
            let key = Bytes::copy_from_slice(logical_key(&physical));
            if is_certain {
                let (commit, value) = records.entry(key).or_insert_with(|| (record.commit, entry.value.clone()));
                if *commit < record.commit {
                    (*commit, *value) = (record.commit, entry.value);
                }
            } else if lost.iter().any(|range| range.contains(&key)) {
                names.insert(key);
            }
        }
        entries.extend(records.into_iter().map(|(key, (_, value))| (key, value)));
        entries.extend(known_damage);
        let mut rebuilt = Self { entries, applied, lost_records: 0, lost_ranges: 0 };
        let certain = rebuilt.counted().count() as u64;
        rebuilt.add_names(names, &lost);
        // Without a damaged page or record, entries are missing, too many or stale, which has no bounds. Those of another store
        // are all damaged.
        let lost_records = rebuilt.lost_records as u64;
        let is_explained = (1..certain).contains(&lost_records) && rebuilt.counted().count() as u64 == counted;
        if !is_whole && (certain == 0 || certain > counted || lost.is_empty() && !is_explained) {
            return None;
        }
        lost.iter().for_each(|range| rebuilt.add_lost_range(range));
        Some(rebuilt)
    }

    /// Adds placeholders for keys without a record.
    fn add_names(&mut self, names: BTreeSet<Bytes>, lost: &[LostRange]) {
        for name in names {
            if self.entries.contains_key(&name) || Key::from_stored(&name).is_err() {
                continue;
            }
            let range = lost.iter().find(|range| range.contains(&name));
            let cause = range.map_or("its checksum", |range| &range.place);
            self.entries.insert(name, placeholder(cause));
            self.lost_records = self.lost_records.saturating_add(1);
        }
    }

    /// Adds the entries of lost names: each part of the range that is in one directory has a placeholder there.
    fn add_lost_range(&mut self, range: &LostRange) {
        let from = (&*range.from).max(FIRST_KEY);
        for (directory, from, to) in parts(from, range.to.as_deref()) {
            let bounds = [&from, b"\0".as_slice(), to.as_deref().unwrap_or_default()].concat();
            let name = format!("{LOST_NAMES}{:016x}", xxh3_64(&bounds));
            let Ok(placeholder_key) = directory.join(&name) else { continue };
            let key = Bytes::copy_from_slice(placeholder_key.as_bytes());
            let lost = LostKeys { placeholder: placeholder_key, from: from.into(), to: to.map(Into::into) };
            self.entries.insert(lost.key(), lost.encode());
            self.entries.insert(key, placeholder(&range.place));
            self.lost_ranges = self.lost_ranges.saturating_add(1);
        }
    }

    /// The entries that the metadata entry counts.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.entries.iter().filter(|(key, _)| !is_internal(key))
    }
}

/// Divides a range of keys into parts, each with the directory in which all of its keys are.
fn parts(from: &[u8], to: Option<&[u8]>) -> Vec<(Prefix, Vec<u8>, Option<Vec<u8>>)> {
    let mut parts = Vec::new();
    let mut from = from.to_vec();
    // Up from the directory of the first key, to one that has the end too.
    loop {
        let directory = directory_of(&from);
        let end = directory.upper_bound().map(String::into_bytes);
        match (&end, to) {
            (Some(end), to) if to.is_none_or(|to| to > end.as_slice()) => {
                let before = std::mem::replace(&mut from, end.clone());
                parts.push((directory, before, Some(end.clone())));
            }
            (_, None) => {
                parts.push((directory, from, None));
                return parts;
            }
            (_, Some(to)) => {
                parts.extend(parts_below(directory, from, to));
                return parts;
            }
        }
    }
}

/// The same for a directory that has the end of the range: down to the directory of that.
fn parts_below(mut directory: Prefix, mut from: Vec<u8>, to: &[u8]) -> Vec<(Prefix, Vec<u8>, Option<Vec<u8>>)> {
    let mut parts = Vec::new();
    loop {
        let below = to.get(directory.as_bytes().len()..).unwrap_or_default();
        let child = below.iter().position(|byte| *byte == b'/').and_then(|slash| {
            let end = directory.as_bytes().len().saturating_add(slash).saturating_add(1);
            Prefix::from_bytes(to.get(..end)?).ok()
        });
        let end = child.as_ref().map_or(to, Prefix::as_bytes).to_vec();
        if from < end {
            parts.push((directory.clone(), from, Some(end.clone())));
        }
        match child {
            Some(child) if to > end.as_slice() => (directory, from) = (child, end),
            _ => return parts,
        }
    }
}

/// The directory of a key or of a text between keys.
fn directory_of(text: &[u8]) -> Prefix {
    let slashes = text.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let mut prefixes = slashes.filter_map(|(at, _)| Prefix::from_bytes(text.get(..=at)?).ok());
    prefixes.next().unwrap_or_else(Prefix::root)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zarrd_store::Attributes;

    use super::*;
    use crate::{
        damage::is_placeholder,
        index_pages::pages::ScannedEntry,
        keyspace::{META_KEY, Meta},
        record::{Location, Record},
    };

    const STORE: u64 = 42;

    fn entry(key: &str, commit: u64, current: bool) -> ScannedEntry {
        let location = Location::Inline(Bytes::from_static(b"value"));
        let record = Record { commit, modified: 1, attributes: Attributes::NONE, location };
        let key = Bytes::copy_from_slice(key.as_bytes());
        ScannedEntry { value: record.encode(&key, STORE), key, current }
    }

    /// A metadata entry that counts some entries.
    fn meta(counted: &[ScannedEntry]) -> ScannedEntry {
        let mut meta = Meta { applied: 9, ..Meta::default() };
        counted.iter().for_each(|entry| meta.add(&entry.key, &entry.value));
        ScannedEntry { key: Bytes::from_static(META_KEY), value: meta.encode(), current: true }
    }

    fn rebuilt(meta: ScannedEntry, mut entries: Vec<ScannedEntry>, lost: Option<(&str, &str)>) -> Option<RebuiltIndex> {
        entries.push(meta);
        let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let range =
            |(from, to)| LostRange { from: bytes(from), to: Some(bytes(to)), place: "index: a page".to_owned() };
        let pages = IndexPages { entries, lost: lost.map(range).into_iter().collect(), is_uncertain: false };
        RebuiltIndex::of(pages, STORE)
    }

    #[test]
    fn entries_that_no_damaged_page_explains_are_refused() {
        let all = [entry("a", 1, true), entry("b", 2, true), entry("c", 3, true)];
        assert!(rebuilt(meta(&all), all.to_vec(), None).is_some_and(|whole| whole.lost_records == 0));
        // One is missing, one is stale, one is foreign.
        assert!(rebuilt(meta(&all), all[..2].to_vec(), None).is_none());
        let stale = vec![entry("a", 1, true), entry("b", 1, true), entry("c", 3, true)];
        assert!(rebuilt(meta(&all), stale, None).is_none());
        let foreign = [all.as_slice(), &[entry("d", 4, true)]].concat();
        assert!(rebuilt(meta(&all), foreign.clone(), None).is_none());
        assert!(rebuilt(meta(&all), foreign, Some(("e", "f"))).is_none());
        // Part of the index's own entries are lost, or all of it.
        assert!(rebuilt(meta(&all), all[1..].to_vec(), Some(("", "b"))).is_none());
    }

    #[test]
    fn records_of_a_lost_page_have_placeholders_and_others_stay() {
        let all = [entry("a/1", 1, true), entry("a/2", 2, false), entry("b", 3, true)];
        let counted = [all[0].clone(), entry("a/2", 5, true), all[2].clone()];
        let found = rebuilt(meta(&counted), all.to_vec(), Some(("a/15", "a/5"))).unwrap();
        assert_eq!((found.applied, found.lost_records, found.lost_ranges), (9, 1, 1));
        let value = |key: &str| found.entries.get(key.as_bytes()).unwrap();
        assert!(is_placeholder(value("a/2")), "its last record is not known");
        assert_eq!((value("a/1"), value("b")), (&all[0].value, &all[2].value));
        let marked = found.entries.keys().filter(|key| key.starts_with(b"a/damaged-keys-")).count();
        assert_eq!(marked, 1, "{found:?}");
    }

    #[test]
    fn damaged_record_in_a_current_page_has_a_placeholder() {
        let all = [entry("a", 1, true), entry("b", 2, true), entry("c", 3, true)];
        let mut damaged = all.to_vec();
        damaged[1].value = Bytes::from_static(b"noise, longer than a checksum");
        let found = rebuilt(meta(&all), damaged.clone(), None).unwrap();
        assert!(is_placeholder(&found.entries[b"b".as_slice()]) && found.lost_records == 1);
        // Those of another store are all damaged.
        damaged.iter_mut().for_each(|entry| entry.value = Bytes::from_static(b"noise, longer than a checksum"));
        assert!(rebuilt(meta(&all), damaged.clone(), None).is_none());
        assert!(rebuilt(meta(&all), damaged, Some(("x", "y"))).is_none());
    }

    fn shown(from: &str, to: Option<&str>) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let parts = parts(from.as_bytes(), to.map(str::as_bytes)).into_iter();
        let shown =
            parts.map(|(directory, from, to)| format!("{directory}: {} {:?}", text(&from), to.as_deref().map(text)));
        shown.collect()
    }

    #[test]
    fn parts_of_a_range_are_in_one_directory_each() {
        assert_eq!(shown("a/c/3", Some("a/c/5")), [r#"a/c/: a/c/3 Some("a/c/5")"#]);
        assert_eq!(
            shown("a/c/3", Some("b/c/0/1")),
            [
                r#"a/c/: a/c/3 Some("a/c0")"#,
                r#"a/: a/c0 Some("a0")"#,
                r#": a0 Some("b/")"#,
                r#"b/: b/ Some("b/c/")"#,
                r#"b/c/: b/c/ Some("b/c/0/")"#,
                r#"b/c/0/: b/c/0/ Some("b/c/0/1")"#
            ]
        );
        assert_eq!(shown("a/c", None), [r#"a/: a/c Some("a0")"#, ": a0 None"]);
    }

    proptest! {
        /// The parts cover what the range has, and nothing else.
        #[test]
        fn parts_cover_their_range(from in "([ab]/){0,3}[abc]?", to in "([ab]/){0,3}[abc]", key in "([ab]/){0,3}[abc]") {
            let from = if from.is_empty() { " ".to_owned() } else { from };
            for to in [Some(to.as_bytes()), None] {
                if to.is_some_and(|to| to <= from.as_bytes()) {
                    continue;
                }
                let key = key.as_bytes();
                let within = |from: &[u8], to: Option<&[u8]>| from <= key && to.is_none_or(|to| key < to);
                let found = parts(from.as_bytes(), to);
                let having: Vec<_> = found.iter().filter(|(_, from, to)| within(from, to.as_deref())).collect();
                prop_assert_eq!(having.len(), usize::from(within(from.as_bytes(), to)));
                prop_assert!(having.iter().all(|(directory, ..)| key.starts_with(directory.as_bytes())));
            }
        }
    }
}
