//! Warnings that others can cause any number of times.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// The minimum time between two warnings of a kind.
const INTERVAL: Duration = Duration::from_secs(1);

/// Bounds how often warnings are logged: those of a kind once a second. It is a static beside the call of the log.
#[derive(Debug, Default)]
pub struct WarningRate(Mutex<BTreeMap<&'static str, Kind>>);

/// The warnings of a kind.
#[derive(Debug)]
struct Kind {
    /// The last one that was logged.
    last: Instant,
    left_out: u64,
}

/// A warning that is to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The number of warnings of this kind that were left out since the last one; `None` for 0.
    pub left_out: Option<u64>,
}

impl WarningRate {
    /// Without any warning yet.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Decides whether a warning is logged now. A kind is a constant of the program, so there are few.
    pub fn admit(&self, kind: &'static str) -> Option<Admitted> {
        self.admit_at(kind, Instant::now())
    }

    fn admit_at(&self, kind: &'static str, now: Instant) -> Option<Admitted> {
        let mut kinds = self.0.lock();
        let Some(known) = kinds.get_mut(kind) else {
            kinds.insert(kind, Kind { last: now, left_out: 0 });
            return Some(Admitted { left_out: None });
        };
        if now.saturating_duration_since(known.last) < INTERVAL {
            known.left_out = known.left_out.saturating_add(1);
            return None;
        }
        let left_out = std::mem::take(&mut known.left_out);
        known.last = now;
        Some(Admitted { left_out: (left_out > 0).then_some(left_out) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_admitted_once_a_second() {
        let (rate, start) = (WarningRate::new(), Instant::now());
        let admit = |kind, millis| rate.admit_at(kind, start + Duration::from_millis(millis));
        let admitted = |left_out| Some(Admitted { left_out });
        assert_eq!((admit("a", 0), admit("b", 10)), (admitted(None), admitted(None)));
        for millis in [0, 1, 500, 999] {
            assert_eq!(admit("a", millis), None);
        }
        assert_eq!((admit("b", 1_009), admit("b", 1_010)), (None, admitted(Some(1))));
        assert_eq!((admit("a", 1_000), admit("a", 1_001)), (admitted(Some(4)), None));
        assert_eq!((admit("a", 9_000), admit("a", 10_000)), (admitted(Some(1)), admitted(None)));
    }
}
