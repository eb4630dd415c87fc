//! Arrays in a bucket, read through zarrd and by libraries that read the bucket themselves, and servers that share a
//! bucket.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use zarrd_tests::{
    benchmark::comparison::{Comparison, Contestant},
    bucket::S3,
    distant_bucket::DistantBucket,
    garage::{Cluster, garage},
    python::Python,
};

use crate::{
    http::{Connection, get, together},
    planes::{name, random_planes},
    python::{Process, turn},
    section::Section,
    servers::{Peak, Zarrd},
    setup::Bench,
};

/// The name of the array in the bucket.
const ARRAY: &str = "zstd";

/// A client that reads the bucket itself, with its reader in Python.
type Peer = (&'static str, &'static str);

/// Clients whose answers are never older than the request.
const ASKING: [Peer; 2] =
    [("tensorstore, S3", "tensorstore-bucket"), ("zarr-python over obstore, S3", "zarr-python-bucket")];

/// Clients that look at what they have cached later, or never.
const REMEMBERING: [Peer; 2] = [
    ("tensorstore, S3, not revalidating", "tensorstore-bucket-trusting"),
    ("zarr-python with CacheStore over obstore, S3", "zarr-python-bucket-cached"),
];

/// The latency of the bucket that servers share.
const LATENCY: Duration = Duration::from_millis(50);

/// The connections to the servers that share it.
const CONNECTIONS: usize = 64;

/// The extent of the array in that bucket along each dimension.
const EXTENT: u64 = 256;

/// The extent of its chunks.
const CHUNK: u64 = 16;

/// Selections of the array in each round.
type Select = Box<dyn Fn(usize) -> Vec<Value>>;

/// One client of a table.
struct Reader {
    name: &'static str,
    process: RefCell<Process>,
}

pub(crate) fn run(bench: &Bench) -> Section {
    let mut section = Section::default();
    let measured = match (bench.python(), bench.arrays(), garage()) {
        (Err(reason), _, _) | (_, Err(reason), _) => Err(reason.to_owned()),
        (_, _, None) => Err("Garage is not installed".to_owned()),
        (Ok(python), Ok(arrays), Some(garage)) => {
            let directory = bench.directory();
            let version = garage.version();
            let cluster = garage.start(directory.path(), 1);
            for array in [ARRAY, "tiny"] {
                cluster.fill(python, &arrays.files.join(array), &format!("{array}/"));
            }
            peers(bench, python, &cluster, &version, &mut section);
            Ok(())
        }
    };
    if let Err(reason) = measured {
        section.notes.push(format!("Reads of a bucket are not measured: {reason}."));
    }
    let shared = sharing(bench, &mut section.notes);
    section.add(
        format!(
            "**Two servers of one bucket** whose answers begin after {} ms, beside one server: boxes of 8 chunks, \
             nothing cached, {CONNECTIONS} connections in all. A server has 64 requests to a bucket under way.",
            LATENCY.as_millis()
        ),
        vec![shared],
    );
    section
}

/// Compares zarrd with the clients, which all read from one Garage.
fn peers(bench: &Bench, python: &Python, cluster: &Cluster, version: &str, section: &mut Section) {
    let s3 = cluster.s3(0);
    let tables = [
        (
            "asking Garage whether what they have cached is current, at each read",
            ("zarrd", "s3://bucket?recheck=0"),
            ASKING,
        ),
        (
            "trusting what they have cached: zarrd for five seconds, its default, the others for ever",
            ("zarrd", "s3://bucket"),
            REMEMBERING,
        ),
    ];
    for (caption, (ours, location), peers) in tables {
        let cache = bench.cache();
        let zarrd = Zarrd::start_with(location, &cache.each_ref().map(String::as_str), &s3.environment());
        let open = |(name, reader): Peer, url: &str| {
            let mut process = Process::start(python, name);
            let scale = &bench.options.scale;
            process.request(&json!({"do": "open", "reader": reader, "url": url, "cache": scale.cache}));
            Reader { name, process: RefCell::new(process) }
        };
        let first = open((ours, "http.client"), &zarrd.url(&format!("/array/{ARRAY}")));
        let others = peers.map(|peer| open(peer, &address(&s3)));
        let readers: Vec<Reader> = std::iter::once(first).chain(others).collect();
        let comparisons = compare(bench, &readers);
        section.add(format!("**The array in Garage {version}**, {caption}; caches warm."), comparisons);
        let clients = readers.iter().enumerate().map(|(number, reader)| {
            let name = if number == 0 { "its client" } else { reader.name };
            Peak { name: name.to_owned(), ..reader.process.borrow().peak() }
        });
        section.add_peaks(std::iter::once(zarrd.peak()).chain(clients));
    }
}

/// The address of the array for clients that read it themselves.
fn address(s3: &S3) -> String {
    let S3 { endpoint, access_key, secret } = s3;
    format!("{}/bucket/{ARRAY}", endpoint.replace("http://", &format!("http://{access_key}:{secret}@")))
}

fn compare(bench: &Bench, readers: &[Reader]) -> Vec<Comparison> {
    let scale = &bench.options.scale;
    let side = scale.side;
    let many = move |make: fn(&mut StdRng, u64) -> Value| -> Select {
        Box::new(move |round| {
            let mut random = StdRng::seed_from_u64(round as u64);
            (0..2000).map(|_| make(&mut random, side)).collect()
        })
    };
    let planes: [Select; 2] = [0, 2].map(|axis| -> Select { Box::new(move |round| random_planes(side, axis, round)) });
    let [first, last] = planes;
    let selections = [
        (name(ARRAY, 0), first, scale.rounds),
        (name(ARRAY, 2), last, scale.rounds),
        (format!("`{ARRAY}`, one element"), many(element), scale.rounds),
        (format!("`{ARRAY}`, strides of 64, 8 and 8"), many(strides), scale.rounds),
        (format!("`{ARRAY}`, all"), Box::new(move |_| vec![json!([[0, side], [0, side], [0, side]])]), scale.few),
    ];
    let compare = |(what, select, rounds): (String, Select, usize)| {
        let is_all = what.ends_with("all");
        let select = &select;
        let contestants = readers.iter().map(|reader| contestant(bench, reader, select)).collect();
        let comparison = Comparison::run(what, rounds, contestants);
        if is_all { comparison.of_bytes(side.pow(3) * 4) } else { comparison }
    };
    selections.into_iter().map(compare).collect()
}

fn element(random: &mut StdRng, side: u64) -> Value {
    json!([0, 0, 0].map(|_: u64| random.random_range(0..side)))
}

fn strides(random: &mut StdRng, side: u64) -> Value {
    json!([[random.random_range(0..64), side, 64], [0, side, 8], [0, side, 8]])
}

/// A client as a contestant. It has an unmeasured turn first, so that its cache and that of the server are warm.
fn contestant<'a>(bench: &'a Bench, reader: &'a Reader, select: &'a Select) -> Contestant<'a> {
    let read = move |round: usize| {
        let what = select(round);
        let seconds = bench.options.scale.turn.as_secs_f64();
        let request = json!({"do": "read", "points": false, "what": what, "seconds": seconds});
        let answer = reader.process.borrow_mut().request(&request);
        bench.check(ARRAY, &what[0], &answer["digest"]);
        turn(&answer)
    };
    read(usize::MAX);
    Contestant::new(reader.name, read)
}

/// Compares two servers with one, when the number of requests to the bucket is what limits them.
fn sharing(bench: &Bench, notes: &mut Vec<String>) -> Comparison {
    let bucket = DistantBucket::start(objects(), LATENCY);
    let start = |_| {
        let arguments = ["--chunk-cache", "0"];
        Zarrd::start_with("s3://bucket?recheck=0", &arguments, &bucket.s3().environment())
    };
    let servers = [0, 1].map(start);
    let contestants = [("two servers", &servers[..]), ("one zarrd", &servers[..1])];
    let contestants = contestants.map(|(name, servers)| {
        let turn = move |round: usize| {
            // Long enough that the first and last requests, which do not overlap with others, count little.
            let time = bench.options.scale.turn * 6;
            together(CONNECTIONS, time, |number| {
                let mut connection = Connection::open(servers[number % servers.len()].address);
                let mut random = StdRng::seed_from_u64(((round as u64) << 32) | number as u64);
                move |_| {
                    let at = [0, 0, 0].map(|_: u64| random.random_range(1..EXTENT / CHUNK) * CHUNK - 1);
                    let select = at.map(|at| format!("{at}:{}", at + 2)).join(",");
                    let head = get(&format!("/array/a?format=raw&select={select}"));
                    assert_eq!(connection.request(&head, b""), (200, 8), "{select}");
                }
            })
        };
        Contestant::new(name, turn)
    });
    let probes = servers.each_ref().map(|server| {
        let probe = server.probe();
        (probe, probe.begin().expect("the server runs"))
    });
    let (before, begin) = (bucket.requests(), Instant::now());
    let comparison = Comparison::run("a box of 8 chunks", bench.options.scale.rounds, contestants.into());
    let (requests, wall) = (bucket.requests() - before, begin.elapsed().as_secs_f64());
    let used = probes.iter().map(|(probe, start)| probe.since(start).expect("the server runs").0);
    let used = used.sum::<Duration>().as_secs_f64();
    notes.push(format!(
        "The servers sent {:.0} requests to the bucket per second on average, and used {:.2} processors.",
        requests as f64 / wall,
        used / wall
    ));
    comparison
}

/// An array of small chunks.
fn objects() -> BTreeMap<String, Bytes> {
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [EXTENT, EXTENT, EXTENT], "data_type": "uint8", "fill_value": 0,
        "attributes": {}, "codecs": [{"name": "bytes"}],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK, CHUNK, CHUNK]}},
        "chunk_key_encoding": {"name": "default"},
    });
    let count = EXTENT / CHUNK;
    let chunk = |number: u64| {
        let [i, j, k] = [number / count.pow(2), number / count % count, number % count];
        let bytes = (0..CHUNK.pow(3)).map(|at| (at * 31 + number) as u8).collect::<Vec<_>>();
        (format!("a/c/{i}/{j}/{k}"), Bytes::from(bytes))
    };
    let document = ("a/zarr.json".to_owned(), Bytes::from(document.to_string()));
    (0..count.pow(3)).map(chunk).chain([document]).collect()
}
