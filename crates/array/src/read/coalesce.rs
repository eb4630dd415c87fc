//! Fetching parts of one value together.

use std::ops::Range;

use super::{
    context::ReadContext,
    encoded_chunk::EncodedChunk,
    job::Job,
    limits::{MAX_DISTANT_FETCH, MAX_DISTANT_GAP, MAX_PARTIAL_FETCH},
    unit::DecodeUnit,
};

/// The most parts of one value that are coalesced together.
pub(crate) const MAX_BATCH_PARTS: usize = 512;

/// Limits of what is fetched together, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoalesceLimits {
    /// The largest gap between two ranges: reading the gap costs less than another fetch.
    gap: u64,
    /// The most bytes of one fetch.
    fetch: u64,
    /// The longest range that is fetched together with others. A longer one is worth a fetch of its own, and is in
    /// place sooner that way.
    part: u64,
    /// The bytes that one job decodes, unless a single unit has more.
    decoded: u64,
    /// The bytes of the parts among which neighbours are found.
    batch: u64,
}

impl CoalesceLimits {
    /// The limits for a store that answers at once.
    const NEAR: Self = Self { gap: 64 << 10, fetch: 1 << 20, part: 256 << 10, decoded: 4 << 20, batch: 8 << 20 };

    /// The limits for a store whose answers take a round trip, in which some hundred kilobytes could arrive.
    const DISTANT: Self = Self {
        gap: MAX_DISTANT_GAP,
        fetch: MAX_DISTANT_FETCH,
        part: MAX_DISTANT_FETCH,
        decoded: 4 * MAX_DISTANT_FETCH,
        batch: 8 * MAX_DISTANT_FETCH,
    };

    /// The limits for inner chunks of shards.
    pub(crate) fn of_shards(source: &ReadContext) -> Self {
        if source.store.near { Self::NEAR } else { Self::DISTANT }
    }

    /// The limits for parts of uncompressed chunks.
    pub(crate) fn of_elements(source: &ReadContext) -> Self {
        match source.store.near {
            true => Self::NEAR,
            false => Self { fetch: MAX_PARTIAL_FETCH, part: MAX_PARTIAL_FETCH, ..Self::DISTANT },
        }
    }
}

/// Parts of one value that are scheduled together, so that small neighbours are fetched together.
#[derive(Default)]
pub(crate) struct FetchBatch {
    /// The parts, each with its first position in the output.
    leaves: Vec<(u64, DecodeUnit)>,
    bytes: u64,
}

/// Neighbouring parts, and their first position in the output.
struct CoalescedRange {
    place: u64,
    range: Range<u64>,
    decoded: u64,
    leaves: Vec<DecodeUnit>,
}

impl FetchBatch {
    pub(crate) fn push(&mut self, place: u64, leaf: DecodeUnit) {
        self.bytes = self.bytes.saturating_add(leaf.range.end - leaf.range.start);
        self.leaves.push((place, leaf));
    }

    pub(crate) fn is_full(&self, limits: CoalesceLimits) -> bool {
        self.leaves.len() >= MAX_BATCH_PARTS || self.bytes >= limits.batch
    }

    /// One job for each coalesced range.
    pub(crate) fn jobs(mut self, part: &EncodedChunk, limits: CoalesceLimits) -> impl Iterator<Item = (u64, Job)> {
        self.leaves.sort_by_key(|(_, leaf)| leaf.range.start);
        let mut runs: Vec<CoalescedRange> = Vec::new();
        for (place, leaf) in self.leaves {
            match runs.last_mut() {
                Some(run) if run.can_coalesce(&leaf, limits) => run.push(place, leaf),
                _ => {
                    let (range, decoded) = (leaf.range.clone(), leaf.decoded_len());
                    runs.push(CoalescedRange { place, range, decoded, leaves: vec![leaf] });
                }
            }
        }
        let job = |run: CoalescedRange| {
            (run.place, Job::Decode { part: EncodedChunk { range: run.range, ..part.clone() }, units: run.leaves })
        };
        runs.into_iter().map(job)
    }
}

impl CoalescedRange {
    fn can_coalesce(&self, leaf: &DecodeUnit, limits: CoalesceLimits) -> bool {
        let small = leaf.range.end - leaf.range.start <= limits.part;
        let near = leaf.range.start <= self.range.end.saturating_add(limits.gap);
        let together = self.range.end.max(leaf.range.end) - self.range.start <= limits.fetch;
        small && near && together && self.decoded.saturating_add(leaf.decoded_len()) <= limits.decoded
    }

    fn push(&mut self, place: u64, leaf: DecodeUnit) {
        self.place = self.place.min(place);
        self.range.end = self.range.end.max(leaf.range.end);
        self.decoded = self.decoded.saturating_add(leaf.decoded_len());
        self.leaves.push(leaf);
    }
}
