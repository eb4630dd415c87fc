//! Casts between numbers.

use bytes::Bytes;
use half::f16;
use zarrd_codec::Elements;
use zarrd_meta::data_type::{Casting, DataType, Number};

use crate::{
    accumulate::{Computation, dispatch_floats, dispatch_integers},
    element::{Boolean, Element, Real, Whole},
    error::ComputeError,
    function::Operation,
    kind::Kind,
};

/// A cast of elements to another data type, as NumPy's `astype` with the rule `same_kind`.
#[derive(Clone, Debug)]
pub struct Cast {
    from: Number,
    to: Number,
    data_type: DataType,
}

/// The value of a number: integers are exact, and floats too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Integer(i128),
    Real(f64),
    Complex(f64, f64),
}

impl Cast {
    /// A cast between two data types.
    pub fn new(from: &DataType, to: &DataType) -> Result<Self, ComputeError> {
        let refused = || ComputeError::Cast { from: from.name(), to: to.name() };
        let numbers = (from.number().ok_or_else(refused)?, to.number().ok_or_else(refused)?);
        if !Casting::SameKind.allows(numbers.0, numbers.1) {
            return Err(refused());
        }
        Ok(Self { from: numbers.0, to: numbers.1, data_type: to.clone() })
    }

    /// The data type of the result.
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// Casts elements. Integers that do not fit wrap around, as in NumPy.
    pub fn apply(&self, elements: &Elements) -> Result<Elements, ComputeError> {
        let Elements::Fixed(bytes) = elements else { return Err(ComputeError::Internal) };
        if self.from == self.to {
            return Ok(elements.clone());
        }
        Ok(Elements::Fixed(Bytes::from(self.cast(bytes)?)))
    }

    fn cast(&self, bytes: &[u8]) -> Result<Vec<u8>, ComputeError> {
        let mut out = Vec::with_capacity(bytes.len() / self.from.size().max(1) * self.to.size());
        self.write(bytes, &mut out).ok_or(ComputeError::Internal)?;
        Ok(out)
    }

    /// Appends cast elements.
    fn write(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        dispatch_integers!(
            self.from, W => return self.write_integers::<W>(bytes, out),
            dispatch_floats!(self.from, R => return self.write_reals::<R>(bytes, out), ())
        );
        let parts: Vec<f64> = match self.from {
            Number::Complex64 => f32::all(bytes).iter().map(|&part| f32::read(part).into()).collect(),
            _ => f64::all(bytes).iter().map(|&part| f64::read(part)).collect(),
        };
        let (pairs, _) = parts.as_chunks::<2>();
        pairs.iter().try_for_each(|&[real, imaginary]| write(Value::Complex(real, imaginary), self.to, out))
    }

    fn write_integers<W: Whole>(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let values = W::all(bytes).iter().map(|&value| W::read(value).to_i128());
        match self.to {
            Number::Float32 => values.for_each(|value| out.extend_from_slice(&(value as f32).to_le_bytes())),
            Number::Float64 => values.for_each(|value| out.extend_from_slice(&(value as f64).to_le_bytes())),
            _ => return { values }.try_for_each(|value| write(Value::Integer(value), self.to, out)),
        }
        Some(())
    }

    fn write_reals<R: Real>(&self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let values = R::all(bytes).iter().map(|&value| R::read(value).to_f64());
        match self.to {
            Number::Float32 => values.for_each(|value| out.extend_from_slice(&(value as f32).to_le_bytes())),
            Number::Float64 => values.for_each(|value| out.extend_from_slice(&value.to_le_bytes())),
            _ => return { values }.try_for_each(|value| write(Value::Real(value), self.to, out)),
        }
        Some(())
    }
}

/// Appends an integer as a number; `None` for complex numbers.
pub(crate) fn write_integer(value: i128, number: Number, out: &mut Vec<u8>) -> Option<()> {
    write(Value::Integer(value), number, out)
}

/// True if a type of integers has an integer; other types have the nearest number.
pub(crate) fn fits(value: i128, number: Number) -> bool {
    match number {
        Number::Int8 => i8::try_from(value).is_ok(),
        Number::Int16 => i16::try_from(value).is_ok(),
        Number::Int32 => i32::try_from(value).is_ok(),
        Number::Int64 => i64::try_from(value).is_ok(),
        Number::UInt8 => u8::try_from(value).is_ok(),
        Number::UInt16 => u16::try_from(value).is_ok(),
        Number::UInt32 => u32::try_from(value).is_ok(),
        Number::UInt64 => u64::try_from(value).is_ok(),
        _ => true,
    }
}

/// The data type that NumPy's `result_type` chooses for two data types.
pub(crate) fn promoted(one: &DataType, other: &DataType) -> Option<DataType> {
    if one == other {
        return Some(one.clone());
    }
    promoted_number(one.number()?, other.number()?).map(DataType::of_number)
}

/// Casts a result to the data type that several functions share. Fails if an integer would change.
pub(crate) fn promote(bytes: Vec<u8>, from: &DataType, to: &DataType) -> Result<Vec<u8>, ComputeError> {
    if from == to {
        return Ok(bytes);
    }
    let (Some(number), Some(target)) = (from.number(), to.number()) else { return Err(ComputeError::Internal) };
    if matches!(number, Number::Int64 | Number::UInt64) && matches!(Kind::of(to), Kind::Number(_) | Kind::Complex(_)) {
        check_exact(&bytes, number, target, to)?;
    }
    Cast { from: number, to: target, data_type: to.clone() }.cast(&bytes)
}

/// Casts the results of a computation as NumPy does. Fails if a count or position would wrap around.
pub(crate) fn cast_result(bytes: Vec<u8>, computation: &Computation, to: &DataType) -> Result<Vec<u8>, ComputeError> {
    let from = &computation.result;
    if from == to {
        return Ok(bytes);
    }
    let target = to.number().ok_or(ComputeError::Internal)?;
    let is_counted = matches!(computation.function.operation, Operation::Count | Operation::ArgMin | Operation::ArgMax);
    if is_counted && !i64::all(&bytes).iter().all(|&value| fits(i64::read(value).into(), target)) {
        return Err(ComputeError::SumOverflow { data_type: to.name() });
    }
    Cast::new(from, to)?.cast(&bytes)
}

fn check_exact(bytes: &[u8], from: Number, to: Number, data_type: &DataType) -> Result<(), ComputeError> {
    if !matches!(to, Number::Float64 | Number::Complex128) {
        return Ok(());
    }
    let values: Vec<i128> = match from {
        Number::Int64 => i64::all(bytes).iter().map(|&value| i64::read(value).into()).collect(),
        _ => u64::all(bytes).iter().map(|&value| u64::read(value).into()).collect(),
    };
    match values.into_iter().find(|&value| value as f64 as i128 != value) {
        None => Ok(()),
        Some(value) => Err(ComputeError::Inexact { data_type: data_type.name(), value: value.to_string() }),
    }
}

fn write(value: Value, to: Number, out: &mut Vec<u8>) -> Option<()> {
    let (real, imaginary) = match value {
        Value::Integer(value) => (value as f64, 0.0),
        Value::Real(value) => (value, 0.0),
        Value::Complex(real, imaginary) => (real, imaginary),
    };
    macro_rules! integer {
        ($type:ty) => {
            match value {
                Value::Integer(value) => out.extend_from_slice(&(value as $type).to_le_bytes()),
                Value::Real(_) | Value::Complex(..) => return None,
            }
        };
    }
    match to {
        Number::Bool => match value {
            Value::Integer(value) => out.push(u8::from(value != 0)),
            Value::Real(_) | Value::Complex(..) => return None,
        },
        Number::Int8 => integer!(i8),
        Number::Int16 => integer!(i16),
        Number::Int32 => integer!(i32),
        Number::Int64 => integer!(i64),
        Number::UInt8 => integer!(u8),
        Number::UInt16 => integer!(u16),
        Number::UInt32 => integer!(u32),
        Number::UInt64 => integer!(u64),
        Number::Float16 => out.extend_from_slice(&f16::from_f64(real).to_le_bytes()),
        Number::Float32 => match value {
            Value::Integer(value) => out.extend_from_slice(&(value as f32).to_le_bytes()),
            Value::Real(_) | Value::Complex(..) => out.extend_from_slice(&(real as f32).to_le_bytes()),
        },
        Number::Float64 => out.extend_from_slice(&real.to_le_bytes()),
        Number::Complex64 => {
            out.extend_from_slice(&(real as f32).to_le_bytes());
            out.extend_from_slice(&(imaginary as f32).to_le_bytes());
        }
        Number::Complex128 => {
            out.extend_from_slice(&real.to_le_bytes());
            out.extend_from_slice(&imaginary.to_le_bytes());
        }
    }
    Some(())
}

fn promoted_number(one: Number, other: Number) -> Option<Number> {
    let (low, high) = if one.kind_rank() <= other.kind_rank() { (one, other) } else { (other, one) };
    let wider = if one.size() >= other.size() { one } else { other };
    let float = |size: usize| match size {
        ..=2 => Number::Float16,
        3..=4 => Number::Float32,
        _ => Number::Float64,
    };
    Some(match (low.kind_rank(), high.kind_rank()) {
        (0, _) => high,
        (one, other) if one == other => wider,
        // An unsigned integer needs a signed one of twice its size.
        (1, 2) => match low.size().saturating_mul(2).max(high.size()) {
            2 => Number::Int16,
            4 => Number::Int32,
            8 => Number::Int64,
            _ => Number::Float64,
        },
        (1 | 2, 3) => float(low.size().saturating_mul(2).max(high.size())),
        (_, 4) => {
            let part = if low.kind_rank() == 3 { low.size() } else { low.size().saturating_mul(2) };
            if part > 4 || high == Number::Complex128 { Number::Complex128 } else { Number::Complex64 }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotions_are_those_of_numpy() {
        use Number::*;
        for (one, other, expected) in [
            (Bool, Int8, Int8),
            (Int8, UInt8, Int16),
            (UInt32, Int8, Int64),
            (UInt64, Int8, Float64),
            (Int16, Float16, Float32),
            (Int8, Float16, Float16),
            (Int32, Float32, Float64),
            (Float32, Float64, Float64),
            (Float64, Complex64, Complex128),
            (Float32, Complex64, Complex64),
            (Int32, Complex64, Complex128),
            (Int16, Complex64, Complex64),
            (UInt8, UInt16, UInt16),
            (Bool, Bool, Bool),
        ] {
            assert_eq!(promoted_number(one, other), Some(expected), "{one:?} {other:?}");
            assert_eq!(promoted_number(other, one), Some(expected), "{other:?} {one:?}");
        }
    }

    #[test]
    fn casts_within_and_between_kinds() {
        let of = DataType::of_number;
        let cast = |from, to, bytes: &[u8]| {
            let cast = Cast::new(&of(from), &of(to))?;
            cast.apply(&Elements::Fixed(Bytes::copy_from_slice(bytes)))
        };
        let fixed = |bytes: &[u8]| Ok(Elements::Fixed(Bytes::copy_from_slice(bytes)));
        assert_eq!(cast(Number::Float64, Number::Float32, &0.1_f64.to_le_bytes()), fixed(&0.1_f32.to_le_bytes()));
        assert_eq!(cast(Number::Int16, Number::Int8, &300_i16.to_le_bytes()), fixed(&[44]), "wraps around");
        assert_eq!(cast(Number::UInt8, Number::Float16, &[3]), fixed(&f16::from_f64(3.0).to_le_bytes()));
        assert_eq!(cast(Number::Bool, Number::UInt8, &[1, 0]), fixed(&[1, 0]));
        assert!(matches!(cast(Number::Float64, Number::Int64, &[]), Err(ComputeError::Cast { .. })));
        assert!(matches!(cast(Number::Int8, Number::UInt8, &[]), Err(ComputeError::Cast { .. })));
    }

    #[test]
    fn large_integers_are_not_promoted_to_floats() {
        let [int, float] = [Number::Int64, Number::Float64].map(DataType::of_number);
        let promote = |value: i64| promote(value.to_le_bytes().to_vec(), &int, &float);
        assert_eq!(promote(1 << 53), Ok(((1_i64 << 53) as f64).to_le_bytes().to_vec()));
        assert!(matches!(promote((1 << 53) + 1), Err(ComputeError::Inexact { .. })));
    }
}
