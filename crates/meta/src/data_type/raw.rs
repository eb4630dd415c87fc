//! Raw bits: a number of bytes without interpretation.

use serde_json::{Map, Value, json};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context,
    ValueError,
    base64::{bytes_of, encode_base64},
    text::{
        NumpyText, append, bit_pattern, invalid, invalid_value, is_null_fill, is_zero_fill, length_bytes, truncated,
        unconfigured,
    },
};
use crate::{Dialect, limits::MAX_ELEMENT_SIZE};

const RAW_BYTES: &str = "raw_bytes";

#[derive(Debug)]
struct Raw {
    size: usize,
}

/// `r24` (v3, draft), `raw_bytes` (v3, of zarr-extensions), `|V3` (v2).
pub(super) struct RawFamily;

impl DataTypeFamily for RawFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        if text.kind != 'V' {
            return None;
        }
        Some(text.size(1)?.map(|size| (DataType::new(Raw { size }), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        if name == RAW_BYTES {
            return Some(length_bytes(name, configuration).map(|size| DataType::new(Raw { size })));
        }
        bits(name).map(|size| size.and_then(|size| unconfigured(name, configuration, Raw { size })))
    }

    fn read_draft(&self, name: &str) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        match bits(name) {
            Some(size) => Some(size.map(|size| (DataType::new(Raw { size }), StoredOrder::Little))),
            None => self.read_v2(&Value::from(name), V2Context::default()),
        }
    }
}

/// Reads `rN`, of N bits, as a number of bytes.
fn bits(name: &str) -> Option<Result<usize, TypeError>> {
    let digits = name.strip_prefix('r')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let Some(size) = digits.parse::<usize>().ok().filter(|bits| bits / 8 <= MAX_ELEMENT_SIZE) else {
        return Some(Err(TypeError::TooLarge { name: truncated(name) }));
    };
    Some(if size % 8 == 0 && size > 0 { Ok(size / 8) } else { Err(invalid(name, "is not of whole bytes")) })
}

impl Raw {
    /// Appends the bytes of an array of integers, or of base64.
    fn push(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        match bytes_of(json, self.size) {
            Some(bytes) if bytes.len() == self.size => {
                out.extend(bytes);
                Ok(())
            }
            _ => Err(invalid_value(self, json, format!("it is an array of {} integers from 0 to 255", self.size))),
        }
    }
}

impl ElementType for Raw {
    fn name(&self) -> String {
        format!("r{}", self.size.saturating_mul(8))
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: self.size, words: Vec::new() })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) || is_zero_fill(json, dialect) {
            return Ok(self.zero());
        }
        // Raw bits have no byte order: the first digits are the first byte.
        if dialect == Dialect::Draft
            && let Some(mut pattern) = json.as_str().and_then(|text| bit_pattern(text, self.size))
        {
            pattern.reverse();
            return Ok(pattern);
        }
        let mut element = Vec::new();
        self.push(json, &mut element)?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], _dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        // Like zarr-python and tensorstore, which do not read the list of integers of the v3 specification.
        Ok(Value::from(encode_base64(element)))
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.size]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        append(out, element);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        self.push(json, out)
    }

    fn npy_descr(&self) -> Option<String> {
        Some(format!("'|V{}'", self.size))
    }

    fn to_v3(&self) -> Value {
        // zarr-python does not support `rN`.
        json!({"name": RAW_BYTES, "configuration": {"length_bytes": self.size}})
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(format!("|V{}", self.size)))
    }
}
