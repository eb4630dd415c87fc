//! Exact order statistics by counting: each pass over the elements fixes some more bits of those at the wanted ranks.

use std::{any::Any, ops::Range, sync::Arc};

use zarrd_codec::filled;

use crate::{accumulate::Accumulator, element::Ordered, error::ComputeError};

/// The counters of all brackets of a pass, at most.
const MAX_COUNTERS: u64 = 1 << 20;

/// The bits that the first pass fixes, at most.
pub(super) const FIRST_BITS: u32 = 16;

/// The memory of the counters of a pass for some quantiles, in bytes, at most. Each is between two ranks.
pub(super) fn counters_size(quantiles: u64) -> u64 {
    let prefixes = quantiles.saturating_mul(2).min(MAX_COUNTERS >> FIRST_BITS);
    (prefixes << FIRST_BITS) * size_of::<u64>() as u64
}

/// A search for the elements at some ranks among all that are not missing.
#[derive(Clone, Debug)]
pub(super) struct RankSearch {
    /// The ranks, increasing, each with the prefix that the element at it has, and its rank among those with that
    /// prefix.
    wanted: Vec<WantedRank>,
    /// The bits of an order key, and how many of them are fixed.
    width: u32,
    fixed: u32,
}

#[derive(Clone, Copy, Debug)]
struct WantedRank {
    prefix: u64,
    rank: u64,
}

/// The division of a pass: the prefixes whose elements are counted, by their next bits.
#[derive(Clone, Debug)]
pub(super) struct RankPass {
    prefixes: Vec<u64>,
    /// The bits below the prefix, and those of them that this pass fixes.
    below: u32,
    bits: u32,
}

/// The counts of a pass.
pub(super) struct RankCounts<O> {
    pass: Arc<RankPass>,
    counts: Vec<u64>,
    element: std::marker::PhantomData<fn(O)>,
}

impl RankSearch {
    /// A search among elements whose keys have `width` bits. The ranks are given after the first pass.
    pub(super) fn new(width: u32) -> Self {
        Self { wanted: Vec::new(), width, fixed: 0 }
    }

    /// The next pass; `None` if all bits are fixed.
    pub(super) fn pass(&self) -> Option<RankPass> {
        let left = self.width.saturating_sub(self.fixed);
        let mut prefixes: Vec<u64> = self.wanted.iter().map(|wanted| wanted.prefix).collect();
        prefixes.dedup();
        if self.fixed == 0 {
            prefixes = vec![0];
        }
        let most = (MAX_COUNTERS / prefixes.len().max(1) as u64).max(2).ilog2().min(FIRST_BITS);
        let bits = most.min(left);
        (bits > 0 && !prefixes.is_empty()).then_some(RankPass { prefixes, below: left, bits })
    }

    /// True if a pass fixes all bits that are left.
    pub(super) fn is_last(&self, pass: &RankPass) -> bool {
        self.fixed.saturating_add(pass.bits) >= self.width
    }

    /// Sets the ranks, after the elements were counted for the first time.
    pub(super) fn set_ranks(&mut self, ranks: &[u64]) {
        self.wanted = ranks.iter().map(|&rank| WantedRank { prefix: 0, rank }).collect();
    }

    /// Fixes the bits that a pass has counted.
    pub(super) fn narrow(&mut self, pass: &RankPass, counts: &[u64]) -> Result<(), ComputeError> {
        let size = 1_usize << pass.bits;
        for wanted in &mut self.wanted {
            let bracket = pass.prefixes.iter().position(|&prefix| prefix == wanted.prefix);
            let start = bracket.ok_or(ComputeError::Internal)? * size;
            let of_prefix = counts.get(start..start + size).ok_or(ComputeError::Internal)?;
            let mut before = 0_u64;
            let found = of_prefix.iter().position(|&count| {
                let is_here = wanted.rank < before + count;
                if !is_here {
                    before += count;
                }
                is_here
            });
            let found = found.ok_or(ComputeError::Internal)? as u64;
            wanted.rank -= before;
            wanted.prefix = wanted.prefix << pass.bits | found;
        }
        self.fixed += pass.bits;
        Ok(())
    }

    /// The keys of the elements, once all bits are fixed.
    pub(super) fn keys(&self) -> impl Iterator<Item = u64> {
        self.wanted.iter().map(|wanted| wanted.prefix)
    }
}

impl RankPass {
    /// The number of counters.
    pub(super) fn counters(&self) -> usize {
        self.prefixes.len() << self.bits
    }
}

impl<O: Ordered> RankCounts<O> {
    pub(super) fn new(pass: Arc<RankPass>) -> Self {
        Self { counts: filled(0, pass.counters()), pass, element: std::marker::PhantomData }
    }

    #[inline]
    fn add(&mut self, value: O::Bytes, count: u64) {
        let element = O::read(value);
        if element.is_missing() {
            return;
        }
        let rank = element.rank();
        let below = self.pass.below;
        let prefix = if below >= u64::BITS { 0 } else { rank >> below };
        let bracket = match self.pass.prefixes.as_slice() {
            [only] if *only == prefix => 0,
            [_] => return,
            prefixes => match prefixes.binary_search(&prefix) {
                Ok(bracket) => bracket,
                Err(_) => return,
            },
        };
        let next = rank >> (below - self.pass.bits) & ((1 << self.pass.bits) - 1);
        let index = (bracket << self.pass.bits) + usize::try_from(next).unwrap_or(usize::MAX);
        if let Some(slot) = self.counts.get_mut(index) {
            *slot += count;
        }
    }
}

impl<O: Ordered> Accumulator for RankCounts<O> {
    fn add_to_one(&mut self, _group: usize, values: &[u8], _order: u64, _order_step: u64) {
        O::all(values).iter().for_each(|&value| self.add(value, 1));
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], order: u64) {
        self.add_to_one(first, values, order, 0);
    }

    fn add_repeated(&mut self, _group: usize, value: &[u8], count: u64, _order: u64) {
        if let Some(&value) = O::all(value).first() {
            self.add(value, count);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Ok(other) = other.into_any().downcast::<Self>() else { return };
        self.counts.iter_mut().zip(&other.counts).for_each(|(one, other)| *one += other);
    }

    fn finish(&self, _groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        self.counts.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
