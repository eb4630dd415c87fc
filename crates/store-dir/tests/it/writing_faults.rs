//! Changes that are cut off: by system calls that fail, and by the end of the process at each of them.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use zarrd_store::{Precondition, Prefix, StoreError, WriteableStore};
use zarrd_store_dir::{Call, DirStore, Faults, OpenError, Options, WriteOptions};

use crate::{
    common::{Fixture, within},
    writing::{key, names, set, writing},
};

/// The system calls of changes, of which those that remove directories may fail.
const CALLS: [Call; 9] = [
    Call::CreateFile,
    Call::Write,
    Call::SetAttributes,
    Call::SyncFile,
    Call::MakeDirectory,
    Call::Rename,
    Call::SyncDirectory,
    Call::RemoveFile,
    Call::RemoveDirectory,
];

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const ESTALE: i32 = 116;
const EDQUOT: i32 = 122;

/// A store of which one system call fails, once it is armed.
async fn failing(call: Call, error: i32) -> (Fixture, Arc<AtomicUsize>) {
    let armed = Arc::new(AtomicUsize::new(0));
    let is_armed = armed.clone();
    let hook = move |made: &Call| (*made == call && is_armed.load(Ordering::SeqCst) == 1).then_some(error);
    (Fixture::with(writing().faults(Faults::default().on_call(hook))).await, armed)
}

#[tokio::test]
async fn failed_system_call_leaves_the_old_value_or_the_new_one_and_no_temporary_file() {
    for call in CALLS {
        for error in [EIO, ENOSPC, EROFS, ESTALE, EDQUOT] {
            let (fixture, armed) = failing(call, error).await;
            set(&fixture.store, "a/old", "old").await.unwrap();
            armed.store(1, Ordering::SeqCst);
            for at in ["a/old", "new/deep/value"] {
                let result = set(&fixture.store, at, "new").await;
                let expected = match (call, error) {
                    (Call::RemoveFile | Call::RemoveDirectory, _) => result.is_ok(),
                    (Call::MakeDirectory, _) if at == "a/old" => result.is_ok(),
                    (Call::SyncDirectory, _) => is_unknown(&result, at) && fixture.read(at).await.unwrap().1 == "new",
                    (_, ENOSPC | EDQUOT) => matches!(result, Err(StoreError::OutOfSpace)),
                    (_, EROFS) => matches!(result, Err(StoreError::ReadOnly)),
                    _ => matches!(&result, Err(failed) if has_source(failed, error)),
                };
                assert!(expected, "{call:?} {error} {at}: {result:?}");
            }
            let erased = within(fixture.store.erase(&key("a/old"), Precondition::none())).await;
            let erased_prefix = within(fixture.store.erase_prefix(&Prefix::parse("new/").unwrap())).await;
            match call {
                Call::RemoveFile => assert!(erased.is_err(), "{error}: {erased:?}"),
                Call::SyncDirectory => {
                    assert!(is_unknown(&erased, "a/old"), "{error}: {erased:?}");
                    fixture.assert_absent("a/old").await;
                }
                _ => {}
            }
            armed.store(0, Ordering::SeqCst);
            for name in names(fixture.dir.path()).into_iter().filter(|name| !name.ends_with('/')) {
                assert!(["a/old", "new/deep/value"].contains(&name.as_str()), "{call:?} {error} left {name}");
                let value = fs::read_to_string(fixture.path(&name)).unwrap();
                assert!(value == "new" || value == "old", "{call:?} {error} {name} {value} {erased_prefix:?}");
            }
            // All is well again.
            for at in ["a/old", "new/deep/value"] {
                let version = set(&fixture.store, at, "again").await.unwrap();
                assert_eq!(fixture.read(at).await.unwrap(), (version, "again".into()));
            }
            fixture.store.erase_prefix(&Prefix::root()).await.unwrap();
            assert_eq!(names(fixture.dir.path()), Vec::<String>::new());
        }
    }
}

/// True if a change was made, and may not be durable.
fn is_unknown<T>(result: &Result<T, StoreError>, at: &str) -> bool {
    matches!(result, Err(StoreError::OutcomeUnknown { key, .. }) if key.as_str() == at)
}

/// True if an error has this one of the system among its sources.
fn has_source(error: &StoreError, number: i32) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.raw_os_error() == Some(number)) {
            return true;
        }
        source = error.source();
    }
    false
}

#[tokio::test]
async fn directory_that_cannot_be_written_does_not_open_unless_it_is_full() {
    for (error, opens) in [(EROFS, false), (13, false), (ENOSPC, true)] {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default().on_call(move |call| (*call == Call::CreateFile).then_some(error));
        let opened = DirStore::open(dir.path(), writing().faults(faults)).await;
        assert_eq!(opened.is_ok(), opens, "{error}");
        assert!(opens || matches!(opened, Err(OpenError::NotWritable { .. })), "{error}");
    }
}

/// The directory of a store that another process writes, and the number of the call before which it is killed.
const CHILD: (&str, &str) = ("STORE_DIR_TEST_KILLED", "STORE_DIR_TEST_CALL");

/// What the other process does: sets, replaces, erases, and erases a tree.
async fn run_child(dir: &Path, fatal: usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let hook = move |_: &Call| {
        if calls.fetch_add(1, Ordering::SeqCst) == fatal {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            std::thread::sleep(Duration::from_secs(60));
        }
        None
    };
    let options = Options::new("dir:test").writes(WriteOptions::default()).faults(Faults::default().on_call(hook));
    let store = DirStore::open(dir, options).await.unwrap();
    set(&store, "a/old", &new("a/old")).await.unwrap();
    set(&store, "b/c/new", &new("b/c/new")).await.unwrap();
    store.erase(&key("e/erased"), Precondition::none()).await.unwrap();
    store.erase_prefix(&Prefix::parse("t/").unwrap()).await.unwrap();
}

/// A value that takes some writes.
fn new(at: &str) -> String {
    at.repeat(200_000)
}

const TREE: [&str; 5] = ["t/zarr.json", "t/a/zarr.json", "t/a/c/0", "t/a/c/1", "t/b/.zattrs"];

#[tokio::test]
async fn killed_writer_leaves_no_part_of_a_value_and_no_chunks_with_documents_that_are_gone_only_later() {
    if let Ok(dir) = std::env::var(CHILD.0) {
        let fatal = std::env::var(CHILD.1).unwrap().parse().unwrap();
        return run_child(Path::new(&dir), fatal).await;
    }
    for fatal in 0.. {
        let dir = tempfile::tempdir().unwrap();
        for at in ["a/old", "e/erased"].into_iter().chain(TREE) {
            let path = dir.path().join(at);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("old {at}")).unwrap();
        }
        let name = "writing_faults::killed_writer_leaves_no_part_of_a_value_and_no_chunks_with_documents_that_are_gone_only_later";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([name, "--exact"]).env(CHILD.0, dir.path()).env(CHILD.1, fatal.to_string());
        let output = child.output().unwrap();
        let was_killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
        assert!(was_killed || output.status.success(), "{output:?}");
        let left = values(dir.path());
        for (at, value) in &left {
            let is_complete = *value == format!("old {at}") || *value == new(at);
            assert!(is_complete, "{fatal}: {at} has {} bytes", value.len());
        }
        let has_documents = left.keys().any(|at| at.starts_with("t/") && at.ends_with("zarr.json"));
        assert!(!has_documents || left.contains_key("t/a/c/0") && left.contains_key("t/a/c/1"), "{fatal}: {left:?}");
        assert!(!left.contains_key("e/erased") || left.contains_key("t/zarr.json"), "{fatal}: in order");
        assert!(left.contains_key("a/old"), "{fatal}: it is replaced, not removed");
        assert_leftovers_are_swept(dir.path()).await;
        if !was_killed {
            assert_eq!(fatal, 36, "each call was one of the ends");
            assert_eq!(left.keys().collect::<Vec<_>>(), ["a/old", "b/c/new"]);
            return;
        }
    }
}

/// The values in a directory, by key.
fn values(dir: &Path) -> BTreeMap<String, String> {
    let files = names(dir).into_iter().filter(|name| !name.ends_with('/') && !name.ends_with(".partial"));
    files.map(|name| (name.clone(), fs::read_to_string(dir.join(name)).unwrap())).collect()
}

/// Makes all temporary files old, opens the store and waits until they are gone.
async fn assert_leftovers_are_swept(dir: &Path) {
    let leftovers = || names(dir).into_iter().filter(|name| name.ends_with(".partial")).collect::<Vec<_>>();
    let old = SystemTime::now() - Duration::from_secs(2 * 3600);
    for name in leftovers() {
        fs::File::options().write(true).open(dir.join(name)).unwrap().set_modified(old).unwrap();
    }
    let _store = DirStore::open(dir, writing()).await.expect("the lock of a killed process is gone");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !leftovers().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", leftovers());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A store, and the number of times that it makes the names in a directory durable.
async fn counting_syncs() -> (Fixture, Arc<AtomicUsize>) {
    let syncs = Arc::new(AtomicUsize::new(0));
    let count = syncs.clone();
    let hook = move |call: &Call| {
        count.fetch_add(usize::from(*call == Call::SyncDirectory), Ordering::SeqCst);
        None
    };
    let fixture = Fixture::with(writing().faults(Faults::default().on_call(hook))).await;
    (fixture, syncs)
}

#[tokio::test]
async fn every_directory_that_gained_a_name_is_made_durable_before_a_set_returns() {
    let (fixture, syncs) = counting_syncs().await;
    for (at, expected) in [("a/b/c/0", 4), ("a/b/c/0", 1), ("a/b/c/1", 1), ("a/b/d/1", 2), ("x", 1)] {
        let before = syncs.load(Ordering::SeqCst);
        set(&fixture.store, at, "value").await.unwrap();
        assert_eq!(syncs.load(Ordering::SeqCst) - before, expected, "{at}");
    }
    let before = syncs.load(Ordering::SeqCst);
    fixture.store.erase(&key("a/b/d/1"), Precondition::none()).await.unwrap();
    assert_eq!(syncs.load(Ordering::SeqCst) - before, 1, "of the directory that is left");
}

#[tokio::test]
async fn directories_of_other_programs_are_made_durable_before_a_set_returns() {
    let (fixture, syncs) = counting_syncs().await;
    let path = |at: &str| fixture.dir.path().join(at);
    fs::create_dir_all(path("a/b/c")).unwrap();
    for (at, expected) in [("a/b/c/0", 4), ("a/b/c/1", 1), ("a/b/2", 1)] {
        let before = syncs.load(Ordering::SeqCst);
        set(&fixture.store, at, "value").await.unwrap();
        assert_eq!(syncs.load(Ordering::SeqCst) - before, expected, "{at}");
    }
    // The directory of a path that was made again is another one, once the kernel's clock has ticked.
    tokio::time::sleep(Duration::from_millis(20)).await;
    fs::remove_dir_all(path("a/b/c")).unwrap();
    fs::create_dir(path("a/b/c")).unwrap();
    let before = syncs.load(Ordering::SeqCst);
    set(&fixture.store, "a/b/c/0", "value").await.unwrap();
    assert_eq!(syncs.load(Ordering::SeqCst) - before, 2);
}

#[tokio::test]
async fn set_in_a_directory_that_another_set_made_is_durable_with_it() {
    // The first set makes a/ and b/ and stops before it makes them durable; the second one must not rely on it.
    let (reached, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let syncs = Arc::new(AtomicUsize::new(0));
    let (first_reached, may_go, count) = (reached.clone(), go.clone(), syncs.clone());
    let hook = move |call: &Call| {
        if *call == Call::SyncDirectory {
            count.fetch_add(1, Ordering::SeqCst);
            if first_reached.fetch_add(1, Ordering::SeqCst) == 0 {
                let deadline = Instant::now() + Duration::from_secs(30);
                while may_go.load(Ordering::SeqCst) == 0 && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        None
    };
    let fixture = Fixture::with(writing().faults(Faults::default().on_call(hook))).await;
    let store = fixture.store.clone();
    let first = tokio::spawn(async move { set(&store, "a/b/first", "value").await });
    let deadline = Instant::now() + Duration::from_secs(20);
    while reached.load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < deadline, "the first set makes no directory durable");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = syncs.load(Ordering::SeqCst);
    set(&fixture.store, "a/b/second", "value").await.unwrap();
    assert_eq!(syncs.load(Ordering::SeqCst) - before, 3, "its directory and the two above");
    go.store(1, Ordering::SeqCst);
    first.await.unwrap().unwrap();
}
