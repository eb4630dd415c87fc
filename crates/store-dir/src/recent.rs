//! The names of files whose attributes were read a moment ago.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::attributes::FileId;

/// The time of a generation. A name is removed at the end of the generation after the one in which it was last read.
const GENERATION_TIME: Duration = Duration::from_secs(10);

/// The maximum number of names of a generation, which ends earlier then.
const MAX_NAMES: usize = 32 << 10;

/// The names of files whose attributes were read within the last seconds. The kernel still has their inodes in memory,
/// unless it was short of it meanwhile, so that reading them again waits for no disk.
///
/// Names are stored as hashes. A collision costs the wait for a disk at most.
#[derive(Debug)]
pub(crate) struct RecentNames {
    hasher: RandomState,
    generations: Mutex<Generations>,
}

#[derive(Debug)]
struct Generations {
    current: HashSet<u64>,
    last: HashSet<u64>,
    begun: Instant,
}

impl Default for RecentNames {
    fn default() -> Self {
        let generations = Generations { current: HashSet::new(), last: HashSet::new(), begun: Instant::now() };
        Self { hasher: RandomState::new(), generations: Mutex::new(generations) }
    }
}

impl RecentNames {
    /// Records a name in a directory whose attributes are about to be read, and returns true if they were read within the
    /// last seconds.
    pub(crate) fn insert(&self, directory: FileId, name: &str) -> bool {
        self.insert_at(directory, name, Instant::now())
    }

    fn insert_at(&self, directory: FileId, name: &str, now: Instant) -> bool {
        let hash = self.hasher.hash_one((directory, name));
        let mut generations = self.generations.lock();
        generations.turn(now);
        !generations.current.insert(hash) || generations.last.contains(&hash)
    }
}

impl Generations {
    /// Drops the last generation if the current one is old or full.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.begun);
        if age < GENERATION_TIME && self.current.len() < MAX_NAMES {
            return;
        }
        self.last = std::mem::take(&mut self.current);
        if age >= GENERATION_TIME * 2 {
            self.last.clear();
        }
        self.begun = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(inode: u64) -> FileId {
        FileId { device: (8, 1), inode }
    }

    #[test]
    fn names_are_forgotten_after_seconds() {
        let (names, begun) = (RecentNames::default(), Instant::now());
        let insert = |name, after| names.insert_at(directory(1), name, begun + GENERATION_TIME * after);
        assert!(!insert("a", 0));
        assert!(!insert("b", 0));
        assert!(insert("b", 0));
        assert!(!names.insert_at(directory(2), "a", begun), "another directory has another file");
        for after in 1..5 {
            assert!(insert("a", after), "it is read again and again");
        }
        assert!(!insert("b", 5));
        assert!(!insert("a", 7), "nothing was read meanwhile");
    }

    #[test]
    fn the_number_of_remembered_names_is_bounded() {
        let (names, now) = (RecentNames::default(), Instant::now());
        let insert = |number: usize| names.insert_at(directory(1), &number.to_string(), now);
        assert!((0..10 * MAX_NAMES).all(|number| !insert(number)));
        let generations = names.generations.lock();
        assert!(generations.current.len() + generations.last.len() <= 2 * MAX_NAMES);
        drop(generations);
        assert!(insert(10 * MAX_NAMES - 1));
        assert!(!insert(0));
    }
}
