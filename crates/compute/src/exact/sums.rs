//! Exact sums of floats, group by group.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use zarrd_codec::filled;

use super::{
    further::FurtherFloats,
    superaccumulator::SuperAccumulator,
    term::{Plain, Term, product},
    total::{Total, two_sum},
};
use crate::element::{Element, Real};

#[cfg(test)]
mod tests;

/// The elements that are added at a time.
const BLOCK: usize = 256;
/// The partial sums of one group that are computed side by side.
const LANES: usize = 8;

/// The value of NaN in [`ExactSums::special`], and those of the infinities.
const NOT_A_NUMBER: u8 = 1;
const POSITIVE: u8 = 2;
const NEGATIVE: u8 = 4;

/// An exact sum for each group.
///
/// A sum is three floats, none of which has lost anything: what an addition rounds off is added to the next one. What
/// the third rounds off, which takes numbers whose exponents are far apart, goes to further floats, and what the last of
/// those rounds off to a fixed-point number. All results are therefore the same whatever the order of additions.
#[derive(Debug)]
pub(crate) struct ExactSums {
    first: Vec<f64>,
    /// The second and third floats, empty until something was rounded off.
    rests: [Vec<f64>; 2],
    /// The special values that were added, as bits; empty until there are some.
    special: Vec<u8>,
    further: FurtherFloats,
    spilled: HashMap<usize, SuperAccumulator>,
    /// The most fixed-point numbers that there may be.
    most_spilled: usize,
    /// True if there would be more of them. The sums are then not valid.
    is_exceeded: bool,
}

impl ExactSums {
    /// The memory of one sum, in bytes.
    pub(crate) const SIZE: u64 = 3 * size_of::<f64>() as u64 + 1;

    /// The memory of one fixed-point number, in bytes.
    const SPILLED_SIZE: u64 = SuperAccumulator::SIZE + 64;

    /// Sums of zero, whose further floats and fixed-point numbers take at most `spill` bytes.
    pub(crate) fn new(groups: usize, spill: u64) -> Self {
        let further = FurtherFloats::new(groups, spill);
        let for_spilled = spill.saturating_sub(further.max_memory());
        Self {
            first: filled(0.0, groups),
            rests: [Vec::new(), Vec::new()],
            special: Vec::new(),
            further,
            spilled: HashMap::new(),
            most_spilled: usize::try_from(for_spilled / Self::SPILLED_SIZE).unwrap_or(usize::MAX).max(1),
            is_exceeded: false,
        }
    }

    /// True if the fixed-point numbers would take more memory than they may. The sums are then not valid.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.is_exceeded
    }

    /// Adds the terms of all elements to one sum. With `SKIP`, NaN is left out.
    pub(crate) fn add_to_one<T: Term, const SKIP: bool>(
        &mut self,
        group: usize,
        values: &[<T::Value as Element>::Bytes],
    ) {
        for block in values.chunks(BLOCK) {
            let mut lanes = [[0.0_f64; LANES]; 2];
            let (rows, rest) = block.as_chunks::<LANES>();
            let mut residue = 0.0_f64;
            for row in rows {
                let mut residues = [0.0_f64; LANES];
                let [first, second] = &mut lanes;
                for lane in 0..LANES {
                    let (Some(first), Some(second), Some(residue), Some(&value)) =
                        (first.get_mut(lane), second.get_mut(lane), residues.get_mut(lane), row.get(lane))
                    else {
                        continue;
                    };
                    let (term, rest) = term::<T, SKIP>(value);
                    let (sum, error) = two_sum(*first, term);
                    *first = sum;
                    let (sum, error) = two_sum(*second, error);
                    *second = sum;
                    *residue = error.abs();
                    if T::HAS_REST {
                        let (sum, error) = two_sum(*second, rest);
                        *second = sum;
                        *residue += error.abs();
                    }
                }
                residue += residues.iter().sum::<f64>();
            }
            // NaN is not zero either.
            if residue == 0.0 {
                lanes.iter().flatten().for_each(|&sum| self.add_sum(group, sum));
            } else {
                rows.iter().flatten().for_each(|&value| self.add::<T, SKIP>(group, value));
            }
            rest.iter().for_each(|&value| self.add::<T, SKIP>(group, value));
        }
    }

    /// Adds the term of each element to a sum of its own, from that of `first` on.
    pub(crate) fn add_to_each<T: Term, const SKIP: bool>(
        &mut self,
        first: usize,
        values: &[<T::Value as Element>::Bytes],
    ) {
        for (number, block) in values.chunks(BLOCK).enumerate() {
            let start = first + number * BLOCK;
            if !self.add_block::<T, SKIP>(start, block) {
                block.iter().zip(start..).for_each(|(&value, group)| self.add::<T, SKIP>(group, value));
            }
        }
    }

    /// Adds a block if nothing of it is spilled; else changes no sum and returns false.
    fn add_block<T: Term, const SKIP: bool>(&mut self, start: usize, block: &[<T::Value as Element>::Bytes]) -> bool {
        if self.has_rests() || !self.add_unrounded::<T, SKIP>(start, block) {
            self.make_rests();
            return self.add_rounded::<T, SKIP>(start, block);
        }
        true
    }

    /// Adds a block to the first floats if nothing of it is rounded off; else changes nothing and returns false.
    fn add_unrounded<T: Term, const SKIP: bool>(
        &mut self,
        start: usize,
        block: &[<T::Value as Element>::Bytes],
    ) -> bool {
        let Some(first) = self.first.get_mut(start..start + block.len()) else { return true };
        let mut new_first = [0.0_f64; BLOCK];
        let mut residue = 0.0_f64;
        for ((&first, &value), new_first) in first.iter().zip(block).zip(&mut new_first) {
            let (term, rest) = term::<T, SKIP>(value);
            let (sum, error) = two_sum(first, term);
            *new_first = sum;
            residue += error.abs() + rest.abs();
        }
        // NaN is not zero either.
        if residue == 0.0 {
            first.copy_from_slice(new_first.get(..first.len()).unwrap_or_default());
        }
        residue == 0.0
    }

    /// Adds a block if nothing of it is spilled; else changes nothing and returns false.
    fn add_rounded<T: Term, const SKIP: bool>(&mut self, start: usize, block: &[<T::Value as Element>::Bytes]) -> bool {
        let range = start..start + block.len();
        let [second, third] = &mut self.rests;
        let (Some(first), Some(second), Some(third)) =
            (self.first.get_mut(range.clone()), second.get_mut(range.clone()), third.get_mut(range))
        else {
            return true;
        };
        let [mut new_first, mut new_second] = [[0.0_f64; BLOCK]; 2];
        // The second sum mostly rounds nothing off, so that the third one stays.
        let old = first.iter().zip(&*second).zip(block);
        let mut residue = 0.0_f64;
        for (((&first, &second), &value), (new_first, new_second)) in
            old.zip(new_first.iter_mut().zip(new_second.iter_mut()))
        {
            let (term, rest) = term::<T, SKIP>(value);
            let (sum, error) = two_sum(first, term);
            *new_first = sum;
            let (sum, error) = two_sum(second, error);
            *new_second = sum;
            residue += error.abs();
            if T::HAS_REST {
                let (sum, error) = two_sum(sum, rest);
                *new_second = sum;
                residue += error.abs();
            }
        }
        if residue == 0.0 {
            let len = block.len();
            for (sums, new) in [(first, &new_first), (second, &new_second)] {
                if let Some(new) = new.get(..len) {
                    sums.copy_from_slice(new);
                }
            }
            return true;
        }
        let old = first.iter().zip(&*second).zip(&*third).zip(block);
        let mut new_third = [0.0_f64; BLOCK];
        let new_sums = new_first.iter_mut().zip(&mut new_second).zip(&mut new_third);
        let mut residue = 0.0_f64;
        for ((((&first, &second), &third), &value), ((new_first, new_second), new_third)) in old.zip(new_sums) {
            let (term, rest) = term::<T, SKIP>(value);
            let (sums, error) = add_term([first, second, third], term);
            residue += error.abs();
            let (sums, error) = if T::HAS_REST { add_term(sums, rest) } else { (sums, 0.0) };
            residue += error.abs();
            [*new_first, *new_second, *new_third] = sums;
        }
        if residue != 0.0 || residue.is_nan() {
            return false;
        }
        let len = block.len();
        for (sums, new) in [(first, &new_first), (second, &new_second), (third, &new_third)] {
            if let Some(new) = new.get(..len) {
                sums.copy_from_slice(new);
            }
        }
        true
    }

    /// Adds the term of one element.
    fn add<T: Term, const SKIP: bool>(&mut self, group: usize, value: <T::Value as Element>::Bytes) {
        let element = T::Value::read(value);
        let (first, rest) = term::<T, SKIP>(value);
        let Some(sums) = self.get(group) else { return };
        let (sums, error) = add_term(sums, first);
        let (sums, other) = add_term(sums, rest);
        if error == 0.0 && other == 0.0 {
            self.set(group, sums);
        } else {
            self.add_repeated::<T, SKIP>(group, element.to_f64(), 1);
        }
    }

    /// Adds the term of an element `count` times.
    pub(crate) fn add_repeated<T: Term, const SKIP: bool>(&mut self, group: usize, value: f64, count: u64) {
        if count == 0 || SKIP && value.is_nan() {
            return;
        }
        if !value.is_finite() {
            return self.add_special(group, T::special(value));
        }
        if value == 0.0 || self.add_product::<T>(group, value, count) || count == 1 && self.add_parts::<T>(group, value)
        {
            return;
        }
        self.spill(group, |sum| T::add_to(sum, value, count));
    }

    /// Adds the two floats of a term; returns false if it is not exactly two.
    fn add_parts<T: Term>(&mut self, group: usize, value: f64) -> bool {
        let element = T::Value::from_f64(value);
        let (first, rest) = T::of(element);
        let is_exact = element.to_f64() == value && first.is_finite() && rest.is_finite();
        if is_exact {
            self.add_sum(group, first);
            self.add_sum(group, rest);
        }
        is_exact
    }

    /// Adds the product of a term and a count if it is the sum of a few floats; else changes nothing and returns false.
    fn add_product<T: Term>(&mut self, group: usize, value: f64, count: u64) -> bool {
        let element = T::Value::from_f64(value);
        let Some(mut sums) = self.get(group).filter(|_| count < 1 << 53 && element.to_f64() == value) else {
            return false;
        };
        let (first, rest) = T::of(element);
        for factor in [first, rest] {
            let (product, error) = product(factor, count as f64);
            for part in [product, error] {
                let (new, rounded) = add_term(sums, part);
                if rounded != 0.0 || rounded.is_nan() {
                    return false;
                }
                sums = new;
            }
        }
        self.set(group, sums);
        true
    }

    /// Adds a sum of terms, which is one float.
    pub(crate) fn add_sum(&mut self, group: usize, value: f64) {
        let Some(sums) = self.get(group) else { return };
        let (sums, rest) = add_term(sums, value);
        match rest == 0.0 || self.further.add(group, rest) {
            true => self.set(group, sums),
            false => self.spill(group, |sum| sum.add(value)),
        }
    }

    /// Adds NaN or an infinity.
    pub(crate) fn add_special(&mut self, group: usize, value: f64) {
        let bit = match value {
            f64::INFINITY => POSITIVE,
            f64::NEG_INFINITY => NEGATIVE,
            _ => NOT_A_NUMBER,
        };
        if self.special.is_empty() {
            self.special = filled(0, self.first.len());
        }
        if let Some(special) = self.special.get_mut(group) {
            *special |= bit;
        }
    }

    /// Adds all sums of another one.
    pub(crate) fn merge(&mut self, other: Self) {
        for sums in std::iter::once(&other.first).chain(&other.rests).chain(other.further.levels()) {
            for (number, block) in
                sums.chunks(BLOCK).enumerate().filter(|(_, block)| block.iter().any(|&sum| sum != 0.0))
            {
                let mut values = [[0; 8]; BLOCK];
                values.iter_mut().zip(block).for_each(|(value, sum)| *value = sum.to_le_bytes());
                self.add_to_each::<Plain<f64>, false>(number * BLOCK, values.get(..block.len()).unwrap_or_default());
            }
        }
        match self.special.is_empty() {
            true => self.special = other.special,
            false => self.special.iter_mut().zip(&other.special).for_each(|(one, other)| *one |= other),
        }
        for (group, sum) in other.spilled {
            self.spill(group, |own| own.merge(&sum));
        }
        self.is_exceeded |= other.is_exceeded;
    }

    /// Adds to the fixed-point number of a group, if it has one or there may be one more.
    fn spill(&mut self, group: usize, add: impl FnOnce(&mut SuperAccumulator)) {
        if self.spilled.len() < self.most_spilled {
            return add(self.spilled.entry(group).or_insert_with(SuperAccumulator::new));
        }
        match self.spilled.get_mut(&group) {
            Some(sum) => add(sum),
            None => self.is_exceeded = true,
        }
    }

    /// The sum of a group.
    pub(crate) fn total(&self, group: usize) -> Total<'_> {
        let special = self.special.get(group).copied().unwrap_or(0);
        match special {
            0 => Total::Finite(self.get(group).unwrap_or_default(), self.fixed_point(group)),
            POSITIVE => Total::Special(f64::INFINITY),
            NEGATIVE => Total::Special(f64::NEG_INFINITY),
            _ => Total::Special(f64::NAN),
        }
    }

    /// What the sum of a group has beyond three floats.
    fn fixed_point(&self, group: usize) -> Option<Cow<'_, SuperAccumulator>> {
        let mut found = self.spilled.get(&group).map(Cow::Borrowed);
        for float in self.further.of(group) {
            found.get_or_insert_with(|| Cow::Owned(SuperAccumulator::new())).to_mut().add(float);
        }
        found
    }

    /// The sums of consecutive groups if each sum of all groups is one finite float.
    pub(crate) fn singles(&self, groups: Range<usize>) -> Option<&[f64]> {
        let is_single =
            !self.has_rests() && self.special.is_empty() && self.further.is_empty() && self.spilled.is_empty();
        self.first.get(groups).filter(|_| is_single)
    }

    /// True if the second and third floats are there.
    fn has_rests(&self) -> bool {
        self.rests.iter().all(|rests| !rests.is_empty())
    }

    fn make_rests(&mut self) {
        let groups = self.first.len();
        self.rests.iter_mut().filter(|rests| rests.len() < groups).for_each(|rests| *rests = filled(0.0, groups));
    }

    fn get(&self, group: usize) -> Option<[f64; 3]> {
        let [second, third] = self.rests.each_ref().map(|rests| rests.get(group).copied().unwrap_or(0.0));
        Some([*self.first.get(group)?, second, third])
    }

    fn set(&mut self, group: usize, [first, second, third]: [f64; 3]) {
        if let Some(slot) = self.first.get_mut(group) {
            *slot = first;
        }
        if second != 0.0 || third != 0.0 || self.has_rests() {
            self.make_rests();
            for (rests, rest) in self.rests.iter_mut().zip([second, third]) {
                if let Some(slot) = rests.get_mut(group) {
                    *slot = rest;
                }
            }
        }
    }
}

#[inline]
fn term<T: Term, const SKIP: bool>(value: <T::Value as Element>::Bytes) -> (f64, f64) {
    let value = T::Value::read(value);
    let (first, rest) = T::of(value);
    if SKIP && value.to_f64().is_nan() { (0.0, 0.0) } else { (first, rest) }
}

/// Adds a float to a sum; the second result is what was rounded off, or NaN.
#[inline]
fn add_term([first, second, third]: [f64; 3], value: f64) -> ([f64; 3], f64) {
    let (first, error) = two_sum(first, value);
    let (second, error) = two_sum(second, error);
    let (third, error) = two_sum(third, error);
    ([first, second, third], error)
}
