//! JSON values as elements: v2's `|O` with the filter `json2`. An element is the UTF-8 text of a JSON value, or of one
//! of Python's floats that JSON does not have: `NaN`, `Infinity` and `-Infinity`. Answers have those as strings.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context, ValueError,
    object::{OBJECT, object_codec},
    text::append,
};
use crate::{Dialect, json::Json};

const NAME: &str = "json";

#[derive(Debug)]
struct JsonValue;

/// `|O` with `json2` (v2).
pub(super) struct JsonValueFamily;

impl DataTypeFamily for JsonValueFamily {
    fn read_v2(&self, dtype: &Value, context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let codec = object_codec(dtype, context)?;
        (codec.name == "json2").then(|| Ok((DataType::new(JsonValue), StoredOrder::Little)))
    }

    fn read_v3(&self, _name: &str, _configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        None
    }
}

impl ElementType for JsonValue {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn layout(&self) -> Layout {
        Layout::Variable
    }

    fn fill_value(&self, json: &Value, _dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        let mut element = Vec::new();
        self.parse_json(json, &mut element)?;
        Ok(element)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        let inexpressible = |_| UnsupportedInFormat { dialect, feature: "what is no JSON".to_owned() };
        let text = Json::standard_text(element).unwrap_or_default();
        serde_json::from_slice(&text).map_err(inexpressible)
    }

    fn zero(&self) -> Vec<u8> {
        b"null".to_vec()
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        // Invalid stored JSON must not corrupt the output.
        let text = Json::standard_text(element).unwrap_or(Cow::Borrowed(b"null"));
        out.extend_from_slice(&text);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        append(out, json);
        Ok(())
    }

    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        Json::check(element).is_err().then_some("a text is not JSON")
    }

    fn to_v3(&self) -> Value {
        Value::from(NAME)
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(OBJECT))
    }
}
