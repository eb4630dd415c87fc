//! Functions shared by the families' parsers and writers.

use serde_json::{Map, Value};

use super::{DataType, ElementType, StoredOrder, TypeError, ValueError, WordRun};
pub(super) use crate::text::truncated;
use crate::{Dialect, limits::MAX_ELEMENT_SIZE};

/// A NumPy abbreviation of a data type: `<f4`, `|S5`, `<M8[ns]`.
pub(super) struct NumpyText<'a> {
    text: &'a str,
    order: Option<char>,
    /// The kind of the type: `f`, `S`, `M` …
    pub(super) kind: char,
    /// The text after the kind: the size, or the size and the unit.
    pub(super) rest: &'a str,
}

impl<'a> NumpyText<'a> {
    /// Splits a JSON string; `None` for other values.
    pub(super) fn parse(json: &'a Value) -> Option<Self> {
        let text = json.as_str()?;
        let mut characters = text.chars();
        let first = characters.next()?;
        let (order, kind) = match first {
            '<' | '>' | '|' => (Some(first), characters.next()?),
            _ => (None, first),
        };
        Some(Self { text, order, kind, rest: characters.as_str() })
    }

    /// The byte order of a type with multi-byte words.
    pub(super) fn order(&self) -> Result<StoredOrder, TypeError> {
        match self.order {
            Some('<') => Ok(StoredOrder::Little),
            Some('>') => Ok(StoredOrder::Big),
            _ => Err(self.invalid("does not say its byte order")),
        }
    }

    /// The number after the kind, times `each`.
    ///
    /// `None` if there is no number.
    pub(super) fn size(&self, each: usize) -> Option<Result<usize, TypeError>> {
        if self.rest.is_empty() || !self.rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Digits that do not fit the number type are a size that is too large.
        let size = self.rest.parse::<usize>().ok().and_then(|count| count.checked_mul(each));
        Some(match size {
            Some(size) if size <= MAX_ELEMENT_SIZE => Ok(size),
            _ => Err(TypeError::TooLarge { name: truncated(self.text) }),
        })
    }

    pub(super) fn invalid(&self, reason: impl Into<String>) -> TypeError {
        invalid(self.text, reason)
    }
}

/// The error for an invalid data type with this name.
pub(super) fn invalid(name: &str, reason: impl Into<String>) -> TypeError {
    TypeError::Invalid { name: truncated(name), reason: reason.into() }
}

/// The error for a value that is not an element.
pub(super) fn invalid_value(data_type: &dyn ElementType, json: &Value, reason: impl Into<String>) -> ValueError {
    let value = match json {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
        Value::String(text) => format!("\"{}\"", truncated(text)),
        scalar => scalar.to_string(),
    };
    ValueError { value, data_type: truncated(&data_type.name()), reason: reason.into() }
}

/// True if a fill value is a `null` that means zero, in v2 and the draft.
///
/// v2: "If null, the contents of uninitialized portions are undefined"; its implementations use zero.
pub(super) fn is_null_fill(json: &Value, dialect: Dialect) -> bool {
    json.is_null() && dialect != Dialect::V3
}

/// The element for a fill value that is in the notation of [`ElementType::parse_json`], or zero.
pub(super) fn text_fill_value(ty: &dyn ElementType, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
    if is_null_fill(json, dialect) || is_zero_fill(json, dialect) {
        return Ok(ty.zero());
    }
    let mut element = Vec::new();
    ty.parse_json(json, &mut element)?;
    Ok(element)
}

/// Reads `0x…` or `0b…`, most significant digit first, as little-endian words.
///
/// `None` if the prefix differs, or the number of digits does not match `size` bytes.
pub(super) fn bit_pattern(text: &str, size: usize) -> Option<Vec<u8>> {
    let (digits, radix, per_byte) = match (text.strip_prefix("0x"), text.strip_prefix("0b")) {
        (Some(digits), _) => (digits, 16, 2),
        (_, Some(digits)) => (digits, 2, 8),
        _ => return None,
    };
    if digits.len() != size.checked_mul(per_byte)? {
        return None;
    }
    digits
        .as_bytes()
        .rchunks(per_byte)
        .map(|byte| {
            // `from_str_radix` would accept a sign.
            byte.iter().all(u8::is_ascii_hexdigit).then_some(())?;
            u8::from_str_radix(str::from_utf8(byte).ok()?, radix).ok()
        })
        .collect()
}

/// Reads a fill value of the draft that is a bit pattern.
pub(super) fn draft_bit_pattern(json: &Value, dialect: Dialect, size: usize) -> Option<Vec<u8>> {
    match dialect {
        Dialect::Draft => bit_pattern(json.as_str()?, size),
        Dialect::V2 | Dialect::V3 => None,
    }
}

/// Formats little-endian words as `0x…`, most significant digit first.
pub(super) fn hexadecimal(little: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in little.iter().rev() {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    text
}

/// Appends a number or string as JSON.
pub(super) fn append(out: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Writing to a `Vec` cannot fail, and numbers and strings always have a JSON form.
    serde_json::to_writer(out, value).unwrap_or_default();
}

/// NumPy's sign for a byte order.
pub(super) fn order_sign(order: &StoredOrder) -> char {
    let big = match order {
        StoredOrder::Little => false,
        StoredOrder::Big => true,
        StoredOrder::Mixed(runs) => runs.iter().any(|run| run.offset == 0),
    };
    if big { '>' } else { '<' }
}

/// A layout that is one run of words.
pub(super) fn words(width: usize, count: usize) -> Vec<WordRun> {
    if width < 2 || count == 0 { Vec::new() } else { vec![WordRun { offset: 0, width, count }] }
}

/// Fails if a configuration has other members, which could change the meaning of the type.
pub(super) fn only_members(
    name: &str,
    configuration: Option<&Map<String, Value>>,
    known: &[&str],
) -> Result<(), TypeError> {
    let unknown = configuration.and_then(|members| members.keys().find(|key| !known.contains(&key.as_str())));
    match unknown {
        Some(key) => Err(invalid(name, format!("is configured with \"{}\", which is not known", truncated(key)))),
        None => Ok(()),
    }
}

/// Fails if a v3 type without parameters has a configuration.
pub(super) fn unconfigured(
    name: &str,
    configuration: Option<&Map<String, Value>>,
    data_type: impl ElementType + 'static,
) -> Result<DataType, TypeError> {
    only_members(name, configuration, &[])?;
    Ok(DataType::new(data_type))
}

/// The `length_bytes` of a configuration, at least 1.
pub(super) fn length_bytes(name: &str, configuration: Option<&Map<String, Value>>) -> Result<usize, TypeError> {
    only_members(name, configuration, &["length_bytes"])?;
    let length = configuration
        .and_then(|configuration| configuration.get("length_bytes"))
        .and_then(Value::as_u64)
        .ok_or_else(|| invalid(name, "has no \"length_bytes\""))?;
    match usize::try_from(length) {
        Ok(0) => Err(invalid(name, "has no bytes")),
        Ok(length) if length <= MAX_ELEMENT_SIZE => Ok(length),
        _ => Err(TypeError::TooLarge { name: truncated(name) }),
    }
}

/// True if a fill value is the 0 that zarr-python 2 wrote for types other than numbers.
pub(super) fn is_zero_fill(json: &Value, dialect: Dialect) -> bool {
    dialect != Dialect::V3 && json.as_f64() == Some(0.0)
}

/// The bytes without trailing zeros.
pub(super) fn trim_zeros(bytes: &[u8]) -> &[u8] {
    let padding = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes.get(..bytes.len().saturating_sub(padding)).unwrap_or_default()
}
