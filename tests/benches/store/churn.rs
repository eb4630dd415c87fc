//! What the index takes on the disk after small values have been written over and erased for a long time, and after
//! a compaction.

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use store_local::IndexKind;

use crate::common::{
    http::{Connection, load},
    peers::Zarrd,
};

const CONNECTIONS: usize = 8;
/// The names of each connection.
const NAMES: usize = 25_000;

pub(crate) fn run(index: IndexKind, time: Duration) {
    let scratch = tempfile::tempdir().expect("a directory");
    let dir = scratch.path().join("store");
    let zarrd = Zarrd::start(index, &dir);
    // The bytes of the key and the value of each name, 0 where it is erased, and the source of chance.
    let writers: Vec<_> =
        (0..CONNECTIONS).map(|number| Mutex::new((vec![0_u64; NAMES], StdRng::seed_from_u64(number as u64)))).collect();
    let (requests, largest) = (AtomicU64::new(0), AtomicU64::new(0));
    load(
        CONNECTIONS,
        time,
        || Connection::open(zarrd.address),
        |connection, number, count| {
            let mut writer = writers[number].lock().expect("no thread has panicked");
            let (live, random) = &mut *writer;
            let name = random.random_range(0..NAMES);
            let key = format!("churn/{number}/{name}");
            let size = if random.random_bool(0.2) { 0 } else { random.random_range(1..2_000) };
            let (method, body) = if size == 0 { ("DELETE", 0) } else { ("PUT", size) };
            let head = format!("{method} /store/{key} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {body}\r\n\r\n");
            let (status, _) = connection.ask(head.as_bytes(), &vec![0x5a; body]);
            assert!((200..300).contains(&status) || status == 404 && size == 0, "{status}");
            live[name] = if size == 0 { 0 } else { (key.len() + size) as u64 };
            requests.fetch_add(1, Relaxed);
            if number == 0 && count % 5_000 == 0 {
                largest.fetch_max(index_bytes(&dir), Relaxed);
            }
        },
    );
    let live: u64 = writers.iter().map(|writer| writer.lock().expect("whole").0.iter().sum::<u64>()).sum();
    let factor = |bytes: u64| bytes as f64 / live as f64;
    let largest = largest.into_inner();
    println!(
        "churn for {} s ({index}): {} requests, {} MiB alive; index at most {} MiB = {:.2} x",
        time.as_secs(),
        requests.into_inner(),
        live >> 20,
        largest >> 20,
        factor(largest)
    );
    zarrd.stop();
    let stopped = index_bytes(&dir);
    Zarrd::compact(index, &dir);
    let compacted = index_bytes(&dir);
    println!("after a stop {:.2} x, after a compaction {:.2} x", factor(stopped), factor(compacted));
}

/// The blocks that the files of the index take.
fn index_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let sizes = entries.flatten().map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => index_bytes(&entry.path()),
        Ok(_) if entry.path().components().any(|part| part.as_os_str().to_string_lossy().starts_with("index")) => {
            entry.metadata().map_or(0, |metadata| metadata.blocks() * 512)
        }
        _ => 0,
    });
    sizes.sum()
}
