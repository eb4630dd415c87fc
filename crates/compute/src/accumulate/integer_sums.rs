//! `sum`, `mean`, `std` and `var` of integers, booleans and times.

use std::{any::Any, ops::Range};

use num_bigint::{BigInt, BigUint};
use zarrd_codec::filled;

use super::{Accumulator, Computation, downcast};
use crate::{
    cast,
    element::{Time, Whole},
    error::ComputeError,
    exact::ratio::{Precision, quotient, root, small_quotient, small_root},
    function::Operation,
};

/// The memory of a sum and a count.
pub(super) const SIZE: u64 = 24;
/// The memory of these and of a sum of squares.
pub(super) const SIZE_OF_MOMENTS: u64 = 48;

/// The elements whose squares are added before a sum of them is carried.
const BLOCK: usize = 1 << 16;

/// The elements of the least number of units of time are no time.
const NOT_A_TIME: i128 = i64::MIN as i128;

/// Sums of integers in 128 bits, and of their squares in 192.
struct IntegerSums<W> {
    sums: Vec<i128>,
    counts: Vec<u64>,
    /// The sums of squares, empty unless they are needed: the lower and the upper part.
    squares: Vec<(u128, u64)>,
    /// The groups that have an element that is no time; empty for other types.
    missing: Vec<bool>,
    computation: Computation,
    element: std::marker::PhantomData<fn(W)>,
}

pub(super) fn new<W: Whole>(computation: &Computation, groups: usize) -> Box<dyn Accumulator> {
    let needs_squares = matches!(computation.function.operation, Operation::Std | Operation::Var);
    let is_time = std::any::TypeId::of::<W>() == std::any::TypeId::of::<Time>();
    Box::new(IntegerSums::<W> {
        sums: filled(0, groups),
        counts: filled(0, groups),
        squares: filled((0, 0), if needs_squares { groups } else { 0 }),
        missing: filled(false, if is_time { groups } else { 0 }),
        computation: computation.clone(),
        element: std::marker::PhantomData,
    })
}

impl<W: Whole> IntegerSums<W> {
    fn add(&mut self, group: usize, sum: i128, count: u64) {
        if let (Some(total), Some(elements)) = (self.sums.get_mut(group), self.counts.get_mut(group)) {
            *total = total.wrapping_add(sum);
            *elements = elements.saturating_add(count);
        }
    }

    fn add_squares(&mut self, group: usize, (low, high): (u128, u64)) {
        if let Some(squares) = self.squares.get_mut(group) {
            let (sum, carries) = squares.0.overflowing_add(low);
            *squares = (sum, squares.1.wrapping_add(high).wrapping_add(u64::from(carries)));
        }
    }

    /// Adds times one by one, since some may be missing.
    fn add_times(&mut self, group: usize, values: &[W::Bytes]) {
        for &value in values {
            self.add_time(group, W::read(value).to_i128(), 1);
        }
    }

    fn add_time(&mut self, group: usize, value: i128, count: u64) {
        if value != NOT_A_TIME {
            return self.add(group, value.saturating_mul(i128::from(count)), count);
        }
        if let Some(missing) = self.missing.get_mut(group).filter(|_| !self.computation.skips()) {
            *missing = true;
        }
    }

    /// The sum of the squares of a group.
    fn squares(&self, group: usize) -> BigInt {
        let (low, high) = self.squares.get(group).copied().unwrap_or_default();
        (BigInt::from(high) << 128) + low
    }

    fn variance(&self, computation: &Computation, group: usize) -> f64 {
        let (sum, count) = self.group(group);
        let small = || {
            let squares = i128::try_from(self.squares.get(group).filter(|squares| squares.1 == 0)?.0).ok()?;
            let spread = squares.checked_mul(count.into())?.checked_sub(sum.checked_mul(sum)?)?;
            small_variance(spread, 0, count, computation)
        };
        if let Some(variance) = small() {
            return variance;
        }
        let sum = BigInt::from(sum);
        let spread = self.squares(group) * count - &sum * &sum;
        variance(&spread, 0, count, computation)
    }

    /// The mean of a group; NaN without elements.
    fn mean(&self, group: usize) -> f64 {
        /// The integers that are floats, in magnitude.
        const EXACT: u64 = 1 << 53;
        let (sum, count) = self.group(group);
        match count {
            0 => f64::NAN,
            // The operands are exact, so that the quotient is rounded once.
            1..EXACT if sum.unsigned_abs() < EXACT.into() => sum as f64 / count as f64,
            _ => quotient(&BigInt::from(sum), 0, &BigUint::from(count), Precision::DOUBLE),
        }
    }

    fn group(&self, group: usize) -> (i128, u64) {
        (self.sums.get(group).copied().unwrap_or(0), self.counts.get(group).copied().unwrap_or(0))
    }

    /// Appends the mean of times, rounded to a unit: down for moments, as calendars are; towards zero for durations, as
    /// NumPy does.
    fn finish_time(&self, group: usize, out: &mut Vec<u8>) {
        let (sum, count) = self.group(group);
        let is_missing = count == 0 || self.missing.get(group).copied().unwrap_or(false);
        let count = i128::from(count.max(1));
        let mean = if self.computation.is_moment() { sum.div_euclid(count) } else { sum / count };
        let mean = if is_missing { NOT_A_TIME } else { mean };
        out.extend_from_slice(&i64::try_from(mean).unwrap_or(i64::MIN).to_le_bytes());
    }

    fn finish_sum(&self, computation: &Computation, group: usize, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        let result = &computation.result;
        let number = result.number().ok_or(ComputeError::Internal)?;
        let (sum, _) = self.group(group);
        if !cast::fits(sum, number) {
            return Err(ComputeError::SumOverflow { data_type: result.name() });
        }
        cast::write_integer(sum, number, out).ok_or_else(|| ComputeError::SumOverflow { data_type: result.name() })
    }
}

impl<W: Whole> Accumulator for IntegerSums<W> {
    fn add_to_one(&mut self, group: usize, values: &[u8], _order: u64, _order_step: u64) {
        let values = W::all(values);
        if !self.missing.is_empty() {
            return self.add_times(group, values);
        }
        self.add(group, W::sum(values), values.len() as u64);
        if !self.squares.is_empty() {
            values.chunks(BLOCK).for_each(|block| self.add_squares(group, W::squares(block)));
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        let values = W::all(values);
        if !self.missing.is_empty() || !self.squares.is_empty() {
            for (group, &value) in (first..).zip(values) {
                self.add_to_one(group, value.as_ref(), 0, 0);
            }
            return;
        }
        let sums = self.sums.iter_mut().zip(&mut self.counts).skip(first);
        for ((sum, count), &value) in sums.zip(values) {
            *sum = sum.wrapping_add(W::read(value).to_i128());
            *count += 1;
        }
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, _order: u64) {
        let Some(&value) = W::all(value).first() else { return };
        let number = W::read(value).to_i128();
        if !self.missing.is_empty() {
            return self.add_time(group, number, count);
        }
        self.add(group, number.saturating_mul(i128::from(count)), count);
        let (low, high) = W::squares(&[value]);
        // One square has no upper part; its product with a count is made of those of its halves.
        let half = |part: u128| part.saturating_mul(u128::from(count));
        let (lower, upper) = (half(low & u128::from(u64::MAX)), half(low >> 64));
        self.add_squares(group, (lower, high));
        self.add_squares(group, (upper << 64, u64::try_from(upper >> 64).unwrap_or(u64::MAX)));
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        for group in 0..self.sums.len() {
            let (sum, count) = other.group(group);
            self.add(group, sum, count);
            if let Some(&squares) = other.squares.get(group) {
                self.add_squares(group, squares);
            }
        }
        self.missing.iter_mut().zip(other.missing).for_each(|(one, other)| *one |= other);
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        self.finish_as(&self.computation, groups, out)
    }

    fn finish_as(&self, other: &Computation, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        for group in groups {
            if !self.missing.is_empty() {
                self.finish_time(group, out);
                continue;
            }
            match other.function.operation {
                Operation::Sum => self.finish_sum(other, group, out)?,
                Operation::Mean => out.extend_from_slice(&self.mean(group).to_le_bytes()),
                _ => out.extend_from_slice(&self.variance(other, group).to_le_bytes()),
            }
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// [`variance`], if all integers are small enough, and there are degrees of freedom.
pub(super) fn small_variance(spread: i128, exponent: i64, count: u64, computation: &Computation) -> Option<f64> {
    let degrees = count.saturating_sub(computation.ddof);
    let divisor = count.checked_mul(degrees).filter(|&divisor| divisor > 0)?;
    Some(match computation.function.operation {
        Operation::Std => small_root(spread, exponent, divisor),
        _ => small_quotient(spread, exponent, divisor, Precision::DOUBLE),
    })
}

/// The variance of a group of `count` elements, or its root, given the sum of their squares times `count` minus the
/// square of their sum, as an integer times a power of two. Without degrees of freedom, it is NaN or infinite, as in
/// NumPy.
pub(super) fn variance(spread: &BigInt, exponent: i64, count: u64, computation: &Computation) -> f64 {
    let degrees = count.saturating_sub(computation.ddof);
    if degrees == 0 {
        let is_infinite = *spread != BigInt::ZERO && !computation.skips();
        return if is_infinite { f64::INFINITY } else { f64::NAN };
    }
    let divisor = BigUint::from(count) * degrees;
    match computation.function.operation {
        Operation::Std => root(spread, exponent, &divisor),
        _ => quotient(spread, exponent, &divisor, Precision::DOUBLE),
    }
}
