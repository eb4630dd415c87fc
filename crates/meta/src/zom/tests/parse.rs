//! Reading.

use serde_json::json;

use super::*;

#[test]
fn the_examples_of_zep_6() {
    let zom = Zom::parse(ZEP_6_V3.as_bytes()).unwrap();
    assert_eq!(
        zom.to_json(),
        json!({
            "zarr_format": 3,
            "node_type": "group",
            "attributes": {"foo": 42, "bar": false},
            "members": {"array": {
                "zarr_format": 3,
                "node_type": "array",
                "attributes": {"baz": [1, 2, 3]},
                "shape": [1000, 1000],
                "data_type": "uint8",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1000, 100]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": 0,
                "codecs": [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 1}}],
                "dimension_names": ["rows", "columns"],
            }},
        })
    );
    let zom = Zom::parse(ZEP_6_V2.as_bytes()).unwrap();
    assert_eq!(
        zom.to_json(),
        json!({
            "zarr_format": 2,
            "attributes": {"foo": 42, "bar": false},
            "members": {"foo": {
                "zarr_format": 2,
                "shape": [1000, 1000],
                "chunks": [100, 100],
                "dtype": "|u1",
                "compressor": null,
                "fill_value": 0,
                "order": "C",
                "dimension_separator": "/",
                "filters": null,
                "attributes": {"baz": true},
            }},
        })
    );
}
