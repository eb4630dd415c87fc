//! The memory of a listing, in a process of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fs;

use common::Fixture;

/// The peak of the memory of this process in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// All names together would take more than 4 MiB.
#[tokio::test]
async fn a_page_takes_memory_for_its_names_only() {
    let fixture = Fixture::new().await;
    fs::create_dir(fixture.path("d")).unwrap();
    for number in 0..20_000_u32 {
        // Some names are seen in descending order, whatever the order of the file system is.
        let name = format!("d/{:08x}{}", number.wrapping_mul(2_654_435_761), "x".repeat(192));
        fs::File::create(fixture.path(&name)).unwrap();
    }
    assert_eq!(fixture.keys("none/", 100).await.len(), 0);
    let before = peak();
    let prefix = zarrd_store::Prefix::root();
    let page =
        zarrd_store::ListableStore::list_prefix(&fixture.store, &prefix, zarrd_store::PageRequest::first(1_000)).await;
    assert_eq!(page.unwrap().keys.len(), 1_000);
    let used = peak() - before;
    assert!(used < 2 << 10, "a page of 1000 keys took {used} KiB");
}
