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
        // Testing all errors takes minutes, since every case starts a server.
        let errors = if std::env::var_os("ALL_ERRORS").is_some() { &ERRORS[..] } else { &ERRORS[..1] };
        let report = run(index, before, errors, &library, tools.path()).await;
        note(format_args!(
            "{index}, {before:?}: {} calls failed, {} failed starts",
            report.failed_calls, report.failed_starts
        ));
        assert!(report.failed_starts > 20, "{report:?}");
        assert!(
            report.violations.is_empty(),
            "{} violations:\n{}",
            report.violations.len(),
            report.violations.join("\n")
        );
    }
}
