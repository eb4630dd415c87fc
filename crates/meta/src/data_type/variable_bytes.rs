//! [`bytes`](https://github.com/zarr-developers/zarr-extensions/tree/main/data-types/bytes): byte strings of any
//! length.

use serde_json::{Map, Value};

use super::{
    DataType, DataTypeFamily, ElementType, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context, ValueError,
    base64::{append_base64, bytes_of, encode_base64},
    object::{OBJECT, object_codec},
    text::{invalid_value, is_null_fill, is_zero_fill, unconfigured},
};
use crate::{Dialect, limits::MAX_ELEMENT_SIZE};

const NAME: &str = "bytes";
const NO_BYTES: &str = "it is base64";

#[derive(Debug)]
struct VariableBytes;

/// `bytes` or `variable_length_bytes` (v3), `|O` with `vlen-bytes` (v2).
pub(super) struct VariableBytesFamily;

impl DataTypeFamily for VariableBytesFamily {
    fn read_v2(&self, dtype: &Value, context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let codec = object_codec(dtype, context)?;
        (codec.name == "vlen-bytes").then(|| Ok((DataType::new(VariableBytes), StoredOrder::Little)))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        [NAME, "variable_length_bytes"].contains(&name).then(|| unconfigured(name, configuration, VariableBytes))
    }
}

impl ElementType for VariableBytes {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn layout(&self) -> Layout {
        Layout::Variable
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        if is_null_fill(json, dialect) || is_zero_fill(json, dialect) {
            return Ok(self.zero());
        }
        bytes_of(json, MAX_ELEMENT_SIZE).ok_or_else(|| invalid_value(self, json, NO_BYTES))
    }

    fn fill_value_json(&self, element: &[u8], _dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(encode_base64(element)))
    }

    fn zero(&self) -> Vec<u8> {
        Vec::new()
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        append_base64(out, element);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let bytes = json.is_string().then(|| bytes_of(json, usize::MAX)).flatten();
        out.extend(bytes.ok_or_else(|| invalid_value(self, json, NO_BYTES))?);
        Ok(())
    }

    fn to_v3(&self) -> Value {
        Value::from(NAME)
    }

    fn to_v2(&self, _order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(OBJECT))
    }
}
