//! `int8` to `int64` and `uint8` to `uint64`.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, Number, StoredOrder, TypeError, UnsupportedInFormat,
    V2Context, ValueError,
    binary_float::without_underscores,
    text::{NumpyText, append, draft_bit_pattern, invalid_value, is_null_fill, order_sign, unconfigured, words},
};
use crate::Dialect;

/// The magnitude up to which every integer is exactly an `f64`, so that `3.0` means 3.
const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

const INTEGERS: [Integer; 8] = [
    Integer { number: Number::Int8, name: "int8", numpy: "i1" },
    Integer { number: Number::Int16, name: "int16", numpy: "i2" },
    Integer { number: Number::Int32, name: "int32", numpy: "i4" },
    Integer { number: Number::Int64, name: "int64", numpy: "i8" },
    Integer { number: Number::UInt8, name: "uint8", numpy: "u1" },
    Integer { number: Number::UInt16, name: "uint16", numpy: "u2" },
    Integer { number: Number::UInt32, name: "uint32", numpy: "u4" },
    Integer { number: Number::UInt64, name: "uint64", numpy: "u8" },
];

#[derive(Clone, Copy, Debug)]
struct Integer {
    number: Number,
    name: &'static str,
    numpy: &'static str,
}

/// `int32` (v3), `<i4` (v2, draft), `i1` (draft).
pub(super) struct IntegerFamily;

impl DataTypeFamily for IntegerFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        let integer = INTEGERS
            .into_iter()
            .find(|integer| integer.numpy.strip_prefix(text.kind).is_some_and(|size| size == text.rest))?;
        if integer.number.size() == 1 {
            return Some(Ok((DataType::new(integer), StoredOrder::Little)));
        }
        Some(text.order().map(|order| (DataType::new(integer), order)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        INTEGERS
            .into_iter()
            .find(|integer| integer.name == name)
            .map(|integer| unconfigured(name, configuration, integer))
    }
}

/// The data type of integers.
pub(super) fn data_type(number: Number) -> DataType {
    let [.., widest] = INTEGERS;
    DataType::new(INTEGERS.into_iter().find(|integer| integer.number == number).unwrap_or(widest))
}

/// The integer in a JSON value such as `3` or `3.0`.
pub(super) fn exact_integer(json: &Value) -> Option<i128> {
    if let Some(value) = json.as_i64() {
        return Some(i128::from(value));
    }
    if let Some(value) = json.as_u64() {
        return Some(i128::from(value));
    }
    let value = json.as_f64()?;
    // JSON numbers beyond 64 bits were rounded by the parser.
    (value.trunc() == value && value.abs() <= EXACT_FLOAT).then_some(value as i128)
}

impl Integer {
    /// Appends a value; returns false if it is out of range.
    fn push(self, value: i128, out: &mut Vec<u8>) -> bool {
        macro_rules! push {
            ($type:ty) => {
                match <$type>::try_from(value) {
                    Ok(value) => out.extend_from_slice(&value.to_le_bytes()),
                    Err(_) => return false,
                }
            };
        }
        match self.number {
            Number::Int8 => push!(i8),
            Number::Int16 => push!(i16),
            Number::Int32 => push!(i32),
            Number::Int64 => push!(i64),
            Number::UInt8 => push!(u8),
            Number::UInt16 => push!(u16),
            Number::UInt32 => push!(u32),
            _ => push!(u64),
        }
        true
    }

    /// The element's value; `None` if the bytes are invalid.
    fn value(self, element: &[u8]) -> Option<i128> {
        macro_rules! value {
            ($type:ty) => {
                <$type>::from_le_bytes(element.try_into().ok()?).into()
            };
        }
        Some(match self.number {
            Number::Int8 => value!(i8),
            Number::Int16 => value!(i16),
            Number::Int32 => value!(i32),
            Number::Int64 => value!(i64),
            Number::UInt8 => value!(u8),
            Number::UInt16 => value!(u16),
            Number::UInt32 => value!(u32),
            _ => value!(u64),
        })
    }

    fn sign(self, order: &StoredOrder) -> char {
        if self.number.size() == 1 { '|' } else { order_sign(order) }
    }
}

impl ElementType for Integer {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn layout(&self) -> Layout {
        let size = self.number.size();
        Layout::Fixed(FixedLayout { size, words: words(size, 1) })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) {
            return Ok(self.zero());
        }
        if let Some(pattern) = draft_bit_pattern(json, dialect, self.number.size()) {
            return Ok(pattern);
        }
        let mut element = Vec::with_capacity(self.number.size());
        // zarr-python also reads booleans, and what Python's `int` does.
        let value = match json {
            Value::String(text) => without_underscores(text.trim()).and_then(|text| text.parse().ok()),
            Value::Bool(value) => Some(i128::from(*value)),
            _ => None,
        };
        if dialect != Dialect::Draft
            && let Some(value) = value
            && self.push(value, &mut element)
        {
            return Ok(element);
        }
        self.parse_json(json, &mut element)?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], _dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        let value = self.value(element).unwrap_or_default();
        Ok(match u64::try_from(value) {
            Ok(value) => Value::from(value),
            Err(_) => Value::from(i64::try_from(value).unwrap_or_default()),
        })
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.number.size()]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let Some(value) = self.value(element) else { return };
        match i64::try_from(value) {
            Ok(value) => append(out, &value),
            Err(_) => append(out, &u64::try_from(value).unwrap_or_default()),
        }
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let value = exact_integer(json).ok_or_else(|| invalid_value(self, json, "it is an integer"))?;
        if self.push(value, out) { Ok(()) } else { Err(invalid_value(self, json, "it is out of range")) }
    }

    fn npy_descr(&self) -> Option<String> {
        Some(format!("'{}{}'", self.sign(&StoredOrder::Little), self.numpy))
    }

    fn number(&self) -> Option<Number> {
        Some(self.number)
    }

    fn to_f64(&self, element: &[u8]) -> Option<f64> {
        self.value(element).map(|value| value as f64)
    }

    fn to_v3(&self) -> Value {
        Value::from(self.name)
    }

    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(format!("{}{}", self.sign(order), self.numpy)))
    }
}
