//! Writes that race with what changes or copies their array: the short form of the command `races`.

use std::time::Duration;

use zarrd_tests::{
    races::{BucketOf, Checks, Ending, Engines, Kind, Plan, Race, Report, run},
    skip::note,
};

#[tokio::test(flavor = "multi_thread")]
async fn erased_or_replaced_elements_do_not_return() {
    for race in [Race::Delete, Race::Replace, Race::DeleteAbove] {
        run_race(Plan { rounds: 24, ..Plan::of(race) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_elements_do_not_return() {
    for race in [Race::Shrink, Race::Resize] {
        run_race(Plan { rounds: 48, ..Plan::of(race) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_is_a_snapshot_and_a_failed_copy_leaves_nothing() {
    run_race(Plan { rounds: 32, ..Plan::of(Race::Copy) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_two_dialects_stay_equal() {
    run_race(Plan { rounds: 32, ..Plan::of(Race::Convert) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn races_stay_consistent_when_the_server_is_killed() {
    let mut interrupted = 0;
    for (race, index) in Race::ALL.into_iter().zip(["sled", "redb"].into_iter().cycle()) {
        let end = Ending::Killed(Duration::from_millis(100));
        let plan = Plan { rounds: 24, concurrency: 12, end, index: index.to_owned(), ..Plan::of(race) };
        interrupted += run_race(plan).await.interrupted;
    }
    // A fast server may be killed when it has nothing left to do, but not every time.
    assert!(interrupted > 0, "every kill was too late");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_over_one_store_stay_consistent() {
    for (race, index) in Race::ALL.into_iter().zip(["sled", "redb"].into_iter().cycle()) {
        let engines = Engines::Two(Checks::All);
        run_race(Plan { rounds: 24, index: index.to_owned(), engines, ..Plan::of(race) }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_without_checks_of_others_operations_are_found() {
    let engines = Engines::Two(Checks::NoneOfOthers);
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let report = run(&Plan { rounds: 48, engines, ..Plan::of(Race::Resize) }, dir.path()).await;
        note(&report);
        if report.count(Kind::Resurrected) > 0 {
            return;
        }
    }
    panic!("no erased element returned");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_over_one_bucket_lose_nothing() {
    for bucket in [BucketOf::Zarrd, BucketOf::Tests, BucketOf::TestsWithLosses] {
        for race in Race::KEYED {
            let (engines, index) = (Engines::Bucket(bucket), "memory".to_owned());
            run_race(Plan { rounds: 16, engines, index, ..Plan::of(race) }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_a_folder_lose_nothing_even_if_the_server_is_killed() {
    for end in [Ending::Alive, Ending::Killed(Duration::from_millis(100))] {
        for race in Race::KEYED {
            run_race(Plan { rounds: 24, end, index: "folder".to_owned(), ..Plan::of(race) }).await;
        }
    }
}

/// Runs races that must do something and find no violations.
async fn run_race(plan: Plan) -> Report {
    let dir = tempfile::tempdir().unwrap();
    note(format_args!("{plan:?}"));
    let report = run(&plan, dir.path()).await;
    note(&report);
    let min_images = if plan.end == Ending::Alive { plan.rounds } else { 1 };
    let written = report.acknowledged + report.interrupted;
    assert!(written >= min_images && report.images >= plan.rounds, "too little was done:\n{report}");
    let may_interrupt =
        plan.end != Ending::Alive || matches!(plan.engines, Engines::Bucket(_)) || plan.index == "folder";
    assert!(report.interrupted == 0 || may_interrupt, "{report}");
    assert!(report.is_ok(), "{report}");
    report
}
