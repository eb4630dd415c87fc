//! Counters, and failures that are logged at most once a minute.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The minimum time between two lines of the log about one kind of failure.
const INTERVAL: Duration = Duration::from_secs(60);

/// Counters since the cache was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) written_bytes: AtomicU64,
    pub(crate) failures: Failures,
    pub(crate) damaged: Failures,
    pub(crate) written: AtomicU64,
    /// Blocks that are full.
    pub(crate) full_blocks: AtomicU64,
}

/// The number of failures of a kind.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    logged: Mutex<Option<Instant>>,
}

impl Failures {
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// Counts a failure. Returns true if it is to be logged.
    pub(crate) fn record(&self) -> bool {
        self.record_at(Instant::now())
    }

    fn record_at(&self, now: Instant) -> bool {
        self.count.fetch_add(1, Relaxed);
        let mut logged = self.logged.lock();
        if logged.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            return false;
        }
        *logged = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_and_logged_once_a_minute() {
        let (failures, start) = (Failures::default(), Instant::now());
        let logged = [0, 1, 59, 60, 61, 121].map(|seconds| failures.record_at(start + Duration::from_secs(seconds)));
        assert_eq!(logged, [true, false, false, true, false, true]);
        assert_eq!(failures.count(), 6);
    }
}
