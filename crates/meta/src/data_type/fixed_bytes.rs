//! Byte strings of a maximum length; shorter ones are padded with zeros, as in C.

use serde_json::{Map, Value, json};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context,
    ValueError,
    base64::{append_base64, bytes_of, encode_base64},
    text::{NumpyText, invalid_value, is_null_fill, is_zero_fill, length_bytes, trim_zeros},
};
use crate::Dialect;

const NAME: &str = "null_terminated_bytes";

#[derive(Debug)]
struct FixedBytes {
    size: usize,
}

/// `null_terminated_bytes` (v3), `|S5` (v2, draft).
pub(super) struct FixedBytesFamily;

impl DataTypeFamily for FixedBytesFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        if text.kind != 'S' {
            return None;
        }
        Some(text.size(1)?.map(|size| (DataType::new(FixedBytes { size }), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        (name == NAME).then(|| length_bytes(name, configuration).map(|size| DataType::new(FixedBytes { size })))
    }
}

impl FixedBytes {
    fn push(&self, json: &Value, bytes: Option<Vec<u8>>, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let mut bytes =
            bytes.ok_or_else(|| invalid_value(self, json, format!("it is base64 of up to {} bytes", self.size)))?;
        bytes.resize(self.size, 0);
        out.extend(bytes);
        Ok(())
    }
}

impl ElementType for FixedBytes {
    fn name(&self) -> String {
        format!("{NAME}[{}]", self.size)
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: self.size, words: Vec::new() })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) || is_zero_fill(json, dialect) {
            return Ok(self.zero());
        }
        let mut element = Vec::new();
        self.push(json, bytes_of(json, self.size), &mut element)?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], _dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(encode_base64(trim_zeros(element))))
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.size]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        append_base64(out, trim_zeros(element));
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let bytes = json.is_string().then(|| bytes_of(json, self.size)).flatten();
        self.push(json, bytes, out)
    }

    fn npy_descr(&self) -> Option<String> {
        Some(format!("'|S{}'", self.size))
    }

    fn to_v3(&self) -> Value {
        json!({"name": NAME, "configuration": {"length_bytes": self.size}})
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(format!("|S{}", self.size)))
    }
}
