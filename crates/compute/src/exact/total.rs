//! Results of exact sums.

use std::borrow::Cow;

use num_bigint::{BigInt, BigUint};

use super::{
    ratio::{Precision, parts, quotient},
    superaccumulator::SuperAccumulator,
};

/// One exact sum.
pub(crate) enum Total<'a> {
    /// NaN or an infinity.
    Special(f64),
    /// A finite sum: of three floats, and of a fixed-point number.
    Finite([f64; 3], Option<Cow<'a, SuperAccumulator>>),
}

impl Total<'_> {
    /// The sum divided by a count, rounded once to a format. NaN for a count of 0.
    pub(crate) fn divided_by(&self, count: u64, precision: Precision) -> f64 {
        let (first, second, third) = match self {
            Self::Special(value) => return *value,
            _ if count == 0 => return f64::NAN,
            Self::Finite([first, second, third], None) => (*first, *second, *third),
            Self::Finite(_, Some(_)) => return self.rounded_quotient(count, precision),
        };
        let (sum, rest) = two_sum(first, second);
        if third == 0.0 && rest == 0.0 {
            if sum == 0.0 {
                return 0.0;
            }
            if let Some(rounded) = precision.quotient(sum, count) {
                return rounded;
            }
        }
        self.rounded_quotient(count, precision)
    }

    fn rounded_quotient(&self, count: u64, precision: Precision) -> f64 {
        let (sum, exponent) = self.exact();
        quotient(&sum, exponent, &BigUint::from(count), precision)
    }

    /// The finite sum as an integer times a power of two, if the integer is small enough.
    pub(crate) fn small(&self) -> Option<(i128, i64)> {
        let Self::Finite(sums, None) = self else { return None };
        sums.iter().filter(|&&sum| sum != 0.0).try_fold((0, 0), |all, &sum| {
            let (significand, exponent) = parts(sum);
            let zeros = significand.trailing_zeros();
            add_small(all, (i128::from(significand >> zeros), exponent.saturating_add(zeros.into())))
        })
    }

    /// The finite sum as an integer times a power of two; zero for special values.
    pub(crate) fn exact(&self) -> (BigInt, i64) {
        let Self::Finite(sums, spilled) = self else { return (BigInt::ZERO, 0) };
        let terms = sums.iter().filter(|&&sum| sum != 0.0).map(|&sum| {
            let (significand, exponent) = parts(sum);
            (BigInt::from(significand), exponent)
        });
        terms.chain(spilled.iter().map(|spilled| spilled.value())).fold((BigInt::ZERO, 0), add_scaled)
    }
}

/// The sum of two integers times powers of two.
pub(crate) fn add_scaled(one: (BigInt, i64), other: (BigInt, i64)) -> (BigInt, i64) {
    if one.0 == BigInt::ZERO {
        return other;
    }
    let exponent = one.1.min(other.1);
    let shifted = |(value, own): (BigInt, i64)| value << own.saturating_sub(exponent).unsigned_abs();
    (shifted(one) + shifted(other), exponent)
}

/// [`add_scaled`] of integers that fit the processor's, if the sum does.
pub(crate) fn add_small(one: (i128, i64), other: (i128, i64)) -> Option<(i128, i64)> {
    if one.0 == 0 {
        return Some(other);
    }
    if other.0 == 0 {
        return Some(one);
    }
    let exponent = one.1.min(other.1);
    let shifted = |(value, own): (i128, i64)| {
        let factor = 1_i128.checked_shl(u32::try_from(own.saturating_sub(exponent)).ok()?).filter(|&one| one > 0)?;
        value.checked_mul(factor)
    };
    Some((shifted(one)?.checked_add(shifted(other)?)?, exponent))
}

/// The rounded sum of two floats, and what was rounded off; NaN if the sum is not finite.
#[inline]
pub(super) fn two_sum(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let virtual_other = sum - one;
    let error = (one - (sum - virtual_other)) + (other - virtual_other);
    (sum, error)
}
