//! An array written with one request.

use std::path::Path;

use futures::TryStreamExt;
use http::Method;
use reqwest::Body;
use serde_json::{Value, json};

use super::MAX_MEMORY_MIB;
use crate::{
    generated::Generated,
    server::{Launch, Server},
};

/// The number of columns of the arrays, of one byte each.
const COLUMNS: u64 = 1 << 16;

/// The layout of chunks relative to the order of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// Whole rows: chunks become complete one after another.
    Rows,
    /// Squares: one row of chunks becomes complete at a time.
    Squares,
    /// Whole columns: no chunk is complete before the last row.
    Columns,
    /// Squares in shards of 16 MiB.
    Shards,
}

impl Chunks {
    pub(super) const ALL: [Self; 4] = [Self::Rows, Self::Squares, Self::Columns, Self::Shards];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rows => "of whole rows",
            Self::Squares => "that are squares",
            Self::Columns => "of whole columns",
            Self::Shards => "in shards of 16 MiB",
        }
    }

    /// The ZOM of an array with `rows` rows.
    fn zom(self, rows: u64) -> Value {
        // Chunks have at most a few MiB, for any number of rows.
        let narrow = (4_u64 << 20).checked_div(rows).unwrap_or(1).clamp(16, COLUMNS);
        let chunk = match self {
            Self::Rows => [16, COLUMNS],
            Self::Squares => [1024, 1024],
            Self::Columns => [rows, narrow],
            Self::Shards => [16_384, 1024],
        };
        let inner = json!([{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]);
        let index = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]);
        let sharding = json!({"chunk_shape": [256, 1024], "codecs": inner, "index_codecs": index});
        let codecs = match self {
            Self::Shards => json!([{"name": "sharding_indexed", "configuration": sharding}]),
            _ => inner,
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [rows, COLUMNS], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": codecs, "attributes": {},
        })
    }
}

/// Writes an array of `size` bytes with one request to a new server, reads it back, and returns the server's peak after
/// the write.
pub(super) async fn write(chunks: Chunks, size: u64, dir: &Path) -> u64 {
    let launch = Launch::sled(dir).arg("--max-memory").arg(format!("{MAX_MEMORY_MIB}MiB"));
    let server = launch.arg("--chunk-cache").arg("16MiB").start();
    let rows = (size / COLUMNS).max(1);
    let created = server.put("/node/large", chunks.zom(rows).to_string()).await;
    assert_eq!(created.status(), 201, "{}", created.text().await.unwrap_or_default());
    let elements = Generated::new(3, rows * COLUMNS);
    upload(&server, &elements).await;
    let peak = server.peak_memory();
    compare(&server, &elements, rows).await;
    server.stop();
    peak
}

async fn upload(server: &Server, elements: &Generated) {
    let body = Body::wrap_stream(elements.content().stream.map_err(std::io::Error::other));
    let request = server.request(Method::PUT, "/array/large").header(http::header::CONTENT_LENGTH, elements.size());
    let answer = request.body(body).send().await.expect("an answer");
    let status = answer.status();
    assert_eq!(status, 200, "{}", answer.text().await.unwrap_or_default());
}

/// Compares rows at both ends and in the middle; comparing all rows would take long and add little.
async fn compare(server: &Server, elements: &Generated, rows: u64) {
    for first in [0, rows / 3, rows / 2, rows.saturating_sub(64)] {
        let last = rows.min(first + 64);
        let answer = server.get(&format!("/array/large?select={first}:{last}&format=raw")).await;
        assert_eq!(answer.status(), 200);
        let found = answer.bytes().await.expect("the rows");
        assert!(found == elements.range(first * COLUMNS, last * COLUMNS), "rows {first} to {last} are others");
    }
}
