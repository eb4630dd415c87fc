//! Signals at random moments of opening, recovering and closing: the short form of the command `kill-moments`.

use zarrd_tests::{
    kill_moments::{ALL, Plan, run},
    skip::note,
};

#[tokio::test(flavor = "multi_thread")]
async fn store_opens_after_a_signal_at_any_moment_with_sled() {
    opens_after_signals("sled").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn store_opens_after_a_signal_at_any_moment_with_redb() {
    opens_after_signals("redb").await;
}

async fn opens_after_signals(index: &str) {
    let dir = tempfile::tempdir().unwrap();
    let least = (5, 21);
    let plan = Plan { index: index.to_owned(), rounds: 8, least, commands: ALL.to_vec(), seed: rand::random() };
    note(format_args!("{plan:?}"));
    let report = run(&plan, dir.path()).await;
    note(format_args!("{report:?}"));
    assert_eq!(report.refusals, Vec::<String>::new(), "{plan:?}");
    let happened = report.interrupted >= least.0 && report.acknowledged >= least.1;
    assert!(happened, "too little happened to show anything: {report:?}");
}
