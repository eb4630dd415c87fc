//! Accumulators of numbers of any type.

use std::sync::Arc;

use half::f16;
use zarrd_meta::data_type::Number;

use super::{
    bins::{BinCounts, Edges},
    guess::Numeric,
    ranks::{RankCounts, RankPass},
};
use crate::{
    accumulate::{Accumulator, dispatch_floats, dispatch_integers},
    element::{Boolean, Element, Ordered},
    error::ComputeError,
};

/// The range of the finite elements of a group.
pub(super) struct FiniteRange<N> {
    range: Option<(f64, f64)>,
    element: std::marker::PhantomData<fn(N)>,
}

impl FiniteRange<()> {
    /// The range in the bytes of a result.
    pub(super) fn read(bytes: &[u8]) -> Option<(f64, f64)> {
        match f64::all(bytes) {
            &[low, high] => Some((f64::from_le_bytes(low), f64::from_le_bytes(high))),
            _ => None,
        }
    }
}

/// The least and the greatest of the finite numbers; without any, the first is greater than the second.
fn finite_range<N: Numeric + Ordered>(values: &[N::Bytes]) -> (f64, f64) {
    let keys = (N::best_key::<false, true>(values), N::best_key::<true, true>(values));
    let (low, high) = (N::of_key(keys.0).number(), N::of_key(keys.1).number());
    if low.is_finite() && high.is_finite() && !values.is_empty() {
        return (low, high);
    }
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
        let number = N::read(value).number();
        let is_finite = number.is_finite();
        let low = if is_finite && number < low { number } else { low };
        (low, if is_finite && number > high { number } else { high })
    })
}

impl<N: Numeric + Ordered> Accumulator for FiniteRange<N> {
    fn add_to_one(&mut self, _group: usize, values: &[u8], _order: u64, _order_step: u64) {
        let (low, high) = finite_range::<N>(N::all(values));
        if low <= high {
            let (old_low, old_high) = self.range.unwrap_or((low, high));
            self.range = Some((low.min(old_low), high.max(old_high)));
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], order: u64) {
        self.add_to_one(first, values, order, 0);
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, order: u64) {
        if count > 0 {
            self.add_to_one(group, value, order, 0);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Ok(other) = other.into_any().downcast::<Self>() else { return };
        self.range = match (self.range, other.range) {
            (Some((low, high)), Some((other_low, other_high))) => Some((low.min(other_low), high.max(other_high))),
            (one, other) => one.or(other),
        };
    }

    fn finish(&self, _groups: std::ops::Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        if let Some((low, high)) = self.range {
            [low, high].iter().for_each(|bound| out.extend_from_slice(&bound.to_le_bytes()));
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// A count of numbers.
pub(super) enum Counted {
    Finite,
    Ranks(Arc<RankPass>),
    Bins(Arc<Edges>),
}

pub(super) fn of_numbers(number: Number, counted: &Counted) -> Box<dyn Accumulator> {
    fn of<N: Numeric + Ordered>(counted: &Counted) -> Box<dyn Accumulator> {
        match counted {
            Counted::Finite => Box::new(FiniteRange::<N> { range: None, element: std::marker::PhantomData }),
            Counted::Ranks(pass) => Box::new(RankCounts::<N>::new(pass.clone())),
            Counted::Bins(edges) => Box::new(BinCounts::<N>::new(edges.clone())),
        }
    }
    dispatch_floats!(number, N => of::<N>(counted), dispatch_integers!(number, N => of::<N>(counted), of::<f64>(counted)))
}

/// The counters of an accumulator, from its result.
pub(super) fn counts_of(accumulator: Option<Box<dyn Accumulator>>) -> Result<Vec<u64>, ComputeError> {
    let mut out = Vec::new();
    accumulator.ok_or(ComputeError::Internal)?.finish(0..1, &mut out)?;
    Ok(u64::all(&out).iter().map(|&count| u64::from_le_bytes(count)).collect())
}

/// The number whose key, as an unsigned integer, is this.
pub(super) fn number_of_rank(number: Number, rank: u64) -> f64 {
    fn of<N: Numeric + Ordered>(rank: u64) -> f64 {
        N::of_rank(rank).number()
    }
    dispatch_floats!(number, N => of::<N>(rank), dispatch_integers!(number, N => of::<N>(rank), f64::NAN))
}

macro_rules! numeric {
    ($($type:ty),*) => {$(
        impl Numeric for $type {
            #[inline]
            fn number(self) -> f64 {
                self as f64
            }
        }
    )*};
}

numeric!(i8, i16, i32, i64, u8, u16, u32, u64, f64);

impl Numeric for f32 {
    #[inline]
    fn number(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn singles(values: &[[u8; 4]]) -> Option<&[[u8; 4]]> {
        Some(values)
    }
}

impl Numeric for f16 {
    #[inline]
    fn number(self) -> f64 {
        f64::from(self)
    }
}

impl Numeric for Boolean {
    #[inline]
    fn number(self) -> f64 {
        f64::from(u8::from(self.0))
    }
}
