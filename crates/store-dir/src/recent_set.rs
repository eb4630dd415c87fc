//! A set whose values are dropped after some seconds.

use std::{
    collections::HashSet,
    hash::Hash,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The time of a generation. A value is removed at the end of the generation after the one in which it was last inserted.
pub(crate) const GENERATION_TIME: Duration = Duration::from_secs(10);

/// The maximum number of values of a generation, which ends earlier then.
pub(crate) const MAX_VALUES: usize = 32 << 10;

/// The values that were inserted within the last seconds: for ten at least, unless there are many.
#[derive(Debug)]
pub(crate) struct RecentSet<T>(Mutex<Generations<T>>);

#[derive(Debug)]
struct Generations<T> {
    current: HashSet<T>,
    last: HashSet<T>,
    begun: Instant,
}

impl<T> Default for RecentSet<T> {
    fn default() -> Self {
        Self(Mutex::new(Generations { current: HashSet::new(), last: HashSet::new(), begun: Instant::now() }))
    }
}

impl<T: Eq + Hash> RecentSet<T> {
    /// Inserts a value, and returns true if it was inserted within the last seconds.
    pub(crate) fn insert_at(&self, value: T, now: Instant) -> bool {
        let mut generations = self.0.lock();
        generations.turn(now);
        let was_last = generations.last.contains(&value);
        !generations.current.insert(value) || was_last
    }

    /// True if a value was inserted within the last seconds.
    pub(crate) fn contains(&self, value: &T) -> bool {
        let generations = self.0.lock();
        generations.current.contains(value) || generations.last.contains(value)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let generations = self.0.lock();
        generations.current.len() + generations.last.len()
    }
}

impl<T> Generations<T> {
    /// Drops the last generation if the current one is old or full.
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_duration_since(self.begun);
        if age < GENERATION_TIME && self.current.len() < MAX_VALUES {
            return;
        }
        self.last = std::mem::take(&mut self.current);
        if age >= GENERATION_TIME * 2 {
            self.last.clear();
        }
        self.begun = now;
    }
}
