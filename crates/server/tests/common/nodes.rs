//! JSON documents of nodes.

use serde_json::{Value, json};

/// The document of a v3 array of little-endian elements without a compressor.
pub fn v3_array(data_type: &str, shape: &[u64], chunk: &[u64]) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
    })
}

/// The document of a v2 array without a compressor.
pub fn v2_array(dtype: &str, shape: &[u64], chunks: &[u64]) -> Value {
    json!({
        "zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": null, "fill_value": 0,
        "order": "C", "filters": null, "dimension_separator": ".", "attributes": {},
    })
}

/// A v3 group with these members.
pub fn v3_group(members: Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
}

/// A v2 group with these members.
pub fn v2_group(members: Value) -> Value {
    json!({"zarr_format": 2, "attributes": {}, "members": members})
}

/// The value with the member at `pointer` replaced.
pub fn with(mut json: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    json.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
    json
}
