//! Accounting of work.
//!
//! Work is counted in steps of about a nanosecond: bytes of chunks decoded or encoded, times the [cost of their
//! codecs](zarrd_codec::Cost), and a constant for each key that is looked up. It is estimated from the metadata before
//! anything is done, counted while it is done, and stopped if it exceeds the limit.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use zarrd_codec::{CodecChain, PartialAccess, ShardingCodec};
use zarrd_meta::selection::{Region, Selection};

use crate::error::ArrayError;

/// The work of looking up and fetching a value, in steps.
pub(crate) const STEPS_PER_KEY: u64 = 16 << 10;

/// The work of looking up an inner chunk, in steps.
pub(crate) const STEPS_PER_INNER_CHUNK: u64 = 1 << 10;

/// The steps that each byte carried or returned accounts for: more than any codec takes.
const FREE_STEPS_PER_BYTE: u64 = 1 << 10;

/// The size charged for elements of variable length or of no size, in bytes.
pub(crate) const NOMINAL_ELEMENT_SIZE: u64 = 16;

/// The work that a request may do.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    done: AtomicU64,
    /// The steps that the request's own elements account for.
    free: u64,
    limit: u64,
}

impl WorkBudget {
    /// A budget for a request that carries or returns `elements` elements: at most `limit` steps beyond those that the
    /// elements account for.
    pub(crate) fn new(elements: u64, size: Option<usize>, limit: u64) -> Self {
        let per_element = size.map_or(NOMINAL_ELEMENT_SIZE, |size| size as u64).max(1);
        let free = elements.saturating_mul(per_element).saturating_mul(FREE_STEPS_PER_BYTE);
        Self { done: AtomicU64::new(0), free, limit }
    }

    /// Fails if an estimate exceeds the budget.
    pub(crate) fn check(&self, estimate: u64) -> Result<(), ArrayError> {
        let work = estimate.saturating_sub(self.free);
        if work <= self.limit {
            Ok(())
        } else {
            Err(ArrayError::WorkTooLarge { work, limit: self.limit, smaller: None })
        }
    }

    /// Counts steps that are about to be done; fails if they exceed the budget.
    pub(crate) fn spend(&self, steps: u64) -> Result<(), ArrayError> {
        let before = self.done.fetch_add(steps, Relaxed);
        self.check(before.saturating_add(steps))
    }
}

/// The work of decoding the smallest part of a chunk that can be decoded on its own, in steps.
pub(crate) fn min_decode_work(chain: &CodecChain) -> u64 {
    match chain.partial_access() {
        PartialAccess::Shard(sharding) => index_work(sharding).saturating_add(min_decode_work(sharding.inner_chain())),
        PartialAccess::Elements(_) => 0,
        PartialAccess::Full => chain.decode_work(0),
    }
}

/// The work of fetching and reading a shard index, in steps.
pub(crate) fn index_work(sharding: &ShardingCodec) -> u64 {
    sharding.index_work().saturating_add(STEPS_PER_KEY)
}

/// The largest leading part of a region that fits, found by halving; a somewhat larger part may fit too.
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
    fn work_proportional_to_transferred_bytes_is_free() {
        let allowance = WorkBudget::new(4, Some(2), 100);
        assert!(allowance.check(8 * FREE_STEPS_PER_BYTE + 100).is_ok());
        assert!(matches!(
            allowance.check(8 * FREE_STEPS_PER_BYTE + 101),
            Err(ArrayError::WorkTooLarge { work: 101, limit: 100, .. })
        ));
        assert!(allowance.spend(8 * FREE_STEPS_PER_BYTE).is_ok() && allowance.spend(100).is_ok());
        assert!(allowance.spend(1).is_err(), "work already spent counts");
    }
}
