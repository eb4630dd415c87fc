//! `bool`: one byte, 0 or 1.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, Number, StoredOrder, TypeError, UnsupportedInFormat,
    V2Context, ValueError,
    text::{NumpyText, draft_bit_pattern, invalid_value, is_null_fill, unconfigured},
};
use crate::Dialect;

#[derive(Debug)]
struct Bool;

/// `bool` (v3, draft), `|b1` (v2).
pub(super) struct BoolFamily;

/// The data type.
pub(super) fn data_type() -> DataType {
    DataType::new(Bool)
}

impl DataTypeFamily for BoolFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        (text.kind == 'b' && text.rest == "1").then(|| Ok((DataType::new(Bool), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        (name == "bool").then(|| unconfigured(name, configuration, Bool))
    }

    fn read_draft(&self, name: &str) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        (name == "bool").then(|| Ok((DataType::new(Bool), StoredOrder::Little)))
    }
}

impl ElementType for Bool {
    fn name(&self) -> String {
        "bool".to_owned()
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: 1, words: Vec::new() })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) {
            return Ok(self.zero());
        }
        // NumPy's booleans are numbers, and some writers write them so. Like zarr-python, every other number is true.
        match json.as_f64() {
            Some(number) if dialect != Dialect::Draft || [0.0, 1.0].contains(&number) => {
                return Ok(vec![u8::from(number != 0.0)]);
            }
            _ => {}
        }
        if let Some(pattern @ ([0] | [1])) = draft_bit_pattern(json, dialect, 1).as_deref() {
            return Ok(pattern.to_vec());
        }
        let mut element = Vec::with_capacity(1);
        self.parse_json(json, &mut element)?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], _dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::Bool(element.first().is_some_and(|byte| *byte != 0)))
    }

    fn zero(&self) -> Vec<u8> {
        vec![0]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        // As in NumPy, every byte other than 0 is true.
        let text: &[u8] = if element.first().is_some_and(|byte| *byte != 0) { b"true" } else { b"false" };
        out.extend_from_slice(text);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let value = json.as_bool().ok_or_else(|| invalid_value(self, json, "it is true or false"))?;
        out.push(u8::from(value));
        Ok(())
    }

    fn npy_descr(&self) -> Option<String> {
        Some("'|b1'".to_owned())
    }

    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        element.iter().any(|byte| *byte > 1).then_some("a byte is neither 0 nor 1")
    }

    fn number(&self) -> Option<Number> {
        Some(Number::Bool)
    }

    fn to_f64(&self, element: &[u8]) -> Option<f64> {
        element.first().map(|byte| f64::from(u8::from(*byte != 0)))
    }

    fn to_v3(&self) -> Value {
        Value::from("bool")
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from("|b1"))
    }
}
