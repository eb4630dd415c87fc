//! Writes of values, and of small regions of an array, from many connections.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use serde_json::{Value, json};
use zarrd_tests::benchmark::comparison::{Comparison, Contestant, Turn};

use crate::{
    chunks::plural,
    http::{Connection, load, together, with_body},
    python::Process,
    section::Section,
    servers::Zarrd,
    setup::Bench,
};

/// The number of names that each connection overwrites in turn.
const NAMES: u64 = 16;
const CONNECTIONS: u64 = 16;
/// The side of a chunk of 1 KiB.
const SIDE: u64 = 16;
/// The number of chunks of each connection.
const CHUNKS: u64 = 32;

/// Durable PUT of values, compared with a program that syncs its files.
pub(crate) fn values(bench: &Bench, section: &mut Section) {
    let directory = bench.directory();
    let zarrd = Zarrd::start(bench.options.index, &directory.path().join("store"), &[]);
    let files = directory.path().join("files");
    fs::create_dir(&files).expect("make a directory");
    let next = AtomicU64::new(0);
    let mut comparisons = Vec::new();
    // Small values get new names, as chunks of a new array do.
    let cases = [(1 << 10, "1 KiB, new names", u64::MAX), (1 << 20, "1 MiB, over older values", NAMES)];
    for (size, label, names) in cases {
        let value = vec![0x5a; size];
        for connections in [1, 16] {
            let name = || next.fetch_add(1, Relaxed) % names;
            let ours = |_: usize| {
                load(connections, bench.options.scale.turn, zarrd.address, |connection, number, _| {
                    let target = format!("/store/put/{size}/{number}/{}", name());
                    put(connection, &target, &value);
                })
            };
            let peer = |_: usize| write_files(&files, connections, &value, bench.options.scale.turn, name);
            let contestants = vec![
                Contestant::new("zarrd", ours),
                Contestant::new("files: write, fsync, rename, fsync of the directory", peer),
            ];
            let what = format!("PUT {label}, {}", plural(connections));
            let comparison = Comparison::run(what, bench.options.scale.rounds, contestants);
            comparisons.push(if size > 1 << 16 { comparison.of_bytes(size as u64) } else { comparison });
        }
    }
    section.add("**Values to `/store`**, durable when acknowledged.", comparisons);
    section.add_peaks([zarrd.peak()]);
}

/// Regions of one chunk, and of a quarter of a chunk, durable when acknowledged.
pub(crate) fn regions(bench: &Bench, section: &mut Section) {
    let directory = bench.directory();
    let zarrd = Zarrd::start(bench.options.index, &directory.path().join("store"), &[]);
    let mut connection = Connection::open(zarrd.address);
    let zom = document();
    let body = zom.to_string();
    let head = with_body("PUT", "/node/small", "application/json", body.len());
    assert_eq!(connection.request(&head, body.as_bytes()).0, 201);
    let mut python = bench.python().map(|python| Process::start(python, "the client"));
    let url = format!("file://{}", directory.path().join("files").display());
    let region = |size: u64| {
        let elements = vec![1_u8; (size * size * 4) as usize];
        load(CONNECTIONS as usize, bench.options.scale.turn, zarrd.address, |connection, number, count| {
            let range = |at: u64| format!("{}:{}", at * SIDE, at * SIDE + size);
            let target = format!("/array/small?select={},{}", range(number as u64), range(count % CHUNKS));
            put(connection, &target, &elements);
        })
    };
    let store = |_: usize| {
        load(CONNECTIONS as usize, bench.options.scale.turn, zarrd.address, |connection, number, count| {
            put(connection, &format!("/store/values/{number}/{}", count % CHUNKS), &[1; 1024]);
        })
    };
    let request = json!({"do": "small-regions", "url": url, "document": zom, "threads": CONNECTIONS,
        "seconds": bench.options.scale.turn.as_secs_f64()});
    let tensorstore = "tensorstore, local files, 16 threads";
    let peer = match &mut python {
        Ok(python) => Contestant::new(tensorstore, |_| python.turn(&request)),
        Err(reason) => Contestant::absent(tensorstore, *reason),
    };
    let one = vec![
        Contestant::new("zarrd", |_| region(SIDE)),
        Contestant::new("zarrd, the same bytes to `/store`", store),
        peer,
    ];
    let rounds = bench.options.scale.rounds;
    let part =
        vec![Contestant::new("zarrd", |_| region(SIDE / 2)), Contestant::new("zarrd, a whole chunk", |_| region(SIDE))];
    let comparisons = vec![
        Comparison::run("one chunk of 1 KiB, 16 connections", rounds, one),
        Comparison::run("a quarter of such a chunk, 16 connections", rounds, part),
    ];
    section.add("**Small regions to `/array`**, durable when acknowledged.", comparisons);
    section.add_peaks([zarrd.peak()]);
}

fn put(connection: &mut Connection, target: &str, body: &[u8]) {
    let head = with_body("PUT", target, "application/octet-stream", body.len());
    let (status, _) = connection.request(&head, body);
    assert!((200..300).contains(&status), "{status}: {target}");
}

/// Writes and syncs files, in a directory for each thread.
fn write_files(
    dir: &Path,
    threads: usize,
    value: &[u8],
    time: Duration,
    name: impl Fn() -> u64 + Copy + Sync + Send,
) -> Turn {
    together(threads, time, |number| {
        let dir = dir.join(number.to_string());
        fs::create_dir_all(&dir).expect("make a directory");
        move |_| {
            let new = dir.join("new");
            let mut file = File::create(&new).expect("make a file");
            file.write_all(value).expect("write");
            file.sync_all().expect("sync");
            fs::rename(new, dir.join(name().to_string())).expect("rename");
            File::open(&dir).and_then(|dir| dir.sync_all()).expect("sync the directory");
        }
    })
}

/// An array of chunks of 1 KiB, with a row of them for each connection.
fn document() -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [CONNECTIONS * SIDE, CHUNKS * SIDE], "data_type": "float32",
        "fill_value": 0, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE, SIDE]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
    })
}
