//! Tests of the data types against what other writers do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use serde_json::{Value, json};

use super::{DataType, StoredOrder, V2Context, parse_draft, parse_v2, parse_v3};
use crate::Dialect;

mod numbers;
mod small;
mod structs;
mod texts;
mod times;
mod writers;

/// A type as a v3 document names it.
fn v3(data_type: Value) -> DataType {
    parse_v3(&data_type).unwrap_or_else(|error| panic!("{data_type}: {error}"))
}

/// A type as a v2 document without filters names it.
fn v2(dtype: Value) -> (DataType, StoredOrder) {
    parse_v2(&dtype, V2Context::default()).unwrap_or_else(|error| panic!("{dtype}: {error}"))
}

/// A type as a draft document names it.
fn draft(data_type: Value) -> (DataType, StoredOrder) {
    parse_draft(&data_type).unwrap_or_else(|error| panic!("{data_type}: {error}"))
}

fn written(data_type: &DataType, element: &[u8]) -> String {
    let mut out = Vec::new();
    data_type.write_json(element, &mut out);
    String::from_utf8(out).unwrap()
}

fn parsed(data_type: &DataType, json: &Value) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    let result = data_type.parse_json(json, &mut out);
    let element = out.strip_prefix(b"before").unwrap();
    match result {
        Ok(()) => Some(element.to_vec()),
        Err(_) => {
            assert!(element.is_empty(), "{json} was refused, but left bytes behind");
            None
        }
    }
}

/// An element in its JSON form, in each dialect's fill value, and back.
fn round_trip(data_type: &DataType, element: &[u8]) {
    assert_eq!(data_type.invalid_reason(element), None, "{data_type}");
    let text = written(data_type, element);
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{data_type} wrote {text}: {error}"));
    assert_eq!(parsed(data_type, &json).as_deref(), Some(element), "{data_type}: {text}");
    for dialect in Dialect::ALL {
        let Ok(fill) = data_type.fill_value_json(element, dialect) else { continue };
        assert_eq!(data_type.fill_value(&fill, dialect).as_deref(), Ok(element), "{data_type} in {dialect}: {fill}");
    }
}
