//! `argmin`, `argmax` and their forms without NaN.

use std::{any::Any, ops::Range};

use zarrd_codec::filled;

use super::{Accumulator, downcast};
use crate::{
    element::Ordered,
    error::ComputeError,
    function::{Function, Missing, Operation},
};

/// The position of the first least or greatest element of each group.
struct Positions<O: Ordered, const MAX: bool, const SKIP: bool> {
    best: Vec<Best<O::Key>>,
    function: Function,
}

#[derive(Clone, Copy)]
struct Best<K> {
    key: K,
    order: u64,
}

pub(super) fn new<O: Ordered>(function: Function, groups: usize) -> Box<dyn Accumulator> {
    let is_max = function.operation == Operation::ArgMax;
    match (is_max, function.missing) {
        (false, Missing::Propagate) => Box::new(Positions::<O, false, false>::new(function, groups)),
        (false, Missing::Skip) => Box::new(Positions::<O, false, true>::new(function, groups)),
        (true, Missing::Propagate) => Box::new(Positions::<O, true, false>::new(function, groups)),
        (true, Missing::Skip) => Box::new(Positions::<O, true, true>::new(function, groups)),
    }
}

impl<O: Ordered, const MAX: bool, const SKIP: bool> Positions<O, MAX, SKIP> {
    fn new(function: Function, groups: usize) -> Self {
        let initial = Best { key: if MAX { O::LIMITS.0 } else { O::LIMITS.1 }, order: u64::MAX };
        Self { best: filled(initial, groups), function }
    }

    /// The key of an element, in which zeros are equal. The first NaN is better than all numbers, or worse.
    #[inline]
    fn key(value: O::Bytes) -> O::Key {
        let element = O::read(value);
        match element.is_missing() {
            true if MAX == SKIP => O::LIMITS.0,
            true => O::LIMITS.1,
            false => element.with_one_zero().key(),
        }
    }

    #[inline]
    fn is_better(one: Best<O::Key>, other: Best<O::Key>) -> bool {
        let better = if MAX { one.key > other.key } else { one.key < other.key };
        better || one.key == other.key && one.order < other.order
    }

    fn update(&mut self, group: usize, best: Best<O::Key>) {
        if let Some(slot) = self.best.get_mut(group)
            && Self::is_better(best, *slot)
        {
            *slot = best;
        }
    }
}

impl<O: Ordered, const MAX: bool, const SKIP: bool> Accumulator for Positions<O, MAX, SKIP> {
    fn add_to_one(&mut self, group: usize, values: &[u8], order: u64, order_step: u64) {
        let values = O::all(values);
        let keys = values.iter().map(|&value| Self::key(value));
        let Some(key) = (if MAX { keys.max() } else { keys.min() }) else { return };
        let first = values.iter().position(|&value| Self::key(value) == key).unwrap_or(0) as u64;
        self.update(group, Best { key, order: order + first * order_step });
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], order: u64) {
        for (group, &value) in (first..).zip(O::all(values)) {
            self.update(group, Best { key: Self::key(value), order });
        }
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, order: u64) {
        if count > 0 {
            self.add_to_one(group, value, order, 0);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        (0..).zip(other.best).for_each(|(group, best)| self.update(group, best));
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        for best in self.best.get(groups).ok_or(ComputeError::Internal)? {
            if SKIP && (best.key < O::PRESENT.0 || best.key > O::PRESENT.1) {
                return Err(ComputeError::Empty {
                    function: self.function.name().to_owned(),
                    reason: "all elements of a group are NaN",
                });
            }
            out.extend_from_slice(&i64::try_from(best.order).unwrap_or(i64::MAX).to_le_bytes());
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
