//! Decoding of buffers, in loops over one type.

use bytes::Bytes;
use half::f16;
use zarrd_codec::{Elements, VariableBuilder, filled};
use zarrd_meta::data_type::Number;

use crate::{
    attributes::{Factor, Scalar},
    error::CfError,
    plan::{Mask, Output, Plan},
    time::{NOT_A_TIME, iso, units::TimeUnits},
};

/// The memory of an encoded time as text, including the overhead of elements of variable length, in bytes.
pub(crate) const TEXT_MEMORY: u64 = 64;
const NS_PER_SECOND: i64 = 1_000_000_000;

/// A stored number type.
trait Stored: Copy {
    const SIZE: usize;
    fn read(bytes: &[u8]) -> Self;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i64(self) -> i64;
    /// The value as an integer, or else a float.
    fn to_value(self) -> Value;
}

/// A computed float type.
trait Float: Copy {
    const SIZE: usize;
    const NAN: Self;
    fn from_stored(stored: impl Stored) -> Self;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    fn multiplied(self, factor: Self) -> Self;
    fn plus(self, offset: Self) -> Self;
    fn write(self, out: &mut [u8]);
}

/// An element on its way to a time or a boolean.
#[derive(Clone, Copy)]
enum Value {
    Integer(i128),
    Float(f64),
    Missing,
}

macro_rules! stored {
    ($($number:ty, $size:literal, $value:expr;)*) => {
        $(impl Stored for $number {
            const SIZE: usize = $size;

            fn read(bytes: &[u8]) -> Self {
                let mut array = [0; $size];
                if bytes.len() == $size {
                    array.copy_from_slice(bytes);
                }
                Self::from_le_bytes(array)
            }

            fn to_f32(self) -> f32 {
                self as f32
            }

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn to_i64(self) -> i64 {
                self as i64
            }

            fn to_value(self) -> Value {
                let value: fn(Self) -> Value = $value;
                value(self)
            }
        })*
    };
}

stored! {
    i8, 1, |value| Value::Integer(i128::from(value));
    i16, 2, |value| Value::Integer(i128::from(value));
    i32, 4, |value| Value::Integer(i128::from(value));
    i64, 8, |value| Value::Integer(i128::from(value));
    u8, 1, |value| Value::Integer(i128::from(value));
    u16, 2, |value| Value::Integer(i128::from(value));
    u32, 4, |value| Value::Integer(i128::from(value));
    u64, 8, |value| Value::Integer(i128::from(value));
    f32, 4, |value| Value::Float(f64::from(value));
    f64, 8, Value::Float;
}

impl Stored for f16 {
    const SIZE: usize = 2;

    fn read(bytes: &[u8]) -> Self {
        Self::from_bits(u16::read(bytes))
    }

    fn to_f32(self) -> f32 {
        f32::from(self)
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn to_i64(self) -> i64 {
        f64::from(self) as i64
    }

    fn to_value(self) -> Value {
        Value::Float(f64::from(self))
    }
}

macro_rules! float {
    ($($float:ty, $size:literal, $convert:ident;)*) => {
        $(impl Float for $float {
            const SIZE: usize = $size;
            const NAN: Self = <$float>::NAN;

            fn from_stored(stored: impl Stored) -> Self {
                stored.$convert()
            }

            fn from_f64(value: f64) -> Self {
                value as $float
            }

            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn multiplied(self, factor: Self) -> Self {
                self * factor
            }

            fn plus(self, offset: Self) -> Self {
                self + offset
            }

            fn write(self, out: &mut [u8]) {
                let bytes = self.to_le_bytes();
                if out.len() == bytes.len() {
                    out.copy_from_slice(&bytes);
                }
            }
        })*
    };
}

float! {
    f32, 4, to_f32;
    f64, 8, to_f64;
}

impl Float for f16 {
    const SIZE: usize = 2;
    const NAN: Self = Self::NAN;

    fn from_stored(stored: impl Stored) -> Self {
        Self::from_f64(stored.to_f64())
    }

    fn from_f64(value: f64) -> Self {
        Self::from_f64(value)
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    fn multiplied(self, factor: Self) -> Self {
        self * factor
    }

    fn plus(self, offset: Self) -> Self {
        self + offset
    }

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_le_bytes());
    }
}

/// Decodes a buffer of whole elements.
pub(crate) fn decode(plan: &Plan, elements: &Elements) -> Result<Elements, CfError> {
    let Elements::Fixed(bytes) = elements else { return Ok(elements.clone()) };
    if plan.output == Output::Same {
        return Ok(elements.clone());
    }
    match plan.number {
        Number::Int8 => decode_as::<i8>(plan, bytes),
        Number::Int16 => decode_as::<i16>(plan, bytes),
        Number::Int32 => decode_as::<i32>(plan, bytes),
        Number::Int64 => decode_as::<i64>(plan, bytes),
        Number::Bool | Number::UInt8 => decode_as::<u8>(plan, bytes),
        Number::UInt16 => decode_as::<u16>(plan, bytes),
        Number::UInt32 => decode_as::<u32>(plan, bytes),
        Number::UInt64 => decode_as::<u64>(plan, bytes),
        Number::Float16 => decode_as::<f16>(plan, bytes),
        Number::Float32 => decode_as::<f32>(plan, bytes),
        Number::Float64 => decode_as::<f64>(plan, bytes),
        // They have no plan.
        Number::Complex64 | Number::Complex128 => Ok(elements.clone()),
    }
}

/// The moments of encoded times, in microseconds from the start of 1970; `NOT_A_TIME` for those that are missing.
pub(crate) fn moments(plan: &Plan, bytes: &Bytes, units: &TimeUnits) -> Result<Vec<i64>, CfError> {
    match plan.number {
        Number::Int8 => moments_as::<i8>(plan, bytes, units),
        Number::Int16 => moments_as::<i16>(plan, bytes, units),
        Number::Int32 => moments_as::<i32>(plan, bytes, units),
        Number::Int64 => moments_as::<i64>(plan, bytes, units),
        Number::UInt16 => moments_as::<u16>(plan, bytes, units),
        Number::UInt32 => moments_as::<u32>(plan, bytes, units),
        Number::UInt64 => moments_as::<u64>(plan, bytes, units),
        Number::Float16 => moments_as::<f16>(plan, bytes, units),
        Number::Float32 => moments_as::<f32>(plan, bytes, units),
        Number::Float64 => moments_as::<f64>(plan, bytes, units),
        Number::Bool | Number::UInt8 | Number::Complex64 | Number::Complex128 => moments_as::<u8>(plan, bytes, units),
    }
}

/// The element as a scalar, if it is a number.
pub(crate) fn scalar(number: Number, element: &[u8]) -> Option<Scalar> {
    let value = match number {
        Number::Int8 => i8::read(element).to_value(),
        Number::Int16 => i16::read(element).to_value(),
        Number::Int32 => i32::read(element).to_value(),
        Number::Int64 => i64::read(element).to_value(),
        Number::Bool | Number::UInt8 => u8::read(element).to_value(),
        Number::UInt16 => u16::read(element).to_value(),
        Number::UInt32 => u32::read(element).to_value(),
        Number::UInt64 => u64::read(element).to_value(),
        Number::Float16 => f16::read(element).to_value(),
        Number::Float32 => f32::read(element).to_value(),
        Number::Float64 => f64::read(element).to_value(),
        Number::Complex64 | Number::Complex128 => return None,
    };
    match value {
        Value::Integer(integer) => Some(Scalar::Integer(integer)),
        Value::Float(float) => Some(Scalar::Float(float)),
        Value::Missing => None,
    }
}

/// The element as an integer; `None` for floats.
pub(crate) fn integer(number: Number, element: &[u8]) -> Option<i128> {
    match scalar(number, element)? {
        Scalar::Integer(integer) => Some(integer),
        Scalar::Float(_) | Scalar::Text(_) | Scalar::Other => None,
    }
}

/// The integer of a type with the same bits, as far as it has them.
pub(crate) fn wrap(number: Number, integer: i128) -> i128 {
    match number {
        Number::Int8 => i128::from(integer as i8),
        Number::Int16 => i128::from(integer as i16),
        Number::Int32 => i128::from(integer as i32),
        Number::Int64 => i128::from(integer as i64),
        Number::UInt8 => i128::from(integer as u8),
        Number::UInt16 => i128::from(integer as u16),
        Number::UInt32 => i128::from(integer as u32),
        Number::UInt64 => i128::from(integer as u64),
        _ => integer,
    }
}

fn decode_as<T: Stored>(plan: &Plan, bytes: &Bytes) -> Result<Elements, CfError> {
    check_whole::<T>(bytes)?;
    let fixed = match &plan.output {
        Output::Same => bytes.clone(),
        Output::Float16 => floats::<T, f16>(plan, bytes),
        Output::Float32 => floats::<T, f32>(plan, bytes),
        Output::Float64 => floats::<T, f64>(plan, bytes),
        Output::Int64 => scaled_integers::<T>(plan, bytes),
        Output::Bool => {
            let truth = |value| match value {
                Value::Integer(integer) => integer != 0,
                Value::Float(float) => float != 0.0,
                Value::Missing => true,
            };
            bytes.chunks_exact(T::SIZE).map(|bytes| u8::from(truth(value::<T>(plan, bytes)))).collect()
        }
        Output::Moments(units) => {
            let moment = |bytes| nanoseconds::<T>(plan, bytes, units);
            counts(bytes.chunks_exact(T::SIZE).map(moment), bytes.len() / T::SIZE)?
        }
        Output::Durations { unit, result, units } => {
            let duration = |bytes| {
                let value = value::<T>(plan, bytes);
                let count = match value {
                    Value::Missing => Some(NOT_A_TIME),
                    Value::Integer(count) => whole_duration(count, *unit, *result),
                    Value::Float(count) => float_duration(count, *unit, *result),
                };
                count.ok_or_else(|| out_of_range(value, units, plan))
            };
            counts(bytes.chunks_exact(T::SIZE).map(duration), bytes.len() / T::SIZE)?
        }
        Output::CalendarMoments(units) => {
            counts(moments_as::<T>(plan, bytes, units)?.into_iter().map(Ok), bytes.len() / T::SIZE)?
        }
        Output::Texts(units) => return texts::<T>(plan, bytes, units),
    };
    Ok(Elements::Fixed(fixed))
}

fn check_whole<T: Stored>(bytes: &Bytes) -> Result<(), CfError> {
    match bytes.len() % T::SIZE {
        0 => Ok(()),
        _ => Err(CfError::PartialElements { len: bytes.len(), size: T::SIZE }),
    }
}

fn floats<T: Stored, F: Float>(plan: &Plan, bytes: &Bytes) -> Bytes {
    match (factor::<F>(plan.scale_factor), factor::<F>(plan.add_offset)) {
        (None, None) => masked::<T, F>(&plan.mask, bytes, |value| value),
        (Some(scale), None) => masked::<T, F>(&plan.mask, bytes, |value| value.multiplied(scale)),
        (None, Some(offset)) => masked::<T, F>(&plan.mask, bytes, |value| value.plus(offset)),
        (Some(scale), Some(offset)) => masked::<T, F>(&plan.mask, bytes, |value| value.multiplied(scale).plus(offset)),
    }
}

fn masked<T: Stored, F: Float>(mask: &Mask, bytes: &Bytes, compute: impl Fn(F) -> F) -> Bytes {
    match mask.floats.as_slice() {
        [] => mapped::<T, F>(bytes, compute),
        [fill_value] => {
            mapped::<T, F>(bytes, |value| if value.to_f64() == *fill_value { F::NAN } else { compute(value) })
        }
        fill_values => {
            mapped::<T, F>(bytes, |value| if fill_values.contains(&value.to_f64()) { F::NAN } else { compute(value) })
        }
    }
}

fn mapped<T: Stored, F: Float>(bytes: &Bytes, compute: impl Fn(F) -> F) -> Bytes {
    let mut out = filled(0, (bytes.len() / T::SIZE).saturating_mul(F::SIZE));
    let elements = bytes.chunks_exact(T::SIZE).zip(out.chunks_exact_mut(F::SIZE));
    elements.for_each(|(stored, out)| compute(F::from_stored(T::read(stored))).write(out));
    out.into()
}

fn scaled_integers<T: Stored>(plan: &Plan, bytes: &Bytes) -> Bytes {
    let factor = match plan.scale_factor {
        Some(Factor::Integer(factor)) => factor,
        _ => 1,
    };
    let mut out = Vec::with_capacity((bytes.len() / T::SIZE).saturating_mul(size_of::<i64>()));
    for stored in bytes.chunks_exact(T::SIZE) {
        out.extend_from_slice(&T::read(stored).to_i64().wrapping_mul(factor).to_le_bytes());
    }
    out.into()
}

fn factor<F: Float>(factor: Option<Factor>) -> Option<F> {
    factor.map(|factor| match factor {
        Factor::Integer(integer) => F::from_f64(integer as f64),
        Factor::Float(float) => F::from_f64(float),
    })
}

/// An element, masked and scaled.
fn value<T: Stored>(plan: &Plan, bytes: &[u8]) -> Value {
    let value = T::read(bytes).to_value();
    let missing = match value {
        Value::Integer(integer) => {
            integer == i128::from(NOT_A_TIME) && T::SIZE == 8 || plan.mask.integers.contains(&integer)
        }
        Value::Float(float) => float.is_nan() || plan.mask.floats.contains(&float),
        Value::Missing => true,
    };
    if missing {
        return Value::Missing;
    }
    let (scale, offset) = (factor::<f64>(plan.scale_factor), factor::<f64>(plan.add_offset));
    if scale.is_none() && offset.is_none() {
        return value;
    }
    let scaled = scale.map_or(T::read(bytes).to_f64(), |scale| T::read(bytes).to_f64() * scale);
    Value::Float(offset.map_or(scaled, |offset| scaled + offset))
}

fn counts(values: impl Iterator<Item = Result<i64, CfError>>, count: usize) -> Result<Bytes, CfError> {
    let mut out = Vec::with_capacity(count.saturating_mul(size_of::<i64>()));
    for value in values {
        out.extend_from_slice(&value?.to_le_bytes());
    }
    Ok(out.into())
}

fn moment(value: Value, units: &TimeUnits) -> Option<Option<i128>> {
    match value {
        Value::Missing => Some(None),
        Value::Integer(count) => units.moment(count).map(Some),
        Value::Float(count) => units.moment_of_float(count).map(Some),
    }
}

/// A time as `datetime64[ns]`.
fn nanoseconds<T: Stored>(plan: &Plan, bytes: &[u8], units: &TimeUnits) -> Result<i64, CfError> {
    let value = value::<T>(plan, bytes);
    let Some(moment) = moment(value, units) else { return Err(out_of_range(value, &units.text, plan)) };
    let Some(moment) = moment else { return Ok(NOT_A_TIME) };
    let count = i64::try_from(moment).ok().filter(|_| units.fit_datetime64(moment));
    count.ok_or_else(|| out_of_range(value, &units.text, plan))
}

/// True if there are stored elements that are times outside of the range of `datetime64[ns]`. That is known of small
/// integers only.
pub(crate) fn may_exceed(plan: &Plan, units: &TimeUnits) -> bool {
    let range = match plan.number {
        Number::Int8 => i8::MIN.into()..=i8::MAX.into(),
        Number::UInt8 => 0..=u8::MAX.into(),
        Number::Int16 => i16::MIN.into()..=i16::MAX.into(),
        Number::UInt16 => 0..=u16::MAX.into(),
        Number::Int32 => i32::MIN.into()..=i32::MAX.into(),
        Number::UInt32 => 0..=u32::MAX.into(),
        _ => return true,
    };
    let is_scaled = plan.scale_factor.is_some() || plan.add_offset.is_some();
    let fits = |count: &i128| units.moment(*count).is_some_and(|moment| units.fit_datetime64(moment));
    is_scaled || !fits(range.start()) || !fits(range.end())
}

fn moments_as<T: Stored>(plan: &Plan, bytes: &Bytes, units: &TimeUnits) -> Result<Vec<i64>, CfError> {
    check_whole::<T>(bytes)?;
    let of = |bytes| {
        let value = value::<T>(plan, bytes);
        let count = moment(value, units).and_then(|moment| match moment {
            Some(moment) => i64::try_from(moment.div_euclid(1000)).ok(),
            None => Some(NOT_A_TIME),
        });
        count.ok_or_else(|| out_of_range(value, &units.text, plan))
    };
    bytes.chunks_exact(T::SIZE).map(of).collect()
}

fn texts<T: Stored>(plan: &Plan, bytes: &Bytes, units: &TimeUnits) -> Result<Elements, CfError> {
    let count = (bytes.len() / T::SIZE) as u64;
    let mut builder = VariableBuilder::new(count.saturating_mul(TEXT_MEMORY));
    let mut text = String::with_capacity(40);
    for bytes in bytes.chunks_exact(T::SIZE) {
        let value = value::<T>(plan, bytes);
        text.clear();
        match moment(value, units).filter(|moment| moment.is_none_or(is_writable)) {
            Some(Some(moment)) => iso::write(moment, units.calendar, &mut text),
            Some(None) => text.push_str("NaT"),
            None => return Err(out_of_range(value, &units.text, plan)),
        }
        builder.push(text.as_bytes()).map_err(|_| out_of_range(value, &units.text, plan))?;
    }
    Ok(Elements::Variable(builder.finish()))
}

/// True if a moment has a year of at most six digits.
pub(crate) fn is_writable(moment: i128) -> bool {
    moment.unsigned_abs() < 366 * 86_400 * 1_000_000_000 * 900_000
}

fn whole_duration(count: i128, unit: i64, result: i64) -> Option<i64> {
    let nanoseconds = count.checked_mul(i128::from(unit))?;
    i64::try_from(nanoseconds.checked_div(i128::from(result))?).ok().filter(|count| *count != NOT_A_TIME)
}

/// Like xarray: in seconds first, and then in thousandths until the unit is reached.
fn float_duration(count: f64, unit: i64, result: i64) -> Option<i64> {
    let (mut count, mut unit) =
        if unit > NS_PER_SECOND { (count * (unit / NS_PER_SECOND) as f64, NS_PER_SECOND) } else { (count, unit) };
    while unit > result {
        (count, unit) = (count * 1000.0, unit / 1000);
    }
    (count.abs() < 2_f64.powi(63)).then_some(count as i64)
}

fn out_of_range(value: Value, units: &str, plan: &Plan) -> CfError {
    let value = match value {
        Value::Integer(integer) => integer.to_string(),
        Value::Float(float) => float.to_string(),
        Value::Missing => "NaT".to_owned(),
    };
    CfError::OutOfRange { value, units: units.to_owned(), data_type: plan.data_type.name() }
}
