//! Startup limits, and failed starts that leave nothing behind.

use std::net::TcpListener;

use zarrd_tests::server::{Launch, zarrd_with};

#[test]
fn occupied_port_creates_no_store() {
    let dir = tempfile::tempdir().unwrap();
    let accepted = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = accepted.local_addr().unwrap().to_string();
    for kind in ["sled", "redb"] {
        let store = format!("{kind}:{}/mistyped/{kind}", dir.path().display());
        let rejected = zarrd_with(["serve", "--store", &store, "--listen", &address]);
        assert_eq!(rejected.code, Some(6), "{rejected:?}");
        assert!(rejected.stderr.contains(&address), "{rejected:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no store was made");
}

#[test]
fn size_limits_follow_flags_and_variables() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch::sled(dir.path());
    launch.clone().arg("--commit-buffer=8MiB").arg("--max-retained=1GiB").start().stop();
    launch.clone().env("ZARRD_COMMIT_BUFFER", "8MiB").env("ZARRD_MAX_RETAINED", "1GiB").start().stop();
    for (name, flag) in [("ZARRD_COMMIT_BUFFER", "--commit-buffer"), ("ZARRD_MAX_RETAINED", "--max-retained")] {
        let rejected = launch.clone().env(name, "much").start_expecting_failure();
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.stderr.contains(flag), "{rejected:?}");
    }
}
