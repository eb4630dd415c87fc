//! Acknowledged changes survive `kill -9`: the short form of the command `kill-loop`.

use zarrd_tests::{
    kill_loop::{Plan, run},
    skip::note,
};

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9_with_sled() {
    survives_repeated_kills("sled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9_with_redb() {
    survives_repeated_kills("redb").await;
}

async fn survives_repeated_kills(index: &str) {
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
