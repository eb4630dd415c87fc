//! Quotients of large integers, rounded once.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{ToPrimitive, Zero};

/// The largest count that is surely an `f64`.
const MAX_COUNT: u64 = 1 << 53;

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Precision {
    /// The bits of the significand, including the leading one.
    bits: i64,
    /// The exponent of the smallest subnormal number.
    least_exponent: i64,
    /// The exponent of the largest power of two.
    largest_exponent: i64,
    /// The magnitudes between which numbers are normal, and their neighbours too.
    normal: (f64, f64),
}

impl Precision {
    /// `float16`.
    pub(crate) const HALF: Self =
        Self { bits: 11, least_exponent: -24, largest_exponent: 15, normal: (1.3e-4, 32_768.0) };
    /// `float32`.
    pub(crate) const SINGLE: Self =
        Self { bits: 24, least_exponent: -149, largest_exponent: 127, normal: (1e-37, 1e38) };
    /// `float64`.
    pub(crate) const DOUBLE: Self =
        Self { bits: 53, least_exponent: -1074, largest_exponent: 1023, normal: (1e-307, 8e307) };
}

impl Precision {
    /// True if the quotient of a float and a count, rounded to an `f64`, is then rounded to this format as the exact one
    /// would be: it is normal, and not halfway between two numbers of the format. False for `float16`, since converting
    /// to it may round to a `float32` first.
    #[inline]
    pub(crate) fn rounds_once(self, quotient: f64, count: u64) -> bool {
        let dropped = u32::try_from(53_i64.saturating_sub(self.bits)).unwrap_or(0);
        let (mask, half) = ((1_u64 << dropped) - 1, (1_u64 << dropped) >> 1);
        let magnitude = quotient.abs();
        let is_halfway = half != 0 && quotient.to_bits() & mask == half;
        self != Self::HALF
            && !is_halfway
            && count <= MAX_COUNT
            && magnitude >= self.normal.0
            && magnitude < self.normal.1
    }

    /// A float divided by a count, rounded once to a format. `None` near the ends of the range, where numbers are not
    /// normal, and for counts that no float has.
    pub(crate) fn quotient(self, sum: f64, count: u64) -> Option<f64> {
        let dropped = u32::try_from(53_i64.saturating_sub(self.bits)).ok()?;
        // Both operands are exact, so this is rounded once.
        let quotient = sum / count as f64;
        let magnitude = quotient.abs();
        if count > MAX_COUNT || !(magnitude >= self.normal.0 && magnitude < self.normal.1) {
            return None;
        }
        if dropped == 0 {
            return Some(quotient);
        }
        let bits = quotient.to_bits();
        let half = 1_u64 << (dropped - 1);
        let rest = bits & ((half << 1) - 1);
        let kept = bits - rest;
        let is_up = match rest.cmp(&half) {
            Ordering::Less => false,
            Ordering::Greater => true,
            // Halfway between two numbers; what the division rounded off decides, and without that the even one is next.
            Ordering::Equal => match quotient.mul_add(count as f64, -sum) {
                0.0 => kept & (half << 1) != 0,
                excess => excess.is_sign_negative() != quotient.is_sign_negative(),
            },
        };
        // The carry of rounding up may reach the exponent, which makes the next power of two.
        Some(f64::from_bits(if is_up { kept + (half << 1) } else { kept }))
    }
}

/// The value nearest to `numerator` × 2^`exponent` ÷ `denominator` in a format, ties to even, as an `f64`, which has
/// every value of all formats. Zero for a denominator of zero.
pub(crate) fn quotient(numerator: &BigInt, exponent: i64, denominator: &BigUint, precision: Precision) -> f64 {
    let (sign, magnitude) = (numerator.sign(), numerator.magnitude());
    if magnitude.is_zero() || denominator.is_zero() {
        return 0.0;
    }
    // Shift the numerator so that the quotient has at least 64 bits.
    let [upper, lower] = [magnitude, denominator].map(|number| i64::try_from(number.bits()).unwrap_or(i64::MAX));
    let shift = 65_i64.saturating_sub(upper.saturating_sub(lower)).max(0);
    let shifted = magnitude << shift.unsigned_abs();
    let whole = &shifted / denominator;
    let is_exact = &whole * denominator == shifted;
    let excess = whole.bits().saturating_sub(u128::BITS.into());
    let is_exact = is_exact && whole.trailing_zeros().is_none_or(|zeros| zeros >= excess);
    let whole = (whole >> excess).to_u128().unwrap_or(u128::MAX);
    let exponent = exponent.saturating_sub(shift).saturating_add_unsigned(excess);
    let rounded = round(whole, is_exact, exponent, precision);
    if sign == Sign::Minus { -rounded } else { rounded }
}

/// [`quotient`] of integers that fit the processor's.
pub(crate) fn small_quotient(numerator: i128, exponent: i64, denominator: u64, precision: Precision) -> f64 {
    let magnitude = numerator.unsigned_abs();
    if magnitude == 0 || denominator == 0 {
        return 0.0;
    }
    // The quotient has at least 64 bits.
    let shift = magnitude.leading_zeros();
    let (shifted, denominator) = (magnitude << shift, u128::from(denominator));
    let rounded =
        round(shifted / denominator, shifted % denominator == 0, exponent.saturating_sub(shift.into()), precision);
    if numerator < 0 { -rounded } else { rounded }
}

/// [`root`] of integers that fit the processor's.
pub(crate) fn small_root(numerator: i128, exponent: i64, denominator: u64) -> f64 {
    let bits = i64::from(denominator.leading_zeros()) - i64::from(numerator.unsigned_abs().leading_zeros()) + 64;
    let half = exponent.saturating_add(bits).div_euclid(2);
    let near_one =
        small_quotient(numerator, exponent.saturating_sub(half.saturating_mul(2)), denominator, Precision::DOUBLE);
    scale(near_one.sqrt(), half)
}

/// The square root of `numerator` × 2^`exponent` ÷ `denominator`, which need not be within the range of an `f64`.
pub(crate) fn root(numerator: &BigInt, exponent: i64, denominator: &BigUint) -> f64 {
    let [upper, lower] =
        [numerator.magnitude(), denominator].map(|number| i64::try_from(number.bits()).unwrap_or(i64::MAX));
    let half = upper.saturating_add(exponent).saturating_sub(lower).div_euclid(2);
    let near_one = quotient(numerator, exponent.saturating_sub(half.saturating_mul(2)), denominator, Precision::DOUBLE);
    scale(near_one.sqrt(), half)
}

/// Rounds `whole` × 2^`exponent`, and a bit more than that unless it is exact. `whole` has more bits than the format.
fn round(whole: u128, is_exact: bool, exponent: i64, precision: Precision) -> f64 {
    let bits = i64::from(u128::BITS - whole.leading_zeros());
    // Drop the bits that the format does not have: all beyond its significand, or below its smallest number.
    let least = precision.least_exponent.saturating_sub(exponent);
    let dropped = bits.saturating_sub(precision.bits).max(least);
    if dropped <= 0 {
        return scale(whole as f64, exponent);
    }
    let Some(dropped) = u32::try_from(dropped).ok().filter(|&dropped| i64::from(dropped) <= bits.saturating_add(1))
    else {
        return 0.0;
    };
    let above = |bits: u32| whole.checked_shr(bits).unwrap_or(0);
    let mut kept = u64::try_from(above(dropped)).unwrap_or(u64::MAX);
    let half = dropped.saturating_sub(1);
    let is_half_or_more = above(half) & 1 == 1;
    let is_more_than_half = is_half_or_more && (!is_exact || whole.trailing_zeros() < half);
    if is_more_than_half || is_half_or_more && kept & 1 == 1 {
        kept = kept.saturating_add(1);
    }
    let dropped = u64::from(dropped);
    let exponent = exponent.saturating_add_unsigned(dropped);
    let magnitude = 64_i64.saturating_sub(i64::from(kept.leading_zeros())).saturating_sub(1).saturating_add(exponent);
    if kept != 0 && magnitude > precision.largest_exponent {
        return f64::INFINITY;
    }
    scale(kept as f64, exponent)
}

/// `value` × 2^`exponent`, which is exact for the values of a format.
fn scale(value: f64, exponent: i64) -> f64 {
    let (mut value, mut exponent) = (value, exponent);
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-1022, 1023);
        // Steps down end with the one that may round to a subnormal number.
        value *= f64::from_bits(u64::try_from(step.saturating_add(1023)).unwrap_or(1) << 52);
        exponent = exponent.saturating_sub(step);
    }
    value
}

/// A finite number as an integer times a power of two.
pub(crate) fn parts(value: f64) -> (i64, i64) {
    let bits = value.to_bits();
    let biased = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
    let fraction = i64::try_from(bits & ((1 << 52) - 1)).unwrap_or(0);
    let (significand, exponent) = match biased {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, biased.saturating_sub(1075)),
    };
    (if value.is_sign_negative() { -significand } else { significand }, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotients_round_as_the_hardware_does() {
        proptest!(ProptestConfig::with_cases(4000), |(one in any::<f64>(), other in 1_u64..=u64::MAX >> 11)| {
            prop_assume!(one.is_finite());
            let (significand, exponent) = parts(one);
            let big = BigInt::from(significand);
            let found = quotient(&big, exponent, &BigUint::from(other), Precision::DOUBLE);
            prop_assert_eq!(found, one / other as f64);
            let single = one as f32;
            let found = quotient(&big, exponent, &BigUint::from(1_u8), Precision::SINGLE);
            prop_assert_eq!(found, f64::from(single));
            let found = quotient(&big, exponent, &BigUint::from(1_u8), Precision::HALF);
            prop_assert_eq!(found, half::f16::from_f64(one).to_f64());
        });
    }

    #[test]
    fn small_integers_have_the_quotients_and_roots_of_large_ones() {
        let any_size = (any::<i128>(), 0..127_u32).prop_map(|(bits, shift)| bits >> shift);
        let denominators = (1..u64::MAX, 0..63_u32).prop_map(|(bits, shift)| (bits >> shift).max(1));
        let cases = (any_size, -1200..1100_i64, denominators);
        proptest!(ProptestConfig::with_cases(20_000), |((numerator, exponent, denominator) in cases)| {
            let (big, divisor) = (BigInt::from(numerator), BigUint::from(denominator));
            for precision in [Precision::HALF, Precision::SINGLE, Precision::DOUBLE] {
                let found = small_quotient(numerator, exponent, denominator, precision);
                prop_assert_eq!(found.to_bits(), quotient(&big, exponent, &divisor, precision).to_bits());
            }
            let (positive, big) = (numerator.saturating_abs(), BigInt::from(numerator.saturating_abs()));
            prop_assert_eq!(small_root(positive, exponent, denominator), root(&big, exponent, &divisor));
        });
    }

    #[test]
    fn quotients_of_floats_round_once() {
        let check = |sum: f64, divisor: u64, precision: Precision| {
            let (significand, exponent) = parts(sum);
            let once = quotient(&BigInt::from(significand), exponent, &BigUint::from(divisor), precision);
            let found = precision.quotient(sum, divisor);
            assert!(found.is_none_or(|found| found == once), "{sum:e} / {divisor}: {found:?} instead of {once:e}");
            let twice = sum / divisor as f64;
            let rounded = match precision {
                Precision::DOUBLE => twice,
                _ => f64::from(twice as f32),
            };
            let is_once = precision.rounds_once(twice, divisor);
            assert!(!is_once || rounded == once, "{sum:e} / {divisor}: {rounded:e} instead of {once:e}");
            found
        };
        proptest!(ProptestConfig::with_cases(4000), |(number in any::<f64>(), divisor in 1_u64..1000)| {
            prop_assume!(number.is_finite());
            check(number, divisor, Precision::DOUBLE);
            let (significand, exponent) = parts(number);
            // Near the ranges of the formats, where most numbers of all magnitudes are not.
            let number = scale(significand as f64, exponent % 20 - 50);
            check(number, divisor, Precision::SINGLE);
            check(number, divisor, Precision::HALF);
        });
        // Halfway between two numbers of a format, or a little beside that, which the division may round off.
        let halfway = (any::<bool>(), any::<u32>(), 1_u64..1 << 20, -2..=2_i64);
        proptest!(ProptestConfig::with_cases(20_000), |((is_negative, bits, divisor, beside) in halfway)| {
            for (precision, significand) in [(Precision::SINGLE, 24), (Precision::HALF, 11)] {
                let odd = f64::from((bits % (1 << significand)) | (1 << significand) | 1);
                let sum = f64::from_bits((odd * divisor as f64).to_bits().saturating_add_signed(beside));
                let found = check(if is_negative { -sum } else { sum }, divisor, precision);
                prop_assert!(found.is_some(), "a normal number");
            }
        });
    }

    #[test]
    fn ties_of_quotients_round_to_even() {
        let tie = 2_f64.powi(-24);
        for (sum, count, rounded) in [
            (1.0 + tie, 1, 1.0),
            (-1.0 - tie, 1, -1.0),
            (1.0 + 3.0 * tie, 1, 1.0 + 4.0 * tie),
            (3.0 * (1.0 + tie), 3, 1.0),
            (3.0 * (1.0 + tie) + 2_f64.powi(-51), 3, 1.0 + 2.0 * tie),
            (3.0 * (1.0 + 3.0 * tie) - 2_f64.powi(-51), 3, 1.0 + 2.0 * tie),
        ] {
            assert_eq!(Precision::SINGLE.quotient(sum, count), Some(rounded), "{sum:e} / {count}");
        }
        assert_eq!(Precision::SINGLE.quotient(2.0 - 2_f64.powi(-40), 1), Some(2.0));
        assert_eq!(Precision::HALF.quotient(1e-7, 1), None, "a subnormal number");
        assert_eq!(Precision::HALF.quotient(65_519.0, 1), None, "near the largest number");
    }

    #[test]
    fn values_around_the_smallest_numbers_round_to_even() {
        let quotient = |numerator: i64, exponent| {
            quotient(&BigInt::from(numerator), exponent, &BigUint::from(1_u8), Precision::SINGLE)
        };
        assert_eq!(quotient(1, -150), 0.0, "half of the smallest number");
        assert_eq!(quotient(3, -151), 2_f64.powi(-149));
        assert_eq!(quotient(3, -150), 2_f64.powi(-148), "ties to even");
        assert_eq!(quotient(-1, -149), -(2_f64.powi(-149)));
        assert_eq!(quotient((1 << 25) - 1, 103), f64::INFINITY, "rounds beyond the largest number");
        assert_eq!(quotient((1 << 24) - 1, 104), f64::from(f32::MAX));
        assert_eq!(quotient(0, 5), 0.0);
    }
}
