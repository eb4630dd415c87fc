//! Memory does not grow with what goes through: the short form of the command `memory`.

use zarrd_tests::memory::{Plan, run};

#[tokio::test(flavor = "multi_thread")]
async fn peak_memory_stays_below_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let report = run(Plan { large: 512 << 20, downloads: 16, each: 64 << 20 }, dir.path()).await;
    eprintln!("{report}");
    assert!(report.is_within_limit(), "{report}");
}
