//! The number of round trips of reads from a distant store, one after the other.
//!
//! The clock is paused and goes on by itself as soon as everything waits, so the time that an operation takes is the
//! number of its round trips.

mod chunks;
mod distant_store;
mod near;
mod remembered;
mod shards;
mod trees;
mod trusted;
mod versions;

use futures::TryStreamExt;
use serde_json::{Value, json};
use zarrd_array::{ArrayError, ArrayRead, Arrays};
use zarrd_codec::Elements;
use zarrd_meta::{
    NodePath,
    selection::{ReadRequest, Selection},
};

/// The document of an array of `uint8` with one dimension.
fn document(shape: u64, chunk: u64, codecs: &Value) -> String {
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [shape], "data_type": "uint8",
        "fill_value": 9, "codecs": codecs, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}}});
    document.to_string()
}

fn plain() -> Value {
    json!([{"name": "bytes"}])
}

fn checked() -> Value {
    json!([{"name": "bytes"}, {"name": "crc32c"}])
}

/// The bytes of a chunk with a checksum.
fn with_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = bytes.to_vec();
    encoded.extend_from_slice(&crc32c(bytes).to_le_bytes());
    encoded
}

fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

async fn plan(arrays: &Arrays, select: &str) -> Result<ArrayRead, ArrayError> {
    let request = ReadRequest::Select(Selection::parse(select).unwrap());
    arrays.read(&NodePath::parse("/a").unwrap(), None, &request, 1 << 30).await
}

async fn read(arrays: &Arrays, select: &str) -> Result<Vec<u8>, ArrayError> {
    collect(plan(arrays, select).await?).await
}

async fn collect(read: ArrayRead) -> Result<Vec<u8>, ArrayError> {
    let parts = read.into_stream().map_ok(|part| match part {
        Elements::Fixed(bytes) => bytes.to_vec(),
        Elements::Variable(_) => panic!("elements of variable length"),
    });
    parts.try_concat().await
}
