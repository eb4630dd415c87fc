//! Binary floating-point formats and their notations, shared by real and complex types.

use half::{bf16, f16};
use serde_json::Value;

use super::text::{append, bit_pattern, hexadecimal};
use crate::Dialect;

/// A floating-point format whose values are also values of `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryFloat {
    Float16,
    BFloat16,
    Float32,
    Float64,
}

/// The reason for rejecting a JSON value.
pub(super) const NO_NUMBER: &str = "it is a number, \"NaN\", \"Infinity\", \"-Infinity\", or all its bits as \"0x…\"";
pub(super) const TOO_BIG: &str = "it is too big";

/// The magnitude of the only `float32` values whose shortest decimal form is misread through an `f64`: it lies halfway
/// between two of them.
const BETWEEN: u32 = 0x15ae_43fd;

impl BinaryFloat {
    pub(super) fn size(self) -> usize {
        match self {
            Self::Float16 | Self::BFloat16 => 2,
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// The value of an element; `None` if the bytes are invalid.
    pub(super) fn value(self, element: &[u8]) -> Option<f64> {
        Some(match self {
            Self::Float16 => f16::from_le_bytes(element.try_into().ok()?).to_f64(),
            Self::BFloat16 => bf16::from_le_bytes(element.try_into().ok()?).to_f64(),
            Self::Float32 => f64::from(f32::from_le_bytes(element.try_into().ok()?)),
            Self::Float64 => f64::from_le_bytes(element.try_into().ok()?),
        })
    }

    /// Appends the nearest value, half to even; infinity if the number is too large.
    fn push_nearest(self, value: f64, out: &mut Vec<u8>) {
        match self {
            Self::Float16 => out.extend(f16::from_f32(to_odd(value)).to_le_bytes()),
            Self::BFloat16 => out.extend(bf16::from_f32(to_odd(value)).to_le_bytes()),
            Self::Float32 => out.extend((value as f32).to_le_bytes()),
            Self::Float64 => out.extend(value.to_le_bytes()),
        }
    }

    /// The little-endian bits of the default NaN: quiet, positive, without payload.
    pub(super) fn usual_nan(self) -> &'static [u8] {
        match self {
            Self::Float16 => &[0x00, 0x7e],
            Self::BFloat16 => &[0xc0, 0x7f],
            Self::Float32 => &[0, 0, 0xc0, 0x7f],
            Self::Float64 => &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
        }
    }

    /// Appends an element as JSON.
    pub(super) fn write_json(self, element: &[u8], out: &mut Vec<u8>) {
        let Some(value) = self.value(element) else { return };
        if value.is_nan() {
            let text = if element == self.usual_nan() { "NaN" } else { &hexadecimal(element) };
            return append(out, text);
        }
        if value.is_infinite() {
            return append(out, if value > 0.0 { "Infinity" } else { "-Infinity" });
        }
        match self {
            Self::Float64 => append(out, &value),
            Self::Float32 if value.abs() == f64::from(f32::from_bits(BETWEEN)) => append(out, &value),
            Self::Float32 => append(out, &(value as f32)),
            Self::Float16 | Self::BFloat16 => append(out, &self.shortest(element, value)),
        }
    }

    /// The `f64` with the shortest decimal form that reads back as this 16-bit element.
    fn shortest(self, element: &[u8], value: f64) -> f64 {
        if value == 0.0 {
            return value;
        }
        // Five digits distinguish any two 16-bit values. The logarithm may be off by one, and a power of ten may be
        // shorter still.
        let exponent = value.abs().log10().floor() as i32;
        let mut back = Vec::with_capacity(element.len());
        (-1..5)
            .map(|digits| rounded(value, digits - exponent))
            .find(|candidate| {
                back.clear();
                self.push_nearest(*candidate, &mut back);
                back == element
            })
            .unwrap_or(value)
    }

    /// Appends the element of a JSON value, or returns the reason why it is invalid.
    pub(super) fn parse_json(self, json: &Value, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let value = match json {
            Value::Number(number) => number.as_f64().ok_or(NO_NUMBER)?,
            Value::String(text) => match text.as_str() {
                "NaN" => {
                    out.extend_from_slice(self.usual_nan());
                    return Ok(());
                }
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                text if text.starts_with("0x") => {
                    out.extend(bit_pattern(text, self.size()).ok_or(NO_NUMBER)?);
                    return Ok(());
                }
                _ => return Err(NO_NUMBER),
            },
            _ => return Err(NO_NUMBER),
        };
        let start = out.len();
        self.push_nearest(value, out);
        let stored = out.get(start..).and_then(|element| self.value(element));
        if value.is_finite() && stored.is_some_and(f64::is_infinite) {
            out.truncate(start);
            return Err(TOO_BIG);
        }
        Ok(())
    }

    /// Appends the element of a fill value other than `null`, or returns the reason why it is invalid.
    pub(super) fn parse_fill(self, json: &Value, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), &'static str> {
        let text = match json {
            Value::String(text) => text,
            // As NumPy reads numbers: those that are too big are infinite.
            Value::Number(number) if dialect != Dialect::Draft => {
                self.push_nearest(number.as_f64().ok_or(NO_NUMBER)?, out);
                return Ok(());
            }
            Value::Bool(value) if dialect != Dialect::Draft => {
                self.push_nearest(f64::from(u8::from(*value)), out);
                return Ok(());
            }
            _ => return self.parse_json(json, out),
        };
        match dialect {
            Dialect::Draft => {
                if text == "+Infinity" {
                    return self.parse_json(&Value::from("Infinity"), out);
                }
                if let Some(pattern) = bit_pattern(text, self.size()) {
                    out.extend(pattern);
                    return Ok(());
                }
            }
            // zarr-python also reads what Python's `float` does.
            Dialect::V2 | Dialect::V3 => match python_float(text) {
                Some(value) if value.is_nan() => return self.parse_json(&Value::from("NaN"), out),
                Some(value) => {
                    self.push_nearest(value, out);
                    return Ok(());
                }
                None => {}
            },
        }
        self.parse_json(json, out)
    }

    /// The element as a fill value; `None` if the dialect cannot distinguish this NaN from others.
    pub(super) fn fill_value_json(self, element: &[u8], dialect: Dialect) -> Option<Value> {
        let payload = self.value(element).is_some_and(f64::is_nan) && element != self.usual_nan();
        if payload && dialect == Dialect::V2 {
            return None;
        }
        let mut text = Vec::new();
        self.write_json(element, &mut text);
        serde_json::from_slice(&text).ok()
    }
}

/// The number in a text as Python reads it: with white space around it, underscores between digits, and any case of
/// `nan`, `inf` and `infinity`.
fn python_float(text: &str) -> Option<f64> {
    without_underscores(text.trim())?.parse().ok()
}

/// A text without underscores, if each is between two digits.
pub(super) fn without_underscores(text: &str) -> Option<String> {
    let is_digit = |part: Option<char>| part.is_some_and(|character| character.is_ascii_digit());
    let parts: Vec<&str> = text.split('_').collect();
    let between = parts.windows(2).all(|pair| match pair {
        [before, after] => is_digit(before.chars().next_back()) && is_digit(after.chars().next()),
        _ => true,
    });
    between.then(|| parts.concat())
}

/// The `f64` nearest to a 16-bit value rounded to decimal places, or to a power of ten if `places` is negative.
fn rounded(value: f64, places: i32) -> f64 {
    // The power, and its product with a 16-bit value, are exact up to here.
    const EXACT: i32 = 16;
    if places.abs() > EXACT {
        let digits = usize::try_from(places.saturating_add(value.abs().log10().floor() as i32)).unwrap_or_default();
        return format!("{value:.digits$e}").parse().unwrap_or(value);
    }
    let power = 10_f64.powi(places.abs());
    if places >= 0 { (value * power).round_ties_even() / power } else { (value / power).round_ties_even() * power }
}

/// Rounds to the nearest odd `f32`, so that rounding again to 16 bits has the same result as rounding once.
///
/// `half` itself rounds an `f64` through the nearest `f32`, or without its lowest bits, which can be off by one.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let wide = f64::from(nearest);
    if wide == value || !wide.is_finite() {
        return nearest;
    }
    let bits = nearest.to_bits();
    let towards_zero = if wide.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    f32::from_bits(towards_zero | 1)
}
