//! How much work a request is.
//!
//! Work is counted in steps, each of about a nanosecond: the bytes of chunks that are decoded or encoded, times what their [codecs cost](codec::Cost), and a number for each chunk
//! that is looked for. It is estimated before anything is done, from what the metadata says; what is then done is counted, and stopped where that is more.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use codec::{Access, Chain, Sharding};
use meta::selection::{Region, Selection};

use crate::error::ArrayError;

/// How many steps it takes to look for a value and to fetch it.
pub(crate) const STEPS_PER_KEY: u64 = 16 << 10;

/// How many steps it takes to look for an inner chunk.
pub(crate) const STEPS_PER_INNER_CHUNK: u64 = 1 << 10;

/// How many steps are free for each byte that is carried or yielded: more than any codec takes.
const FREE_STEPS_PER_BYTE: u64 = 1 << 10;

/// What elements of variable length, and those of no size, count as carried or yielded.
const NOMINAL_ELEMENT_SIZE: u64 = 16;

/// The work that a request may do.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    done: AtomicU64,
    /// How much is free.
    free: u64,
    limit: u64,
}

impl WorkBudget {
    /// For what carries or yields so many elements of a size; at most `limit` steps beyond what that makes free.
    pub(crate) fn new(elements: u64, size: Option<usize>, limit: u64) -> Self {
        let per_element = size.map_or(NOMINAL_ELEMENT_SIZE, |size| size as u64).max(1);
        let free = elements.saturating_mul(per_element).saturating_mul(FREE_STEPS_PER_BYTE);
        Self { done: AtomicU64::new(0), free, limit }
    }

    /// Fails where the estimate of all is too much.
    pub(crate) fn check(&self, estimate: u64) -> Result<(), ArrayError> {
        let work = estimate.saturating_sub(self.free);
        if work <= self.limit {
            Ok(())
        } else {
            Err(ArrayError::WorkTooLarge { work, limit: self.limit, smaller: None })
        }
    }

    /// Counts what is about to be done; fails where that would be too much.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), ArrayError> {
        let before = self.done.fetch_add(steps, Relaxed);
        self.check(before.saturating_add(steps))
    }
}

/// How many steps it takes to decode the least of a chunk that can be decoded by itself.
pub(crate) fn min_decode_work(chain: &Chain) -> u64 {
    match chain.access() {
        Access::Shard(sharding) => index_work(sharding).saturating_add(min_decode_work(sharding.inner())),
        Access::Elements(_) => 0,
        Access::Whole => chain.decode_work(0),
    }
}

/// How many steps it takes to look for an index and to read it.
pub(crate) fn index_work(sharding: &Sharding) -> u64 {
    sharding.index_work().saturating_add(STEPS_PER_KEY)
}

/// The largest leading part of a region that is not refused; found by halving, so that it may be somewhat smaller than that.
pub(crate) fn largest_fitting_part(region: &Region, fits: impl Fn(&Region) -> bool) -> Option<Selection> {
    let mut elements = region.elements().unwrap_or(u64::MAX);
    while elements > 1 {
        elements /= 2;
        let part = region.shrunk_to(elements)?;
        if fits(&part) {
            return Some(part.to_selection());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_carried_is_free() {
        let allowance = WorkBudget::new(4, Some(2), 100);
        assert!(allowance.check(8 * FREE_STEPS_PER_BYTE + 100).is_ok());
        assert!(matches!(
            allowance.check(8 * FREE_STEPS_PER_BYTE + 101),
            Err(ArrayError::WorkTooLarge { work: 101, limit: 100, .. })
        ));
        assert!(allowance.spend(8 * FREE_STEPS_PER_BYTE).is_ok() && allowance.spend(100).is_ok());
        assert!(allowance.spend(1).is_err(), "what is done is counted");
    }
}
