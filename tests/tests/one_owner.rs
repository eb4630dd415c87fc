//! A store has one server at a time.

use zarrd_tests::server::{Launch, zarrd_with};

#[test]
fn a_second_server_is_refused_and_told_who_holds_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let first = Launch::sled(dir.path()).start();
    let refused = Launch::sled(dir.path()).start_refused();
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains(&first.pid().to_string()), "{refused:?}");
    let checked = zarrd_with(["check", "--store", dir.path().to_str().unwrap()]);
    assert_eq!(checked.code, Some(4), "{checked:?}");
    // It did not disturb the first, whose end makes room, also a sudden one.
    first.kill();
    Launch::sled(dir.path()).start().stop();
}
