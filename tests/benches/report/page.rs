//! The page in Chromium: when something is to be seen.

use serde_json::{Value, json};
use zarrd_tests::{
    benchmark::comparison::{Comparison, Contestant, Turn},
    browser::{Browser, browser},
    dense::write_dense,
};

use crate::{
    http::{Connection, with_body},
    section::Section,
    servers::Zarrd,
    setup::Bench,
};

/// The extent along each dimension of an array whose chunks have one element each.
const SIDE: u64 = 1000;
const QUICK_SIDE: u64 = 100;
/// The members of the large group.
const MEMBERS: usize = 100_000;
const QUICK_MEMBERS: usize = 2000;

/// The picture of a plane whose colours are known.
const VOLUME: &str = "/browse/zstd?limits=fixed&range=-4,4";

pub(crate) fn run(bench: &Bench) -> Section {
    let Some(browser) = browser() else { return Section::not_measured("it takes Node and Chromium") };
    let arrays = match bench.arrays() {
        Ok(arrays) => arrays,
        Err(reason) => return Section::not_measured(reason),
    };
    let rounds = bench.options.scale.rounds.to_string();
    let one = |what: &str, server: &Zarrd, arguments: &[&str]| {
        let turn = |_: usize| timings(&browser, server, arguments);
        Comparison::run(what, 1, vec![Contestant::new("zarrd", turn)])
    };
    let mut section = Section::default();
    let indices: Vec<String> = (1..32).map(|index: u64| index.to_string()).collect();
    let planes: Vec<&str> =
        ["planes", VOLUME, "dimension 0"].into_iter().chain(indices.iter().map(String::as_str)).collect();
    let volume = bench.zarrd(&arrays);
    let paint = one("first paint", &volume, &["paint", VOLUME, &rounds]);
    let warm = one("plane, its chunks decoded already", &volume, &planes);
    let of_volume = volume.peak();
    // A store is open once.
    drop(volume);
    let uncached = Zarrd::start(bench.options.index, &arrays.store, &["--chunk-cache", "0"]);
    let cold = one("plane, no decoded chunk cached", &uncached, &planes);
    drop(uncached);
    section.add(
        "**A volume**: the first paint with nothing in the browser's cache, and steps of a slider.",
        vec![paint, warm, cold],
    );
    let dense = bench.directory();
    write_dense(&dense.path().join("dense")).expect("write an array");
    // A directory waits until files that were written just now have been quiet.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let dense = Zarrd::start_on(&format!("dir:{}", dense.path().display()), &[]);
    section.add(
        "**1,000,000 × 3,000 stored elements**: from the navigation to the first tile, and frames of moving tiles at hand.",
        vec![
            one("first tile", &dense, &["tiles", "/browse/dense", &rounds]),
            one("frame", &dense, &["panning", "/browse/dense", "200"]),
        ],
    );
    let (memory, side, members) = filled(bench);
    let group = members.to_string();
    section.add(
        format!("**{} chunks, {members} members, and an array that grows.**", side * side),
        vec![
            one("map of chunks, from the navigation", &memory, &["chunks", "/browse/chunks?lens=on", &rounds]),
            one("step of scrolling while members are read", &memory, &["members", "many", &group]),
            one("append shown while following", &memory, &["append", "log", "8"]),
        ],
    );
    section.add_peaks([of_volume, dense.peak(), memory.peak()]);
    section
}

/// The seconds that a measurement of `page_timings.mjs` took, one by one.
fn timings(browser: &Browser, server: &Zarrd, arguments: &[&str]) -> Turn {
    let printed = browser.run("page_timings.mjs", &server.url(""), arguments);
    let milliseconds: Vec<f64> = serde_json::from_str(&printed).expect("a list of timings");
    Turn::sequence(milliseconds.into_iter().map(|time| time / 1000.0).collect())
}

/// A server with an array of many chunks, a large group and a short array; the side of the one, and the members of the
/// other.
fn filled(bench: &Bench) -> (Zarrd, u64, usize) {
    let (side, members) = if bench.options.scale.quick { (QUICK_SIDE, QUICK_MEMBERS) } else { (SIDE, MEMBERS) };
    let server = Zarrd::start_on("memory:", &[]);
    let mut connection = Connection::open(server.address);
    let mut send = |method: &str, target: &str, media: &str, body: &[u8]| {
        let (status, _) = connection.request(&with_body(method, target, media, body.len()), body);
        assert!((200..300).contains(&status), "{method} {target}: {status}");
    };
    let json = "application/json";
    send("PUT", "/node/chunks", json, array(&[side, side], "uint8", &[1, 1]).to_string().as_bytes());
    for row in (0..side).step_by(100) {
        let rows = vec![7; usize::try_from(100 * side).expect("few bytes")];
        let target = format!("/array/chunks?select={row}:{}", row + 100);
        send("PUT", &target, "application/octet-stream", &rows);
    }
    let group = json!({"zarr_format": 3, "node_type": "group"});
    let named: serde_json::Map<String, Value> =
        (1..members).map(|number| (format!("n{number:06}"), group.clone())).collect();
    let mut whole = group.clone();
    whole["members"] = Value::Object(named);
    send("PUT", "/node/many", json, whole.to_string().as_bytes());
    send("PUT", "/node/many/n000000", json, group.to_string().as_bytes());
    send("PUT", "/node/log", json, array(&[10], "float64", &[10]).to_string().as_bytes());
    (server, side, members)
}

/// The metadata of an uncompressed array.
pub(crate) fn array(shape: &[u64], data_type: &str, chunk: &[u64]) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 0,
        "attributes": {}, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default"},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    })
}
