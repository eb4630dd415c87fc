//! `min`, `max` and their forms without NaN.

use std::{any::Any, ops::Range};

use zarrd_codec::filled;

use super::{Accumulator, Orders, downcast};
use crate::{
    element::Ordered,
    error::ComputeError,
    function::{Function, Missing, Operation},
    lanes::{
        sums::COLUMNS,
        widest::{Kernel, widest},
    },
    rows::Rows,
};

/// The least or the greatest key of each group.
struct Extremes<O: Ordered, const MAX: bool, const SKIP: bool> {
    keys: Vec<O::Key>,
}

pub(super) fn new<O: Ordered>(function: Function, groups: usize) -> Box<dyn Accumulator> {
    let is_max = function.operation == Operation::Max;
    match (is_max, function.missing) {
        (false, Missing::Propagate) => Box::new(Extremes::<O, false, false>::new(groups)),
        (false, Missing::Skip) => Box::new(Extremes::<O, false, true>::new(groups)),
        (true, Missing::Propagate) => Box::new(Extremes::<O, true, false>::new(groups)),
        (true, Missing::Skip) => Box::new(Extremes::<O, true, true>::new(groups)),
    }
}

impl<O: Ordered, const MAX: bool, const SKIP: bool> Extremes<O, MAX, SKIP> {
    fn new(groups: usize) -> Self {
        Self { keys: filled(Self::initial(), groups) }
    }

    /// The key that no element replaces.
    fn initial() -> O::Key {
        if MAX { O::LIMITS.0 } else { O::LIMITS.1 }
    }

    #[inline(always)]
    fn better(one: O::Key, other: O::Key) -> O::Key {
        match MAX {
            true => one.max(other),
            false => one.min(other),
        }
    }

    fn update(&mut self, group: usize, key: O::Key) {
        if let Some(slot) = self.keys.get_mut(group) {
            *slot = Self::better(*slot, key);
        }
    }
}

impl<O: Ordered, const MAX: bool, const SKIP: bool> Accumulator for Extremes<O, MAX, SKIP> {
    fn add_to_one(&mut self, group: usize, values: &[u8], _order: u64, _order_step: u64) {
        self.update(group, O::best_key::<MAX, SKIP>(O::all(values)));
    }

    fn add_rows(&mut self, first: usize, rows: Rows<'_>, len: usize, orders: Orders) {
        let width = len / size_of::<O::Bytes>().max(1);
        if rows.count() == 1 || width == 0 || width > COLUMNS {
            return rows.iter().for_each(|row| self.add_windows(first, row, len, orders));
        }
        // Whole windows of some columns at a time.
        let windows = COLUMNS / width;
        for (number, columns) in rows.columns(windows * len).enumerate() {
            let first = first.saturating_add(number.saturating_mul(windows));
            let keys = self.keys.get_mut(first..).unwrap_or_default();
            let keys = keys.get_mut(..columns.width() / len).unwrap_or_default();
            widest(WindowRows::<O, MAX, SKIP> { keys, rows: columns, width });
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        let keys = self.keys.get_mut(first..).unwrap_or_default();
        widest(Each::<O, MAX, SKIP> { keys, values: O::all(values) });
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, _order: u64) {
        if count > 0 {
            self.add_to_one(group, value, 0, 0);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        self.keys.iter_mut().zip(other.keys).for_each(|(one, other)| *one = Self::better(*one, other));
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        for &key in self.keys.get(groups).ok_or(ComputeError::Internal)? {
            out.extend_from_slice(O::of_key(key).or_missing().write().as_ref());
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The keys of groups, and rows with an element of each.
struct Each<'a, O: Ordered, const MAX: bool, const SKIP: bool> {
    keys: &'a mut [O::Key],
    values: &'a [O::Bytes],
}

impl<O: Ordered, const MAX: bool, const SKIP: bool> Kernel for Each<'_, O, MAX, SKIP> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (key, &value) in self.keys.iter_mut().zip(self.values) {
            *key = Extremes::<O, MAX, SKIP>::better(*key, O::read(value).extreme_key::<MAX, SKIP>());
        }
    }
}

/// The keys of groups, and rows with a window of `width` elements of each, in all at most [`COLUMNS`].
struct WindowRows<'a, O: Ordered, const MAX: bool, const SKIP: bool> {
    keys: &'a mut [O::Key],
    rows: Rows<'a>,
    width: usize,
}

impl<O: Ordered, const MAX: bool, const SKIP: bool> Kernel for WindowRows<'_, O, MAX, SKIP> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // The best of each column.
        let mut best = [Extremes::<O, MAX, SKIP>::initial(); COLUMNS];
        for row in self.rows.iter() {
            for (best, &value) in best.iter_mut().zip(O::all(row)) {
                *best = Extremes::<O, MAX, SKIP>::better(*best, O::read(value).extreme_key::<MAX, SKIP>());
            }
        }
        for (key, best) in self.keys.iter_mut().zip(best.chunks_exact(self.width.max(1))) {
            *key = best.iter().copied().fold(*key, Extremes::<O, MAX, SKIP>::better);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Time;

    fn reduced<O: Ordered>(name: &str, parts: &[&[O]]) -> O {
        let function: Function = name.parse().unwrap();
        let bytes = |part: &[O]| part.iter().flat_map(|value| value.write().as_ref().to_vec()).collect::<Vec<_>>();
        let mut all = new::<O>(function, 1);
        for part in parts {
            let mut one = new::<O>(function, 1);
            one.add_to_one(0, &bytes(part), 0, 1);
            all.merge(one);
        }
        let mut out = Vec::new();
        all.finish(0..1, &mut out).unwrap();
        O::read(O::all(&out)[0])
    }

    #[test]
    fn nan_is_the_result_unless_it_is_skipped() {
        let parts: &[&[f32]] = &[&[1.0, -f32::NAN], &[-3.0, f32::INFINITY]];
        for (name, expected) in [("nanmin", -3.0), ("nanmax", f32::INFINITY)] {
            assert_eq!(reduced(name, parts), expected);
            assert!(reduced::<f32>(name, &[&[f32::NAN], &[-f32::NAN]]).is_nan());
        }
        for name in ["min", "max"] {
            assert_eq!(reduced(name, parts).to_bits(), f32::NAN.to_bits());
        }
        assert_eq!(reduced("min", &[&[0.0, -0.0_f64]]).to_bits(), (-0.0_f64).to_bits(), "in any order");
        let times = [Time(5), Time(i64::MIN), Time(i64::MAX)];
        for name in ["min", "max"] {
            assert_eq!(reduced(name, &[&times, &[Time(3)]]), Time(i64::MIN), "{name}");
        }
        assert_eq!(reduced("nanmin", &[&times]), Time(5));
        assert_eq!(reduced("nanmax", &[&times]), Time(i64::MAX));
        assert_eq!(reduced("nanmax", &[&[Time(i64::MIN)]]), Time(i64::MIN));
        assert_eq!(reduced("max", &[&[i64::MIN], &[-7_i64]]), -7);
        assert_eq!(reduced("min", &[&[u8::MAX]]), u8::MAX);
    }
}
