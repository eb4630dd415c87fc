//! Durable PUT of small values for a minute, in which the index is brought up to date many times: rates and times of single
//! requests, against the files of a careful program.

use std::{
    fs,
    sync::Mutex,
    time::{Duration, Instant},
};

use store_local::IndexKind;

use crate::{
    common::{
        http::{Connection, load},
        peers::Zarrd,
    },
    put::write_files,
};

const SIZE: usize = 1 << 10;
/// Names that each connection writes in turn.
const NAMES: u64 = 100_000;

pub(crate) fn run(index: IndexKind, time: Duration) {
    let scratch = tempfile::tempdir().expect("a directory");
    let zarrd = Zarrd::start(index, &scratch.path().join("store"));
    let files = scratch.path().join("files");
    fs::create_dir(&files).expect("make a directory");
    let value = vec![0x5a; SIZE];
    for connections in [1, 16] {
        let times: Vec<Mutex<Vec<Duration>>> = (0..connections).map(|_| Mutex::default()).collect();
        let rate = load(
            connections,
            time,
            || Connection::open(zarrd.address),
            |connection, number, count| {
                let name = format!("sustained/{number}/{}", count % NAMES);
                let head = format!("PUT /store/{name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {SIZE}\r\n\r\n");
                let begin = Instant::now();
                let (status, _) = connection.ask(head.as_bytes(), &value);
                times[number].lock().expect("no thread has panicked").push(begin.elapsed());
                assert!(status == 201 || status == 204, "{status}");
            },
        );
        let peer = write_files(&files, connections, &value, time);
        let mut times: Vec<Duration> = times.into_iter().flat_map(|times| times.into_inner().expect("whole")).collect();
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!(
            "PUT 1 KiB for {} s, {connections} connections: {rate:.0}/s, files {peer:.0}/s, ratio {:.2}; \
             median {:.2} ms, p99 {:.2} ms, most {:.0} ms",
            time.as_secs(),
            rate / peer,
            at(0.5),
            at(0.99),
            at(1.0),
        );
    }
    println!("peak memory of zarrd: {} MiB", zarrd.peak_mib());
}
