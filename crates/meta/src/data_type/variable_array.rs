//! One-dimensional arrays of variable length as elements: v2's `|O` with the filter `vlen-array`.

use serde_json::{Map, Value, json};

use super::{
    DataType, DataTypeFamily, ElementType, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context, ValueError,
    object::{OBJECT, object_codec},
    text::{invalid, invalid_value, is_null_fill, is_zero_fill},
};
use crate::{Dialect, codecs::CodecSpec, limits::MAX_ELEMENT_SIZE};

const NAME: &str = "vlen_array";
const CODEC: &str = "vlen-array";

/// The maximum number of inner elements in a written fill value: as JSON each takes many times its size.
const MAX_FILL_ITEMS: usize = 1 << 16;

#[derive(Debug)]
struct VariableArray {
    inner: DataType,
    /// The size of an inner element, at least 1.
    size: usize,
}

/// `|O` with `vlen-array` (v2), whose configuration has the inner data type.
pub(super) struct VariableArrayFamily {
    /// Reads the `dtype` of the inner elements.
    pub(super) parse_v2: fn(&Value) -> Result<(DataType, StoredOrder), TypeError>,
}

impl DataTypeFamily for VariableArrayFamily {
    fn read_v2(&self, dtype: &Value, context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let codec = object_codec(dtype, context)?;
        (codec.name == CODEC)
            .then(|| Ok((DataType::new(VariableArray::read(codec, self.parse_v2)?), StoredOrder::Little)))
    }

    fn read_v3(&self, _name: &str, _configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        None
    }
}

impl VariableArray {
    fn read(
        codec: &CodecSpec,
        parse_v2: fn(&Value) -> Result<(DataType, StoredOrder), TypeError>,
    ) -> Result<Self, TypeError> {
        let dtype = codec.configuration.get("dtype").ok_or_else(|| invalid(CODEC, "has no \"dtype\""))?;
        // The filter swaps bytes itself, so the byte order is not part of the array's.
        let (inner, _) = parse_v2(dtype)?;
        match inner.fixed_size() {
            Some(size) if size > 0 => Ok(Self { inner, size }),
            _ => Err(invalid(CODEC, "has inner elements that take no room, or each its own")),
        }
    }

    /// Appends the inner elements of a JSON array, each read by `read`. The total size is limited, because a short text
    /// may denote a large inner element.
    fn push(
        &self,
        json: &Value,
        out: &mut Vec<u8>,
        read: impl Fn(&Value, &mut Vec<u8>) -> Result<(), ValueError>,
    ) -> Result<(), ValueError> {
        let items = json.as_array().ok_or_else(|| invalid_value(self, json, "it is an array"))?;
        let start = out.len();
        for item in items {
            let read = read(item, out).and_then(|()| match out.len().saturating_sub(start) {
                ..=MAX_ELEMENT_SIZE => Ok(()),
                _ => Err(invalid_value(self, json, format!("it has more than {MAX_ELEMENT_SIZE} bytes"))),
            });
            read.inspect_err(|_| out.truncate(start))?;
        }
        Ok(())
    }
}

impl ElementType for VariableArray {
    fn name(&self) -> String {
        format!("{NAME}[{}]", self.inner.name())
    }

    fn layout(&self) -> Layout {
        Layout::Variable
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) || is_zero_fill(json, dialect) {
            return Ok(self.zero());
        }
        let mut element = Vec::new();
        self.push(json, &mut element, |item, out| {
            out.extend(self.inner.fill_value(item, dialect)?);
            Ok(())
        })?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        if element.len() / self.size > MAX_FILL_ITEMS {
            return Err(UnsupportedInFormat {
                dialect,
                feature: format!("a fill value of more than {MAX_FILL_ITEMS} elements"),
            });
        }
        element.chunks_exact(self.size).map(|inner| self.inner.fill_value_json(inner, dialect)).collect()
    }

    fn zero(&self) -> Vec<u8> {
        Vec::new()
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, inner) in element.chunks_exact(self.size).enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.inner.write_json(inner, out);
        }
        out.push(b']');
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        self.push(json, out, |item, out| self.inner.parse_json(item, out))
    }

    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        (!element.len().is_multiple_of(self.size)).then_some("an inner array is no whole number of elements")
    }

    fn to_v3(&self) -> Value {
        json!({"name": NAME, "configuration": {"data_type": self.inner.to_v3()}})
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(OBJECT))
    }
}
