//! Tests of statistics.

use super::{guess::Numeric, *};
use crate::element::Boolean;
use bytes::Bytes;
use proptest::{prelude::*, test_runner::TestCaseError};

fn of(values: &[f64], quantiles: Vec<f64>, bins: u64) -> Statistics {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let request = StatisticsRequest { quantiles, bins, range: None };
    statistics(request, &DataType::of_number(Number::Float64), &Elements::Fixed(Bytes::from(bytes)))
}

#[test]
fn quantiles_are_exact_order_statistics() {
    let quantiles = vec![0.0, 0.1, 0.5, 0.98, 1.0];
    proptest!(ProptestConfig::with_cases(50), |(values in proptest::collection::vec(any::<f64>(), 1..200))| {
        let found = of(&values, quantiles.clone(), 0);
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        prop_assert_eq!(found.count, sorted.len() as u64);
        prop_assert_eq!(found.missing, (values.len() - sorted.len()) as u64);
        for (quantile, value) in found.quantiles {
            if sorted.is_empty() {
                prop_assert!(value.is_nan());
                continue;
            }
            let (low, high, part) = position(quantile, sorted.len() as u64);
            let expected = interpolated(sorted[low as usize], sorted[high as usize], part);
            prop_assert!(value == expected || value.is_nan() && expected.is_nan());
        }
    });
}

/// Statistics of integers, and the number of passes that they took.
fn of_integers<N: Numeric>(number: Number, values: &[N], quantiles: &[f64], bins: u64) -> (Statistics, u64) {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.write().as_ref().to_vec()).collect();
    let request = StatisticsRequest { quantiles: quantiles.to_vec(), bins, range: None };
    let (data_type, count) = (DataType::of_number(number), values.len() as u64);
    let mut passes = StatisticsPasses::new(request, &data_type, &[count]).unwrap();
    let (mut done, mut is_last) = (0, false);
    while let Some(pass) = passes.next(&[Windows::whole(count)]).unwrap() {
        let mut partial = pass.partial().unwrap();
        let axes = [crate::AxisPositions::Strided { first: 0, step: 1, len: count, out: 0 }];
        partial.add(&[count], &axes, &Elements::Fixed(Bytes::from(bytes.clone()))).unwrap();
        assert!(!is_last, "another pass was the last");
        is_last = passes.is_last();
        passes.add(partial).unwrap();
        done += 1;
    }
    assert!(is_last);
    (passes.finish().unwrap(), done)
}

/// Compares a histogram and quantiles with what the sorted elements have.
fn compare<N: Numeric>(number: Number, values: &[N], quantiles: &[f64], bins: u64) -> Result<(), TestCaseError> {
    let (found, passes) = of_integers(number, values, quantiles, bins);
    prop_assert_eq!(passes, 1);
    let mut sorted: Vec<f64> = values.iter().map(|value| value.number()).collect();
    sorted.sort_by(f64::total_cmp);
    let edges = Edges::new(bins, (sorted[0], sorted[sorted.len() - 1]), number, Bounds::Elements);
    let mut counted = of_numbers(number, &Counted::Bins(Arc::new(edges.clone())));
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.write().as_ref().to_vec()).collect();
    counted.add_to_one(0, &bytes, 0, 1);
    prop_assert_eq!(found.histogram, Some((edges.values().to_vec(), counts_of(Some(counted)).unwrap())));
    for (quantile, value) in found.quantiles {
        let (low, high, part) = position(quantile, sorted.len() as u64);
        prop_assert_eq!(value, interpolated(sorted[low as usize], sorted[high as usize], part));
    }
    Ok(())
}

#[test]
fn statistics_of_small_integers_take_one_pass() {
    let values = proptest::collection::vec(any::<i16>(), 1..300);
    proptest!(ProptestConfig::with_cases(60), |(values in values, shift in 0..15_u32, bins in 1..80_u64)| {
        for quantiles in [&[][..], &[0.0, 0.3, 1.0]] {
            let near: Vec<i16> = values.iter().map(|value| value >> shift).collect();
            compare(Number::Int16, &near, quantiles, bins)?;
            let bytes: Vec<u8> = values.iter().map(|&value| value as u8).collect();
            compare(Number::UInt8, &bytes, quantiles, bins)?;
            let flags: Vec<Boolean> = values.iter().map(|value| Boolean(value >> shift > 0)).collect();
            compare(Number::Bool, &flags, quantiles, bins)?;
        }
    });
    let (none, passes) = of_integers::<u16>(Number::UInt16, &[], &[0.5], 4);
    assert_eq!((none.histogram, none.count, passes), (None, 0, 1));
}

#[test]
fn every_finite_element_is_in_a_bin() {
    proptest!(ProptestConfig::with_cases(50), |(values in proptest::collection::vec(-1e3..1e3_f64, 1..300), bins in 1..40_u64)| {
        let (edges, counts) = of(&values, Vec::new(), bins).histogram.unwrap();
        prop_assert_eq!(counts.iter().sum::<u64>(), values.len() as u64);
        prop_assert_eq!((edges.len(), counts.len()), (bins as usize + 1, bins as usize));
        for (bin, count) in counts.iter().enumerate() {
            let is_last = bin + 1 == counts.len();
            let inside = |value: &&f64| {
                **value >= edges[bin] && (**value < edges[bin + 1] || is_last && **value == edges[bin + 1])
            };
            prop_assert_eq!(*count, values.iter().filter(inside).count() as u64);
        }
    });
}

#[test]
fn statistics_of_nothing_are_nan() {
    let found = of(&[f64::NAN, f64::INFINITY], vec![0.5], 4);
    assert_eq!((found.count, found.missing, found.histogram), (1, 1, None));
    assert_eq!(found.quantiles, [(0.5, f64::INFINITY)]);
    let found = of(&[f64::NAN], vec![0.5], 4);
    assert!(found.mean.is_nan() && found.std.is_nan() && found.extremes.is_none());
    assert!(found.quantiles.iter().all(|(_, value)| value.is_nan()));
}

#[test]
fn last_pass_is_known() {
    let values: Vec<i64> = (0..1000).map(|value| value * value * value).collect();
    for (quantiles, bins, passes) in [(&[][..], 0, 1), (&[], 3, 2), (&[0.5], 0, 4), (&[0.5], 3, 4)] {
        assert_eq!(of_integers(Number::Int64, &values, quantiles, bins).1, passes);
    }
}
