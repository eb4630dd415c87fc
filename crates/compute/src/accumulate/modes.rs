//! `mode`: the most frequent element of each group.

use std::{any::Any, ops::Range};

use zarrd_codec::filled;

use super::{Accumulator, downcast};
use crate::{element::Ordered, error::ComputeError};

/// The elements of each group: as a list where that is smaller than a count for each possible value.
pub(super) enum Modes<O: Ordered> {
    Listed(Lists<O>),
    Counted(Counts<O>),
}

/// The elements of groups in any order, at `capacity` for each group.
pub(super) struct Lists<O: Ordered> {
    elements: Vec<O::Bytes>,
    lengths: Vec<u32>,
    capacity: usize,
}

/// The number of times that each value occurs in groups, by its rank.
pub(super) struct Counts<O: Ordered> {
    counts: Vec<u64>,
    of: std::marker::PhantomData<O>,
}

/// The memory of the state of a group of `group_size` elements of `element_size` bytes (at most 2), in bytes.
pub(super) fn size_per_group(group_size: u64, element_size: u64) -> u64 {
    match is_listed(group_size, element_size) {
        true => group_size.saturating_mul(element_size).saturating_add(size_of::<u32>() as u64),
        false => values(element_size).saturating_mul(size_of::<u64>() as u64),
    }
}

fn is_listed(group_size: u64, element_size: u64) -> bool {
    group_size.saturating_mul(element_size) <= values(element_size).saturating_mul(size_of::<u64>() as u64)
}

/// The number of values that elements of a size can have.
fn values(element_size: u64) -> u64 {
    if element_size == 1 { 1 << 8 } else { 1 << 16 }
}

impl<O: Ordered> Modes<O> {
    pub(super) fn new(groups: usize, group_size: u64) -> Self {
        let element_size = size_of::<O::Bytes>() as u64;
        let capacity = usize::try_from(group_size).unwrap_or(usize::MAX);
        match is_listed(group_size, element_size) {
            true => Self::Listed(Lists {
                elements: filled(O::Bytes::default(), groups.saturating_mul(capacity)),
                lengths: filled(0, groups),
                capacity,
            }),
            false => Self::Counted(Counts {
                counts: filled(0, groups.saturating_mul(Counts::<O>::VALUES)),
                of: std::marker::PhantomData,
            }),
        }
    }

    /// Adds as many occurrences of elements to a group as there are elements.
    fn add(&mut self, group: usize, values: &[O::Bytes]) {
        match self {
            Self::Listed(lists) => {
                if let Some(free) = lists.extend(group, values.len()) {
                    free.copy_from_slice(values);
                }
            }
            Self::Counted(counts) => {
                let Some(of_group) = counts.of_group_mut(group) else { return };
                for &value in values {
                    increase(of_group, O::read(value).rank(), 1);
                }
            }
        }
    }
}

impl<O: Ordered> Lists<O> {
    /// Makes a group longer by `count` elements, and returns them; `None` if it would have more than there are.
    fn extend(&mut self, group: usize, count: usize) -> Option<&mut [O::Bytes]> {
        let length = self.lengths.get_mut(group)?;
        let first = usize::try_from(*length).ok()?;
        let end = first.checked_add(count).filter(|&end| end <= self.capacity)?;
        *length = u32::try_from(end).ok()?;
        let base = group.checked_mul(self.capacity)?;
        self.elements.get_mut(base.checked_add(first)?..base.checked_add(end)?)
    }

    fn of_group(&self, group: usize) -> Option<&[O::Bytes]> {
        let length = usize::try_from(*self.lengths.get(group)?).ok()?;
        let first = group.checked_mul(self.capacity)?;
        self.elements.get(first..first.checked_add(length)?)
    }

    /// The rank of the most frequent element of a group, the smallest one of several; `None` of an empty group.
    fn mode(&self, group: usize, scratch: &mut Vec<u64>) -> Option<u64> {
        scratch.clear();
        scratch.extend(self.of_group(group)?.iter().map(|&value| O::read(value).rank()));
        scratch.sort_unstable();
        let runs = scratch.chunk_by(|one, other| one == other);
        most_frequent(runs.filter_map(|run| Some((*run.first()?, run.len() as u64))))
    }
}

impl<O: Ordered> Counts<O> {
    /// The number of values that an element can have.
    const VALUES: usize = if size_of::<O::Bytes>() == 1 { 1 << 8 } else { 1 << 16 };

    fn range(group: usize) -> Option<Range<usize>> {
        let first = group.checked_mul(Self::VALUES)?;
        Some(first..first.checked_add(Self::VALUES)?)
    }

    fn of_group_mut(&mut self, group: usize) -> Option<&mut [u64]> {
        self.counts.get_mut(Self::range(group)?)
    }

    /// The rank of the most frequent element of a group, the smallest one of several; `None` of an empty group.
    fn mode(&self, group: usize) -> Option<u64> {
        most_frequent((0..).zip(self.counts.get(Self::range(group)?)?.iter().copied()))
    }
}

/// The first of the ranks that occur most often.
fn most_frequent(occurrences: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let best = occurrences.fold((0, 0), |best, (rank, count)| if count > best.1 { (rank, count) } else { best });
    (best.1 > 0).then_some(best.0)
}

fn increase(counts: &mut [u64], rank: u64, count: u64) {
    if let Some(of_value) = usize::try_from(rank).ok().and_then(|rank| counts.get_mut(rank)) {
        *of_value = of_value.saturating_add(count);
    }
}

impl<O: Ordered> Accumulator for Modes<O> {
    fn add_to_one(&mut self, group: usize, values: &[u8], _order: u64, _order_step: u64) {
        self.add(group, O::all(values));
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        for (group, value) in (first..).zip(O::all(values).chunks(1)) {
            self.add(group, value);
        }
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, _order: u64) {
        let Some(&value) = O::all(value).first() else { return };
        match self {
            Self::Listed(lists) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                if let Some(free) = lists.extend(group, count) {
                    free.fill(value);
                }
            }
            Self::Counted(counts) => {
                let of_group = counts.of_group_mut(group).unwrap_or_default();
                increase(of_group, O::read(value).rank(), count);
            }
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        match (self, other) {
            (Self::Listed(one), Self::Listed(other)) => {
                for group in 0..other.lengths.len() {
                    let elements = other.of_group(group).unwrap_or_default();
                    if let Some(free) = one.extend(group, elements.len()) {
                        free.copy_from_slice(elements);
                    }
                }
            }
            (Self::Counted(one), Self::Counted(other)) => {
                for (count, other) in one.counts.iter_mut().zip(other.counts) {
                    *count = count.saturating_add(other);
                }
            }
            // Partial results of one reduction are of one kind.
            _ => {}
        }
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        let mut scratch = Vec::new();
        for group in groups {
            let rank = match self {
                Self::Listed(lists) => lists.mode(group, &mut scratch),
                Self::Counted(counts) => counts.mode(group),
            };
            let value = O::of_rank(rank.ok_or(ComputeError::Internal)?);
            out.extend_from_slice(value.write().as_ref());
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
