//! The disk space of the index after small values were overwritten and erased for a long time, and after a compaction.

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

use crate::{
    http::{load, with_body},
    section::Section,
    servers::Zarrd,
    setup::Bench,
};

const CONNECTIONS: usize = 8;
/// The number of names for each connection.
const NAMES: usize = 25_000;

pub(crate) fn run(bench: &Bench) -> Section {
    let time = Duration::from_secs(if bench.options.scale.quick { 5 } else { 600 });
    let (scratch, index) = (bench.directory(), bench.options.index);
    let dir = scratch.path().join("store");
    let zarrd = Zarrd::start(index, &dir, &[]);
    // The size of the key and value of each name, 0 if erased, and the random generator.
    let writers: Vec<_> =
        (0..CONNECTIONS).map(|number| Mutex::new((vec![0_u64; NAMES], StdRng::seed_from_u64(number as u64)))).collect();
    let largest = AtomicU64::new(0);
    let turn = load(CONNECTIONS, time, zarrd.address, |connection, number, count| {
        let mut writer = writers[number].lock().expect("no thread has panicked");
        let (live, random) = &mut *writer;
        let name = random.random_range(0..NAMES);
        let key = format!("churn/{number}/{name}");
        let size = if random.random_bool(0.2) { 0 } else { random.random_range(1..2_000) };
        let (method, body) = if size == 0 { ("DELETE", 0) } else { ("PUT", size) };
        let head = with_body(method, &format!("/store/{key}"), "application/octet-stream", body);
        let (status, _) = connection.request(&head, &vec![0x5a; body]);
        assert!((200..300).contains(&status) || status == 404 && size == 0, "{status}");
        live[name] = if size == 0 { 0 } else { (key.len() + size) as u64 };
        if number == 0 && count % 5_000 == 0 {
            largest.fetch_max(index_bytes(&dir), Relaxed);
        }
    });
    let live: u64 = writers.iter().map(|writer| writer.lock().expect("whole").0.iter().sum::<u64>()).sum();
    let factor = |bytes: u64| format!("{:.2} times", bytes as f64 / live as f64);
    let largest = factor(largest.into_inner());
    zarrd.stop();
    let stopped = factor(index_bytes(&dir));
    Zarrd::compact(index, &dir);
    let compacted = factor(index_bytes(&dir));
    let note = format!(
        "{} changes of values of 1 to 2,000 bytes in {} s on {CONNECTIONS} connections leave {} MiB alive. The index ({index}) takes at most {largest} \
         as much, {stopped} after a stop, and {compacted} after a compaction.",
        turn.latencies.len(),
        time.as_secs(),
        live >> 20
    );
    Section { notes: vec![note], ..Section::default() }
}

/// The blocks occupied by the index files.
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
