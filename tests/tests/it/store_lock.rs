//! A store has one server at a time.

use zarrd_tests::{
    server::{Launch, zarrd_with},
    skip::skip,
};

#[test]
fn second_server_fails_and_names_the_lock_owner() {
    let dir = tempfile::tempdir().unwrap();
    let first = Launch::sled(dir.path()).start();
    let rejected = Launch::sled(dir.path()).start_expecting_failure();
    assert_eq!(rejected.code, Some(4), "{rejected:?}");
    assert!(rejected.stderr.contains(&first.pid().to_string()), "{rejected:?}");
    let checked = zarrd_with(["check", "--store", dir.path().to_str().unwrap()]);
    assert_eq!(checked.code, Some(4), "{checked:?}");
    // The first server is unaffected, and its end releases the lock, even after a kill.
    first.kill();
    Launch::sled(dir.path()).start().stop();
}

/// In memory, where opening takes no time, a lock released late would be noticed.
#[test]
fn new_store_starts_repeatedly() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        skip("a file system in memory at /dev/shm");
        return;
    };
    for kind in ["sled", "redb"] {
        for number in 0..20 {
            Launch::of(format_args!("{kind}:{}/{kind}-{number}", dir.path().display())).start().stop();
        }
    }
}
