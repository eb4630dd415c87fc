//! A store copy that was interrupted does not open.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use zarrd_store::{Key, Precondition, WriteableStore};
use zarrd_tests::{
    generated::Generated,
    server::{Ended, Launch, Process, Signal, zarrd_with},
};

const VALUES: u64 = 60;

async fn fill(dir: &Path) {
    let server = Launch::sled(dir).start();
    let store = server.store();
    for number in 0..VALUES {
        let size = if number.is_multiple_of(3) { 400_000 } else { 100 };
        let key = Key::parse(&format!("values/{number}")).unwrap();
        store.set(&key, Generated::new(number, size).content(), Precondition::none()).await.unwrap();
    }
    server.stop();
}

fn says_so(rejected: &Ended) {
    assert_eq!(rejected.code, Some(3), "{rejected:?}");
    assert!(rejected.stderr.contains("did not finish") && rejected.stderr.contains("remove it"), "{rejected:?}");
}

fn is_rejected(store: &str, dir: &Path) {
    let never = dir.join("never");
    says_so(&Launch::of(store).start_expecting_failure());
    for command in ["check", "ls", "tree", "info"] {
        says_so(&zarrd_with([command, "--store", store]));
    }
    says_so(&zarrd_with(["export", "", never.to_str().unwrap(), "--store", store]));
    says_so(&zarrd_with(["copy", store, never.to_str().unwrap()]));
    assert!(!never.exists());
}

#[tokio::test]
async fn killed_copy_is_rejected_and_finished_copy_opens() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    fill(&from).await;
    let mut killed = 0;
    for kind in ["sled", "redb"] {
        for round in 0..12 {
            let to = dir.path().join(format!("{kind}-{round}"));
            let store = format!("{kind}:{}", to.display());
            let mut copy = Process::start(["copy", from.to_str().unwrap(), &store, "--jobs", "1"], []);
            let started = Instant::now();
            while !to.join("incomplete").exists() && started.elapsed() < Duration::from_secs(20) && copy.is_running() {}
            std::thread::sleep(Duration::from_millis(rand::random_range(0..150)));
            copy.signal(Signal::KILL);
            let ended = copy.wait();
            if ended.code == Some(0) || !to.join("incomplete").exists() {
                Launch::of(&store).start().stop();
                let checked = zarrd_with(["check", "--store", &store]);
                assert!(checked.stdout.contains(&format!("\"keys\":{VALUES},")), "all of it or nothing: {checked:?}");
            } else if round < 2 {
                killed += 1;
                is_rejected(&store, dir.path());
            } else {
                killed += 1;
                says_so(&Launch::of(&store).start_expecting_failure());
            }
        }
    }
    assert!(killed > 3, "copies are killed in the middle, not {killed}");
}

#[tokio::test]
async fn stopped_and_repeated_copies_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    fill(&from).await;
    let to = dir.path().join("to");
    let (from, store) = (from.to_str().unwrap(), to.to_str().unwrap());
    let copy = Process::start(["copy", from, store, "--jobs", "1"], []);
    while !to.join("values").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    copy.signal(Signal::TERM);
    assert_eq!(copy.wait().code, Some(143));
    is_rejected(store, dir.path());
    assert_eq!(zarrd_with(["copy", from, store]).code, Some(2), "it is not empty");
    fs::remove_dir_all(&to).unwrap();
    assert_eq!(zarrd_with(["copy", from, store]).code, Some(0));
    assert!(!to.join("incomplete").exists());
    Launch::of(store).start().stop();
}
