//! Memory does not grow with the size of transfers: the short form of the command `memory`.

use zarrd_tests::{
    memory::{Plan, run},
    skip::note,
};

#[tokio::test(flavor = "multi_thread")]
async fn peak_memory_stays_below_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let report = run(
        Plan { large: 512 << 20, downloads: 16, download_size: 64 << 20, array: 512 << 20, reduced: 512 << 20 },
        dir.path(),
    )
    .await;
    note(&report);
    assert!(report.is_within_limit(), "{report}");
}
