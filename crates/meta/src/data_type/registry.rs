//! The list of data types, and parsing by it.

use serde_json::Value;

use super::{
    DataType, DataTypeFamily, Number, StoredOrder, TypeError, V2Context,
    bfloat16::BFloat16Family,
    bool::{self, BoolFamily},
    complex::{self, ComplexFamily},
    fixed_bytes::FixedBytesFamily,
    fixed_text::FixedTextFamily,
    float::{self, FloatFamily},
    int::{self, IntegerFamily},
    json_value::JsonValueFamily,
    object::OtherObjectFamily,
    raw::RawFamily,
    small::SmallFamily,
    structs::StructFamily,
    text::truncated,
    time::TimeFamily,
    variable_array::VariableArrayFamily,
    variable_bytes::VariableBytesFamily,
    variable_text::VariableTextFamily,
};

/// Every family of data types, in the order in which they are tried.
pub static FAMILIES: &[&dyn DataTypeFamily] = &[
    &BoolFamily,
    &IntegerFamily,
    &FloatFamily,
    &BFloat16Family,
    &SmallFamily,
    &ComplexFamily,
    &RawFamily,
    &FixedBytesFamily,
    &FixedTextFamily,
    &TimeFamily,
    &StructFamily { parse_v2: parse_simple_v2, parse_v3 },
    &VariableTextFamily,
    &VariableBytesFamily,
    &VariableArrayFamily { parse_v2: parse_simple_v2 },
    &JsonValueFamily,
    &OtherObjectFamily,
];

/// The data type of plain numbers.
pub(super) fn of_number(number: Number) -> DataType {
    match number {
        Number::Bool => bool::data_type(),
        Number::Complex64 | Number::Complex128 => complex::data_type(number),
        Number::Float16 | Number::Float32 | Number::Float64 => float::data_type(number),
        _ => int::data_type(number),
    }
}

/// Reads the `dtype` of a v2 document.
pub fn parse_v2(dtype: &Value, context: V2Context<'_>) -> Result<(DataType, StoredOrder), TypeError> {
    FAMILIES.iter().find_map(|family| family.read_v2(dtype, context)).unwrap_or_else(|| Err(unknown(dtype)))
}

/// Reads a `dtype` inside of another one, which has no filter for `|O`.
fn parse_simple_v2(dtype: &Value) -> Result<(DataType, StoredOrder), TypeError> {
    parse_v2(dtype, V2Context::default())
}

/// Reads the `data_type` of a v3 document: a name, or an object of `name` and `configuration`.
pub fn parse_v3(data_type: &Value) -> Result<DataType, TypeError> {
    let (name, configuration) = match data_type {
        Value::String(name) => (name.as_str(), None),
        Value::Object(object) => {
            let name = object.get("name").and_then(Value::as_str).ok_or_else(|| unknown(data_type))?;
            (name, object.get("configuration").and_then(Value::as_object))
        }
        _ => return Err(unknown(data_type)),
    };
    FAMILIES.iter().find_map(|family| family.read_v3(name, configuration)).unwrap_or_else(|| Err(unknown(data_type)))
}

/// Reads the `data_type` of a draft document: a name, or an extension object with `extension`, `type` and `fallback`.
///
/// An unknown extension is read as its fallback, if it has one.
pub fn parse_draft(data_type: &Value) -> Result<(DataType, StoredOrder), TypeError> {
    let (name, fallback) = match data_type {
        Value::String(name) => (name, None),
        Value::Object(extension) => match extension.get("type") {
            Some(Value::String(name)) => (name, extension.get("fallback").filter(|fallback| !fallback.is_null())),
            _ => return Err(unknown(data_type)),
        },
        _ => return Err(unknown(data_type)),
    };
    let understood = FAMILIES.iter().find_map(|family| family.read_draft(name));
    match (understood, fallback) {
        (Some(Ok(understood)), _) => Ok(understood),
        (_, Some(fallback)) => parse_draft(fallback),
        (Some(Err(error)), None) => Err(error),
        (None, None) => Err(unknown(data_type)),
    }
}

fn unknown(data_type: &Value) -> TypeError {
    TypeError::Unknown { name: truncated(&data_type.to_string()) }
}
