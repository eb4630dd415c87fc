//! Concurrent writes of overlapping regions: the short form of the command `contention`.

use std::time::Duration;

use zarrd_tests::{
    contention::{Layout, Plan, run},
    skip::note,
};

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_are_never_lost_torn_or_mixed() {
    for layout in Layout::ALL {
        run_contention(Plan { layout, time: Duration::from_secs(4), ..Plan::default() }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_survive_a_killed_server() {
    for (layout, index) in Layout::ALL.into_iter().zip(["redb", "sled", "redb"]) {
        let plan = Plan { layout, index: index.to_owned(), kills: 3, time: Duration::from_secs(5), ..Plan::default() };
        run_contention(plan).await;
    }
}

async fn run_contention(plan: Plan) {
    let dir = tempfile::tempdir().unwrap();
    note(format_args!("{plan:?}"));
    let report = run(&plan, dir.path()).await;
    note(format_args!("{report:?}"));
    assert!(report.acknowledged > 40 && report.reads > 4, "too little was done to show anything: {report:?}");
    assert_eq!(report.interrupted > 0, plan.kills > 0, "{report:?}");
}
