//! Durable PUT, against write + fsync + rename + fsync of the directory for the same files.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    sync::Barrier,
    time::{Duration, Instant},
};

use store_local::IndexKind;

use crate::common::{
    Pairs,
    http::{Connection, load},
    peers::Zarrd,
};

const TIME: Duration = Duration::from_secs(2);
/// Values that each connection writes in turn.
const VALUES: u64 = 16;

pub(crate) fn run(index: IndexKind) {
    let scratch = tempfile::tempdir().expect("a directory");
    let zarrd = Zarrd::start(index, &scratch.path().join("store"));
    let files = scratch.path().join("files");
    fs::create_dir(&files).expect("make a directory");
    for (size, label) in [(1 << 10, "1 KiB"), (1 << 20, "1 MiB")] {
        let value = vec![0x5a; size];
        for connections in [1, 16] {
            let ours = || {
                load(
                    connections,
                    TIME,
                    || Connection::open(zarrd.address),
                    |connection, number, count| {
                        let name = format!("put/{size}/{number}/{}", count % VALUES);
                        let head =
                            format!("PUT /store/{name} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n");
                        let (status, _) = connection.ask(head.as_bytes(), &value);
                        assert!(status == 201 || status == 204, "{status}");
                    },
                )
            };
            let pairs = Pairs::measure(7, ours, || write_files(&files, connections, &value, TIME));
            pairs.report(&format!("PUT {label}, {connections} connections, vs files"), "/s");
        }
    }
    println!("peak memory of zarrd: {} MiB", zarrd.peak_mib());
}

/// What a careful program does for each file; gives the files a second.
pub(crate) fn write_files(dir: &Path, threads: usize, value: &[u8], time: Duration) -> f64 {
    let barrier = Barrier::new(threads);
    let rates: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|number| {
                let barrier = &barrier;
                scope.spawn(move || {
                    let dir = dir.join(number.to_string());
                    fs::create_dir_all(&dir).expect("make a directory");
                    barrier.wait();
                    let (begin, mut count) = (Instant::now(), 0_u64);
                    while begin.elapsed() < time {
                        let (new, name) = (dir.join("new"), dir.join((count % VALUES).to_string()));
                        let mut file = File::create(&new).expect("make a file");
                        file.write_all(value).expect("write");
                        file.sync_all().expect("sync");
                        fs::rename(new, name).expect("rename");
                        File::open(&dir).and_then(|dir| dir.sync_all()).expect("sync the directory");
                        count += 1;
                    }
                    count as f64 / begin.elapsed().as_secs_f64()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a writer")).collect()
    });
    rates.iter().sum()
}
