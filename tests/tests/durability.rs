//! Acknowledged changes survive `kill -9`: the short form of the command `kill-loop`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use zarrd_tests::{
    kill_loop::{Plan, run},
    skip::note,
};

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9_with_sled() {
    killed_again_and_again("sled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9_with_redb() {
    killed_again_and_again("redb").await;
}

async fn killed_again_and_again(index: &str) {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan { index: index.to_owned(), ..Plan::default() };
    note(format_args!("{plan:?}"));
    let report = run(&plan, dir.path()).await;
    note(format_args!("{report:?}"));
    assert!(
        report.acknowledged > 20 && report.interrupted > 0,
        "the rounds were too short to show anything: {report:?}"
    );
}
