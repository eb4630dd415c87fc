//! A system that fails a call while a store opens: the message names the file, and the store opens afterwards.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use zarrd_tests::{
    failing_calls::{Before, ERRORS, run},
    shim::shim,
    skip::say,
};

#[tokio::test]
async fn failing_system_call_while_sled_opens_is_not_reported_as_corruption() {
    each_call_fails("sled").await;
}

#[tokio::test]
async fn failing_system_call_while_redb_opens_is_not_reported_as_corruption() {
    each_call_fails("redb").await;
}

async fn each_call_fails(index: &str) {
    for before in [Before::Missing, Before::Closed, Before::Crashed] {
        let tools = tempfile::tempdir().unwrap();
        let Some(library) = shim("failing_call", tools.path()) else { return };
        // All of them take minutes: each start takes another one.
        let errors = if std::env::var_os("ALL_ERRORS").is_some() { &ERRORS[..] } else { &ERRORS[..1] };
        let report = run(index, before, errors, &library, tools.path()).await;
        say(format_args!("{index}, {before:?}: {} calls failed, {} starts refused", report.failed, report.refused));
        assert!(report.refused > 20, "{report:?}");
        assert!(report.wrong.is_empty(), "{} wrong:\n{}", report.wrong.len(), report.wrong.join("\n"));
    }
}
