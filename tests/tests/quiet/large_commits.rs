//! The memory of large commits and erases: the short form of the command `large-commits`.

use std::time::Duration;

use zarrd_store_local::IndexKind;
use zarrd_tests::{
    large_commits::{Plan, run},
    skip::note,
};

/// The maximum growth of the server's memory, in bytes.
const MAX_MEMORY: u64 = 300 << 20;

#[tokio::test]
async fn largest_commit_and_erase_use_bounded_memory() {
    for index in [IndexKind::Sled, IndexKind::Redb] {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { index, chunks: 99_000, keys: 20_000, watch: Duration::from_secs(2) };
        let report = run(plan, &dir.path().join("store")).await;
        note(format_args!("{plan:?}\n{report}"));
        assert!(report.peak <= report.idle + MAX_MEMORY, "{index}: {report}");
    }
}
