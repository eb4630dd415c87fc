//! Reductions of a whole volume, beside decoding alone, and beside dask and NumPy.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;
use zarrd_tests::benchmark::comparison::{Comparison, Contestant, Turn};

use crate::{
    http::{Connection, get, with_body},
    page::array,
    python::Process,
    section::Section,
    servers::{Peak, Zarrd},
    setup::Bench,
};

/// The functions that are compared, with their names in dask.
const FUNCTIONS: [&str; 4] = ["mean", "std", "nanmax", "min"];

/// The time of a turn, at least.
const TURN: Duration = Duration::from_millis(300);

/// `first` decodes every chunk and looks at one element of each.
const DECODING_ALONE: &str = "reduce=first";

pub(crate) fn run(bench: &Bench) -> Section {
    let (python, arrays) = match (bench.python(), bench.arrays()) {
        (Ok(python), Ok(arrays)) => (python, arrays),
        (Err(reason), _) | (_, Err(reason)) => return Section::not_measured(reason),
    };
    // Neither caches chunks, so that each turn decodes all of them.
    let server = Zarrd::start(bench.options.index, &arrays.store, &["--chunk-cache", "0"]);
    let bytes = bench.options.scale.side.pow(3) * 4;
    let rounds = bench.options.scale.rounds;
    let mut reductions = Vec::new();
    for array in ["zstd", "raw"] {
        for function in FUNCTIONS {
            let mut dask = Process::start(python, "dask");
            let directory = arrays.files.join(array);
            let mut ask_dask =
                move || dask.turn(&json!({"do": "reduce", "directory": directory, "function": function}));
            ask_dask();
            let contestants = vec![
                zarrd("zarrd", &server, array, format!("reduce={function}")),
                zarrd("zarrd, decoding alone", &server, array, DECODING_ALONE.to_owned()),
                Contestant::new("dask + zarr-python", move |_| ask_dask()),
            ];
            let name = format!("`{array}`, `{function}` of all");
            reductions.push(Comparison::run(name, rounds, contestants).of_bytes(bytes));
        }
    }
    let windows = ["axis=0", "axis=2", "coarsen.0=1&coarsen.1=8&coarsen.2=8", "coarsen.0=2&coarsen.1=2&coarsen.2=2"];
    let windows = windows.map(|windows| {
        let contestants = vec![
            zarrd("zarrd", &server, "zstd", format!("reduce=mean&format=raw&{windows}")),
            zarrd("zarrd, decoding alone", &server, "zstd", DECODING_ALONE.to_owned()),
        ];
        Comparison::run(format!("`zstd`, `mean`, `{windows}`"), rounds, contestants).of_bytes(bytes)
    });
    let peak = server.peak();
    // A store is open once.
    drop(server);
    // Reads of at most half of the cache are cached.
    let cache = [format!("--chunk-cache={}", bytes * 2), format!("--max-memory={}", bytes * 4)];
    let cached = Zarrd::start(bench.options.index, &arrays.store, &cache.each_ref().map(String::as_str));
    let mut numpy = Process::start(python, "NumPy");
    let directory = arrays.files.join("raw");
    let mut ask_numpy = move || numpy.turn(&json!({"do": "histogram", "directory": directory}));
    ask_numpy();
    let histogram = vec![
        zarrd("zarrd", &cached, "zstd", "stats&quantiles=&bins=64".to_owned()),
        Contestant::new("NumPy", move |_| ask_numpy()),
    ];
    let histogram = vec![Comparison::run("histogram of 64 bins", rounds, histogram).of_bytes(bytes)];
    let remembered = Contestant::new("zarrd", |_| repeated(&cached, "/array/zstd?reduce=std"));
    let remembered = vec![Comparison::run("`zstd`, `std` of all, again", bench.options.scale.rounds, vec![remembered])];
    let (tiles, of_tiles) = tiles(bench);
    let mut section = Section::default();
    section.add("**Reductions of a whole array**, page cache warm, no decoded chunk cached.", reductions);
    section.add("**Histograms** of elements that both have decoded before. zarrd computes extremes, mean and deviation as well.", histogram);
    section.add("**Means of axes and windows**, no decoded chunk cached.", windows.into());
    section.add(
        "**Tiles of 512²**: means of windows of 8 × 8 of a `float32` picture, whose decoded chunks are cached.",
        tiles.into(),
    );
    section.add("**A remembered result.**", remembered);
    section.add_peaks([peak, cached.peak(), of_tiles]);
    section
}

/// Reads tiles of a picture of 8192 elements along each dimension, one after another.
fn tiles(bench: &Bench) -> ([Comparison; 2], Peak) {
    const SIDE: u64 = 8192;
    const CHUNK: u64 = 512;
    const TILE: u64 = 4096;
    let server = Zarrd::start_on("memory:", &["--chunk-cache=512MiB", "--max-memory=1GiB", "--result-cache=0"]);
    let mut connection = Connection::open(server.address);
    let mut send = |method: &str, target: &str, media: &str, body: &[u8]| {
        let (status, _) = connection.request(&with_body(method, target, media, body.len()), body);
        assert!((200..300).contains(&status), "{method} {target}: {status}");
    };
    let mut picture = array(&[SIDE, SIDE], "float32", &[CHUNK, CHUNK]);
    picture["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}]);
    send("PUT", "/node/picture", "application/json", picture.to_string().as_bytes());
    for row in (0..SIDE).step_by(CHUNK as usize) {
        let elements = (0..CHUNK * SIDE).flat_map(|at| ((at * 7 + row) as f32 / 3000.0).sin().to_le_bytes());
        let target = format!("/array/picture?select={row}:{}", row + CHUNK);
        send("PUT", &target, "application/octet-stream", &elements.collect::<Vec<u8>>());
    }
    let mut connection = Connection::open(server.address);
    let mut read = |at: u64, is_aligned: bool| {
        let [row, column] = [at * 97, at * 131].map(|start| start % (SIDE - TILE));
        let [row, column] = if is_aligned { [row, column].map(|start| start / CHUNK * CHUNK) } else { [row, column] };
        let target = format!(
            "/array/picture?select={row}:{},{column}:{}&reduce=mean&coarsen.0=8&coarsen.1=8&format=raw",
            row + TILE,
            column + TILE
        );
        let begin = Instant::now();
        let (status, _) = connection.request(&get(&target), b"");
        assert_eq!(status, 200, "{target}");
        begin.elapsed().as_secs_f64()
    };
    let tiles = [("a tile of whole chunks", true), ("a tile across chunks", false)].map(|(name, is_aligned)| {
        // Steps that lead to other chunks each time.
        let mut turn = || Turn::sequence((0..20).map(|at| read(at * 23, is_aligned)).collect());
        turn();
        Comparison::run(name, bench.options.scale.rounds, vec![Contestant::new("zarrd", |_| turn())])
    });
    (tiles, server.peak())
}

/// Asks for results that are not remembered: with another `ddof`, or range of a histogram, it is another one. Each turn
/// lasts a while, since the first request of it finds the caches of the processor as the last contestant left them. Each
/// contestant has an unmeasured turn first.
fn zarrd<'a>(name: &str, server: &'a Zarrd, array: &str, query: String) -> Contestant<'a> {
    let path = format!("/array/{array}?{query}");
    let is_statistics = query.starts_with("stats");
    let ask = move || {
        // The same for all contestants, some of which ask for the same.
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let fresh = match is_statistics {
            true => format!("{path}&range=-4,{}", 4.0 + number as f64 * 1e-6),
            false => format!("{path}&ddof={number}"),
        };
        let mut connection = Connection::open(server.address);
        let begin = Instant::now();
        assert_eq!(connection.request(&get(&fresh), b"").0, 200, "{fresh}");
        begin.elapsed().as_secs_f64()
    };
    let turn = move || {
        let (begin, mut latencies) = (Instant::now(), Vec::new());
        while begin.elapsed() < TURN {
            latencies.push(ask());
        }
        Turn::sequence(latencies)
    };
    turn();
    Contestant::new(name, move |_| turn())
}

fn repeated(server: &Zarrd, path: &str) -> Turn {
    let mut connection = Connection::open(server.address);
    let mut request = || {
        let begin = Instant::now();
        assert_eq!(connection.request(&get(path), b"").0, 200, "{path}");
        begin.elapsed().as_secs_f64()
    };
    request();
    Turn::sequence((0..200).map(|_| request()).collect())
}
