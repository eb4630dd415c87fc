//! System calls that fail while a store opens: the message names the file, and the store opens afterwards.

use zarrd_tests::{
    failing_calls::{ERRORS, InitialState, run},
    shim::shim,
    skip::note,
};

#[tokio::test]
async fn failing_system_call_while_sled_opens_is_not_reported_as_corruption() {
    opens_despite_failing_calls("sled").await;
}

#[tokio::test]
async fn failing_system_call_while_redb_opens_is_not_reported_as_corruption() {
    opens_despite_failing_calls("redb").await;
}

async fn opens_despite_failing_calls(index: &str) {
    for before in [InitialState::Missing, InitialState::Closed, InitialState::Crashed] {
        let tools = tempfile::tempdir().unwrap();
        let Some(library) = shim("failing_call", tools.path()) else { return };
        // All calls and errors take minutes, since every case starts two servers.
        let (errors, one_in) = match std::env::var_os("ALL_ERRORS") {
            Some(_) => (&ERRORS[..], 1),
            None => (&ERRORS[..1], 4),
        };
        let report = run(index, before, (errors, one_in), &library, tools.path()).await;
        note(format_args!(
            "{index}, {before:?}: {} calls failed, {} failed starts",
            report.failed_calls, report.failed_starts
        ));
        assert!(report.failed_starts > 5, "{report:?}");
        assert!(
            report.violations.is_empty(),
            "{} violations:\n{}",
            report.violations.len(),
            report.violations.join("\n")
        );
    }
}
