//! Histograms with the edges of NumPy.

use std::{any::Any, ops::Range, sync::Arc};

use half::f16;
use zarrd_codec::filled;
use zarrd_meta::data_type::Number;

use super::guess::{Guess, GuessedCounts, Numeric};
use crate::{accumulate::Accumulator, error::ComputeError};

/// The bins that are tried before an element is searched for.
const MAX_STEPS: usize = 4;

/// The edges of the bins of a histogram, in increasing order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edges {
    edges: Vec<f64>,
    /// The bins for each unit, about.
    density: f64,
    guess: Option<Guess<f64>>,
    /// The guess of elements that are `f32`.
    single: Option<Guess<f32>>,
}

/// The origin of the bounds of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// They were asked for.
    Given,
    /// They are elements.
    Elements,
}

/// The numbers of finite elements in each bin.
pub(super) struct BinCounts<N> {
    edges: Arc<Edges>,
    counts: Vec<u64>,
    /// The counters of guessed bins, which are added to `counts`.
    guessed: Option<GuessedCounts>,
    element: std::marker::PhantomData<fn(N)>,
}

impl Edges {
    /// The edges of `bins` bins of equal width, as NumPy computes them: between given bounds as `float64`, which are
    /// rounded to the elements' type at the end; between elements in the arithmetic of their type.
    pub(super) fn new(bins: u64, (low, high): (f64, f64), number: Number, bounds: Bounds) -> Self {
        let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
        let to_type = |value: f64| match number {
            Number::Float16 => f64::from(f16::from_f64(value)),
            Number::Float32 => f64::from(value as f32),
            _ => value,
        };
        // A width beyond the elements' type is one of `float64`, of which NumPy has no histogram.
        let is_wide = !to_type(high - low).is_finite();
        let round = |value: f64| if bounds == Bounds::Given || is_wide { value } else { to_type(value) };
        let (low, high) = (round(low), round(high));
        let count = bins as f64;
        let delta = round(high - low);
        let step = round(delta / count);
        let edge = |index: u64| {
            let index = round(index as f64);
            let distance = if step == 0.0 { round(round(index / count) * delta) } else { round(index * step) };
            let edge = match delta.is_finite() {
                true => distance + low,
                false => low * (1.0 - index / count) + high * (index / count),
            };
            to_type(round(edge))
        };
        let edges: Vec<f64> = (0..bins).map(edge).chain([to_type(high)]).collect();
        let density = match delta.is_finite() {
            true => count / (high - low),
            false => 1.0 / (high / count - low / count),
        };
        let is_float = matches!(number, Number::Float16 | Number::Float32 | Number::Float64);
        let guess = Guess::new(&edges, density, !is_float);
        let single = if number == Number::Float32 { Guess::new(&edges, density, false) } else { None };
        Self { edges, density, guess, single }
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.edges
    }

    /// The number of finite numbers in each bin, given how many there are of each.
    pub(super) fn count(&self, numbers: &[(f64, u64)]) -> Vec<u64> {
        let mut counts = filled(0, self.edges.len().saturating_sub(1));
        for &(number, count) in numbers {
            if let Some(slot) = self.bin(number).and_then(|bin| counts.get_mut(bin)) {
                *slot += count;
            }
        }
        counts
    }

    /// The bin of a number; `None` if it is outside. Each bin has its lower edge, and the last one both.
    #[inline]
    fn bin(&self, number: f64) -> Option<usize> {
        let (&[low, ..], &[.., high]) = (self.edges.as_slice(), self.edges.as_slice()) else { return None };
        if !(low <= number && number <= high) {
            return None;
        }
        let last = self.edges.len().checked_sub(2)?;
        let mut bin = (((number - low) * self.density) as usize).min(last);
        for _ in 0..MAX_STEPS {
            let (lower, upper) = (*self.edges.get(bin)?, *self.edges.get(bin + 1)?);
            if number < lower && bin > 0 {
                bin -= 1;
            } else if number >= upper && bin < last {
                bin += 1;
            } else {
                return Some(bin);
            }
        }
        // Widths that are no numbers, or are rounded to very different ones.
        let above = self.edges.partition_point(|edge| *edge <= number);
        Some(above.saturating_sub(1).min(last))
    }
}

impl<N: Numeric> BinCounts<N> {
    pub(super) fn new(edges: Arc<Edges>) -> Self {
        let bins = edges.edges.len().saturating_sub(1);
        let guessed = match (&edges.single, &edges.guess) {
            (Some(guess), _) => Some(guess.counts()),
            (None, guess) => guess.as_ref().map(Guess::counts),
        };
        Self { edges, counts: filled(0, bins), guessed, element: std::marker::PhantomData }
    }

    /// The count of each bin.
    fn totals(&self) -> impl Iterator<Item = u64> {
        let guessed = self.guessed.iter().flat_map(GuessedCounts::totals).chain(std::iter::repeat(0));
        self.counts.iter().zip(guessed).map(|(count, guessed)| count + guessed)
    }

    #[inline]
    fn add(&mut self, value: N::Bytes, count: u64) {
        let bin = self.edges.bin(N::read(value).number());
        if let Some(slot) = bin.and_then(|bin| self.counts.get_mut(bin)) {
            *slot += count;
        }
    }
}

impl<N: Numeric> Accumulator for BinCounts<N> {
    fn add_to_one(&mut self, _group: usize, values: &[u8], _order: u64, _order_step: u64) {
        let values = N::all(values);
        match (&mut self.guessed, &self.edges.single, N::singles(values), &self.edges.guess) {
            (Some(counts), Some(guess), Some(singles), _) => counts.add::<f32, f32>(guess, singles),
            (Some(counts), None, _, Some(guess)) => counts.add::<f64, N>(guess, values),
            _ => values.iter().for_each(|&value| self.add(value, 1)),
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], order: u64) {
        self.add_to_one(first, values, order, 0);
    }

    fn add_repeated(&mut self, _group: usize, value: &[u8], count: u64, _order: u64) {
        if let Some(&value) = N::all(value).first() {
            self.add(value, count);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Ok(other) = other.into_any().downcast::<Self>() else { return };
        self.counts.iter_mut().zip(other.totals()).for_each(|(one, other)| *one += other);
    }

    fn finish(&self, _groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        self.totals().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::TestCaseError};

    use super::*;
    use crate::element::Element;

    fn counts<N: Numeric>(edges: Edges, values: &[N]) -> Vec<u64> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.write().as_ref().to_vec()).collect();
        let mut counts = BinCounts::<N>::new(Arc::new(edges));
        counts.add_to_one(0, &bytes, 0, 1);
        let mut out = Vec::new();
        counts.finish(0..1, &mut out).unwrap();
        u64::all(&out).iter().map(|&count| u64::from_le_bytes(count)).collect()
    }

    /// Compares the guesses for elements with a search for each, as far as there are guesses.
    fn compare<N: Numeric>(edges: &Edges, values: &[N]) -> Result<(), TestCaseError> {
        let searched = counts(Edges { guess: None, single: None, ..edges.clone() }, values);
        prop_assert_eq!(counts(Edges { single: None, ..edges.clone() }, values), searched.clone());
        prop_assert_eq!(counts(edges.clone(), values), searched);
        Ok(())
    }

    fn edges(bins: u64, bounds: (f64, f64), number: Number, given: bool) -> Edges {
        let origin = if given { Bounds::Given } else { Bounds::Elements };
        Edges::new(bins, (bounds.0.min(bounds.1), bounds.0.max(bounds.1)), number, origin)
    }

    #[test]
    fn guessed_bins_of_single_floats_are_those_that_are_searched_for() {
        let values = proptest::collection::vec(prop_oneof![any::<f32>(), -2.0..2.0_f32], 0..300);
        let bounds = prop_oneof![
            (any::<f32>(), any::<f32>()),
            (-1.0..1.0_f32, -1.0..1.0_f32),
            (1e6..1e6 + 9.0_f32, 1e6..1e6 + 9.0_f32)
        ];
        proptest!(|(mut values in values, bounds in bounds, bins in 1_u64..70, given in any::<bool>())| {
            prop_assume!(bounds.0.is_finite() && bounds.1.is_finite());
            let edges = edges(bins, (bounds.0.into(), bounds.1.into()), Number::Float32, given);
            for &edge in &edges.edges {
                let edge = edge as f32;
                values.extend([edge, edge.next_up(), edge.next_down()]);
            }
            values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
            compare(&edges, &values)?;
        });
    }

    #[test]
    fn guessed_bins_of_double_floats_are_those_that_are_searched_for() {
        let values = proptest::collection::vec(prop_oneof![any::<f64>(), -2.0..2.0_f64], 0..300);
        let bounds = prop_oneof![
            (any::<f64>(), any::<f64>()),
            (-1.0..1.0_f64, -1.0..1.0_f64),
            (1e15..1e15 + 9.0_f64, 1e15..1e15 + 9.0_f64)
        ];
        proptest!(|(mut values in values, bounds in bounds, bins in 1_u64..70, given in any::<bool>())| {
            prop_assume!(bounds.0.is_finite() && bounds.1.is_finite());
            let edges = edges(bins, bounds, Number::Float64, given);
            for &edge in &edges.edges {
                values.extend([edge, edge.next_up(), edge.next_down()]);
            }
            values.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
            compare(&edges, &values)?;
        });
    }

    #[test]
    fn guessed_bins_of_integers_are_those_that_are_searched_for() {
        let large = 1_i64 << 54;
        let values = proptest::collection::vec(
            prop_oneof![any::<i64>(), -100..100_i64, large - 20..large + 20, 0..i64::from(u16::MAX)],
            0..600,
        );
        let bounds = prop_oneof![
            (-100..100_i64, -100..100_i64),
            (0..300_i64, 0..300_i64),
            (large - 20..large + 20, large - 20..large + 20),
            (any::<i64>(), any::<i64>()),
        ];
        let bounds = bounds.prop_map(|(low, high)| (low as f64, high as f64));
        let bounds = prop_oneof![bounds, (-60.0..60.0_f64, -60.0..60.0_f64)];
        proptest!(|(mut values in values, bounds in bounds, bins in 1_u64..400, given in any::<bool>())| {
            let wide = edges(bins, bounds, Number::Int64, given);
            for &edge in &wide.edges {
                let edge = edge as i64;
                values.extend([edge, edge.saturating_add(1), edge.saturating_sub(1)]);
            }
            compare(&wide, &values)?;
            let narrow: Vec<i8> = values.iter().map(|&value| value as i8).collect();
            compare(&edges(bins, bounds, Number::Int8, given), &narrow)?;
            let unsigned: Vec<u16> = values.iter().map(|&value| value as u16).collect();
            compare(&edges(bins, bounds, Number::UInt16, given), &unsigned)?;
        });
    }

    #[test]
    fn bins_wider_than_the_elements_type_have_all_elements() {
        let widest: [(Number, f64); 3] =
            [(Number::Float16, 65504.0), (Number::Float32, f32::MAX.into()), (Number::Float64, f64::MAX)];
        for (number, largest) in widest {
            for bounds in [Bounds::Elements, Bounds::Given] {
                for bins in [1, 2, 3, 64, 1000] {
                    let edges = Edges::new(bins, (-largest, largest), number, bounds);
                    let values = edges.values();
                    assert!(values.iter().all(|edge| edge.is_finite()) && values.is_sorted(), "{values:?}");
                    assert_eq!((values[0], values[bins as usize]), (-largest, largest));
                    let elements = [-largest, -1.0, -0.0, 0.5, largest / 2.0, largest];
                    let counts = counts(edges, &elements);
                    assert_eq!(counts.iter().sum::<u64>(), 6, "{counts:?}");
                    assert_eq!((counts[0] > 0, counts[bins as usize - 1] > 0), (true, true));
                }
            }
        }
    }

    #[test]
    fn common_bins_are_guessed() {
        for (low, high) in [(-4.0, 4.0), (0.0, 1e-3), (200.0, 330.0), (-3e30, 1e30)] {
            for bins in [1, 7, 64, 1000] {
                let edges = Edges::new(bins, (low, high), Number::Float32, Bounds::Elements);
                assert!(edges.guess.is_some() && edges.single.is_some(), "{low}..{high}");
            }
        }
        let of_bytes = Edges::new(256, (0.0, 255.0), Number::UInt8, Bounds::Elements);
        assert!(of_bytes.guess.is_some());
    }
}
