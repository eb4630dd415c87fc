//! Reading everything again while a store is used.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::{FileExt, symlink},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use zarrd_store::{Key, Payload, Precondition, ReadableStore, ScrubStatus, SnapshotStore, WriteableStore};
use zarrd_store_local::{IndexKind, LocalStore, Options};

const MONTH: Duration = Duration::from_secs(30 * 86_400);

async fn open(dir: &Path, kind: IndexKind, scrub: Option<Duration>) -> LocalStore {
    LocalStore::open(dir, Options { scrub, ..Options::new(kind) }).await.unwrap()
}

async fn set(store: &LocalStore, name: &str, value: Vec<u8>) {
    store.set(&Key::parse(name).unwrap(), Payload::from_bytes(value), Precondition::none()).await.unwrap();
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Waits until a pass has ended.
async fn finished(store: &LocalStore) -> ScrubStatus {
    let started = Instant::now();
    loop {
        let status = store.scrub().unwrap();
        if status.finished.is_some() && !status.is_running {
            return status;
        }
        assert!(started.elapsed() < Duration::from_secs(300), "{status:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Damages a value file; there are seven kinds of damage.
fn plant(file: &Path, number: usize) {
    let len = fs::metadata(file).unwrap().len();
    let opened = File::options().write(true).open(file).unwrap();
    match number % 7 {
        0 => opened.write_all_at(&[0x32], len / 3).unwrap(),
        1 => opened.write_all_at(&[0xA5; 512], 1024).unwrap(),
        2 => opened.write_all_at(&[0xA5], len - 20).unwrap(),
        3 => opened.set_len(len - 100).unwrap(),
        4 => fs::remove_file(file).unwrap(),
        5 => {
            fs::remove_file(file).unwrap();
            symlink("/proc/self/mem", file).unwrap();
        }
        _ => replace_by_pipe(file),
    }
}

#[tokio::test]
async fn every_planted_fault_is_found_in_one_pass() {
    let faults = std::env::var("ZARRD_FAULTS").map_or(30, |faults| faults.parse().unwrap());
    for kind in [IndexKind::Sled, IndexKind::Redb] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind, None).await;
        assert_eq!(store.scrub(), None);
        for number in 0..faults * 2 {
            // The values tell their keys.
            let mut value = vec![0x33; 5000 + number];
            value[..8].copy_from_slice(&number.to_be_bytes());
            set(&store, &format!("large/{number:05}"), value).await;
            set(&store, &format!("small/{number:05}"), vec![1; 100]).await;
        }
        store.close().await.unwrap();
        let mut planted = BTreeSet::new();
        for file in walk(&dir.path().join("values")) {
            let number = u64::from_be_bytes(fs::read(&file).unwrap()[..8].try_into().unwrap()) as usize;
            if number % 2 == 1 {
                plant(&file, number / 2);
                planted.insert(format!("large/{number:05}"));
            }
        }
        assert_eq!(planted.len(), faults);
        let store = open(dir.path(), kind, Some(MONTH)).await;
        let status = finished(&store).await;
        let found: BTreeSet<String> = status.findings.iter().map(|finding| finding.name.clone()).collect();
        assert_eq!(found, planted, "{kind}");
        assert_eq!((status.damaged, status.keys), (faults as u64, faults as u64 * 4));
        // What was found is known after a restart, which begins no pass.
        store.close().await.unwrap();
        let store = open(dir.path(), kind, Some(MONTH)).await;
        assert_eq!(store.scrub().unwrap(), status);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn interrupted_passes_continue_at_a_bounded_rate() {
    const BYTES: usize = 6 << 20;
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled, None).await;
    for number in 0..8 {
        set(&store, &format!("v/{number}"), vec![number; BYTES]).await;
    }
    store.close().await.unwrap();
    let began = Instant::now();
    let store = open(dir.path(), IndexKind::Sled, Some(MONTH)).await;
    while store.scrub().unwrap().keys < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.close().await.unwrap();
    let store = open(dir.path(), IndexKind::Sled, Some(MONTH)).await;
    let before = store.scrub().unwrap();
    assert!(before.is_running && (2..8).contains(&before.keys), "{before:?}");
    let status = finished(&store).await;
    assert_eq!((status.started, status.keys, status.damaged), (before.started, 8, 0));
    // The value that was being read when the store was closed is read again.
    let bytes = 8 * BYTES as u64;
    assert!((bytes..bytes + 2 * BYTES as u64).contains(&status.bytes), "{status:?}");
    let least = Duration::from_secs_f64(bytes as f64 / (20 << 20) as f64);
    assert!(began.elapsed() >= least, "{:?}", began.elapsed());
    store.close().await.unwrap();
}

/// Puts a pipe that has no writer in place of a file.
fn replace_by_pipe(file: &Path) {
    fs::remove_file(file).unwrap();
    crate::make_pipe(file);
}

/// The values are filled with their numbers.
fn file_with(dir: &Path, number: u8) -> PathBuf {
    let mut files = walk(&dir.join("values")).into_iter();
    files.find(|file| fs::read(file).unwrap().first() == Some(&number)).unwrap()
}

fn names(status: &ScrubStatus) -> BTreeSet<&str> {
    status.findings.iter().map(|finding| finding.name.as_str()).collect()
}

#[tokio::test]
async fn damage_that_grows_during_a_pass_is_found_by_it_or_by_the_next() {
    // A pass may be too far when the damage is made, on a busy machine.
    while !damage_grows_during_a_pass().await {}
}

async fn damage_grows_during_a_pass() -> bool {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Redb, None).await;
    for number in 0..8 {
        set(&store, &format!("v/{number}"), vec![number; 2 << 20]).await;
    }
    store.close().await.unwrap();
    let files: Vec<PathBuf> = (0..8).map(|number| file_with(dir.path(), number)).collect();
    plant(&files[1], 0);
    let store = open(dir.path(), IndexKind::Redb, Some(MONTH)).await;
    while store.scrub().unwrap().keys < 3 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // What was found counts before the pass has ended. Two more are damaged: one that was read, and one that will be.
    assert_eq!(names(&store.scrub().unwrap()), BTreeSet::from(["v/1"]));
    plant(&files[0], 0);
    plant(&files[7], 0);
    if store.scrub().unwrap().keys > 6 {
        return false;
    }
    let status = finished(&store).await;
    assert_eq!((names(&status), status.damaged, status.keys), (BTreeSet::from(["v/1", "v/7"]), 2, 8));
    store.close().await.unwrap();
    // While the next pass runs, what the last one found counts.
    let store = open(dir.path(), IndexKind::Redb, Some(Duration::from_millis(1))).await;
    let started = Instant::now();
    loop {
        let status = store.scrub().unwrap();
        if status.damaged == 3 {
            assert_eq!(names(&status), BTreeSet::from(["v/0", "v/1", "v/7"]));
            break;
        }
        assert!(status.damaged == 2 && started.elapsed() < Duration::from_secs(300), "{status:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    store.close().await.unwrap();
    true
}

#[tokio::test]
async fn damage_that_grows_during_a_check_is_part_of_its_result() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled, None).await;
    for number in 0..6 {
        set(&store, &format!("v/{number}"), vec![number; 6000]).await;
    }
    let files: Vec<PathBuf> = (0..6).map(|number| file_with(dir.path(), number)).collect();
    plant(&files[1], 2);
    let checked = store.check(move |report| match report.keys {
        3 => plant(&files[4], 4),
        4 => replace_by_pipe(&files[5]),
        _ => {}
    });
    let checked = checked.await.unwrap();
    let found: Vec<&str> = checked.corrupt.iter().map(|value| value.key.as_str()).collect();
    assert_eq!((found, checked.report.keys, checked.report.corrupt), (vec!["v/1", "v/4", "v/5"], 6, 3));
    store.close().await.unwrap();
}

/// Waits until passes report this damage, and no other.
async fn reported(store: &LocalStore, expected: &[&str]) {
    let started = Instant::now();
    while names(&store.scrub().unwrap()) != expected.iter().copied().collect() {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", store.scrub());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn closed_segments_of_the_log_are_read_in_each_pass() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path(), IndexKind::Sled, None).await.close().await.unwrap();
    let store = open(dir.path(), IndexKind::Sled, Some(Duration::from_millis(1))).await;
    // The first segment was retired when the store was closed, so this one is not read by anything else.
    let segment = dir.path().join("log/0000000000000001.log");
    assert!(!segment.exists());
    fs::write(&segment, vec![7; 64 << 10]).unwrap();
    reported(&store, &["log/0000000000000001.log"]).await;
    fs::remove_file(&segment).unwrap();
    reported(&store, &[]).await;
    // One that does not end holds up neither the pass nor the end of the store.
    crate::make_pipe(&segment);
    reported(&store, &["log/0000000000000001.log"]).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn values_that_change_meanwhile_are_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Redb, Some(Duration::from_millis(1))).await;
    let started = Instant::now();
    let mut round = 0;
    while started.elapsed() < Duration::from_secs(3) {
        round += 1;
        for number in 0..20_u8 {
            set(&store, &format!("v/{number}"), vec![number; 5000 + round]).await;
        }
        store.erase(&Key::parse("v/3").unwrap(), Precondition::none()).await.unwrap();
    }
    let status = store.scrub().unwrap();
    assert!(status.finished.is_some() && status.damaged == 0, "{status:?}");
    assert!(store.get(&Key::parse("v/4").unwrap(), None).await.unwrap().is_some());
    store.close().await.unwrap();
}
