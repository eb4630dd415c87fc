//! The memory of a listing and of a set, in a process of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::{fs, sync::Mutex};

use common::Fixture;
use futures::stream;
use zarrd_store::{Key, Payload, Precondition, WriteableStore};
use zarrd_store_dir::{Options, WriteOptions};

/// Held by the test that measures.
static MEASURING: Mutex<()> = Mutex::new(());

/// The peak of the memory of this process in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Forgets the peak so far.
fn reset_peak() {
    fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[test]
fn set_of_a_large_value_takes_memory_for_a_part_of_it_only() {
    let _measuring = MEASURING.lock();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let fixture = Fixture::with(Options::new("dir:test").writes(WriteOptions::default())).await;
        let (piece, pieces) = (64_usize << 10, 2_048_u64);
        let stream = move || stream::iter((0..pieces).map(move |_| Ok(vec![7_u8; piece].into())));
        let tiny = stream::iter((0..1_000_000_u32).map(|_| Ok(vec![7_u8; 1].into())));
        let payloads = [
            Payload::sized(pieces * piece as u64, stream()),
            Payload::from_stream(stream()),
            Payload::from_stream(tiny),
        ];
        for payload in payloads {
            reset_peak();
            let before = peak();
            fixture.store.set(&Key::parse("a/b").unwrap(), payload, Precondition::none()).await.unwrap();
            let used = peak() - before;
            assert!(used < 8 << 10, "a set took {used} KiB");
        }
    });
}

/// All names together would take more than 4 MiB.
#[test]
fn a_page_takes_memory_for_its_names_only() {
    let _measuring = MEASURING.lock();
    tokio::runtime::Runtime::new().unwrap().block_on(measure_page());
}

async fn measure_page() {
    let fixture = Fixture::new().await;
    fs::create_dir(fixture.path("d")).unwrap();
    for number in 0..20_000_u32 {
        // Some names are seen in descending order, whatever the order of the file system is.
        let name = format!("d/{:08x}{}", number.wrapping_mul(2_654_435_761), "x".repeat(192));
        fs::File::create(fixture.path(&name)).unwrap();
    }
    assert_eq!(fixture.keys("none/", 100).await.len(), 0);
    reset_peak();
    let before = peak();
    let prefix = zarrd_store::Prefix::root();
    let page =
        zarrd_store::ListableStore::list_prefix(&fixture.store, &prefix, zarrd_store::PageRequest::first(1_000)).await;
    assert_eq!(page.unwrap().keys.len(), 1_000);
    let used = peak() - before;
    assert!(used < 2 << 10, "a page of 1000 keys took {used} KiB");
}
