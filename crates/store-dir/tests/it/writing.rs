//! Changing files: what other programs see of them, and which names are refused.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use futures::stream;
use zarrd_store::{
    BackendErrorKind, Conditions, Guarantees, Key, KeyCount, Payload, Precondition, Prefix, ReadableStore, StoreError,
    Version, WriteableStore, Writes,
};
use zarrd_store_dir::{DirStore, Durability, FileError, OpenError, Options, WriteOptions};

use crate::common::{Fixture, replace_at_once, within};

pub(crate) fn writing() -> Options {
    Options::new("dir:test").writes(WriteOptions::default())
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).unwrap()
}

pub(crate) async fn set(store: &DirStore, at: &str, value: &str) -> Result<Version, StoreError> {
    let at = key(at);
    let set = store.set(&at, value.to_owned().into(), Precondition::none());
    within(set).await.map(|written| written.version)
}

async fn erase(store: &DirStore, at: &str) -> Result<bool, StoreError> {
    within(store.erase(&key(at), Precondition::none())).await
}

/// The names of all files below a directory, and of directories with a `/` at the end.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(self::names(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
            names.push(format!("{name}/"));
        } else {
            names.push(name);
        }
    }
    names.sort_unstable();
    names
}

/// Waits until a directory has these names only.
pub(crate) async fn assert_becomes(directory: &Path, expected: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while names(directory) != expected && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(names(directory), expected);
}

#[tokio::test]
async fn store_declares_writes_of_single_keys_if_it_was_opened_for_them() {
    let fixture = Fixture::with(writing()).await;
    let expected = Guarantees {
        writes: Writes::Key,
        conditions: Conditions::ThisProcess,
        conditional_erase: true,
        ..Guarantees::READ_ONLY
    };
    assert_eq!(fixture.store.guarantees(), Guarantees { shared_names: false, near: true, ..expected });
    let reading = Fixture::new().await;
    assert_eq!(reading.store.guarantees().writes, Writes::None);
    for refused in [set(&reading.store, "a", "x").await.map(drop), erase(&reading.store, "a").await.map(drop)] {
        assert!(matches!(refused, Err(StoreError::Unsupported { what: "changes" })), "{refused:?}");
    }
    let refused = reading.store.erase_prefix(&prefix("a/")).await;
    assert!(matches!(refused, Err(StoreError::Unsupported { .. })), "{refused:?}");
    assert!(reading.store.check_writable().await.is_err());
    assert_eq!(names(reading.dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn values_are_plain_files_and_nothing_else_is_left() {
    let fixture = Fixture::with(writing()).await;
    set(&fixture.store, "a/b/zarr.json", "{}").await.unwrap();
    set(&fixture.store, "a/b/c/0", "chunk").await.unwrap();
    assert_eq!(fs::read(fixture.path("a/b/c/0")).unwrap(), b"chunk");
    assert_eq!(names(fixture.dir.path()), ["a/", "a/b/", "a/b/c/", "a/b/c/0", "a/b/zarr.json"]);
    assert!(erase(&fixture.store, "a/b/c/0").await.unwrap());
    assert_eq!(names(fixture.dir.path()), ["a/", "a/b/", "a/b/zarr.json"]);
    assert!(erase(&fixture.store, "a/b/zarr.json").await.unwrap());
    assert_eq!(names(fixture.dir.path()), Vec::<String>::new(), "and the directory of the store itself stays");
    set(&fixture.store, "d", "again").await.unwrap();
}

#[tokio::test]
async fn own_files_are_read_at_once_and_those_of_others_when_they_are_quiet() {
    // Files of others are waited for, for two seconds each: their times are whole seconds.
    let fixture = Fixture::with(writing().faults(zarrd_store_dir::Faults::default().clock_in_seconds())).await;
    let start = Instant::now();
    for number in 0..20 {
        let version = set(&fixture.store, "a/b", &number.to_string()).await.unwrap();
        assert_eq!(fixture.read("a/b").await.unwrap(), (version, number.to_string().into()));
        assert_eq!(fixture.store.head(&key("a/b")).await.unwrap().unwrap().version, version);
        assert_eq!(fixture.keys("a/", 10).await, ["a/b"]);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "files of another writer would be waited for");
    // In its place, within the size and the tick of the clock, or by another file.
    fs::write(fixture.path("a/b"), "xx").unwrap();
    let changed = Instant::now();
    assert_eq!(fixture.read("a/b").await.unwrap().1, "xx");
    // The time of change is earlier by less than a second.
    assert!(changed.elapsed() >= Duration::from_millis(900), "it may still be written");
}

#[tokio::test]
async fn versions_of_values_that_are_written_within_a_tick_differ() {
    let options = Options::new("dir:test").writes(WriteOptions::default().durability(Durability::Unsynced));
    let fixture = Fixture::with(options.faults(zarrd_store_dir::Faults::default().clock_in_seconds())).await;
    let mut versions = std::collections::HashSet::new();
    let mut inodes = std::collections::HashSet::new();
    for number in 0..3_000 {
        assert!(versions.insert(set(&fixture.store, "a", "same").await.unwrap()), "a version was assigned twice");
        inodes.insert(fs::metadata(fixture.path("a")).unwrap().ino());
        if number % 3 == 0 {
            erase(&fixture.store, "a").await.unwrap();
        }
    }
    assert!(inodes.len() < 3_000, "inodes are used again here");
}

#[tokio::test]
async fn condition_on_a_version_holds_until_any_program_changes_the_file() {
    let fixture = Fixture::with(writing()).await;
    let version = set(&fixture.store, "a", "one").await.unwrap();
    replace_at_once(&fixture.path("a"), b"two");
    let refused = fixture.store.set(&key("a"), "three".into(), Precondition::at(version)).await.unwrap_err();
    assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused:?}");
    let refused = fixture.store.erase(&key("a"), Precondition::at(version)).await.unwrap_err();
    assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused:?}");
    let current = fixture.store.head(&key("a")).await.unwrap().unwrap().version;
    let written = fixture.store.set(&key("a"), "three".into(), Precondition::at(current)).await.unwrap();
    assert!(written.replaced);
    assert_eq!(fs::read(fixture.path("a")).unwrap(), b"three");
    fs::write(fixture.path("b"), "theirs").unwrap();
    let refused = fixture.store.set(&key("b"), "ours".into(), Precondition::absent()).await.unwrap_err();
    assert!(matches!(refused, StoreError::PreconditionFailed { .. }), "{refused:?}");
    assert_eq!(fs::read(fixture.path("b")).unwrap(), b"theirs");
}

#[tokio::test]
async fn file_and_directory_of_one_name_are_a_conflict_that_names_both() {
    let fixture = Fixture::with(writing()).await;
    set(&fixture.store, "a/b/c", "value").await.unwrap();
    for (at, other) in [("a/b/c/d", "a/b/c"), ("a/b/c/d/e", "a/b/c"), ("a/b", "a/b/"), ("a", "a/")] {
        let error = set(&fixture.store, at, "new").await.unwrap_err();
        let StoreError::NameConflict { key, existing } = &error else { panic!("{at}: {error:?}") };
        assert_eq!((key.as_str(), existing.as_str()), (at, other));
        assert!(!erase(&fixture.store, at).await.unwrap(), "{at} has no value");
    }
    assert_eq!(names(fixture.dir.path()), ["a/", "a/b/", "a/b/c"]);
    // An empty directory is in nobody's way.
    fs::create_dir(fixture.path("empty")).unwrap();
    set(&fixture.store, "empty", "value").await.unwrap();
    assert_eq!(fixture.read("empty").await.unwrap().1, "value");
}

#[tokio::test]
async fn names_that_no_key_can_have_there_are_refused() {
    let fixture = Fixture::with(writing()).await;
    let long = format!("a/{}", "x".repeat(256));
    for at in ["a.partial", "a.__lock/b", "a/.zarrd.__lock", ".zarrd-1.partial", long.as_str()] {
        let error = set(&fixture.store, at, "new").await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported { .. }), "{at}: {error:?}");
        assert!(!erase(&fixture.store, at).await.unwrap(), "{at}");
    }
    assert_eq!(names(fixture.dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn links_are_never_followed_for_writing() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    for follow in [false, true] {
        let options = if follow { writing().symlinks(zarrd_store_dir::Symlinks::Follow) } else { writing() };
        let fixture = Fixture::with(options).await;
        fixture.write("d/inner/value", "inside");
        symlink(outside.path(), fixture.path("out")).unwrap();
        symlink("d/inner", fixture.path("in")).unwrap();
        symlink("d/inner/value", fixture.path("to-value")).unwrap();
        symlink("../in", fixture.path("d/again")).unwrap();
        for at in ["out/file", "out/new", "out/new/deep", "in/value", "in/new", "d/again/value"] {
            for error in
                [set(&fixture.store, at, "new").await.unwrap_err(), erase(&fixture.store, at).await.unwrap_err()]
            {
                let source = error.backend_source::<FileError>();
                assert!(matches!(source, Some(FileError::LinkOnTheWay { .. })), "{at}: {error:?}");
                assert_eq!(error.backend_kind(), Some(BackendErrorKind::PermissionDenied));
            }
        }
        let error = fixture.store.erase_prefix(&prefix("in/")).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(FileError::LinkOnTheWay { .. })), "{error:?}");
        // A link that has the name of the key is replaced or removed, and what it leads to stays.
        set(&fixture.store, "to-value", "own").await.unwrap();
        assert_eq!(fs::read(fixture.path("d/inner/value")).unwrap(), b"inside");
        assert_eq!(fs::read(fixture.path("to-value")).unwrap(), b"own");
        fixture.store.erase_prefix(&Prefix::root()).await.unwrap();
        assert_eq!(names(fixture.dir.path()), Vec::<String>::new());
        assert_eq!(fs::read(outside.path().join("file")).unwrap(), b"outside");
        assert_eq!(names(outside.path()), ["file"]);
    }
}

#[tokio::test]
async fn nothing_is_written_into_a_directory_that_took_the_place_of_the_opened_one() {
    let above = tempfile::tempdir().unwrap();
    let (path, moved) = (above.path().join("data"), above.path().join("moved"));
    fs::create_dir(&path).unwrap();
    let store = DirStore::open(&path, writing()).await.unwrap();
    set(&store, "a", "one").await.unwrap();
    fs::rename(&path, &moved).unwrap();
    let is_gone = |error: &StoreError| error.backend_kind() == Some(BackendErrorKind::Connection);
    let error = set(&store, "a", "two").await.unwrap_err();
    assert!(is_gone(&error), "{error:?}");
    fs::create_dir(&path).unwrap();
    for error in [
        set(&store, "a", "two").await.unwrap_err(),
        erase(&store, "a").await.unwrap_err(),
        store.erase_prefix(&Prefix::root()).await.unwrap_err(),
        store.check_writable().await.unwrap_err(),
    ] {
        assert!(matches!(error.backend_source(), Some(FileError::Replaced)) && is_gone(&error), "{error:?}");
    }
    assert_eq!((names(&path), names(&moved)), (vec![], vec!["a".to_owned()]));
    assert_eq!(fs::read(moved.join("a")).unwrap(), b"one");
    fs::remove_dir(&path).unwrap();
    fs::rename(&moved, &path).unwrap();
    set(&store, "a", "two").await.unwrap();
}

#[tokio::test]
async fn one_process_at_a_time_writes_into_a_directory() {
    let fixture = Fixture::with(writing()).await;
    let error = DirStore::open(fixture.dir.path(), writing()).await.unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    DirStore::open(fixture.dir.path(), Options::new("dir:test")).await.expect("readers need no lock");
    assert_eq!(names(fixture.dir.path()), Vec::<String>::new());
    let Fixture { dir, store } = fixture;
    drop(store);
    let deadline = Instant::now() + Duration::from_secs(20);
    while DirStore::open(dir.path(), writing()).await.is_err() {
        assert!(Instant::now() < deadline, "the lock ends with the store");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn names_that_differ_in_case_are_a_conflict_where_the_file_system_has_one_file_for_both() {
    let faults = zarrd_store_dir::Faults::default().ignores_case();
    let fixture = Fixture::with(writing().faults(faults)).await;
    set(&fixture.store, "lab/Temp/zarr.json", "{}").await.unwrap();
    for (at, other) in
        [("lab/Temp/ZARR.json", "lab/Temp/zarr.json"), ("lab/temp/zarr.json", "lab/Temp/"), ("LAB/Temp/new", "lab/")]
    {
        let errors = [set(&fixture.store, at, "new").await.unwrap_err(), erase(&fixture.store, at).await.unwrap_err()];
        for error in errors {
            let StoreError::NameConflict { key, existing } = &error else { panic!("{at}: {error:?}") };
            assert_eq!((key.as_str(), existing.as_str()), (at, other));
        }
    }
    let error = set(&fixture.store, "lab/temp/c/0", "new").await.unwrap_err();
    assert!(matches!(&error, StoreError::NameConflict { existing, .. } if existing == "lab/Temp/"), "{error:?}");
    assert!(!erase(&fixture.store, "lab/temp/c/0").await.unwrap());
    assert_eq!(fixture.store.erase_prefix(&prefix("LAB/")).await.unwrap(), KeyCount::exact(0));
    assert_eq!(names(fixture.dir.path()), ["lab/", "lab/Temp/", "lab/Temp/zarr.json"]);
    assert_eq!(fs::read(fixture.path("lab/Temp/zarr.json")).unwrap(), b"{}");
    set(&fixture.store, "lab/Temp/zarr.json", "new").await.expect("its own spelling");
    let mut tasks = tokio::task::JoinSet::new();
    for at in ["c/x", "c/X"] {
        let store = fixture.store.clone();
        tasks.spawn(async move { set(&store, at, at).await });
    }
    let results = tasks.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
}

#[tokio::test]
async fn cancelled_and_failed_uploads_leave_neither_file_nor_directory() {
    let fixture = Fixture::with(writing()).await;
    set(&fixture.store, "kept/value", "old").await.unwrap();
    for at in ["kept/value", "new/deep/value"] {
        let some = (0..40).map(|_| Ok(vec![7_u8; 128 << 10].into()));
        let stalled = Payload::sized(1 << 30, futures::StreamExt::chain(stream::iter(some), stream::pending()));
        let at = key(at);
        let set = fixture.store.set(&at, stalled, Precondition::none());
        assert!(tokio::time::timeout(Duration::from_millis(200), set).await.is_err());
        assert_becomes(fixture.dir.path(), &["kept/", "kept/value"]).await;
        let short = Payload::sized(3 << 20, stream::iter([Ok(vec![7_u8; 2 << 20].into())]));
        fixture.store.set(&at, short, Precondition::none()).await.unwrap_err();
        assert_becomes(fixture.dir.path(), &["kept/", "kept/value"]).await;
        let long = Payload::sized(1, stream::iter([Ok(vec![7_u8; 2 << 20].into())]));
        fixture.store.set(&at, long, Precondition::none()).await.unwrap_err();
        let refused = Precondition { if_match: Some(zarrd_store::VersionMatch::OneOf(vec![])), if_none_match: None };
        fixture.store.set(&at, "x".into(), refused).await.unwrap_err();
        assert_eq!(names(fixture.dir.path()), ["kept/", "kept/value"]);
    }
    assert_eq!(fixture.read("kept/value").await.unwrap().1, "old");
}

#[tokio::test]
async fn old_temporary_files_are_removed_when_the_store_opens_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let old = SystemTime::now() - Duration::from_secs(2 * 3600);
    let write = |at: &str, modified: Option<SystemTime>| {
        let path = dir.path().join(at);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "left").unwrap();
        if let Some(modified) = modified {
            fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        }
    };
    write("a/b/.zarrd-00000000000000010000000000000001.partial", Some(old));
    write(".zarrd-00000000000000010000000000000002.partial", Some(old));
    write("young/.zarrd-00000000000000010000000000000003.partial", None);
    write("theirs/zarr.0f5c0b7e5d1f4c1d8f3f5a0c2e9b7a61.partial", Some(old));
    write("value/.zarrd-x", Some(old));
    let _store = DirStore::open(dir.path(), writing()).await.unwrap();
    let expected = [
        "theirs/",
        "theirs/zarr.0f5c0b7e5d1f4c1d8f3f5a0c2e9b7a61.partial",
        "value/",
        "value/.zarrd-x",
        "young/",
        "young/.zarrd-00000000000000010000000000000003.partial",
    ];
    assert_becomes(dir.path(), &expected).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(names(dir.path()), expected, "the others stay");
}

#[tokio::test]
async fn new_files_have_the_mode_and_owner_that_are_given() {
    let options = WriteOptions::default().mode("640".parse().unwrap());
    let is_root = rustix::process::geteuid().is_root();
    let options = if is_root { options.owner(1_234).group(5_678) } else { options };
    let fixture = Fixture::with(Options::new("dir:test").writes(options)).await;
    set(&fixture.store, "a/b", "value").await.unwrap();
    for (at, mode) in [("a/b", 0o640), ("a", 0o750)] {
        let found = fs::metadata(fixture.path(at)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{at}");
        if is_root {
            assert_eq!((found.uid(), found.gid()), (1_234, 5_678), "{at}");
        }
    }
    // Directories that pass on their group go on to do so.
    fs::set_permissions(fixture.path("a"), fs::Permissions::from_mode(0o2775)).unwrap();
    set(&fixture.store, "a/c/d", "value").await.unwrap();
    assert_eq!(fs::metadata(fixture.path("a/c")).unwrap().permissions().mode() & 0o7777, 0o2750);
    assert_eq!(fs::metadata(fixture.path("a")).unwrap().permissions().mode() & 0o7777, 0o2775);
}

#[tokio::test]
async fn erasing_a_prefix_removes_documents_first_and_leaves_what_is_no_key() {
    let removed = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let dir = tempfile::tempdir().unwrap();
    let (seen, path) = (removed.clone(), dir.path().to_owned());
    let watch = move |call: &zarrd_store_dir::Call| {
        if *call == zarrd_store_dir::Call::RemoveFile {
            seen.lock().push(names(&path).into_iter().filter(|name| !name.ends_with('/')).collect::<Vec<_>>());
        }
        None
    };
    let faults = zarrd_store_dir::Faults::default().on_call(watch);
    let store = DirStore::open(dir.path(), writing().faults(faults)).await.unwrap();
    let tree = [
        "t/.zgroup",
        "t/.zattrs",
        "t/.zmetadata",
        "t/a/.zarray",
        "t/a/.zattrs",
        "t/a/0.0",
        "t/b/zarr.json",
        "t/b/c/0/0",
    ];
    for at in tree {
        set(&store, at, at).await.unwrap();
    }
    set(&store, "t2/zarr.json", "{}").await.unwrap();
    fs::write(dir.path().join("t/b/c/x.partial"), "of another writer").unwrap();
    assert_eq!(store.erase_prefix(&prefix("t/")).await.unwrap(), KeyCount::exact(tree.len() as u64));
    assert_eq!(names(dir.path()), ["t/", "t/b/", "t/b/c/", "t/b/c/x.partial", "t2/", "t2/zarr.json"]);
    let class = |name: &str| match name.rsplit('/').next().unwrap() {
        "zarr.json" | ".zarray" | ".zgroup" | ".zmetadata" => 0,
        ".zattrs" => 1,
        _ => 2,
    };
    let removed = removed.lock();
    let order: Vec<_> = removed
        .iter()
        .zip(removed.iter().skip(1).cloned().chain([names(dir.path())]))
        .map(|(before, after)| class(before.iter().find(|name| !after.contains(name)).unwrap()))
        .collect();
    assert_eq!(order.len(), tree.len());
    assert!(order.is_sorted(), "{order:?}");
}

#[tokio::test]
async fn prefix_of_many_directories_is_erased_completely() {
    let fixture =
        Fixture::with(Options::new("dir:test").writes(WriteOptions::default().durability(Durability::Unsynced))).await;
    for number in 0..9_000 {
        fs::create_dir_all(fixture.path(&format!("t/c/{number}"))).unwrap();
        fs::write(fixture.path(&format!("t/c/{number}/0")), "").unwrap();
    }
    fs::create_dir_all(fixture.path(&format!("t/{}", "d/".repeat(400)))).unwrap();
    set(&fixture.store, "t/zarr.json", "{}").await.unwrap();
    assert_eq!(fixture.store.erase_prefix(&prefix("t/")).await.unwrap(), KeyCount::exact(9_001));
    assert_eq!(names(fixture.dir.path()), Vec::<String>::new());
}
