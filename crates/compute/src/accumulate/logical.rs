//! `any` and `all`.

use std::{any::Any, ops::Range};

use half::f16;
use zarrd_codec::filled;
use zarrd_meta::data_type::Number;

use super::{Accumulator, Computation, downcast};
use crate::{element::Real, error::ComputeError, function::Operation, kind::Kind};

/// For each group, whether an element was found that decides the result: a true one for `any`, a false one for `all`.
struct Decided<T> {
    decided: Vec<bool>,
    operation: Operation,
    /// The size of an element in bytes.
    size: usize,
    truth: std::marker::PhantomData<fn(T)>,
}

/// A type whose elements are true or false.
trait Truth: 'static {
    /// True if an element is.
    fn of(value: &[u8]) -> bool;
}

/// Every bit pattern but zeros is true.
struct Bits;

/// Every number but the zeros is true, NaN included.
struct Numbers<R>(std::marker::PhantomData<fn(R)>);

impl Truth for Bits {
    fn of(value: &[u8]) -> bool {
        value.iter().any(|&byte| byte != 0)
    }
}

impl<R: Real> Truth for Numbers<R> {
    fn of(value: &[u8]) -> bool {
        R::all(value).iter().any(|&part| R::read(part).to_f64() != 0.0)
    }
}

pub(super) fn new(computation: &Computation, groups: usize) -> Box<dyn Accumulator> {
    fn decided<T: Truth>(computation: &Computation, groups: usize) -> Box<dyn Accumulator> {
        Box::new(Decided::<T> {
            decided: filled(false, groups),
            operation: computation.function.operation,
            size: computation.data_type.fixed_size().unwrap_or(1),
            truth: std::marker::PhantomData,
        })
    }
    match Kind::of(&computation.data_type) {
        Kind::Number(Number::Float16) => decided::<Numbers<f16>>(computation, groups),
        Kind::Number(Number::Float32) | Kind::Complex(Number::Complex64) => {
            decided::<Numbers<f32>>(computation, groups)
        }
        Kind::Number(Number::Float64) | Kind::Complex(_) => decided::<Numbers<f64>>(computation, groups),
        Kind::Number(_) | Kind::Time(_) | Kind::Other => decided::<Bits>(computation, groups),
    }
}

impl<T: Truth> Decided<T> {
    fn decides(&self, value: &[u8]) -> bool {
        T::of(value) == (self.operation == Operation::Any)
    }
}

impl<T: Truth> Accumulator for Decided<T> {
    fn add_to_one(&mut self, group: usize, values: &[u8], _order: u64, _order_step: u64) {
        if self.decided.get(group) == Some(&false)
            && values.chunks_exact(self.size.max(1)).any(|value| self.decides(value))
            && let Some(decided) = self.decided.get_mut(group)
        {
            *decided = true;
        }
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        let is_any = self.operation == Operation::Any;
        let groups = self.decided.iter_mut().skip(first);
        groups.zip(values.chunks_exact(self.size.max(1))).for_each(|(decided, value)| {
            *decided |= T::of(value) == is_any;
        });
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, _order: u64) {
        let decides = count > 0 && self.decides(value);
        if let Some(decided) = self.decided.get_mut(group) {
            *decided |= decides;
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        self.decided.iter_mut().zip(other.decided).for_each(|(one, other)| *one |= other);
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        let is_any = self.operation == Operation::Any;
        let decided = self.decided.get(groups).ok_or(ComputeError::Internal)?;
        out.extend(decided.iter().map(|&decided| u8::from(decided == is_any)));
        Ok(())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
