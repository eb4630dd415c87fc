//! Reads of files that do not change, and of what is no value.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener, process::CommandExt},
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::common::{Fixture, read_to_end, replace};
use rustix::fs::{CWD, Mode, mkfifoat};
use zarrd_store::{
    BackendErrorKind, ByteRange, CachedMeta, Key, Keyed, ListableStore, MetadataCache, PageRequest, Prefix,
    ReadableStore, SnapshotStore, StoreError,
};
use zarrd_store_dir::{DirStore, Faults, FileError, Moment, OpenError, Options, Symlinks};

/// The error below a failed read, which names the key.
fn file_error(error: &StoreError) -> &FileError {
    assert!(error.failed_at().is_some(), "{error:?}");
    error.backend_source().unwrap_or_else(|| panic!("{error:?}"))
}

/// The texts of an error and its sources.
fn texts(error: &StoreError) -> String {
    let mut texts = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        texts = format!("{texts}: {error}");
        cause = error.source();
    }
    texts
}

#[tokio::test]
async fn a_value_is_its_file() {
    let fixture = Fixture::new().await;
    for size in [0, 1, 4_096, 1 << 20, (1 << 20) + 1, 3_000_000] {
        let bytes: Vec<u8> = (0..size).map(|at: u32| (at / 7) as u8).collect();
        fixture.write("a/b", &bytes);
        let value = fixture.get("a/b").await.unwrap().unwrap();
        assert_eq!((value.meta.size, value.range.clone()), (u64::from(size), 0..u64::from(size)));
        assert_eq!(fixture.store.head(&Key::parse("a/b").unwrap()).await.unwrap(), Some(value.meta.clone()));
        assert!(read_to_end(value).await.unwrap() == bytes);
        let middle = size as usize / 3;
        let range = ByteRange::From(middle as u64);
        let result = fixture.store.get(&Key::parse("a/b").unwrap(), Some(range)).await;
        if size == 0 {
            assert!(matches!(result, Err(StoreError::RangeNotSatisfiable { .. })));
        } else {
            assert!(read_to_end(result.unwrap().unwrap()).await.unwrap() == bytes[middle..]);
        }
    }
}

/// A file that was written just now may still be changed in the same tick of the clock, so it is waited for.
#[tokio::test]
async fn what_the_kernel_remembers_is_known_at_once() {
    let fixture = Fixture::new().await;
    let key = |key: &str| Key::parse(key).unwrap();
    fixture.write("a/b", b"1");
    assert_eq!(fixture.store.cached(&key("a/b")), CachedMeta::Unknown);
    let meta = fixture.store.head(&key("a/b")).await.unwrap();
    assert!(meta.is_some());
    assert_eq!(fixture.store.cached(&key("a/b")), CachedMeta::Known(meta));
    for absent in ["a", "a/c", "a/.hidden"] {
        let _ = fixture.store.head(&key(absent)).await;
        assert_eq!(fixture.store.cached(&key(absent)), CachedMeta::Known(None), "{absent}");
    }
    fs::remove_file(fixture.path("a/b")).unwrap();
    assert_eq!(fixture.store.head(&key("a/b")).await.unwrap(), None);
    assert_eq!(fixture.store.cached(&key("a/b")), CachedMeta::Known(None));
    let uncached = Fixture::with(Options::new("dir:test").faults(Faults::default().nothing_cached())).await;
    uncached.write("a", b"1");
    uncached.store.head(&key("a")).await.unwrap();
    assert_eq!(uncached.store.cached(&key("a")), CachedMeta::Unknown);
}

/// To switch threads would take longer than to read a value.
#[tokio::test]
async fn a_value_in_memory_is_read_on_the_calling_thread() {
    for (faults, here) in [(Faults::default(), true), (Faults::default().nothing_cached(), false)] {
        let threads = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&threads);
        let faults = faults.on_moment(move |moment| {
            if *moment == Moment::Read {
                seen.lock().unwrap().push(std::thread::current().id());
            }
        });
        let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
        fixture.write("a", vec![1; 2 << 20]);
        fixture.read("a").await.unwrap();
        let calling = std::thread::current().id();
        let threads = threads.lock().unwrap();
        assert_eq!(threads.len(), 8);
        assert!(threads.iter().all(|thread| (*thread == calling) == here), "{threads:?}");
    }
}

#[tokio::test]
async fn versions_are_those_of_all_servers_of_one_name() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["a", "b"]);
    let version = fixture.read("a").await.unwrap().0;
    for (name, equal) in [("dir:test", true), ("dir:other", false)] {
        let other = DirStore::open(fixture.dir.path(), Options::new(name)).await.unwrap();
        let found = other.head(&Key::parse("a").unwrap()).await.unwrap().unwrap().version;
        assert_eq!(found == version, equal, "{name}");
    }
    let listed = fixture.store.list(PageRequest::first(1)).await.unwrap().keys[0].meta.version;
    assert_eq!(listed, version);
    replace(&fixture.path("a"), b"a");
    assert_ne!(fixture.read("a").await.unwrap().0, version);
}

#[tokio::test]
async fn links_out_of_the_directory_are_errors_unless_all_are_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    let options = |symlinks| Options::new("dir:test").symlinks(symlinks);
    for symlinks in [Symlinks::Within, Symlinks::Follow] {
        let fixture = Fixture::with(options(symlinks)).await;
        fixture.write("d/inside", "inside");
        symlink(outside.path(), fixture.path("d/absolute")).unwrap();
        let up = format!("../../{}", outside.path().file_name().unwrap().to_str().unwrap());
        symlink(&up, fixture.path("d/relative")).unwrap();
        symlink(fixture.path("d/inside"), fixture.path("d/to-inside")).unwrap();
        for (key, expected) in
            [("d/absolute/file", "outside"), ("d/relative/file", "outside"), ("d/to-inside", "inside")]
        {
            let result = fixture.read(key).await;
            if symlinks == Symlinks::Follow {
                assert_eq!(result.unwrap().1, expected, "{key}");
                continue;
            }
            let error = result.unwrap_err();
            let FileError::OutsideOfDirectory { path } = file_error(&error) else { panic!("{error:?}") };
            assert_eq!((path.as_str(), error.failed_at()), (key, Some(key)));
            assert!(!texts(&error).contains(outside.path().to_str().unwrap()), "{error:?}");
            let reason = error.reason().unwrap();
            assert!(reason.contains(key) && reason.contains("`?symlinks=follow`"), "{reason}");
            assert!(!reason.contains(outside.path().to_str().unwrap()), "{reason}");
            let head = fixture.store.head(&Key::parse(key).unwrap()).await.unwrap_err();
            assert!(matches!(file_error(&head), FileError::OutsideOfDirectory { .. }));
        }
    }
}

#[tokio::test]
async fn links_to_themselves_are_errors() {
    for symlinks in [Symlinks::Within, Symlinks::Follow] {
        let fixture = Fixture::with(Options::new("dir:test").symlinks(symlinks)).await;
        symlink("loop", fixture.path("loop")).unwrap();
        symlink("..", fixture.path("up")).unwrap();
        for key in ["loop", "loop/a"] {
            let error = fixture.read(key).await.unwrap_err();
            assert!(matches!(file_error(&error), FileError::System { path, .. } if path == key), "{error:?}");
            assert_eq!(error.failed_at(), Some(key));
        }
        if symlinks == Symlinks::Within {
            assert!(matches!(
                file_error(&fixture.read("up/a").await.unwrap_err()),
                FileError::OutsideOfDirectory { .. }
            ));
        }
    }
}

/// Links below `/proc` lead to files without a path.
#[tokio::test]
async fn magic_links_are_never_followed() {
    let fixture = Fixture::with(Options::new("dir:test").symlinks(Symlinks::Follow)).await;
    symlink("/proc/self/exe", fixture.path("exe")).unwrap();
    symlink("/proc/self/root", fixture.path("root")).unwrap();
    for key in ["exe", "root/etc/passwd"] {
        let error = fixture.read(key).await.unwrap_err();
        assert!(matches!(file_error(&error), FileError::System { .. }), "{error:?}");
    }
}

/// Each way to read a key, with and without a thread that may wait.
async fn assert_no_value_and_no_absence(fixture: &Fixture, key: &str, is_cause: fn(&FileError) -> bool) {
    let at = Key::parse(key).unwrap();
    let keyed = Keyed::new(fixture.store.clone(), fixture.store.guarantees());
    let snapshot = keyed.snapshot(std::slice::from_ref(&at)).await.unwrap();
    for _ in 0..2 {
        if let Some(mut read) = fixture.store.reader() {
            assert_eq!(read(&at), CachedMeta::Unknown, "{key}");
        }
    }
    assert_eq!(fixture.store.cached(&at), CachedMeta::Unknown, "{key}");
    for error in [
        fixture.get(key).await.map(drop).unwrap_err(),
        fixture.store.head(&at).await.unwrap_err(),
        fixture.store.get_if_match(&at, None, zarrd_store::Version::from_u128(1)).await.map(drop).unwrap_err(),
        fixture.store.get(&at, Some(ByteRange::From(1))).await.map(drop).unwrap_err(),
        snapshot.meta(&at).await.unwrap_err(),
        snapshot.get(&at, None).await.map(drop).unwrap_err(),
    ] {
        assert_eq!(error.failed_at(), Some(key), "{error:?}");
        assert!(is_cause(file_error(&error)), "{error:?}");
    }
}

/// Files that are in memory, so that they are looked at at once, and others, in each mode of links.
fn modes() -> Vec<Options> {
    let faults = [Faults::default(), Faults::default().nothing_cached()];
    let modes = faults.iter().flat_map(|faults| [Symlinks::Within, Symlinks::Follow].map(|links| (faults, links)));
    modes.map(|(faults, links)| Options::new("dir:test").faults(faults.clone()).symlinks(links)).collect()
}

#[tokio::test]
async fn what_is_no_regular_file_is_not_opened_and_not_absent() {
    for options in modes() {
        let fixture = Fixture::with(options).await;
        mkfifoat(CWD, fixture.path("fifo"), Mode::RWXU).unwrap();
        let _socket = UnixListener::bind(fixture.path("socket")).unwrap();
        symlink("fifo", fixture.path("link")).unwrap();
        for key in ["fifo", "socket", "link", "fifo/a", "link/a"] {
            assert_no_value_and_no_absence(&fixture, key, |error| matches!(error, FileError::Special { .. })).await;
        }
        assert_eq!(fixture.keys("", 10).await, [""; 0]);
        assert_eq!(fixture.children("", 10).await, [""; 0]);
    }
    let fixture = Fixture::with(Options::new("dir:test").symlinks(Symlinks::Follow)).await;
    symlink("/dev/zero", fixture.path("device")).unwrap();
    assert_no_value_and_no_absence(&fixture, "device", |error| matches!(error, FileError::Special { .. })).await;
}

/// The file system that a link leads to may not be mounted at the moment.
#[tokio::test]
async fn a_link_to_nothing_is_no_absence() {
    for options in modes() {
        let fixture = Fixture::with(options).await;
        fs::create_dir(fixture.path("d")).unwrap();
        for (target, link) in [("none", "link"), ("../none/c", "d/c"), ("link", "again"), ("d", "into")] {
            symlink(target, fixture.path(link)).unwrap();
        }
        for key in ["link", "d/c", "d/c/0", "link/0/1", "again", "again/0", "into/c", "into/c/0"] {
            let is_cause = |error: &FileError| matches!(error, FileError::LinkToNothing { .. });
            assert_no_value_and_no_absence(&fixture, key, is_cause).await;
        }
        assert_eq!(fixture.keys("", 10).await, [""; 0]);
        assert_eq!(fixture.children("", 10).await, ["d/", "into/"]);
        let below = fixture.store.list_dir(&Prefix::parse("d/c/").unwrap(), PageRequest::first(1)).await;
        assert_eq!(below.unwrap_err().failed_at(), Some("d/c/"));
    }
}

/// Directories are prefixes of keys, and there are no keys below the file of a value: programs ask for the documents of
/// a node that is a chunk.
#[tokio::test]
async fn what_is_missing_or_in_the_place_of_a_prefix_is_absent() {
    for options in modes() {
        let fixture = Fixture::with(options).await;
        fixture.write_names(&["a/b", "v/0"]);
        for (target, link) in [("a", "links"), ("a/b", "link"), ("../v/0", "a/link")] {
            symlink(target, fixture.path(link)).unwrap();
        }
        for key in [
            "a",
            "links",
            "none",
            "a/none",
            "links/none",
            "none/none/none",
            "links/none/none",
            "a/b/zarr.json",
            "links/b/0/zarr.json",
            "link/zarr.json",
            "a/link/zarr.json",
            "v/0/.zarray",
        ] {
            for _ in 0..2 {
                fixture.assert_absent(key).await;
            }
        }
        assert!(fixture.children("a/b/", 10).await.is_empty() && fixture.keys("link/", 10).await.is_empty());
        assert_eq!(fixture.read("links/link").await.unwrap().1, "v/0");
    }
}

#[tokio::test]
async fn a_fifo_that_takes_the_place_of_a_file_does_not_block() {
    let dir = Arc::new(std::sync::Mutex::new(None::<std::path::PathBuf>));
    let replaced = Arc::clone(&dir);
    let faults = Faults::default().on_moment(move |moment| {
        if let (Moment::Checked, Some(path)) = (moment, replaced.lock().unwrap().take()) {
            fs::remove_file(&path).unwrap();
            mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        }
    });
    let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
    fixture.write("a", "a");
    *dir.lock().unwrap() = Some(fixture.path("a"));
    let error = fixture.get("a").await.map(drop).unwrap_err();
    assert!(matches!(file_error(&error), FileError::Special { .. }), "{error:?}");
    assert!(dir.lock().unwrap().is_none());
}

#[tokio::test]
async fn a_fifo_that_takes_the_place_of_a_file_that_was_looked_at_is_no_value() {
    let fixture = Fixture::new().await;
    fixture.write("a", "a");
    let key = Key::parse("a").unwrap();
    let version = fixture.store.head(&key).await.unwrap().unwrap().version;
    tokio::time::sleep(crate::common::TICK).await;
    fs::remove_file(fixture.path("a")).unwrap();
    mkfifoat(CWD, fixture.path("a"), Mode::RWXU).unwrap();
    let open = fixture.store.get_if_match(&key, None, version).await.unwrap().unwrap();
    assert_eq!(open.bytes().await.unwrap(), "a", "the file that was waited for is open");
    let other = DirStore::open(fixture.dir.path(), Options::new("dir:test")).await.unwrap();
    let error = other.get_if_match(&key, None, version).await.map(drop).unwrap_err();
    assert!(matches!(file_error(&error), FileError::Special { .. }), "{error:?}");
}

#[tokio::test]
async fn errors_of_the_system_are_not_absence() {
    const ABSENT: [i32; 3] = [2, 20, 36];
    let file_systems = [Faults::default(), Faults::default().nothing_cached()];
    let numbers = [2, 5, 11, 12, 13, 20, 23, 24, 36, 40, 107, 116];
    for (number, faults) in file_systems.into_iter().flat_map(|faults| numbers.map(|number| (number, faults.clone()))) {
        let faults = faults.on_open(move |path| (path == "a/b").then_some(number));
        let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
        fixture.write("a/b", "b");
        if ABSENT.contains(&number) {
            fixture.assert_absent("a/b").await;
            continue;
        }
        let error = fixture.read("a/b").await.unwrap_err();
        match number {
            // EAGAIN and ESTALE after all tries, ENFILE and EMFILE.
            11 | 116 | 23 | 24 => assert!(matches!(error, StoreError::Busy { retry_after: Some(_) }), "{error:?}"),
            // ENOMEM concerns the machine, and no file.
            12 => assert!(matches!(error, StoreError::Io { .. }), "{error:?}"),
            _ => assert!(
                error.failed_at() == Some("a/b")
                    && matches!(file_error(&error), FileError::System { path, source, .. }
                if path == "a/b" && source.raw_os_error() == Some(number)),
                "{error:?}"
            ),
        }
    }
}

#[tokio::test]
async fn an_open_that_fails_because_of_renames_is_tried_again() {
    let failures = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&failures);
    // EAGAIN for all but the 40th call.
    let faults =
        Faults::default().on_open(move |_| (!counted.fetch_add(1, Ordering::Relaxed).is_multiple_of(40)).then_some(11));
    let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
    fixture.write("a", "a");
    assert_eq!(fixture.read("a").await.unwrap().1, "a");
    assert!(failures.load(Ordering::Relaxed) > 40);
}

#[tokio::test]
async fn the_directory_may_be_replaced() {
    let fixture = Fixture::new().await;
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a"), "old").unwrap();
    let store = DirStore::open(&data, Options::new("dir:data")).await.unwrap();
    let fixture = Fixture { store, ..fixture };
    assert_eq!(fixture.read("a").await.unwrap().1, "old");
    fs::rename(&data, parent.path().join("former")).unwrap();
    let key = Key::parse("a").unwrap();
    for error in [
        fixture.get("a").await.unwrap_err(),
        fixture.store.head(&key).await.unwrap_err(),
        fixture.store.get_if_match(&key, None, zarrd_store::Version::from_u128(1)).await.unwrap_err(),
        Keyed::new(fixture.store.clone(), fixture.store.guarantees())
            .snapshot(std::slice::from_ref(&key))
            .await
            .unwrap()
            .meta(&key)
            .await
            .unwrap_err(),
    ] {
        assert_eq!((error.failed_at(), error.backend_kind()), (Some("a"), Some(BackendErrorKind::Connection)));
        assert!(matches!(file_error(&error), FileError::Root(_)), "{error:?}");
        assert!(!texts(&error).contains(parent.path().to_str().unwrap()), "{error:?}");
    }
    let error = fixture.store.list(PageRequest::first(1)).await.unwrap_err();
    assert!(matches!(file_error(&error), FileError::Root(_)), "{error:?}");
    assert_eq!(fixture.store.cached(&key), CachedMeta::Unknown);
    fs::create_dir(&data).unwrap();
    fixture.assert_absent("a").await;
    fs::write(data.join("a"), "new").unwrap();
    assert_eq!(fixture.read("a").await.unwrap().1, "new");
    assert_eq!(fixture.keys("", 10).await, ["a"]);
}

#[tokio::test]
async fn only_directories_can_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for name in ["file", "none", "file/none"] {
        let result = DirStore::open(&dir.path().join(name), Options::new("dir:test")).await;
        assert!(matches!(result, Err(OpenError::Directory { .. })), "{name}: {result:?}");
    }
}

/// Set for the process that has no right to read the directory that it names.
const CLOSED: &str = "STORE_DIR_TEST_CLOSED";

/// The user `nobody`.
const NOBODY: u32 = 65_534;

#[test]
fn a_file_or_directory_without_permission_is_an_error() {
    if let Ok(dir) = std::env::var(CLOSED) {
        return assert_permission_is_denied(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    for (path, mode) in [("open/a", 0o644), ("open/closed", 0o000), ("dir/a", 0o644)] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "a").unwrap();
        set_mode(&path, mode);
    }
    // The other process is the same program as another user, who needs it in a directory that is open to all.
    let program = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for (path, mode) in [("program", 0o755), ("open", 0o755), ("dir", 0o000), ("", 0o755)] {
        set_mode(&dir.path().join(path), mode);
    }
    let mut command = Command::new(&program);
    command.args(["a_file_or_directory_without_permission_is_an_error", "--exact"]).env(CLOSED, dir.path());
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    set_mode(&dir.path().join("dir"), 0o755);
    assert!(output.status.success(), "{output:?}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn assert_permission_is_denied(dir: &Path) {
    let denied = |error: &StoreError, key: &str| {
        matches!(file_error(error), FileError::System { path, source, .. }
        if path == key && source.kind() == std::io::ErrorKind::PermissionDenied)
            && error.backend_kind() == Some(BackendErrorKind::PermissionDenied)
            && error.failed_at() == Some(key)
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let store = DirStore::open(dir, Options::new("dir:test")).await.unwrap();
        let get = async |key: &str| store.get(&Key::parse(key).unwrap(), None).await;
        assert_eq!(get("open/a").await.unwrap().unwrap().bytes().await.unwrap(), "a");
        for key in ["open/closed", "dir/a", "dir/none"] {
            let error = get(key).await.unwrap_err();
            assert!(denied(&error, key), "{error:?}");
        }
        let prefix = |text| zarrd_store::Prefix::parse(text).unwrap();
        for listed in ["", "dir/"] {
            let error = store.list_prefix(&prefix(listed), PageRequest::first(10)).await.unwrap_err();
            assert!(denied(&error, "dir/"), "{error:?}");
        }
        assert_eq!(store.list_prefix(&prefix("open/"), PageRequest::first(10)).await.unwrap().keys.len(), 2);
    });
}
