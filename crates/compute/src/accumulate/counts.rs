//! `count`: the elements that are not missing.

use std::{any::Any, ops::Range};

use half::f16;
use zarrd_codec::filled;
use zarrd_meta::data_type::Number;

use super::{Accumulator, Computation, downcast};
use crate::{
    element::{Ordered, Time},
    error::ComputeError,
    kind::Kind,
};

/// Counts of the elements of a type that are not missing.
struct Counts<P> {
    counts: Vec<u64>,
    /// The size of an element in bytes.
    size: usize,
    presence: std::marker::PhantomData<fn(P)>,
}

/// A type whose elements may be missing.
trait Presence: 'static {
    /// The number of elements that are not missing, of `all` in a buffer.
    fn count(values: &[u8], all: usize) -> usize;
}

/// No element is missing.
struct Always;

/// Elements are missing if they are NaN or no time.
struct Maybe<O>(std::marker::PhantomData<fn(O)>);

/// Complex numbers are missing if one of their parts is.
struct Pairs<O>(std::marker::PhantomData<fn(O)>);

impl Presence for Always {
    fn count(_values: &[u8], all: usize) -> usize {
        all
    }
}

impl<O: Ordered> Presence for Maybe<O> {
    fn count(values: &[u8], _all: usize) -> usize {
        O::count_present(O::all(values))
    }
}

impl<O: Ordered> Presence for Pairs<O> {
    fn count(values: &[u8], _all: usize) -> usize {
        let (pairs, _) = O::all(values).as_chunks::<2>();
        pairs.iter().map(|pair| usize::from(!pair.iter().any(|&part| O::read(part).is_missing()))).sum()
    }
}

pub(super) fn new(computation: &Computation, groups: usize) -> Box<dyn Accumulator> {
    fn counts<P: Presence>(size: usize, groups: usize) -> Box<dyn Accumulator> {
        Box::new(Counts::<P> { counts: filled(0, groups), size, presence: std::marker::PhantomData })
    }
    let size = computation.data_type.fixed_size().unwrap_or(0);
    match Kind::of(&computation.data_type) {
        Kind::Number(Number::Float16) => counts::<Maybe<f16>>(size, groups),
        Kind::Number(Number::Float32) => counts::<Maybe<f32>>(size, groups),
        Kind::Number(Number::Float64) => counts::<Maybe<f64>>(size, groups),
        Kind::Complex(Number::Complex64) => counts::<Pairs<f32>>(size, groups),
        Kind::Complex(_) => counts::<Pairs<f64>>(size, groups),
        Kind::Time(_) => counts::<Maybe<Time>>(size, groups),
        Kind::Number(_) | Kind::Other => counts::<Always>(size, groups),
    }
}

impl<P: Presence> Accumulator for Counts<P> {
    fn add_to_one(&mut self, group: usize, values: &[u8], _order: u64, _order_step: u64) {
        if let Some(count) = self.counts.get_mut(group) {
            *count += P::count(values, values.len() / self.size.max(1)) as u64;
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        let counts = self.counts.iter_mut().skip(first);
        counts.zip(values.chunks_exact(self.size.max(1))).for_each(|(count, value)| {
            *count += P::count(value, 1) as u64;
        });
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, _order: u64) {
        if let Some(found) = self.counts.get_mut(group) {
            *found = found.saturating_add(count * P::count(value, 1) as u64);
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        self.counts.iter_mut().zip(other.counts).for_each(|(one, other)| *one = one.saturating_add(other));
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        for &count in self.counts.get(groups).ok_or(ComputeError::Internal)? {
            out.extend(i64::try_from(count).unwrap_or(i64::MAX).to_le_bytes());
        }
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
