//! The states of the listings that earlier walks scanned.

use std::time::Instant;

use quick_cache::sync::Cache;
use zarrd_store::{ListingState, Prefix};

/// The maximum number of scans.
const MAX_SCANS: usize = 1024;

/// The states of listings when they were scanned last.
///
/// A state does not come again. So a listing with the state that an earlier walk recorded was the same at the start of
/// this one, and listing it twice shows no more than that.
#[derive(Debug)]
pub(crate) struct ListingStates(Cache<(Prefix, Option<u32>), Recorded>);

#[derive(Clone, Copy, Debug)]
struct Recorded {
    state: ListingState,
    at: Instant,
}

impl Default for ListingStates {
    fn default() -> Self {
        Self(Cache::new(MAX_SCANS))
    }
}

impl ListingStates {
    /// Records the state of a scan of `levels`, or up to the first node, that is done. True if an earlier one of this kind had
    /// recorded it at `began` already.
    pub(crate) fn record(&self, prefix: &Prefix, levels: Option<u32>, state: ListingState, began: Instant) -> bool {
        let scan = (prefix.clone(), levels);
        match self.0.get(&scan).filter(|recorded| recorded.state == state) {
            Some(recorded) => recorded.at <= began,
            None => {
                self.0.insert(scan, Recorded { state, at: Instant::now() });
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_state_that_was_recorded_before_a_walk_is_current_at_its_start() {
        let (states, prefix) = (ListingStates::default(), Prefix::parse("a/").unwrap());
        let (all, one, other) = (Some(64), ListingState::from_u128(1), ListingState::from_u128(2));
        let began = Instant::now();
        assert!(!states.record(&prefix, all, one, began));
        assert!(!states.record(&prefix, all, one, began), "it was recorded by this walk, or by one beside it");
        assert!(states.record(&prefix, all, one, Instant::now()));
        assert!(!states.record(&prefix, None, one, Instant::now()));
        assert!(!states.record(&Prefix::root(), all, one, Instant::now()));
        assert!(!states.record(&prefix, all, other, Instant::now()));
        assert!(states.record(&prefix, all, other, Instant::now()));
        assert!(!states.record(&prefix, all, one, Instant::now()));
    }
}
