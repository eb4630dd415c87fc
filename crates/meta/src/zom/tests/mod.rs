//! Properties of ZOMs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod aliases;
mod compare;
mod parse;
mod schema;

use serde_json::{Value, json};

use super::{Violation, Zom, ZomError};

/// ZEP 6's own examples, as they stand.
const ZEP_6_V2: &str = include_str!("zep6/v2.json");
const ZEP_6_V3: &str = include_str!("zep6/v3.json");

/// Hierarchies that zarr-python 3.4.2 created, as `GroupSpec.from_zarr(…).model_dump(mode="json")` of pydantic-zarr
/// 0.10.0 tells them.
const PYDANTIC_V2: &str = include_str!("pydantic/v2.json");
const PYDANTIC_V3: &str = include_str!("pydantic/v3.json");

fn parse(json: &Value) -> Result<Zom, ZomError> {
    Zom::parse(serde_json::to_vec(json).unwrap())
}

/// The JSON of a ZOM.
fn shown(zom: &Zom) -> Value {
    zom.to_text().to_value().unwrap()
}

/// Its documents by path.
fn flat(zom: &Zom) -> serde_json::Map<String, Value> {
    serde_json::from_slice(zom.to_flat_text().as_bytes()).unwrap()
}

/// The violations of a rejected ZOM: locations and reasons.
fn violations(json: &Value) -> Vec<(String, String)> {
    match parse(json) {
        Err(ZomError::Invalid { violations }) => {
            violations.into_iter().map(|Violation { pointer, reason }| (pointer, reason)).collect()
        }
        other => panic!("{json}: {other:?}"),
    }
}

/// An array of v3.
fn array_v3() -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "attributes": {"units": "m"},
        "shape": [4, 6],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0,
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "gzip", "configuration": {"level": 1}},
        ],
    })
}

/// An array of v2.
fn array_v2() -> Value {
    json!({
        "zarr_format": 2,
        "shape": [4, 6],
        "chunks": [2, 3],
        "dtype": "<f4",
        "compressor": {"id": "zlib", "level": 1},
        "fill_value": 0.0,
        "order": "C",
        "filters": null,
        "dimension_separator": ".",
        "attributes": {"units": "m"},
    })
}

fn group_v3(members: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
}

fn group_v2(members: Value) -> Value {
    json!({"zarr_format": 2, "attributes": {}, "members": members})
}

/// The JSON with another value at a place, or without what is there.
fn changed(json: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut json = json.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let name = name.replace("~1", "/").replace("~0", "~");
    match (json.pointer_mut(parent).unwrap(), value) {
        (Value::Object(members), Some(value)) => drop(members.insert(name, value)),
        (Value::Object(members), None) => drop(members.shift_remove(&name)),
        (Value::Array(items), Some(value)) => items[name.parse::<usize>().unwrap()] = value,
        (Value::Array(items), None) => drop(items.remove(name.parse().unwrap())),
        (other, _) => panic!("{pointer} is in {other}"),
    }
    json
}
