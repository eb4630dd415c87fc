//! Functions that reduce elements, and the types of their results.

use std::{fmt, str::FromStr};

use zarrd_meta::data_type::{DataType, Number};

use crate::{error::ComputeError, kind::Kind};

/// A function that reduces many elements to one, with the name, the result type and the treatment of NaN of NumPy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// The operation.
    pub operation: Operation,
    /// The treatment of NaN.
    pub missing: Missing,
}

/// An operation of a [`Function`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The sum. Integers and booleans have sums of 64 bits.
    Sum,
    /// The mean; of integers, a `float64`.
    Mean,
    /// The least element.
    Min,
    /// The greatest element.
    Max,
    /// The square root of the variance.
    Std,
    /// The mean of the squared distances from the mean, with `ddof` fewer elements.
    Var,
    /// The index of the first least element.
    ArgMin,
    /// The index of the first greatest element.
    ArgMax,
    /// True if any element is not zero.
    Any,
    /// True if no element is zero.
    All,
    /// The number of elements that are neither NaN nor "not a time".
    Count,
    /// The first element in C order, NaN or not.
    First,
    /// The most frequent element; of several, the least.
    Mode,
}

/// The treatment of NaN and of "not a time" by a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Missing {
    /// It is the result.
    Propagate,
    /// It is left out.
    Skip,
}

const FUNCTIONS: &[(&str, Operation, Missing)] = {
    use Missing::{Propagate, Skip};
    use Operation::{All, Any, ArgMax, ArgMin, Count, First, Max, Mean, Min, Mode, Std, Sum, Var};
    &[
        ("sum", Sum, Propagate),
        ("mean", Mean, Propagate),
        ("min", Min, Propagate),
        ("max", Max, Propagate),
        ("std", Std, Propagate),
        ("var", Var, Propagate),
        ("argmin", ArgMin, Propagate),
        ("argmax", ArgMax, Propagate),
        ("any", Any, Propagate),
        ("all", All, Propagate),
        ("count", Count, Propagate),
        ("first", First, Propagate),
        ("mode", Mode, Propagate),
        ("nansum", Sum, Skip),
        ("nanmean", Mean, Skip),
        ("nanmin", Min, Skip),
        ("nanmax", Max, Skip),
        ("nanstd", Std, Skip),
        ("nanvar", Var, Skip),
        ("nanargmin", ArgMin, Skip),
        ("nanargmax", ArgMax, Skip),
    ]
};

impl Function {
    /// The names of all functions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|(name, ..)| *name)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        let of = |(_, operation, missing): &&(&str, Operation, Missing)| {
            *operation == self.operation && *missing == self.missing
        };
        FUNCTIONS.iter().find(of).map_or("", |(name, ..)| name)
    }

    /// The data type of the result for elements of a type.
    pub fn result_type(self, data_type: &DataType) -> Result<DataType, ComputeError> {
        let kind = Kind::of(data_type);
        let number = |number| Ok(DataType::of_number(number));
        let unsuitable = |reason| Err(ComputeError::unsuitable(self, data_type, reason));
        match (self.operation, kind) {
            (Operation::Count, _) => number(Number::Int64),
            (Operation::First, _) if data_type.fixed_size().is_some_and(|size| size > 0) => Ok(data_type.clone()),
            (_, Kind::Other) => unsuitable("the elements are no numbers"),
            (Operation::First, _) => unsuitable("the elements have no fixed size"),
            (Operation::Any | Operation::All, Kind::Time(_)) => unsuitable("times are neither true nor false"),
            (Operation::Any | Operation::All, _) => number(Number::Bool),
            (Operation::Mode, Kind::Number(found)) if found.size() <= 2 && found != Number::Float16 => {
                Ok(data_type.clone())
            }
            (Operation::Mode, _) => unsuitable("only booleans and integers of up to 16 bits are counted"),
            (Operation::Min | Operation::Max | Operation::ArgMin | Operation::ArgMax, Kind::Complex(_)) => {
                unsuitable("complex numbers have no order")
            }
            (Operation::ArgMin | Operation::ArgMax, _) => number(Number::Int64),
            (Operation::Min | Operation::Max | Operation::Mean, Kind::Time(_)) => Ok(data_type.clone()),
            (Operation::Min | Operation::Max, _) => Ok(data_type.clone()),
            (Operation::Sum | Operation::Std | Operation::Var, Kind::Time(_)) => {
                unsuitable("times have `min`, `max`, `first`, `argmin`, `argmax`, `count` and `mean`")
            }
            (Operation::Std | Operation::Var, Kind::Complex(found)) => {
                number(if found == Number::Complex64 { Number::Float32 } else { Number::Float64 })
            }
            (Operation::Sum, Kind::Number(found)) if is_unsigned(found) => number(Number::UInt64),
            (Operation::Sum, Kind::Number(found)) if !is_float(found) => number(Number::Int64),
            (Operation::Mean | Operation::Std | Operation::Var, Kind::Number(found)) if !is_float(found) => {
                number(Number::Float64)
            }
            (Operation::Sum | Operation::Mean | Operation::Std | Operation::Var, _) => Ok(data_type.clone()),
        }
    }

    /// True if a group without elements has no result.
    pub(crate) fn needs_elements(self) -> bool {
        use Operation::{ArgMax, ArgMin, First, Max, Min, Mode};
        matches!(self.operation, Min | Max | ArgMin | ArgMax | First | Mode)
    }

    /// True if attributes that say how elements are decoded may change the result in more than its unit.
    pub fn depends_on_decoding(self) -> bool {
        !matches!(self.operation, Operation::First | Operation::Mode)
    }
}

impl FromStr for Function {
    type Err = UnknownFunction;

    fn from_str(text: &str) -> Result<Self, UnknownFunction> {
        let found = FUNCTIONS.iter().find(|(name, ..)| *name == text);
        found.map(|&(_, operation, missing)| Self { operation, missing }).ok_or(UnknownFunction)
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown function")]
pub struct UnknownFunction;

fn is_unsigned(number: Number) -> bool {
    matches!(number, Number::UInt8 | Number::UInt16 | Number::UInt32 | Number::UInt64)
}

pub(crate) fn is_float(number: Number) -> bool {
    matches!(number, Number::Float16 | Number::Float32 | Number::Float64)
}
