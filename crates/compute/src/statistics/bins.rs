//! Histograms with the edges of NumPy.

use std::{any::Any, ops::Range, sync::Arc};

use half::f16;
use meta::data_type::Number;

use super::single_bins::{SingleCounts, SingleGuess};
use crate::{accumulate::Accumulator, element::Element, error::ComputeError, filled::filled};

/// The bins that are tried before an element is searched for.
const MAX_STEPS: usize = 4;
/// The elements whose bins are guessed at a time.
const BLOCK: usize = 256;
/// The counters of a bin, so that equal neighbours need not wait for each other.
const LANES: usize = 4;
/// The bins, with those outside, up to which a bin has several counters.
const MAX_GUESSED: usize = 1 << 13;

/// The edges of the bins of a histogram, in increasing order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edges {
    edges: Vec<f64>,
    /// The bins for each unit, about.
    density: f64,
    guess: Option<Guess>,
    /// The guess of elements that are `f32`.
    single: Option<SingleGuess>,
}

/// A linear function of numbers that is at most one bin too low, and never too high, as its maker has checked.
///
/// Numbers below the first bin are in a bin before it, and those above the last one in a bin after that.
#[derive(Clone, Debug, PartialEq)]
struct Guess {
    scale: f64,
    offset: f64,
    /// The least number that is beyond each bin; NaN for the last one.
    ends: Vec<f64>,
}

/// The origin of the bounds of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// They were asked for.
    Given,
    /// They are elements.
    Elements,
}

/// An element as a number.
pub(super) trait Numeric: Element {
    /// The nearest `f64`.
    fn number(self) -> f64;

    /// The elements as those of `f32`, if they are.
    #[inline]
    fn singles(_values: &[Self::Bytes]) -> Option<&[[u8; 4]]> {
        None
    }
}

/// The numbers of finite elements in each bin.
pub(super) struct BinCounts<N> {
    edges: Arc<Edges>,
    counts: Vec<u64>,
    /// The counters of guessed bins, which are added to `counts`; empty if bins are not guessed.
    guessed: Vec<[u64; LANES]>,
    singles: SingleCounts,
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
        let round = |value: f64| if bounds == Bounds::Given { value } else { to_type(value) };
        let (low, high) = (round(low), round(high));
        let count = bins as f64;
        let delta = round(high - low);
        let step = round(delta / count);
        let edge = |index: u64| {
            let index = round(index as f64);
            let distance = if step == 0.0 { round(round(index / count) * delta) } else { round(index * step) };
            to_type(round(distance + low))
        };
        let edges: Vec<f64> = (0..bins).map(edge).chain([to_type(high)]).collect();
        let density = count / (high - low);
        let guess = Guess::new(&edges, density);
        let single = guess.as_ref().filter(|_| number == Number::Float32);
        let single = single.and_then(|guess| SingleGuess::new(&guess.ends, guess.scale, guess.offset));
        Self { edges, density, guess, single }
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.edges
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

impl Guess {
    /// The function for bins with these edges; `None` if it is not as good as it has to be, or if there are many bins.
    fn new(edges: &[f64], density: f64) -> Option<Self> {
        let (&[low, ..], &[.., high]) = (edges, edges) else { return None };
        if edges.len() >= MAX_GUESSED {
            return None;
        }
        let ends = edges.iter().copied().take(edges.len() - 1).chain([high.next_up(), f64::NAN]).collect();
        // A quarter of a bin too low, and rounded to the nearest one: wrong edges may be as far from the right ones.
        let guess = Self { scale: density, offset: 0.25 - low * density, ends };
        // As the function increases, it is enough to know it on both sides of where bins end.
        let is_good =
            |(bin, &end): (usize, &f64)| guess.bin(end) >= bin as u64 && guess.bin(end.next_down()) <= bin as u64;
        guess.ends.iter().take(edges.len()).enumerate().all(is_good).then_some(guess)
    }

    /// The bin of a number, or the one before it.
    #[inline]
    fn bin(&self, number: f64) -> u64 {
        /// A number whose sum with a small one has that as its lowest bits, rounded to an integer.
        const ROUNDER: f64 = (1_u64 << 52) as f64;
        let most = self.ends.len().saturating_sub(1) as f64;
        let guess = number * self.scale + self.offset;
        // The last bin for NaN.
        let guess = if guess < most { guess } else { most };
        let guess = if guess > 0.0 { guess } else { 0.0 };
        (guess + ROUNDER).to_bits() & u64::from(u32::MAX)
    }

    /// Counts elements.
    fn count<N: Numeric>(&self, values: &[N::Bytes], counts: &mut [[u64; LANES]]) {
        let (mut numbers, mut bins) = ([0.0_f64; BLOCK], [0_u64; BLOCK]);
        for block in values.chunks(BLOCK) {
            for ((number, bin), &value) in numbers.iter_mut().zip(&mut bins).zip(block) {
                *number = N::read(value).number();
                *bin = self.bin(*number);
            }
            let numbers = numbers.get(..block.len()).unwrap_or_default();
            for (numbers, bins) in numbers.chunks(LANES).zip(bins.chunks(LANES)) {
                for (lane, (&number, &bin)) in numbers.iter().zip(bins).enumerate() {
                    let bin = bin as usize;
                    let is_beyond = self.ends.get(bin).is_some_and(|&end| number >= end);
                    if let Some(count) = counts.get_mut(bin + usize::from(is_beyond)).and_then(|bin| bin.get_mut(lane))
                    {
                        *count += 1;
                    }
                }
            }
        }
    }
}

impl<N: Numeric> BinCounts<N> {
    pub(super) fn new(edges: Arc<Edges>) -> Self {
        let bins = edges.edges.len().saturating_sub(1);
        let guessed = edges.guess.as_ref().map_or(0, |guess| guess.ends.len());
        let guessed = filled([0; LANES], guessed);
        Self {
            edges,
            counts: filled(0, bins),
            guessed,
            singles: SingleCounts::new(),
            element: std::marker::PhantomData,
        }
    }

    /// The count of each bin.
    fn totals(&self) -> impl Iterator<Item = u64> {
        let guessed = self.guessed.iter().skip(1).map(|counts| counts.iter().sum()).chain(std::iter::repeat(0));
        let counts = self.counts.iter().zip(guessed).zip(self.singles.totals().chain(std::iter::repeat(0)));
        counts.map(|((count, guessed), singles): ((&u64, u64), u64)| count + guessed + singles)
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
        if let (Some(guess), Some(singles)) = (&self.edges.single, N::singles(values)) {
            return self.singles.add(guess, singles);
        }
        match &self.edges.guess {
            Some(guess) => guess.count::<N>(values, &mut self.guessed),
            None => values.iter().for_each(|&value| self.add(value, 1)),
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
    use super::*;
    use proptest::prelude::*;

    fn counts(edges: Edges, values: &[f32]) -> Vec<u64> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut counts = BinCounts::<f32>::new(Arc::new(edges));
        counts.add_to_one(0, &bytes, 0, 1);
        let mut out = Vec::new();
        counts.finish(0..1, &mut out).unwrap();
        u64::all(&out).iter().map(|&count| u64::from_le_bytes(count)).collect()
    }

    #[test]
    fn guessed_bins_are_those_that_are_searched_for() {
        let values = proptest::collection::vec(prop_oneof![any::<f32>(), -2.0..2.0_f32], 0..300);
        let bounds = prop_oneof![
            (any::<f32>(), any::<f32>()),
            (-1.0..1.0_f32, -1.0..1.0_f32),
            (1e6..1e6 + 9.0_f32, 1e6..1e6 + 9.0_f32)
        ];
        proptest!(|(mut values in values, bounds in bounds, bins in 1_u64..70, given in any::<bool>())| {
            let (low, high) = (f64::from(bounds.0.min(bounds.1)), f64::from(bounds.0.max(bounds.1)));
            prop_assume!(low.is_finite() && high.is_finite());
            let origin = if given { Bounds::Given } else { Bounds::Elements };
            let edges = Edges::new(bins, (low, high), Number::Float32, origin);
            for &edge in &edges.edges {
                let edge = edge as f32;
                values.extend([edge, edge.next_up(), edge.next_down()]);
            }
            values.extend([f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
            let searched = Edges { guess: None, single: None, ..edges.clone() };
            let doubles = Edges { single: None, ..edges.clone() };
            prop_assert_eq!(counts(doubles, &values), counts(searched.clone(), &values));
            prop_assert_eq!(counts(edges, &values), counts(searched, &values));
        });
    }

    #[test]
    fn common_bins_are_guessed() {
        for (low, high) in [(-4.0, 4.0), (0.0, 1e-3), (200.0, 330.0), (-3e30, 1e30)] {
            for bins in [1, 7, 64, 1000] {
                let edges = Edges::new(bins, (low, high), Number::Float32, Bounds::Elements);
                assert!(edges.guess.is_some() && edges.single.is_some(), "{low}..{high}");
            }
        }
    }
}
