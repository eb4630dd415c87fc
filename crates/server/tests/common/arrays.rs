//! Small uncompressed arrays, set as raw keys.

use serde_json::{Value, json};

use super::TestServer;

/// Sets a v3 array and one chunk that covers it, with these bytes.
pub async fn v3(server: &TestServer, path: &str, data_type: Value, shape: &[u64], chunk: &[u64], fill: Value) {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    v3_with(server, path, data_type, shape, chunk, fill, json!([bytes])).await;
}

/// Sets a v3 array with these codecs.
pub async fn v3_with(
    server: &TestServer,
    path: &str,
    data_type: Value,
    shape: &[u64],
    chunk: &[u64],
    fill: Value,
    codecs: Value,
) {
    let names: Value = match shape {
        [_, _] => json!(["y", null]),
        _ => Value::Null,
    };
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
    });
    if !names.is_null() {
        document.as_object_mut().unwrap().insert("dimension_names".into(), names);
    }
    put(server, &format!("{path}/zarr.json"), document.to_string().into_bytes()).await;
}

/// Sets a key.
pub async fn put(server: &TestServer, key: &str, bytes: Vec<u8>) {
    server.set(key, Box::leak(bytes.into_boxed_slice())).await;
}

/// The numbers 0, 1, 2 … as little-endian floats.
pub fn floats(count: u16) -> Vec<u8> {
    (0..count).flat_map(|number| f32::from(number).to_le_bytes()).collect()
}

/// A server with `m`, a float32 matrix of 4 rows and 6 columns with the numbers 0 to 23, in four chunks of 2 rows and 3
/// columns; and `g`, a group with the v2 array `g/old`: the big-endian int16 values 5, 6, 7.
pub async fn matrix_server() -> TestServer {
    let server = TestServer::new();
    matrix(&server).await;
    put(&server, "g/.zgroup", br#"{"zarr_format": 2}"#.to_vec()).await;
    let old = json!({
        "zarr_format": 2, "shape": [3], "chunks": [3], "dtype": ">i2", "compressor": null, "fill_value": 0, "order": "C",
        "filters": null,
    });
    put(&server, "g/old/.zarray", old.to_string().into_bytes()).await;
    put(&server, "g/old/0", vec![0, 5, 0, 6, 0, 7]).await;
    server
}

/// Sets the matrix of [`matrix_server`].
pub async fn matrix(server: &TestServer) {
    v3(server, "m", json!("float32"), &[4, 6], &[2, 3], json!(0.0)).await;
    for row in 0..2_u16 {
        for column in 0..2_u16 {
            let of_chunk = |at: u16| row * 12 + column * 3 + at / 3 * 6 + at % 3;
            let chunk = (0..6).flat_map(|at| f32::from(of_chunk(at)).to_le_bytes()).collect();
            put(server, &format!("m/c/{row}/{column}"), chunk).await;
        }
    }
}

/// The `.zarray` and the `zarr.json` of one array over the same chunks, which differ in the data type.
pub fn two_layouts() -> [Vec<u8>; 2] {
    let of_v2 = json!({"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|i1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null});
    let of_v3 = json!({"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "v2"}, "codecs": [{"name": "bytes"}]});
    [of_v2, of_v3].map(|document| document.to_string().into_bytes())
}
