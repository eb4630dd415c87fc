//! Numbers of at most 8 bits other than those of NumPy: [`int2`, `int4`, `uint2`,
//! `uint4`](https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/int4), `float4_e2m1fn`,
//! `float6_…` and [`float8_…`](https://github.com/jax-ml/ml_dtypes), each in the lower bits of a byte of its own.
//!
//! The values are those of ml_dtypes, which tensorstore writes. The upper bits of a byte have no meaning; they are
//! written as zeros.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context,
    ValueError,
    binary_float::{NO_NUMBER, TOO_BIG},
    int::exact_integer,
    text::{append, bit_pattern, hexadecimal, invalid_value, is_null_fill, unconfigured},
};
use crate::Dialect;

/// A number in the lower bits of a byte.
#[derive(Clone, Copy, Debug)]
struct Small {
    name: &'static str,
    bits: u32,
    numbers: Numbers,
}

#[derive(Clone, Copy, Debug)]
enum Numbers {
    Signed,
    Unsigned,
    /// A sign, an exponent, and this number of bits of a mantissa.
    Float {
        mantissa: u32,
        bias: i32,
        special: Special,
    },
    /// An exponent without sign and mantissa. There is no zero; the highest one is NaN.
    Exponent,
}

/// The meaning of the highest codes of a float type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// The highest exponent is that of infinity and NaN, as in IEEE 754.
    Ieee,
    /// The highest code is NaN.
    HighestIsNan,
    /// Negative zero is NaN.
    NegativeZeroIsNan,
    /// All codes are finite.
    None,
}

const fn float(name: &'static str, bits: u32, mantissa: u32, bias: i32, special: Special) -> Small {
    Small { name, bits, numbers: Numbers::Float { mantissa, bias, special } }
}

const SMALL: [Small; 15] = [
    Small { name: "int2", bits: 2, numbers: Numbers::Signed },
    Small { name: "int4", bits: 4, numbers: Numbers::Signed },
    Small { name: "uint2", bits: 2, numbers: Numbers::Unsigned },
    Small { name: "uint4", bits: 4, numbers: Numbers::Unsigned },
    float("float4_e2m1fn", 4, 1, 1, Special::None),
    float("float6_e2m3fn", 6, 3, 1, Special::None),
    float("float6_e3m2fn", 6, 2, 3, Special::None),
    float("float8_e3m4", 8, 4, 3, Special::Ieee),
    float("float8_e4m3", 8, 3, 7, Special::Ieee),
    float("float8_e4m3fn", 8, 3, 7, Special::HighestIsNan),
    float("float8_e4m3fnuz", 8, 3, 8, Special::NegativeZeroIsNan),
    float("float8_e4m3b11fnuz", 8, 3, 11, Special::NegativeZeroIsNan),
    float("float8_e5m2", 8, 2, 15, Special::Ieee),
    float("float8_e5m2fnuz", 8, 2, 16, Special::NegativeZeroIsNan),
    Small { name: "float8_e8m0fnu", bits: 8, numbers: Numbers::Exponent },
];

/// The same names in v3 and, as tensorstore writes them, in v2.
pub(super) struct SmallFamily;

impl DataTypeFamily for SmallFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let small = named(dtype.as_str()?)?;
        Some(Ok((DataType::new(small), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        named(name).map(|small| unconfigured(name, configuration, small))
    }

    fn read_draft(&self, _name: &str) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        None
    }
}

fn named(name: &str) -> Option<Small> {
    SMALL.into_iter().find(|small| small.name == name)
}

impl Small {
    fn is_float(self) -> bool {
        matches!(self.numbers, Numbers::Float { .. } | Numbers::Exponent)
    }

    fn mask(self) -> u8 {
        u8::MAX >> (u8::BITS - self.bits)
    }

    /// The code in an element; `None` for other than one byte.
    fn code(self, element: &[u8]) -> Option<u8> {
        match element {
            [byte] => Some(byte & self.mask()),
            _ => None,
        }
    }

    /// The code without its sign.
    fn magnitude(self, code: u8) -> u8 {
        code & self.mask() >> 1
    }

    fn is_negative(self, code: u8) -> bool {
        code >> (self.bits - 1) == 1
    }

    /// The number that a code means.
    fn value(self, code: u8) -> f64 {
        match self.numbers {
            Numbers::Unsigned => f64::from(code),
            Numbers::Signed => {
                f64::from(code) - if self.is_negative(code) { 2_f64.powi(self.bits as i32) } else { 0.0 }
            }
            Numbers::Exponent if code == u8::MAX => f64::NAN,
            Numbers::Exponent => 2_f64.powi(i32::from(code) - 127),
            Numbers::Float { mantissa, bias, special } => {
                let magnitude = self.magnitude(code);
                let sign = if self.is_negative(code) { -1.0 } else { 1.0 };
                let (exponent, fraction) = (magnitude >> mantissa, magnitude & ((1 << mantissa) - 1));
                match special {
                    Special::NegativeZeroIsNan if self.is_negative(code) && magnitude == 0 => return f64::NAN,
                    Special::HighestIsNan if magnitude == self.mask() >> 1 => return f64::NAN,
                    Special::Ieee if exponent == self.mask() >> 1 >> mantissa => {
                        return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
                    }
                    _ => {}
                }
                let significand = f64::from(fraction) + if exponent == 0 { 0.0 } else { f64::from(1_u32 << mantissa) };
                sign * significand * 2_f64.powi(i32::from(exponent.max(1)) - bias - mantissa as i32)
            }
        }
    }

    /// The code of NaN that stands for all; `None` if there is none.
    fn usual_nan(self) -> Option<u8> {
        match self.numbers {
            Numbers::Exponent => Some(u8::MAX),
            Numbers::Float { special: Special::NegativeZeroIsNan, .. } => Some(0x80),
            Numbers::Float { special: Special::HighestIsNan, .. } => Some(self.mask() >> 1),
            // Quiet, positive, without payload.
            Numbers::Float { special: Special::Ieee, mantissa, .. } => {
                Some(((self.mask() >> 1 >> mantissa) << mantissa) | 1 << (mantissa - 1))
            }
            _ => None,
        }
    }

    /// The code of the nearest number, half to the even code, or up without a mantissa; `None` if the number is too
    /// big.
    fn nearest(self, value: f64) -> Option<u8> {
        let magnitude = value.abs();
        let highest = if matches!(self.numbers, Numbers::Exponent) { u8::MAX } else { self.mask() >> 1 };
        // Without a zero, the smallest number stands for it.
        let below = (0..=highest).take_while(|code| self.value(*code) <= magnitude).last().unwrap_or(0);
        let above = below.saturating_add(1).min(highest);
        let (low, high) = (self.value(below), self.value(above));
        // The step after the highest finite number is as long as the one before.
        let step = match high.is_finite() && above != below {
            true => high - low,
            false => low - self.value(below.saturating_sub(1)),
        };
        let rest = (magnitude - low) / step;
        let code = match rest {
            ..0.5 => below,
            _ if rest == 0.5 && below & 1 == 0 && !matches!(self.numbers, Numbers::Exponent) => below,
            _ if above == below || !high.is_finite() => return None,
            _ => above,
        };
        let is_negative = value.is_sign_negative() && !matches!(self.numbers, Numbers::Exponent);
        let code = if is_negative { code | 1 << (self.bits - 1) } else { code };
        // Some types have no negative zero.
        Some(if self.value(code).is_nan() { 0 } else { code })
    }

    /// The code of a JSON value, or the reason why there is none.
    fn parse(self, json: &Value) -> Result<u8, &'static str> {
        if !self.is_float() {
            let value = exact_integer(json).ok_or("it is an integer")?;
            let code = (value & i128::from(self.mask())) as u8;
            return if self.value(code) == value as f64 { Ok(code) } else { Err("it is out of range") };
        }
        let infinity = |is_negative| {
            let code = (0..=self.mask()).find(|code| self.value(*code) == f64::INFINITY).ok_or("it has no infinity")?;
            Ok(if is_negative { code | 1 << (self.bits - 1) } else { code })
        };
        match json {
            Value::Number(number) => {
                let value = number.as_f64().ok_or(NO_NUMBER)?;
                if matches!(self.numbers, Numbers::Exponent) && value < 0.0 {
                    return Err("it is not negative");
                }
                self.nearest(value).ok_or(TOO_BIG)
            }
            Value::String(text) => match text.as_str() {
                "NaN" => self.usual_nan().ok_or("it has no NaN"),
                "Infinity" => infinity(false),
                "-Infinity" => infinity(true),
                text => match bit_pattern(text, 1).as_deref() {
                    Some([code]) if text.starts_with("0x") && *code <= self.mask() => Ok(*code),
                    _ => Err(NO_NUMBER),
                },
            },
            _ => Err(NO_NUMBER),
        }
    }
}

impl ElementType for Small {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: 1, words: Vec::new() })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) {
            return Ok(self.zero());
        }
        let code = self.parse(json).map_err(|reason| invalid_value(self, json, reason))?;
        Ok(vec![code])
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        let mut text = Vec::new();
        self.write_json(element, &mut text);
        let json: Value = serde_json::from_slice(&text).unwrap_or_default();
        let payload = json.as_str().is_some_and(|text| text.starts_with("0x"));
        match payload && dialect == Dialect::V2 {
            true => Err(UnsupportedInFormat { dialect, feature: "a NaN with a payload".to_owned() }),
            false => Ok(json),
        }
    }

    fn zero(&self) -> Vec<u8> {
        vec![0]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let Some(code) = self.code(element) else { return };
        let value = self.value(code);
        if !self.is_float() {
            return append(out, &(value as i64));
        }
        match (value.is_nan(), value.is_infinite()) {
            (true, _) if self.usual_nan() == Some(code) => append(out, "NaN"),
            (true, _) => append(out, &hexadecimal(&[code])),
            (_, true) => append(out, if value > 0.0 { "Infinity" } else { "-Infinity" }),
            // All digits of the value: it is exact, unlike that of a wider type.
            _ => append(out, &value),
        }
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        out.push(self.parse(json).map_err(|reason| invalid_value(self, json, reason))?);
        Ok(())
    }

    fn packed_bits(&self) -> Option<u32> {
        Some(self.bits)
    }

    fn to_f64(&self, element: &[u8]) -> Option<f64> {
        self.code(element).map(|code| self.value(code))
    }

    fn to_v3(&self) -> Value {
        Value::from(self.name)
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(self.name))
    }
}
