//! Whole arrays.

use std::{fs, time::Instant};

use serde_json::{Value, json};

use crate::{
    Bench, array,
    common::{Pairs, http::Connection},
    declare, head, python,
};

pub(crate) const LAYOUTS: [&str; 4] = ["zstd", "raw", "blosc", "sharded"];

const CHUNK: u64 = 64;

pub(crate) fn run(bench: &Bench) {
    let Some(python) = python() else { return };
    let field = bench.scratch.join("field");
    let side = bench.side.to_string();
    let mut peers = python.peers("writes", &[side.as_ref(), field.as_os_str()]);
    // The answer comes when the file is there.
    let bytes = peers.ask(&json!({"do": "field"}))["bytes"].as_u64().expect("bytes");
    let elements = fs::read(&field).expect("the field");
    assert_eq!(elements.len() as u64, bytes);
    let mib = bytes as f64 / 1_048_576.0;
    for layout in &bench.layouts {
        let zarrd = bench.zarrd("arrays");
        let mut connection = Connection::open(zarrd.address);
        let zom = zom(bench.side, layout);
        let files = bench.scratch.join("files");
        let mut ours = || {
            declare(&mut connection, "field", &zom);
            let begin = Instant::now();
            let head = head("PUT", "/array/field", "application/octet-stream", elements.len());
            assert_eq!(connection.ask(head.as_bytes(), &elements).0, 200, "{layout}");
            let seconds = begin.elapsed().as_secs_f64();
            let (status, _) = connection.ask(b"DELETE /node/field HTTP/1.1\r\nhost: localhost\r\n\r\n", b"");
            assert_eq!(status, 200);
            mib / seconds
        };
        ours();
        for peer in ["tensorstore", "zarr-python"] {
            let ask = json!({"do": "write", "peer": peer, "where": files, "document": zom});
            peers.seconds(&ask);
            let pairs = Pairs::measure(bench.runs, &mut ours, || mib / peers.seconds(&ask));
            pairs.report(&format!("{layout}, vs {peer}"), "MiB/s");
        }
        println!("peak memory of zarrd, {layout}: {} MiB", zarrd.peak_mib());
        zarrd.stop();
        fs::remove_dir_all(bench.scratch.join("arrays")).expect("the store can be removed");
    }
}

/// The document by which zarrd and the peers write.
fn zom(side: u64, layout: &str) -> Value {
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let zstd = json!({"name": "zstd", "configuration": {"level": 3, "checksum": false}});
    let blosc = json!({"name": "blosc", "configuration":
        {"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}});
    let index = json!([bytes, {"name": "crc32c"}]);
    let sharding = json!({"name": "sharding_indexed", "configuration":
        {"chunk_shape": [CHUNK, CHUNK, CHUNK], "codecs": [bytes, zstd], "index_codecs": index, "index_location": "end"}});
    let (chunk, codecs) = match layout {
        "raw" => (CHUNK, json!([bytes])),
        "zstd" => (CHUNK, json!([bytes, zstd])),
        "blosc" => (CHUNK, json!([bytes, blosc])),
        "sharded" => (4 * CHUNK, json!([sharding])),
        other => panic!("no layout {other}"),
    };
    array(&[side; 3], &[chunk; 3], "float32", &codecs)
}
