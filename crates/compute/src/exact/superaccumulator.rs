//! Fixed-point numbers that are wide enough for every sum of floats.

use num_bigint::BigInt;

use super::ratio::parts;

/// The bits of a limb that have a place value; the others are room for carries.
const LIMB_BITS: u32 = 32;
/// The exponent of the lowest bit: that of the product of the two smallest numbers.
const LEAST_EXPONENT: i64 = -2148;
/// The limbs: from the lowest bit to that of the product of the two largest numbers, and 64 bits more.
const LIMBS: usize = 134;
/// The additions after which limbs could overflow.
const MAX_PENDING: u32 = 1 << 29;

/// The exact sum of any number of floats and of products of two floats.
///
/// A fixed-point number in limbs of 32 bits, each in an `i64` of its own, so that an addition carries nothing.
#[derive(Clone, Debug)]
pub(crate) struct SuperAccumulator {
    limbs: Box<[i64; LIMBS]>,
    pending: u32,
}

impl SuperAccumulator {
    /// The memory of one, in bytes.
    pub(crate) const SIZE: u64 = (LIMBS * size_of::<i64>()) as u64 + 32;

    pub(crate) fn new() -> Self {
        Self { limbs: Box::new([0; LIMBS]), pending: 0 }
    }

    /// Adds a finite number.
    pub(crate) fn add(&mut self, value: f64) {
        let (significand, exponent) = parts(value);
        self.add_scaled(i128::from(significand), exponent);
    }

    /// Adds the product of a finite number and a count.
    pub(crate) fn add_times(&mut self, value: f64, count: u64) {
        let (significand, exponent) = parts(value);
        self.add_scaled(i128::from(significand).saturating_mul(i128::from(count)), exponent);
    }

    /// Adds the square of a finite number as often as `count`.
    pub(crate) fn add_square(&mut self, value: f64, count: u64) {
        let (significand, exponent) = parts(value);
        let square = u128::from(significand.unsigned_abs()).saturating_mul(u128::from(significand.unsigned_abs()));
        let exponent = exponent.saturating_mul(2);
        // A square has up to 106 bits, so its product with a count is made of those of its halves.
        for (half, shift) in
            [(square & u128::from(u32::MAX), 0), (square >> 32 & u128::from(u32::MAX), 32), (square >> 64, 64)]
        {
            let product = i128::try_from(half).unwrap_or(i128::MAX).saturating_mul(i128::from(count));
            self.add_scaled(product, exponent.saturating_add(shift));
        }
    }

    /// Adds another sum.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.pending.saturating_add(other.pending) >= MAX_PENDING {
            self.carry();
        }
        self.limbs.iter_mut().zip(other.limbs.iter()).for_each(|(one, other)| *one = one.wrapping_add(*other));
        self.pending = self.pending.saturating_add(other.pending).saturating_add(1);
    }

    /// The sum as an integer times a power of two.
    pub(crate) fn value(&self) -> (BigInt, i64) {
        let mut sum = BigInt::ZERO;
        for limb in self.limbs.iter().rev() {
            sum = (sum << LIMB_BITS) + *limb;
        }
        (sum, LEAST_EXPONENT)
    }

    /// Adds an integer of fewer than 2^118 in magnitude times a power of two.
    fn add_scaled(&mut self, significand: i128, exponent: i64) {
        if significand == 0 {
            return;
        }
        if self.pending >= MAX_PENDING {
            self.carry();
        }
        self.pending = self.pending.saturating_add(1);
        let place = u64::try_from(exponent.saturating_sub(LEAST_EXPONENT)).unwrap_or(0);
        let first = usize::try_from(place / u64::from(LIMB_BITS)).unwrap_or(usize::MAX);
        let shift = place % u64::from(LIMB_BITS);
        let negative = significand < 0;
        let mut magnitude = significand.unsigned_abs();
        // The lowest limb takes the bits that remain of its width, the next ones 32 each.
        let low_bits = u64::from(LIMB_BITS).saturating_sub(shift);
        let mut chunk = i64::try_from((magnitude & ((1_u128 << low_bits) - 1)) << shift).unwrap_or(0);
        magnitude >>= low_bits;
        for limb in self.limbs.iter_mut().skip(first) {
            *limb = limb.wrapping_add(if negative { -chunk } else { chunk });
            if magnitude == 0 {
                break;
            }
            chunk = i64::try_from(magnitude & u128::from(u32::MAX)).unwrap_or(0);
            magnitude >>= LIMB_BITS;
        }
    }

    /// Carries what exceeds the limbs to the next ones.
    fn carry(&mut self) {
        let mut carry = 0_i64;
        let last = LIMBS.saturating_sub(1);
        for (index, limb) in self.limbs.iter_mut().enumerate() {
            let value = limb.wrapping_add(carry);
            if index == last {
                *limb = value;
            } else {
                carry = value >> LIMB_BITS;
                *limb = value.wrapping_sub(carry << LIMB_BITS);
            }
        }
        self.pending = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::ratio::*, *};
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn rounded(sum: &SuperAccumulator) -> f64 {
        let (value, exponent) = sum.value();
        quotient(&value, exponent, &BigUint::from(1_u8), Precision::DOUBLE)
    }

    #[test]
    fn sums_have_no_rounding_error() {
        let mut sum = SuperAccumulator::new();
        for value in [f64::MAX, 1.0, f64::from_bits(1), -f64::MAX, -1.0] {
            sum.add(value);
        }
        assert_eq!(rounded(&sum), f64::from_bits(1));
        let mut squares = SuperAccumulator::new();
        squares.add_square(f64::MAX, u64::MAX);
        squares.add_square(f64::from_bits(3), 7);
        let mut negative = BigInt::from(parts(f64::MAX).0);
        negative = &negative * &negative * u64::MAX;
        let (value, exponent) = squares.value();
        let rest = value - (negative << u64::try_from(2 * parts(f64::MAX).1 - exponent).unwrap());
        assert_eq!(rest, BigInt::from(63), "nine times seven at the lowest bit");
    }

    #[test]
    fn carries_and_merges_change_no_sum() {
        proptest!(|(values in proptest::collection::vec(any::<f64>(), 0..40), at in 0_usize..40)| {
            let values: Vec<_> = values.into_iter().filter(|value| value.is_finite()).collect();
            let (mut one, mut first, mut second) = (SuperAccumulator::new(), SuperAccumulator::new(), SuperAccumulator::new());
            for (index, &value) in values.iter().enumerate() {
                one.add(value);
                one.add_times(value, 3);
                let part = if index < at { &mut first } else { &mut second };
                part.add_times(value, 4);
                part.carry();
            }
            first.merge(&second);
            prop_assert_eq!(one.value(), first.value());
        });
    }
}
