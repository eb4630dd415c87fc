//! `min`, `max` and their forms without NaN.

use std::{any::Any, ops::Range};

use super::{Accumulator, Orders, downcast};
use crate::{
    element::Ordered,
    error::ComputeError,
    filled::filled,
    function::{Function, Missing, Operation},
    lanes::sums::COLUMNS,
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

    #[inline]
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
        // The best of each column, of whole windows of some columns at a time.
        let windows = COLUMNS / width;
        for (number, columns) in rows.columns(windows * len).enumerate() {
            let mut best = [Self::initial(); COLUMNS];
            for row in columns.iter() {
                for (best, &value) in best.iter_mut().zip(O::all(row)) {
                    *best = Self::better(*best, O::read(value).extreme_key::<MAX, SKIP>());
                }
            }
            let first = first.saturating_add(number.saturating_mul(windows));
            let best = best.chunks_exact(width).take(columns.width() / len);
            for (group, best) in (first..).zip(best) {
                self.update(group, best.iter().copied().fold(Self::initial(), Self::better));
            }
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        let keys = self.keys.get_mut(first..).unwrap_or_default();
        for (slot, &value) in keys.iter_mut().zip(O::all(values)) {
            *slot = Self::better(*slot, O::read(value).extreme_key::<MAX, SKIP>());
        }
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
