//! A hierarchy of many nodes.

use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::{
    Bench, array,
    common::{Pairs, http::Connection},
    declare, python,
};

/// How many arrays a group has.
const ARRAYS: u64 = 99;

pub(crate) fn run(bench: &Bench) {
    let Some(python) = python() else { return };
    let field = bench.scratch.join("unused");
    let mut peers = python.peers("writes", &["0".as_ref(), field.as_os_str()]);
    let zom = zom(bench.nodes);
    let files = bench.scratch.join("nodes");
    let zarrd = bench.zarrd("nodes-store");
    let mut connection = Connection::open(zarrd.address);
    let mut each = |what: &str| {
        let ask = json!({"do": what, "where": files, "zom": zom});
        let ours = || {
            let seconds = match what {
                "create" => {
                    let (status, _) = connection.ask(b"DELETE /node/tree HTTP/1.1\r\nhost: localhost\r\n\r\n", b"");
                    assert!(status == 200 || status == 404, "{status}");
                    let begin = Instant::now();
                    declare(&mut connection, "tree", &zom);
                    begin.elapsed()
                }
                _ => {
                    let begin = Instant::now();
                    let (status, length) =
                        connection.ask(b"GET /node/tree?depth=all HTTP/1.1\r\nhost: localhost\r\n\r\n", b"");
                    assert!(status == 200 && length > 100 * bench.nodes as usize, "{status}, {length} bytes");
                    begin.elapsed()
                }
            };
            1.0 / seconds.as_secs_f64()
        };
        let pairs = Pairs::measure(bench.runs, ours, || 1.0 / peers.seconds(&ask));
        pairs.report(&format!("{what} {} nodes, vs zarr-python", bench.nodes), "/s");
    };
    each("create");
    each("list");
    println!("peak memory of zarrd, nodes: {} MiB", zarrd.peak_mib());
}

/// Groups of arrays.
fn zom(nodes: u64) -> Value {
    let codecs = json!([
        {"name": "bytes", "configuration": {"endian": "little"}},
        {"name": "zstd", "configuration": {"level": 3, "checksum": false}},
    ]);
    let group = |members: Map<String, Value>| json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members});
    let mut groups = Map::new();
    let mut left = nodes.saturating_sub(1);
    while left > 0 {
        let arrays = ARRAYS.min(left - 1);
        let members = (0..arrays).map(|number| {
            let mut document = array(&[1000, 1000], &[100, 100], "float32", &codecs);
            document["attributes"] = json!({"number": number, "unit": "mm"});
            (format!("array{number:02}"), document)
        });
        groups.insert(format!("group{:04}", groups.len()), group(members.collect()));
        left -= arrays + 1;
    }
    group(groups)
}
