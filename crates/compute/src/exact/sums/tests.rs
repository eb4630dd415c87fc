use super::*;
use crate::exact::{
    ratio::{Precision, quotient},
    term::Square,
    total::add_scaled,
};
use num_bigint::BigUint;
use proptest::prelude::*;

const SPILL: u64 = 1 << 20;

fn bytes<R: Real>(values: &[R]) -> Vec<R::Bytes> {
    values.iter().map(|value| value.write()).collect()
}

fn sum_of(values: &[f64]) -> f64 {
    let mut sums = ExactSums::new(1, SPILL);
    sums.add_to_one::<Plain<f64>, false>(0, &bytes(values));
    sums.total(0).divided_by(1, Precision::DOUBLE)
}

#[test]
fn sums_are_those_of_a_wide_fixed_point_number() {
    let floats = prop_oneof![any::<f64>(), -1e3..1e3_f64, Just(0.0), (-40..40_i32).prop_map(|e| 2_f64.powi(e))];
    proptest!(|(values in proptest::collection::vec(floats, 0..700), at in 0_usize..700)| {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let (mut wide, mut squares) = (SuperAccumulator::new(), SuperAccumulator::new());
        for &value in &values {
            wide.add(value);
            squares.add_square(value, 1);
        }
        let at = at.min(values.len());
        let (one, other) = values.split_at(at);
        let expected = [wide, squares].map(|sum| {
            let (value, exponent) = sum.value();
            quotient(&value, exponent, &BigUint::from(7_u8), Precision::DOUBLE)
        });
        let (mut sums, mut more) = (ExactSums::new(3, SPILL), ExactSums::new(3, SPILL));
        sums.add_to_one::<Plain<f64>, false>(1, &bytes(one));
        more.add_to_one::<Plain<f64>, true>(1, &bytes(other));
        sums.merge(more);
        prop_assert_eq!(sums.total(1).divided_by(7, Precision::DOUBLE), expected[0]);
        let (mut sums, mut more) = (ExactSums::new(2, SPILL), ExactSums::new(2, SPILL));
        sums.add_to_one::<Square<f64>, true>(0, &bytes(one));
        // One at a time, as when groups are neighbours.
        bytes(other).iter().for_each(|value| more.add_to_each::<Square<f64>, false>(0, &[*value]));
        sums.merge(more);
        prop_assert_eq!(sums.total(0).divided_by(7, Precision::DOUBLE), expected[1]);
    });
}

#[test]
fn fixed_point_numbers_take_no_more_memory_than_they_may() {
    // More floats than there are levels.
    let wide: Vec<f64> = (-10..=10).map(|exponent| 2_f64.powi(exponent * 100)).collect();
    let all = |sums: &mut ExactSums| {
        let groups = sums.first.len();
        wide.iter().for_each(|&value| sums.add_to_each::<Plain<f64>, false>(0, &bytes(&vec![value; groups])));
    };
    let spill = 10 * ExactSums::SPILLED_SIZE + 11 * 12 * 8;
    let mut sums = ExactSums::new(1000, spill);
    all(&mut sums);
    assert_eq!((sums.spilled.len(), sums.is_exceeded()), (10, true));
    let mut fits = ExactSums::new(10, spill);
    all(&mut fits);
    assert_eq!((fits.spilled.len(), fits.is_exceeded()), (10, false));
    let (mut one, mut other) = (ExactSums::new(11, spill), ExactSums::new(11, SPILL));
    for &value in &wide {
        one.add_to_one::<Plain<f64>, false>(10, &bytes(&[value]));
        other.add_to_each::<Plain<f64>, false>(0, &bytes(&[value; 10]));
    }
    assert!(!one.is_exceeded() && !other.is_exceeded());
    one.merge(other);
    assert!(one.is_exceeded(), "11 after merging");
}

#[test]
fn many_groups_may_have_numbers_of_very_different_magnitudes() {
    const GROUPS: usize = 4096;
    // As of rain: most of it is little.
    let value = |index: usize| (1.0 + (index * 7919 % 1013) as f64 / 1013.0) * 2_f64.powi(-(index as i32 * 31 % 60));
    let mut parts = [ExactSums::new(GROUPS, SPILL), ExactSums::new(GROUPS, SPILL)];
    for row in 0..64 {
        let values: Vec<f64> = (0..GROUPS).map(|group| value(group * 64 + row)).collect();
        parts[row % 2].add_to_each::<Square<f64>, false>(0, &bytes(&values));
    }
    let [mut sums, other] = parts;
    sums.merge(other);
    assert_eq!((sums.spilled.len(), sums.is_exceeded()), (0, false));
    assert!(!sums.further.is_empty());
    for group in (0..GROUPS).step_by(97) {
        let mut expected = SuperAccumulator::new();
        (0..64).for_each(|row| expected.add_square(value(group * 64 + row), 1));
        let (found, expected) = (sums.total(group).exact(), expected.value());
        let difference = add_scaled(found, (-expected.0, expected.1));
        assert_eq!(difference.0, 0.into(), "{group}");
    }
}

#[test]
fn groups_are_summed_apart() {
    let values: Vec<f32> = (0..1000).map(|index| index as f32 * 0.1).collect();
    let mut sums = ExactSums::new(1001, SPILL);
    for _ in 0..3 {
        sums.add_to_each::<Plain<f32>, false>(1, &bytes(&values));
    }
    sums.add_repeated::<Plain<f32>, false>(1000, 0.5, u64::MAX);
    for (index, &value) in values.iter().enumerate().take(999) {
        assert_eq!(sums.total(index + 1).divided_by(3, Precision::SINGLE), f64::from(value));
    }
    let last = 3.0 * f64::from(99.9_f32) + 0.5 * 18_446_744_073_709_551_615.0;
    assert_eq!(sums.total(1000).divided_by(1, Precision::DOUBLE), last);
    assert_eq!(sums.total(0).divided_by(1, Precision::DOUBLE), 0.0);
}

#[test]
fn special_values_follow_ieee_754() {
    assert!(sum_of(&[1.0, f64::NAN]).is_nan());
    assert!(sum_of(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    assert_eq!(sum_of(&[f64::NEG_INFINITY, 1e308]), f64::NEG_INFINITY);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX, "partial sums do not overflow");
    assert_eq!(sum_of(&[f64::MAX, f64::MAX]), f64::INFINITY);
    let mut sums = ExactSums::new(1, SPILL);
    sums.add_to_one::<Square<f32>, true>(0, &bytes(&[f32::NAN, 2.0, f32::NEG_INFINITY, f32::NAN]));
    assert_eq!(sums.total(0).divided_by(1, Precision::DOUBLE), f64::INFINITY);
    let mut sums = ExactSums::new(2, SPILL);
    sums.add_to_each::<Plain<f32>, true>(0, &bytes(&[f32::NAN, 2.0]));
    assert_eq!(sums.total(0).divided_by(1, Precision::SINGLE), 0.0);
    assert!(sums.total(0).divided_by(0, Precision::SINGLE).is_nan(), "no elements");
}
