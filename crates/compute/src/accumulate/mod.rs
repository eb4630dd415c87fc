//! Accumulators: the states from which results are made, which may be computed in parts and merged.

mod counts;
mod extremes;
mod firsts;
mod float_sums;
mod integer_sums;
mod logical;
mod modes;
mod part_sums;
mod positions;

use std::{any::Any, ops::Range};

use half::f16;
use zarrd_meta::data_type::{DataType, Number};

use crate::{
    element::{Boolean, Time},
    error::ComputeError,
    function::{Function, Missing, Operation},
    kind::{Kind, TimeKind},
    rows::Rows,
};

/// The state of a function for each of many groups.
///
/// `order` is the position of an element among those of its group; only its order, and for `argmin` and `argmax` its
/// value, matters. The state is the same whatever the order of calls, and however elements are distributed among
/// accumulators that are merged afterwards.
pub(crate) trait Accumulator: Send {
    /// Adds consecutive elements to one group. Their positions are `order`, `order + order_step`, …
    fn add_to_one(&mut self, group: usize, values: &[u8], order: u64, order_step: u64);

    /// Adds consecutive elements, of which each window of `len` bytes belongs to a group of its own, from `first` on.
    fn add_windows(&mut self, first: usize, values: &[u8], len: usize, orders: Orders) {
        let mut order = orders.first;
        for (group, window) in (first..).zip(values.chunks_exact(len.max(1))) {
            self.add_to_one(group, window, order, orders.step);
            order = order.saturating_add(orders.apart);
        }
    }

    /// Adds rows of windows, each row to the same groups.
    fn add_rows(&mut self, first: usize, rows: Rows<'_>, len: usize, orders: Orders) {
        let mut orders = orders;
        for row in rows.iter() {
            self.add_windows(first, row, len, orders);
            orders.first = orders.first.saturating_add(orders.of_rows);
        }
    }

    /// Adds each of consecutive elements to a group of its own, from `first` on.
    fn add_to_each(&mut self, first: usize, values: &[u8], order: u64);

    /// Adds rows of elements, each row to the same groups as with [`add_to_each`](Self::add_to_each). Their positions are
    /// `order`, `order + of_rows`, …
    fn add_rows_to_each(&mut self, first: usize, rows: Rows<'_>, order: u64, of_rows: u64) {
        let mut order = order;
        for row in rows.iter() {
            self.add_to_each(first, row, order);
            order = order.saturating_add(of_rows);
        }
    }

    /// Adds an element `count` times to a group. `order` is the first position.
    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, order: u64);

    /// Adds the state of another accumulator of the same function, type and groups.
    fn merge(&mut self, other: Box<dyn Accumulator>);

    /// Appends the results of some groups.
    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError>;

    /// Appends the results of another function whose state is a part of this one.
    fn finish_as(&self, _other: &Computation, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        self.finish(groups, out)
    }

    /// True if it would take more than [`SPILL_MEMORY`] beyond [`size_per_group`](Computation::size_per_group). The
    /// results are then not valid.
    fn is_exceeded(&self) -> bool {
        false
    }

    /// The accumulator as any value.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The positions of elements of windows among those of their groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    /// That of the first element.
    pub(crate) first: u64,
    /// The distance between consecutive elements.
    pub(crate) step: u64,
    /// The distance between consecutive windows.
    pub(crate) apart: u64,
    /// The distance between consecutive rows of windows.
    pub(crate) of_rows: u64,
}

/// The accumulator of the other one's type.
fn downcast<A: 'static>(other: Box<dyn Accumulator>) -> Option<A> {
    other.into_any().downcast::<A>().ok().map(|other| *other)
}

macro_rules! dispatch_floats {
    ($number:expr, $type:ident => $make:expr, $otherwise:expr) => {
        match $number {
            Number::Float16 => {
                type $type = f16;
                $make
            }
            Number::Float32 => {
                type $type = f32;
                $make
            }
            Number::Float64 => {
                type $type = f64;
                $make
            }
            _ => $otherwise,
        }
    };
}

macro_rules! dispatch_integers {
    ($number:expr, $type:ident => $make:expr, $otherwise:expr) => {
        match $number {
            Number::Bool => {
                type $type = Boolean;
                $make
            }
            Number::Int8 => {
                type $type = i8;
                $make
            }
            Number::Int16 => {
                type $type = i16;
                $make
            }
            Number::Int32 => {
                type $type = i32;
                $make
            }
            Number::Int64 => {
                type $type = i64;
                $make
            }
            Number::UInt8 => {
                type $type = u8;
                $make
            }
            Number::UInt16 => {
                type $type = u16;
                $make
            }
            Number::UInt32 => {
                type $type = u32;
                $make
            }
            Number::UInt64 => {
                type $type = u64;
                $make
            }
            _ => $otherwise,
        }
    };
}

pub(crate) use {dispatch_floats, dispatch_integers};

/// The memory of a partial result beyond its estimate, in bytes, at most, for sums whose numbers have very different
/// magnitudes.
pub const SPILL_MEMORY: u64 = 4 << 20;

/// The part of [`SPILL_MEMORY`] for each sum of the states of some functions.
pub(crate) fn spill_of_each(functions: impl Iterator<Item = Function>, data_type: &DataType) -> u64 {
    let sums = functions.map(|function| match function.operation {
        Operation::Sum | Operation::Mean => 1,
        Operation::Std | Operation::Var => 2,
        _ => 0,
    });
    let parts = if matches!(Kind::of(data_type), Kind::Complex(_)) { 2 } else { 1 };
    SPILL_MEMORY / (sums.sum::<u64>() * parts).max(1)
}

/// The function that an accumulator computes, of elements of a type.
#[derive(Clone, Debug)]
pub(crate) struct Computation {
    pub(crate) function: Function,
    pub(crate) data_type: DataType,
    /// The data type of the results. Sums of integers are judged by whether they fit it.
    pub(crate) result: DataType,
    /// The elements by which variances have fewer degrees of freedom.
    pub(crate) ddof: u64,
    /// The elements of a group, at most.
    pub(crate) group_size: u64,
    /// The memory that each of its sums may take beyond its estimate, in bytes.
    pub(crate) spill: u64,
}

impl Computation {
    /// The memory of the state of a group, in bytes, at most.
    pub(crate) fn size_per_group(&self) -> u64 {
        let is_integer = matches!(Kind::of(&self.data_type), Kind::Number(number) if number_is_integer(number));
        let components = if matches!(Kind::of(&self.data_type), Kind::Complex(_)) { 2 } else { 1 };
        match self.function.operation {
            Operation::Sum | Operation::Mean if is_integer => integer_sums::SIZE,
            Operation::Std | Operation::Var if is_integer => integer_sums::SIZE_OF_MOMENTS,
            Operation::Sum | Operation::Mean => float_sums::SIZE * components,
            Operation::Std | Operation::Var => float_sums::SIZE_OF_MOMENTS * components,
            Operation::Min | Operation::Max => 16,
            Operation::ArgMin | Operation::ArgMax => 32,
            Operation::Any | Operation::All => 1,
            Operation::Count => 8,
            Operation::First => 8 + self.data_type.fixed_size().unwrap_or(0) as u64,
            Operation::Mode => modes::size_per_group(self.group_size, self.data_type.fixed_size().unwrap_or(1) as u64),
        }
    }

    /// An accumulator without elements.
    pub(crate) fn accumulator(&self, groups: usize) -> Result<Box<dyn Accumulator>, ComputeError> {
        let unsuitable = || ComputeError::unsuitable(self.function, &self.data_type, "it is not defined");
        match self.function.operation {
            Operation::Sum | Operation::Mean | Operation::Std | Operation::Var => self.sums(groups),
            Operation::Min | Operation::Max => self.extremes(groups),
            Operation::ArgMin | Operation::ArgMax => self.positions(groups),
            Operation::Any | Operation::All => Ok(logical::new(self, groups)),
            Operation::Count => Ok(counts::new(self, groups)),
            Operation::First => Ok(Box::new(firsts::Firsts::new(self.data_type.fixed_size().unwrap_or(0), groups))),
            Operation::Mode => match self.data_type.number() {
                Some(Number::Bool | Number::UInt8) => Ok(Box::new(modes::Modes::<u8>::new(groups, self.group_size))),
                Some(Number::Int8) => Ok(Box::new(modes::Modes::<i8>::new(groups, self.group_size))),
                Some(Number::Int16) => Ok(Box::new(modes::Modes::<i16>::new(groups, self.group_size))),
                Some(Number::UInt16) => Ok(Box::new(modes::Modes::<u16>::new(groups, self.group_size))),
                _ => Err(unsuitable()),
            },
        }
    }

    fn sums(&self, groups: usize) -> Result<Box<dyn Accumulator>, ComputeError> {
        let unsuitable = || Err(ComputeError::unsuitable(self.function, &self.data_type, "it is not defined"));
        match Kind::of(&self.data_type) {
            Kind::Number(number) => dispatch_floats!(
                number, R => Ok(float_sums::real::<R>(self, groups)),
                dispatch_integers!(number, W => Ok(integer_sums::new::<W>(self, groups)), unsuitable())
            ),
            Kind::Complex(Number::Complex64) => Ok(float_sums::complex::<f32>(self, groups)),
            Kind::Complex(_) => Ok(float_sums::complex::<f64>(self, groups)),
            Kind::Time(_) => Ok(integer_sums::new::<Time>(self, groups)),
            Kind::Other => unsuitable(),
        }
    }

    fn extremes(&self, groups: usize) -> Result<Box<dyn Accumulator>, ComputeError> {
        let unsuitable = || Err(ComputeError::unsuitable(self.function, &self.data_type, "it is not defined"));
        match Kind::of(&self.data_type) {
            Kind::Number(number) => dispatch_floats!(
                number, O => Ok(extremes::new::<O>(self.function, groups)),
                dispatch_integers!(number, O => Ok(extremes::new::<O>(self.function, groups)), unsuitable())
            ),
            Kind::Time(_) => Ok(extremes::new::<Time>(self.function, groups)),
            Kind::Complex(_) | Kind::Other => unsuitable(),
        }
    }

    fn positions(&self, groups: usize) -> Result<Box<dyn Accumulator>, ComputeError> {
        let unsuitable = || Err(ComputeError::unsuitable(self.function, &self.data_type, "it is not defined"));
        match Kind::of(&self.data_type) {
            Kind::Number(number) => dispatch_floats!(
                number, O => Ok(positions::new::<O>(self.function, groups)),
                dispatch_integers!(number, O => Ok(positions::new::<O>(self.function, groups)), unsuitable())
            ),
            Kind::Time(_) => Ok(positions::new::<Time>(self.function, groups)),
            Kind::Complex(_) | Kind::Other => unsuitable(),
        }
    }

    /// True if the elements are moments, whose mean is rounded down.
    pub(crate) fn is_moment(&self) -> bool {
        Kind::of(&self.data_type) == Kind::Time(TimeKind::Moment)
    }

    pub(crate) fn skips(&self) -> bool {
        self.function.missing == Missing::Skip
    }
}

fn number_is_integer(number: Number) -> bool {
    !matches!(number, Number::Float16 | Number::Float32 | Number::Float64 | Number::Complex64 | Number::Complex128)
}
