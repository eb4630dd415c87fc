//! The names that were looked at a moment ago.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use store::Key;

/// The time for which names are remembered, at least.
const TIME: Duration = Duration::from_secs(10);

/// The maximum number of names that are remembered since the last change of generations.
const MOST: usize = 32 << 10;

/// The names that were looked at within the last seconds. The kernel still has their inodes in memory, unless it was
/// short of it meanwhile, so that a look at them waits for no disk.
///
/// Names are remembered by their hashes. That one has the hash of another costs the wait for a disk at most.
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
    /// Remembers the name of a key, which was just looked at.
    pub(crate) fn insert(&self, key: &Key) {
        self.insert_at(key, Instant::now());
    }

    /// True if the name of a key was looked at within the last seconds. It is about to be looked at again.
    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.contains_at(key, Instant::now())
    }

    fn insert_at(&self, key: &Key, now: Instant) {
        let hash = self.hasher.hash_one(key.as_str());
        let mut generations = self.generations.lock();
        generations.turn(now);
        generations.current.insert(hash);
    }

    fn contains_at(&self, key: &Key, now: Instant) -> bool {
        let hash = self.hasher.hash_one(key.as_str());
        let mut generations = self.generations.lock();
        generations.turn(now);
        let is_recent = generations.current.contains(&hash) || generations.last.contains(&hash);
        if is_recent {
            generations.current.insert(hash);
        }
        is_recent
    }
}

impl Generations {
    /// Forgets the last generation if the current one is old or full.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.begun);
        if age < TIME && self.current.len() < MOST {
            return;
        }
        self.last = std::mem::take(&mut self.current);
        if age >= TIME * 2 {
            self.last.clear();
        }
        self.begun = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key::parse(&format!("a/{number}")).unwrap()
    }

    #[test]
    fn names_are_forgotten_after_seconds() {
        let (names, begun) = (RecentNames::default(), Instant::now());
        assert!(!names.contains_at(&key(1), begun));
        names.insert_at(&key(1), begun);
        assert!(!names.contains_at(&key(2), begun));
        names.insert_at(&key(2), begun);
        for times in 1..5 {
            assert!(names.contains_at(&key(1), begun + TIME * times), "it is looked at again and again");
        }
        assert!(!names.contains_at(&key(2), begun + TIME * 5));
        assert!(!names.contains_at(&key(1), begun + TIME * 7), "nothing was looked at meanwhile");
    }

    #[test]
    fn the_number_of_remembered_names_is_bounded() {
        let (names, now) = (RecentNames::default(), Instant::now());
        (0..10 * MOST).for_each(|number| names.insert_at(&key(number), now));
        let generations = names.generations.lock();
        assert!(generations.current.len() + generations.last.len() <= 2 * MOST);
        drop(generations);
        assert!(names.contains_at(&key(10 * MOST - 1), now));
        assert!(!names.contains_at(&key(0), now));
    }
}
