//! Conversions of elements that are written, which never change a value silently.

use half::f16;
use zarrd_meta::data_type::{Casting, DataType, Number};

use crate::{cast::Value, kind::Kind};

/// The count of "not a time".
const NOT_A_TIME: i64 = i64::MIN;

/// A conversion of elements to another data type, by a rule of NumPy's `casting`.
///
/// It differs from NumPy where that would store another value without saying so: [`Casting::Safe`] and
/// [`Casting::SameKind`] refuse numbers that the type cannot hold, instead of wrapping them around or making them
/// infinite. Numbers that are not finite, or too large, become no integers in any case; NumPy's result depends on the
/// processor. With [`Casting::Unsafe`] integers wrap around, as in NumPy.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion(Steps);

/// An element that the data type cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is not in the range of {data_type}")]
pub struct Unrepresentable {
    /// Its number among the elements.
    pub index: u64,
    /// Its value.
    pub value: String,
    /// The data type.
    pub data_type: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Steps {
    Numbers {
        from: Number,
        to: Number,
        casting: Casting,
        name: String,
    },
    /// The lengths of the counts in nanoseconds.
    Times {
        from: i128,
        to: i128,
        name: String,
    },
}

impl Conversion {
    /// The conversion between two data types; `None` if the rule does not allow it.
    pub fn new(from: &DataType, to: &DataType, casting: Casting) -> Option<Self> {
        if let (Some(from), Some(number)) = (from.number(), to.number()) {
            let steps = Steps::Numbers { from, to: number, casting, name: to.name() };
            return casting.allows(from, number).then_some(Self(steps));
        }
        let (Kind::Time(one), Kind::Time(other)) = (Kind::of(from), Kind::of(to)) else { return None };
        let (from, length) = (from.count_nanoseconds()?, to.count_nanoseconds()?);
        let is_allowed = one == other && (casting != Casting::Safe || from.checked_rem(length) == Some(0));
        is_allowed.then(|| Self(Steps::Times { from, to: length, name: to.name() }))
    }

    /// Converts whole elements; bytes of a part of one are left out.
    ///
    /// # Errors
    ///
    /// The first element that the data type cannot hold.
    pub fn convert(&self, elements: &[u8]) -> Result<Vec<u8>, Unrepresentable> {
        let (size, wider, name) = match &self.0 {
            Steps::Numbers { from, to, name, .. } => (from.size(), to.size(), name),
            Steps::Times { name, .. } => (size_of::<i64>(), size_of::<i64>(), name),
        };
        let mut out = Vec::with_capacity((elements.len() / size.max(1)).saturating_mul(wider));
        for (index, element) in (0_u64..).zip(elements.chunks_exact(size.max(1))) {
            let written = match &self.0 {
                Steps::Numbers { from, to, casting, .. } => {
                    let value = Value::read(*from, element);
                    write(value, *to, *casting, &mut out).ok_or_else(|| value.to_text())
                }
                Steps::Times { from, to, .. } => {
                    let count = i64::from_le_bytes(bytes_of(element));
                    let converted = converted_count(count, *from, *to);
                    converted.map(|count| out.extend_from_slice(&count.to_le_bytes())).ok_or_else(|| count.to_string())
                }
            };
            written.map_err(|value| Unrepresentable { index, value, data_type: name.clone() })?;
        }
        Ok(out)
    }
}

impl Value {
    fn read(number: Number, element: &[u8]) -> Self {
        match number {
            Number::Bool | Number::UInt8 => Self::Integer(u8::from_le_bytes(bytes_of(element)).into()),
            Number::UInt16 => Self::Integer(u16::from_le_bytes(bytes_of(element)).into()),
            Number::UInt32 => Self::Integer(u32::from_le_bytes(bytes_of(element)).into()),
            Number::UInt64 => Self::Integer(u64::from_le_bytes(bytes_of(element)).into()),
            Number::Int8 => Self::Integer(i8::from_le_bytes(bytes_of(element)).into()),
            Number::Int16 => Self::Integer(i16::from_le_bytes(bytes_of(element)).into()),
            Number::Int32 => Self::Integer(i32::from_le_bytes(bytes_of(element)).into()),
            Number::Int64 => Self::Integer(i64::from_le_bytes(bytes_of(element)).into()),
            Number::Float16 => Self::Real(f16::from_le_bytes(bytes_of(element)).to_f64()),
            Number::Float32 => Self::Real(f32::from_le_bytes(bytes_of(element)).into()),
            Number::Float64 => Self::Real(f64::from_le_bytes(bytes_of(element))),
            Number::Complex64 => {
                let (real, imaginary) = element.split_at(element.len() / 2);
                let part = |part| f64::from(f32::from_le_bytes(bytes_of(part)));
                Self::Complex(part(real), part(imaginary))
            }
            Number::Complex128 => {
                let (real, imaginary) = element.split_at(element.len() / 2);
                Self::Complex(f64::from_le_bytes(bytes_of(real)), f64::from_le_bytes(bytes_of(imaginary)))
            }
        }
    }

    fn to_text(self) -> String {
        match self {
            Self::Integer(value) => value.to_string(),
            Self::Real(value) => value.to_string(),
            Self::Complex(real, imaginary) => format!("{real}{imaginary:+}i"),
        }
    }
}

/// The bytes of a word; zeros if there are fewer or more.
fn bytes_of<const N: usize>(element: &[u8]) -> [u8; N] {
    element.try_into().unwrap_or([0; N])
}

/// Appends a value as a number; `None` if the number cannot hold it.
fn write(value: Value, to: Number, casting: Casting, out: &mut Vec<u8>) -> Option<()> {
    macro_rules! integer {
        ($type:ty) => {{
            let whole = whole(value)?;
            let fits = <$type>::try_from(whole);
            // NumPy wraps integers around; of floats the result would be arbitrary.
            let wraps = casting == Casting::Unsafe && matches!(value, Value::Integer(_));
            let converted = if wraps { whole as $type } else { fits.ok()? };
            out.extend_from_slice(&converted.to_le_bytes());
        }};
    }
    match to {
        Number::Bool => out.push(u8::from(match value {
            Value::Integer(value) => value != 0,
            Value::Real(value) => value != 0.0,
            Value::Complex(real, imaginary) => real != 0.0 || imaginary != 0.0,
        })),
        Number::UInt8 => integer!(u8),
        Number::UInt16 => integer!(u16),
        Number::UInt32 => integer!(u32),
        Number::UInt64 => integer!(u64),
        Number::Int8 => integer!(i8),
        Number::Int16 => integer!(i16),
        Number::Int32 => integer!(i32),
        Number::Int64 => integer!(i64),
        Number::Float16 => match value {
            Value::Integer(value) => out.extend_from_slice(&half_of(value as f64, casting)?.to_le_bytes()),
            Value::Real(value) | Value::Complex(value, _) => {
                out.extend_from_slice(&half_of(value, casting)?.to_le_bytes());
            }
        },
        Number::Float32 => match value {
            // Rounded once, and not by way of float64.
            Value::Integer(value) => out.extend_from_slice(&(value as f32).to_le_bytes()),
            Value::Real(value) | Value::Complex(value, _) => {
                out.extend_from_slice(&single_of(value, casting)?.to_le_bytes());
            }
        },
        Number::Float64 => out.extend_from_slice(&real_part(value).to_le_bytes()),
        Number::Complex64 => {
            let (real, imaginary) = match value {
                Value::Integer(value) => (value as f32, 0.0),
                Value::Real(value) => (single_of(value, casting)?, 0.0),
                Value::Complex(real, imaginary) => (single_of(real, casting)?, single_of(imaginary, casting)?),
            };
            out.extend_from_slice(&real.to_le_bytes());
            out.extend_from_slice(&imaginary.to_le_bytes());
        }
        Number::Complex128 => {
            let imaginary = if let Value::Complex(_, imaginary) = value { imaginary } else { 0.0 };
            out.extend_from_slice(&real_part(value).to_le_bytes());
            out.extend_from_slice(&imaginary.to_le_bytes());
        }
    }
    Some(())
}

fn real_part(value: Value) -> f64 {
    match value {
        Value::Integer(value) => value as f64,
        Value::Real(value) | Value::Complex(value, _) => value,
    }
}

/// The whole number of a value, towards zero; `None` if it has none of less than 127 bits.
fn whole(value: Value) -> Option<i128> {
    match value {
        Value::Integer(value) => Some(value),
        Value::Real(value) | Value::Complex(value, _) => (value.abs() < 2_f64.powi(126)).then_some(value as i128),
    }
}

fn half_of(value: f64, casting: Casting) -> Option<f16> {
    let half = f16::from_f64(value);
    (half.is_finite() || !value.is_finite() || casting == Casting::Unsafe).then_some(half)
}

fn single_of(value: f64, casting: Casting) -> Option<f32> {
    let single = value as f32;
    (single.is_finite() || !value.is_finite() || casting == Casting::Unsafe).then_some(single)
}

/// A count in another unit, towards the past; `None` if it is out of range.
fn converted_count(count: i64, from: i128, to: i128) -> Option<i64> {
    if count == NOT_A_TIME {
        return Some(NOT_A_TIME);
    }
    let converted = i128::from(count).checked_mul(from)?.checked_div_euclid(to)?;
    i64::try_from(converted).ok().filter(|count| *count != NOT_A_TIME)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use zarrd_meta::data_type::{V2Context, parse_v2};

    use super::*;

    fn of(number: Number) -> DataType {
        DataType::of_number(number)
    }

    fn convert(from: Number, to: Number, casting: Casting, element: &[u8]) -> Result<Vec<u8>, Option<String>> {
        let conversion = Conversion::new(&of(from), &of(to), casting).ok_or(None)?;
        conversion.convert(element).map_err(|error| Some(error.value))
    }

    #[test]
    fn values_are_never_changed_silently() {
        use Casting::{Safe, SameKind, Unsafe};
        use Number::*;
        let wide = 300_i64.to_le_bytes();
        assert_eq!(convert(Int64, Int8, SameKind, &wide), Err(Some("300".into())));
        assert_eq!(convert(Int64, Int8, Unsafe, &wide), Ok(vec![44]));
        assert_eq!(convert(Int64, Int16, SameKind, &wide), Ok(300_i16.to_le_bytes().into()));
        assert_eq!(convert(Int64, Int16, Safe, &wide), Err(None));
        assert_eq!(convert(Int8, UInt8, SameKind, &[255]), Err(None));
        assert_eq!(convert(Int8, UInt8, Unsafe, &[255]), Ok(vec![255]));
        assert_eq!(convert(Float64, Int16, SameKind, &[0; 8]), Err(None));
        assert_eq!(convert(Float64, Int16, Unsafe, &(-1.9_f64).to_le_bytes()), Ok((-1_i16).to_le_bytes().into()));
        assert_eq!(convert(Float64, Int16, Unsafe, &1e9_f64.to_le_bytes()), Err(Some("1000000000".into())));
        assert_eq!(convert(Float64, Int64, Unsafe, &f64::NAN.to_le_bytes()), Err(Some("NaN".into())));
        assert_eq!(convert(Float64, Float32, SameKind, &0.1_f64.to_le_bytes()), Ok(0.1_f32.to_le_bytes().into()));
        assert_eq!(convert(Float64, Float32, SameKind, &1e300_f64.to_le_bytes()), Err(Some(1e300_f64.to_string())));
        assert_eq!(convert(Float64, Float32, Unsafe, &1e300_f64.to_le_bytes()), Ok(f32::INFINITY.to_le_bytes().into()));
        let infinite = f64::NEG_INFINITY.to_le_bytes();
        assert_eq!(convert(Float64, Float16, SameKind, &infinite), Ok(f16::NEG_INFINITY.to_le_bytes().into()));
        assert_eq!(convert(UInt32, Float16, SameKind, &70_000_u32.to_le_bytes()), Err(Some("70000".into())));
        assert_eq!(convert(Bool, Float32, Safe, &[1]), Ok(1_f32.to_le_bytes().into()));
        assert_eq!(convert(Float32, Bool, Unsafe, &f32::NAN.to_le_bytes()), Ok(vec![1]));
        let complex = [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat();
        assert_eq!(convert(Complex64, Float32, SameKind, &complex), Err(None));
        assert_eq!(convert(Complex64, Float64, Unsafe, &complex), Ok(1.5_f64.to_le_bytes().into()));
        let double = [1.5_f64.to_le_bytes(), (-2.0_f64).to_le_bytes()].concat();
        assert_eq!(convert(Complex64, Complex128, Safe, &complex), Ok(double));
        // 2⁶⁴ − 1 rounded once; the nearest float32 of the nearest float64 is the same here, but not in general.
        assert_eq!(
            convert(UInt64, Float32, SameKind, &[255; 8]),
            Ok(18_446_744_073_709_551_616_f32.to_le_bytes().into())
        );
    }

    #[test]
    fn first_unrepresentable_element_is_named() {
        let elements: Vec<u8> = [1_i16, 2, 200, 300].iter().flat_map(|value| value.to_le_bytes()).collect();
        let conversion = Conversion::new(&of(Number::Int16), &of(Number::Int8), Casting::SameKind).unwrap();
        let error = conversion.convert(&elements).unwrap_err();
        assert_eq!((error.index, error.to_string().as_str()), (2, "200 is not in the range of int8"));
    }

    #[test]
    fn times_change_their_unit() {
        let of = |dtype: &str| parse_v2(&json!(dtype), V2Context::default()).unwrap().0;
        let convert = |from, to, casting, count: i64| {
            let conversion = Conversion::new(&of(from), &of(to), casting)?;
            Some(conversion.convert(&count.to_le_bytes()).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())))
        };
        let ok = |count| Some(Ok::<i64, Unrepresentable>(count));
        assert_eq!(convert("<M8[D]", "<M8[ns]", Casting::Safe, 1), ok(86_400_000_000_000));
        // `numpy.datetime64(-1, "ns").astype("M8[s]")` is a second before 1970.
        assert_eq!(convert("<M8[ns]", "<M8[s]", Casting::SameKind, -1), ok(-1));
        assert_eq!(convert("<M8[ns]", "<M8[s]", Casting::Safe, -1), None);
        assert_eq!(convert("<M8[s]", "<M8[ns]", Casting::Safe, NOT_A_TIME), ok(NOT_A_TIME));
        assert!(convert("<M8[D]", "<M8[ns]", Casting::Safe, 1 << 40).unwrap().is_err());
        assert_eq!(convert("<M8[s]", "<m8[s]", Casting::Unsafe, 1), None);
        assert_eq!(convert("<M8[M]", "<M8[D]", Casting::Unsafe, 1), None, "months have no fixed length");
        assert_eq!(convert("<m8[10s]", "<m8[ms]", Casting::Safe, 2), ok(20_000));
    }
}
