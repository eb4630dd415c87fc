//! The keys of bulk commits, in a few sorted runs.
//!
//! > A copy commits a thousand keys at a time. When a hundred of its commits wait for the index, a look-up searches seven runs
//! > of keys instead of a hundred files.
//!
//! A new commit is a run, which is merged with the last one unless that is more than twice as long. So each run is more than
//! twice as long as the next, and a key is moved a few times at most.

use std::{cmp::Ordering, sync::Arc};

use zarrd_store::Key;

use crate::{
    gc::ReplacedFile,
    log::{BulkCommit, BulkEntry},
};

/// The keys of bulk commits.
#[derive(Default)]
pub(super) struct BulkIndex {
    /// Each with more than twice as many keys as the next.
    runs: Vec<Arc<[Place]>>,
}

/// The place of a key in a bulk commit.
#[derive(Clone)]
pub(super) struct Place {
    key: Key,
    pub(super) commit: Arc<BulkCommit>,
    /// Entries of a commit are counted by 32 bits in its frame.
    index: u32,
}

impl BulkIndex {
    /// The index with one more commit, which is newer than the others.
    pub(super) fn with(&self, commit: Arc<BulkCommit>) -> Self {
        let mut runs = self.runs.clone();
        let place = |(key, index): (&Key, u32)| Place { key: key.clone(), commit: commit.clone(), index };
        let mut run: Vec<Place> = commit.entries().iter().map(|entry| &entry.key).zip(0..).map(place).collect();
        while let Some(last) = runs.pop_if(|last| last.len() / 2 <= run.len()) {
            run = merged(&last, run);
        }
        runs.push(run.into());
        Self { runs }
    }

    /// The last change of a key by a commit that is visible at `at`.
    pub(super) fn latest(&self, key: &str, at: u64) -> Option<&Place> {
        self.all_of(key).filter(|place| place.commit.number() <= at).max_by_key(|place| place.number())
    }

    /// All changes of a key.
    pub(super) fn all_of(&self, key: &str) -> impl Iterator<Item = &Place> {
        self.runs.iter().flat_map(move |run| {
            let first = run.partition_point(|place| place.key.as_str() < key);
            run.iter().skip(first).take_while(move |place| place.key.as_str() == key)
        })
    }

    /// The first key at or after `from`.
    pub(super) fn next_key(&self, from: &str) -> Option<&Key> {
        let next = self.runs.iter().filter_map(|run| {
            let first = run.partition_point(|place| place.key.as_str() < from);
            run.get(first).map(|place| &place.key)
        });
        next.min()
    }
}

impl Place {
    /// The index of the key in the commit.
    pub(super) fn index(&self) -> usize {
        self.index as usize
    }

    /// The number of the change.
    pub(super) fn number(&self) -> u64 {
        self.commit.number_of(self.index())
    }

    /// True if the commit sets the key.
    pub(super) fn is_set(&self) -> bool {
        self.entry().is_some_and(BulkEntry::is_set)
    }

    /// The value file that a later change of the key replaces.
    pub(super) fn replaced_file(&self) -> Option<ReplacedFile> {
        self.entry().and_then(BulkEntry::replaced_file)
    }

    fn entry(&self) -> Option<&BulkEntry> {
        self.commit.entries().get(self.index())
    }

    /// The order of a run: by key, and the newest change of a key first.
    fn compare(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then_with(|| other.number().cmp(&self.number()))
    }
}

fn merged(one: &[Place], other: Vec<Place>) -> Vec<Place> {
    let mut merged = Vec::with_capacity(one.len().saturating_add(other.len()));
    let (mut one, mut other) = (one.iter().peekable(), other.into_iter().peekable());
    while let (Some(first), Some(second)) = (one.peek(), other.peek()) {
        match first.compare(second) {
            Ordering::Less => merged.extend(one.next().cloned()),
            Ordering::Equal | Ordering::Greater => merged.extend(other.next()),
        }
    }
    merged.extend(one.cloned());
    merged.extend(other);
    merged
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tempfile::TempDir;
    use zarrd_store::Attributes;

    use super::*;
    use crate::{
        log::{BulkWriter, LogFiles},
        log_key::LogKey,
        record::Location,
        space::Ballast,
    };

    /// Makes commits of small values, or of erased keys, each with the numbers after those before.
    struct Commits {
        _dir: TempDir,
        files: Arc<LogFiles>,
        number: u64,
        id: u64,
    }

    impl Commits {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let ballast = Arc::new(Ballast::new(dir.path().join("ballast"), 0, 0));
            let files = LogFiles::new(dir.path().to_owned(), 1 << 20, ballast, None, crate::SyncFault::default());
            Self { _dir: dir, files, number: 0, id: 0 }
        }

        fn commit(&mut self, changes: &BTreeMap<String, bool>) -> Arc<BulkCommit> {
            self.id += 1;
            let key = LogKey::new(1, 2);
            let mut writer = BulkWriter::create(&self.files, key, self.id, changes.len()).unwrap();
            for (name, is_set) in changes {
                let value = (Location::Inline(name.clone().into()), Attributes::NONE);
                writer.push(&Key::parse(name).unwrap(), 1, is_set.then_some(&value)).unwrap();
            }
            let commit = Arc::new(writer.finish(&self.files).unwrap().with_number(self.number));
            self.number = commit.number();
            commit
        }
    }

    #[test]
    fn many_commits_are_in_a_few_runs() {
        let mut commits = Commits::new();
        let (mut index, mut keys_of_all) = (BulkIndex::default(), 0);
        for round in 0..300_u64 {
            // A long one now and then, among short ones.
            let keys = if round % 50 == 3 { 400 } else { 3 + round % 5 };
            let changes = (0..keys).map(|key| (format!("{:x}/{key}", (round * 0x9E37_79B9) % 251), true)).collect();
            let commit = commits.commit(&changes);
            keys_of_all += commit.entries().len();
            index = index.with(commit);
            assert!(index.runs.windows(2).all(|runs| runs[0].len() / 2 > runs[1].len()));
            assert!(index.runs.len() <= 12, "{round}: {}", index.runs.len());
        }
        assert_eq!(index.runs.iter().map(|run| run.len()).sum::<usize>(), keys_of_all);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The index finds what a search of all commits finds, at each number.
        #[test]
        fn it_finds_what_a_search_of_all_commits_finds(
            changes in prop::collection::vec(prop::collection::btree_map("[a-d]{1,2}", any::<bool>(), 1..8), 0..20)
        ) {
            let mut commits = Commits::new();
            let (mut index, mut all) = (BulkIndex::default(), Vec::new());
            for changes in &changes {
                let commit = commits.commit(changes);
                all.push(commit.clone());
                index = index.with(commit);
            }
            for name in ["a", "ab", "b", "bc", "ca", "d", "dd", "e"] {
                for at in 0..=commits.number {
                    let visible = all.iter().rev().filter(|commit| commit.number() <= at);
                    let expected = visible.filter_map(|commit| {
                        let place = commit.entries().iter().position(|entry| entry.key.as_str() == name)?;
                        Some((commit.number_of(place), commit.entries()[place].is_set()))
                    }).next();
                    let found = index.latest(name, at).map(|place| (place.number(), place.is_set()));
                    prop_assert_eq!(found, expected, "{} {}", name, at);
                }
                let made = all.iter().filter(|commit| commit.entries().iter().any(|entry| entry.key.as_str() == name));
                prop_assert_eq!(index.all_of(name).count(), made.count());
                let keys = changes.iter().flat_map(BTreeMap::keys);
                let expected = keys.filter(|key| key.as_str() >= name).min();
                prop_assert_eq!(index.next_key(name).map(Key::as_str), expected.map(String::as_str));
            }
        }
    }
}
