//! An array reduced as a whole.

use std::path::Path;

use bytes::Bytes;
use futures::{StreamExt, stream};
use serde_json::{Value, json};

use crate::server::{Launch, Server};

/// The functions, each of which is a request of its own.
pub(super) const FUNCTIONS: [&str; 3] = ["mean", "std", "nanmax"];

/// The elements of a chunk along each dimension: 8 MiB of `float32`.
const CHUNK: u64 = 128;
/// The number of different chunks. They are put under all keys, so that the store fits on a disk.
const DIFFERENT: u64 = 8;

/// The server's memory while an array is reduced, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ReductionPeak {
    /// The function.
    pub function: &'static str,
    /// Before the request.
    pub idle: u64,
    /// The peak.
    pub peak: u64,
}

/// Creates an array of `float32` of `size` bytes, and reduces it with each function, with a new server for each.
pub(super) async fn reduce(size: u64, dir: &Path) -> Vec<ReductionPeak> {
    let chunks = (size / (4 * CHUNK.pow(3))).max(1);
    let server = Launch::sled(dir).start();
    fill(&server, chunks).await;
    server.stop();
    let mut peaks = Vec::new();
    for function in FUNCTIONS {
        let server = Launch::sled(dir).start();
        // The first request of a kind makes threads and buffers that stay.
        let first = server.get(&format!("/array/large?reduce={function}&select=0:2")).await;
        assert_eq!(first.status(), 200, "{}", first.text().await.unwrap_or_default());
        let idle = server.memory();
        let answer = server.get(&format!("/array/large?reduce={function}")).await;
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap_or_default());
        let found: f64 = answer.text().await.expect("a number").trim().parse().expect("a number");
        assert!(is_expected(function, found), "{function}: {found}");
        peaks.push(ReductionPeak { function, idle, peak: server.peak_memory() });
        server.stop();
    }
    peaks
}

/// An element of the chunk with a number: moderately compressible.
fn element(number: u64, index: u64) -> f32 {
    ((index.wrapping_mul(index >> 7) >> 3) % 256 + number) as f32
}

/// True if a result is one of elements from 0 to 263.
fn is_expected(function: &str, found: f64) -> bool {
    let most = 255.0 + (DIFFERENT - 1) as f64;
    match function {
        "nanmax" => found > 250.0 && found <= most,
        _ => found > 0.0 && found < most,
    }
}

fn document(chunks: u64) -> Value {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [chunks * CHUNK, CHUNK, CHUNK], "data_type": "float32",
        "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK, CHUNK, CHUNK]}},
        "chunk_key_encoding": {"name": "default"}, "attributes": {},
        "codecs": [bytes, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}],
    })
}

async fn fill(server: &Server, chunks: u64) {
    let created = server.put("/node/large", document(chunks).to_string()).await;
    assert_eq!(created.status(), 201, "{}", created.text().await.unwrap_or_default());
    let different = DIFFERENT.min(chunks);
    let mut stored: Vec<Bytes> = Vec::new();
    for number in 0..different {
        let elements: Vec<u8> = (0..CHUNK.pow(3)).flat_map(|index| element(number, index).to_le_bytes()).collect();
        let target = format!("/array/large?select={}:{}", number * CHUNK, (number + 1) * CHUNK);
        let put = server.request(http::Method::PUT, &target).header("content-type", "application/octet-stream");
        let answer = put.body(elements).send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap_or_default());
        let chunk = server.get(&format!("/store/large/c/{number}/0/0")).await;
        stored.push(chunk.bytes().await.expect("a chunk"));
    }
    let copies = stream::iter(different..chunks).map(|chunk| {
        let value = stored[(chunk % different) as usize].clone();
        async move {
            let answer = server.put(&format!("/store/large/c/{chunk}/0/0"), value).await;
            assert!(answer.status().is_success(), "{}", answer.status());
        }
    });
    copies.buffer_unordered(4).collect::<()>().await;
}
