//! Many small writes at a time.

use std::time::Duration;

use serde_json::json;

use crate::{
    Bench, array,
    common::{
        Pairs,
        http::{Connection, load},
    },
    declare, head,
};

const TIME: Duration = Duration::from_secs(2);
const CONNECTIONS: u64 = 16;
/// How many chunks each connection has for itself.
const CHUNKS: u64 = 32;
/// The side of a chunk of `float32`, and its bytes.
const SIDE: u64 = 16;
const BYTES: usize = (SIDE * SIDE * 4) as usize;

pub(crate) fn run(bench: &Bench) {
    let zarrd = bench.zarrd("chunks");
    let mut connection = Connection::open(zarrd.address);
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}});
    let shape = [CONNECTIONS * SIDE, CHUNKS * SIDE];
    for (name, codecs) in [("raw", json!([bytes])), ("zstd", json!([bytes, zstd]))] {
        declare(&mut connection, name, &array(&shape, &[SIDE, SIDE], "float32", &codecs));
        for (part, size) in [("one chunk", SIDE), ("a quarter of one chunk", SIDE / 2)] {
            let elements: Vec<u8> = (0..BYTES).map(|at| (at % 7) as u8 + 1).collect();
            let elements = &elements[..(size * size * 4) as usize];
            let ours = || {
                all(&zarrd.address, |row, column| {
                    let range = |at: u64| format!("{}:{}", at * SIDE, at * SIDE + size);
                    let target = format!("/array/{name}?select={},{}", range(row), range(column));
                    (head("PUT", &target, "application/octet-stream", elements.len()), elements)
                })
            };
            let store = || {
                all(&zarrd.address, |row, column| {
                    let target = format!("/store/values/{name}/{row}/{column}");
                    (head("PUT", &target, "application/octet-stream", elements.len()), elements)
                })
            };
            let pairs = Pairs::measure(bench.runs, ours, store);
            pairs.report(&format!("{part} of {name}, {CONNECTIONS} connections, vs /store"), "/s");
        }
    }
    println!("peak memory of zarrd, chunks: {} MiB", zarrd.peak_mib());
}

/// Writes on all connections; gives the writes a second.
fn all<'a>(address: &std::net::SocketAddr, request: impl Fn(u64, u64) -> (String, &'a [u8]) + Sync) -> f64 {
    load(
        CONNECTIONS as usize,
        TIME,
        || Connection::open(*address),
        |connection, number, count| {
            let (head, body) = request(number as u64, count % CHUNKS);
            let (status, _) = connection.ask(head.as_bytes(), body);
            assert!((200..300).contains(&status), "{status}: {head}");
        },
    )
}
