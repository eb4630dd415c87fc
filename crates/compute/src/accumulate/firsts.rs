//! `first`: the first element of each group.

use std::{any::Any, ops::Range};

use zarrd_codec::filled;

use super::{Accumulator, downcast};
use crate::error::ComputeError;

/// The first element of each group, of any type of a fixed size.
pub(super) struct Firsts {
    /// The positions of the elements.
    orders: Vec<u64>,
    elements: Vec<u8>,
    size: usize,
}

impl Firsts {
    pub(super) fn new(size: usize, groups: usize) -> Self {
        Self { orders: filled(u64::MAX, groups), elements: filled(0, groups.saturating_mul(size)), size }
    }

    fn update(&mut self, group: usize, element: &[u8], order: u64) {
        let Some(slot) = self.orders.get_mut(group).filter(|slot| order < **slot) else { return };
        *slot = order;
        let start = group.saturating_mul(self.size);
        if let Some(stored) = self.elements.get_mut(start..start.saturating_add(self.size)) {
            stored.copy_from_slice(element);
        }
    }
}

impl Accumulator for Firsts {
    fn add_to_one(&mut self, group: usize, values: &[u8], order: u64, _order_step: u64) {
        // Positions increase, so the first of the elements has the least one.
        if let Some(first) = values.get(..self.size) {
            self.update(group, first, order);
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], order: u64) {
        for (group, element) in (first..).zip(values.chunks_exact(self.size.max(1))) {
            self.update(group, element, order);
        }
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, order: u64) {
        if count > 0 {
            self.add_to_one(group, value, order, 0);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        let elements = other.elements.chunks_exact(self.size.max(1));
        for (group, (&order, element)) in (0..).zip(other.orders.iter().zip(elements)) {
            self.update(group, element, order);
        }
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        let range = groups.start.saturating_mul(self.size)..groups.end.saturating_mul(self.size);
        out.extend_from_slice(self.elements.get(range).ok_or(ComputeError::Internal)?);
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
