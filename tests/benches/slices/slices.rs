//! Single slices, read one at a time.

use std::{fs, process::Command, time::Instant};

use serde_json::{Value, json};

use crate::{
    Bench,
    common::{Pairs, http::Connection, python::Peers, spread},
};

/// Whether the array is opened as part of the read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Before,
    First,
}

/// What is read: a name, the selection in a query and for the peers, and how many bytes it has.
struct Slice {
    name: &'static str,
    query: &'static str,
    peers: Value,
    bytes: usize,
    runs: usize,
}

fn all() -> Vec<Slice> {
    let whole = json!([null, null]);
    let slice = |name, query, peers, elements: usize, runs| Slice { name, query, peers, bytes: elements * 4, runs };
    let chunk = json!([[128, 192], [192, 256], [64, 128]]);
    let plane = json!([[300, 301], [0, 512], [0, 512]]);
    let stride = json!([[0, 512, 8], [0, 512, 8], [0, 512, 8]]);
    vec![
        slice("one chunk", "128:192,192:256,64:128", chunk, 64 * 64 * 64, 15),
        slice("plane 1×512×512", "300:301", plane, 512 * 512, 9),
        slice("one element", "300,77,401", json!([300, 77, 401]), 1, 15),
        slice("stride 8", "::8,::8,::8", stride, 64 * 64 * 64, 5),
        slice("whole array", "", json!([whole, whole, whole]), 512 * 512 * 512, 5),
    ]
}

/// Everything in memory, the same slice again and again.
pub(crate) fn warm(bench: &mut Bench) {
    let zarrd = bench.zarrd();
    let nginx = bench.nginx();
    let mut python = bench.python.peers("slices", &["serve".as_ref()]);
    for array in &bench.arrays {
        let file = bench.files.join(array).display().to_string();
        let remote = nginx.as_ref().map(|nginx| format!("http://{}/{array}", nginx.address));
        let places =
            [("tensorstore", Some(file.clone())), ("tensorstore over nginx", remote), ("zarr-python", Some(file))];
        for slice in all() {
            let mut connection = Connection::open(zarrd.address);
            ours(&mut connection, array, &slice);
            for (peer, place) in &places {
                let Some(place) = place else { continue };
                peers(&mut python, peer, place, &slice, Open::Before);
                let pairs = Pairs::measure(
                    slice.runs,
                    || 1.0 / ours(&mut connection, array, &slice).0,
                    || 1.0 / peers(&mut python, peer, place, &slice, Open::Before),
                );
                report("warm", array, &slice, peer, &pairs);
            }
        }
    }
    println!("peak memory of zarrd: {} MiB", zarrd.peak_mib());
}

/// Nothing in memory: the page cache is dropped and each server is new.
pub(crate) fn cold(bench: &mut Bench) {
    if !drop_caches() {
        println!("cold: skipped, since only root drops the page cache");
        return;
    }
    let mut python = bench.python.peers("slices", &["serve".as_ref()]);
    for array in &bench.arrays {
        let file = bench.files.join(array).display().to_string();
        for slice in all() {
            let pairs = Pairs::measure(
                3,
                || {
                    let zarrd = bench.zarrd();
                    let mut connection = Connection::open(zarrd.address);
                    drop_caches();
                    1.0 / ours(&mut connection, array, &slice).0
                },
                || {
                    // What a process loads when it first reads at all is not what is measured.
                    peers(&mut python, "tensorstore", &file, &all()[2], Open::First);
                    drop_caches();
                    1.0 / peers(&mut python, "tensorstore", &file, &slice, Open::First)
                },
            );
            report("cold", array, &slice, "tensorstore", &pairs);
        }
    }
}

/// The most memory that streaming whole arrays takes, and how long the first byte does.
pub(crate) fn memory(bench: &Bench) {
    let slices = all();
    let whole = slices.last().expect("the last is the whole array");
    for array in &bench.arrays {
        let zarrd = bench.zarrd();
        let mut connection = Connection::open(zarrd.address);
        let firsts: Vec<f64> = (0..3).map(|_| ours(&mut connection, array, whole).1 * 1e3).collect();
        println!("whole {array:<8} first byte {} ms, peak memory {} MiB", spread(&firsts), zarrd.peak_mib());
    }
}

/// Reads a slice from zarrd; gives the seconds until all of it and until the first byte was there.
fn ours(connection: &mut Connection, array: &str, slice: &Slice) -> (f64, f64) {
    let head = request(array, slice.query);
    let begin = Instant::now();
    let (status, len, first) = connection.ask_timed(head.as_bytes(), b"");
    assert_eq!((status, len), (200, slice.bytes), "{array} {}", slice.name);
    (begin.elapsed().as_secs_f64(), first.as_secs_f64())
}

fn peers(python: &mut Peers, peer: &str, place: &str, slice: &Slice, open: Open) -> f64 {
    let name = peer.split(' ').next().unwrap_or(peer);
    let answer =
        python.ask(&json!({"peer": name, "where": place, "select": slice.peers, "fresh": open == Open::First}));
    assert_eq!(answer["bytes"].as_u64(), Some(slice.bytes as u64), "{place} {}", slice.name);
    answer["seconds"].as_f64().expect("seconds")
}

pub(crate) fn request(array: &str, query: &str) -> String {
    format!("GET /array/{array}?select={query}&format=raw HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

fn report(kind: &str, array: &str, slice: &Slice, peer: &str, pairs: &Pairs) {
    // Of small slices the milliseconds tell, of large ones the bytes a second.
    let (unit, scale) = if slice.bytes > 1 << 16 { ("MiB/s", slice.bytes as f64 / 1_048_576.0) } else { ("/s", 1.0) };
    let scaled = |figures: &[f64]| figures.iter().map(|figure| figure * scale).collect();
    let pairs = Pairs { ours: scaled(&pairs.ours), peers: scaled(&pairs.peers) };
    pairs.report(&format!("{kind} {array}, {}, vs {peer}", slice.name), unit);
}

fn drop_caches() -> bool {
    let _ = Command::new("sync").status();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}
