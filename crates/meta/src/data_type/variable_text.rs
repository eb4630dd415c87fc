//! [`string`](https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/string): strings of variable
//! length, in UTF-8.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context, ValueError,
    object::{OBJECT, object_codec},
    text::{append, invalid_value, text_fill_value, unconfigured},
};
use crate::Dialect;

const NAME: &str = "string";

#[derive(Debug)]
struct VariableText;

/// `string` (v3), `|O` with `vlen-utf8` or `categorize` (v2).
pub(super) struct VariableTextFamily;

impl DataTypeFamily for VariableTextFamily {
    fn read_v2(&self, dtype: &Value, context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let codec = object_codec(dtype, context)?;
        ["vlen-utf8", "categorize"]
            .contains(&codec.name.as_str())
            .then(|| Ok((DataType::new(VariableText), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        [NAME, "variable_length_utf8"].contains(&name).then(|| unconfigured(name, configuration, VariableText))
    }
}

impl ElementType for VariableText {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn layout(&self) -> Layout {
        Layout::Variable
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        text_fill_value(self, json, dialect)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        let inexpressible = |_| UnsupportedInFormat { dialect, feature: "a text that is not UTF-8".to_owned() };
        str::from_utf8(element).map(Value::from).map_err(inexpressible)
    }

    fn zero(&self) -> Vec<u8> {
        Vec::new()
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        append(out, String::from_utf8_lossy(element).as_ref());
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let text = json.as_str().ok_or_else(|| invalid_value(self, json, "it is a text"))?;
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn invalid_reason(&self, element: &[u8]) -> Option<&'static str> {
        str::from_utf8(element).is_err().then_some("a text is not UTF-8")
    }

    fn to_v3(&self) -> Value {
        Value::from(NAME)
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(OBJECT))
    }
}
