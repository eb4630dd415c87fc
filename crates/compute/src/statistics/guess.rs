//! Bins that are computed instead of searched for.

use std::{
    marker::PhantomData,
    ops::{Add, Mul, Sub},
};

use zarrd_codec::filled;

use crate::{
    element::Element,
    lanes::widest::{Kernel, widest},
};

/// The elements whose bins are guessed at a time.
const BLOCK: usize = 256;
/// The counters of a bin, so that equal neighbours need not wait for each other.
const LANES: usize = 4;
/// The edges up to which bins are guessed: each bin has several counters.
const MAX_EDGES: usize = 1 << 13;
/// The place of edges between two bins.
const EDGE: f64 = 0.25;
/// The distance from [`EDGE`] up to which numbers are compared with edges if their places are rounded.
const MAX_DOUBT: f64 = 0.125;

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

/// A float in whose arithmetic bins are guessed.
pub(super) trait Lane:
    Copy + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Default
{
    /// A number whose sum with a small one has that as its lowest bits, rounded to an integer.
    const ROUNDER: Self;

    /// The nearest one.
    fn nearest(number: f64) -> Self;

    fn wide(self) -> f64;

    fn next_up(self) -> Self;

    fn next_down(self) -> Self;

    /// The integer that was added to [`ROUNDER`](Self::ROUNDER).
    fn low_bits(self) -> u32;
}

/// Elements that are numbers of `L`.
pub(super) trait IntoLane<L>: Numeric {
    fn lane(self) -> L;
}

/// A linear function of numbers that is at most one bin too low, and never too high, as its maker has checked.
///
/// Numbers below the first bin are in a bin before it, and those from the last edge on in a bin after the last one. The
/// edge that ends a bin is a quarter beyond the bin's number, so that a number is rounded to that of its bin, or of the
/// one before it; on which side of the quarter it is decides which, unless it is so near that it has to be compared with
/// the edge.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Guess<L> {
    scale: L,
    offset: L,
    /// The bin after the last one.
    last: L,
    /// The least number that is beyond each bin but that one.
    ends: Vec<L>,
    /// The last edge, which belongs to the last bin; NaN if no number equals it.
    high: L,
    /// The least distance of a number that is beyond a bin from the quarter, and the greatest one of those that are not.
    /// In between both are possible.
    least_beyond: L,
    most_before: L,
}

/// The numbers of elements in each bin of a guess, and of those that equal the last edge.
pub(super) struct GuessedCounts {
    bins: Vec<[u64; LANES]>,
    at_high: u64,
}

impl<L: Lane> Guess<L> {
    /// The function for bins with these edges, of which there are `density` for each unit, and for numbers that are
    /// integers if `are_whole`; `None` if it is not as good as it has to be, or if there are many bins.
    pub(super) fn new(edges: &[f64], density: f64, are_whole: bool) -> Option<Self> {
        let (&[low, ..], &[.., high]) = (edges, edges) else { return None };
        if edges.len() >= MAX_EDGES {
            return None;
        }
        let ends: Vec<L> = edges.iter().map(|&edge| least_from(edge, are_whole)).collect();
        let has_high = L::nearest(high).wide() == high;
        let mut guess = Self {
            scale: L::nearest(density),
            offset: L::nearest(EDGE - low * density),
            last: L::nearest(ends.len() as f64),
            ends,
            high: L::nearest(if has_high { high } else { f64::NAN }),
            least_beyond: L::nearest(f64::NEG_INFINITY),
            most_before: L::nearest(f64::INFINITY),
        };
        let (mut least_beyond, mut most_before) = (f64::INFINITY, f64::NEG_INFINITY);
        // As the function increases, it is enough to know it on both sides of where bins end.
        for (bin, &end) in (0_u32..).zip(&guess.ends) {
            let before = greatest_below(end, are_whole);
            if end.wide().is_nan() || guess.bin(end) < bin || guess.bin(before) > bin {
                return None;
            }
            let distance = |number| guess.place(number).wide() - (f64::from(bin) + EDGE);
            least_beyond = least_beyond.min(distance(end));
            most_before = most_before.max(distance(before));
        }
        // Otherwise all are compared. So near to the quarter, nothing of a distance is rounded off.
        if least_beyond > -MAX_DOUBT && most_before < MAX_DOUBT {
            guess.least_beyond = L::nearest(least_beyond.min(MAX_DOUBT));
            guess.most_before = L::nearest(most_before);
        }
        Some(guess)
    }

    /// The counters of all bins.
    pub(super) fn counts(&self) -> GuessedCounts {
        GuessedCounts { bins: filled([0; LANES], self.ends.len() + 1), at_high: 0 }
    }

    /// The place of a number: that of the last bin for NaN.
    #[inline(always)]
    fn place(&self, number: L) -> L {
        let place = number * self.scale + self.offset;
        let place = if place < self.last { place } else { self.last };
        if place > L::default() { place } else { L::default() }
    }

    /// The bin of a number, or the one before it.
    #[inline(always)]
    fn bin(&self, number: L) -> u32 {
        (self.place(number) + L::ROUNDER).low_bits()
    }

    /// The bin of a number, and true if that is in doubt.
    #[inline(always)]
    fn bin_and_doubt(&self, number: L) -> (u32, bool) {
        let place = self.place(number);
        let rounded = place + L::ROUNDER;
        let distance = place - (rounded - L::ROUNDER) - L::nearest(EDGE);
        let is_beyond = distance >= self.least_beyond;
        (rounded.low_bits() + u32::from(is_beyond), is_beyond & (distance <= self.most_before))
    }

    /// The bin of a number, which is compared with an edge.
    #[inline(always)]
    fn compared_bin(&self, number: L) -> u32 {
        let bin = self.bin(number);
        bin + u32::from(self.ends.get(bin as usize).is_some_and(|&end| number >= end))
    }
}

impl GuessedCounts {
    /// Counts elements.
    pub(super) fn add<L: Lane, N: IntoLane<L>>(&mut self, guess: &Guess<L>, values: &[N::Bytes]) {
        widest(Count { counts: self, guess, values, element: PhantomData::<fn(N)> });
    }

    /// The count of each bin between edges.
    pub(super) fn totals(&self) -> impl Iterator<Item = u64> {
        let last = self.bins.len().saturating_sub(2);
        let of_bins = self.bins.iter().enumerate().take(last + 1).skip(1);
        of_bins.map(move |(bin, counts)| counts.iter().sum::<u64>() + if bin == last { self.at_high } else { 0 })
    }

    #[inline(always)]
    fn count(&mut self, bin: u32, lane: usize) {
        if let Some(count) = self.bins.get_mut(bin as usize).and_then(|bin| bin.get_mut(lane % LANES)) {
            *count += 1;
        }
    }
}

/// The arguments of [`GuessedCounts::add`].
struct Count<'c, L, N: Numeric> {
    counts: &'c mut GuessedCounts,
    guess: &'c Guess<L>,
    values: &'c [N::Bytes],
    element: PhantomData<fn(N)>,
}

impl<L: Lane, N: IntoLane<L>> Kernel for Count<'_, L, N> {
    type Output = ();

    /// Each step is a loop of its own, so that most of them are done for several numbers at once.
    #[inline(always)]
    fn run(self) {
        let Self { counts, guess, values, .. } = self;
        let mut bins = [0_u32; BLOCK];
        for block in values.chunks(BLOCK) {
            let (mut is_in_doubt, mut at_high) = (false, 0_u32);
            for (bin, &value) in bins.iter_mut().zip(block) {
                let number = N::read(value).lane();
                let doubt;
                (*bin, doubt) = guess.bin_and_doubt(number);
                is_in_doubt |= doubt;
                at_high += u32::from(number == guess.high);
            }
            counts.at_high += u64::from(at_high);
            let bins = bins.get_mut(..block.len()).unwrap_or_default();
            if is_in_doubt {
                bins.iter_mut().zip(block).for_each(|(bin, &value)| *bin = guess.compared_bin(N::read(value).lane()));
            }
            let (bins, rest) = bins.as_chunks::<LANES>();
            for bins in bins {
                bins.iter().enumerate().for_each(|(lane, &bin)| counts.count(bin, lane));
            }
            rest.iter().for_each(|&bin| counts.count(bin, 0));
        }
    }
}

/// The least number that is not below an edge.
fn least_from<L: Lane>(edge: f64, is_whole: bool) -> L {
    let least = if is_whole { edge.ceil() } else { edge };
    match L::nearest(least) {
        lane if lane.wide() < least => lane.next_up(),
        lane => lane,
    }
}

/// The greatest number that is below another one.
fn greatest_below<L: Lane>(number: L, is_whole: bool) -> L {
    let next = number.next_down();
    // Large integers are rounded.
    let whole = L::nearest(number.wide() - 1.0);
    if is_whole && whole < next { whole } else { next }
}

macro_rules! lanes {
    ($($type:ident, $rounder:expr, $mask:expr);*) => {$(
        impl Lane for $type {
            const ROUNDER: Self = $rounder;

            #[inline(always)]
            fn nearest(number: f64) -> Self {
                number as Self
            }

            #[inline(always)]
            fn wide(self) -> f64 {
                self.into()
            }

            fn next_up(self) -> Self {
                self.next_up()
            }

            fn next_down(self) -> Self {
                self.next_down()
            }

            #[inline(always)]
            fn low_bits(self) -> u32 {
                (self.to_bits() & $mask) as u32
            }
        }
    )*};
}

lanes!(f32, (1_u32 << 23) as f32, 0x7f_ffff; f64, (1_u64 << 52) as f64, 0xffff_ffff);

impl<N: Numeric> IntoLane<f64> for N {
    #[inline(always)]
    fn lane(self) -> f64 {
        self.number()
    }
}

impl IntoLane<f32> for f32 {
    #[inline(always)]
    fn lane(self) -> f32 {
        self
    }
}
