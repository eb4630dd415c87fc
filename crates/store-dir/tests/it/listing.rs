//! Listings of directories.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::common::{Fixture, within};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use rustix::fs::{CWD, FileType, Mode, mkfifoat, mknodat};
use zarrd_store::{Cursor, Key, ListableStore, PageRequest, Prefix, ReadableStore, StoreError};
use zarrd_store_dir::{DirStore, Faults, FileError, Moment, OpenError, Options, Symlinks};

const NONE: [&str; 0] = [];

/// The keys that files can have together: no key is also a prefix of another one.
fn compatible(keys: Vec<String>) -> BTreeSet<String> {
    let mut chosen: BTreeSet<String> = BTreeSet::new();
    for key in keys {
        let conflicts = |other: &String| {
            *other == key || other.starts_with(&format!("{key}/")) || key.starts_with(&format!("{other}/"))
        };
        if !chosen.iter().any(conflicts) {
            chosen.insert(key);
        }
    }
    chosen
}

/// The children of a prefix, by definition.
fn children_of(keys: &BTreeSet<String>, prefix: &str) -> Vec<String> {
    let child = |key: &String| {
        let rest = key.strip_prefix(prefix)?;
        let name = rest.split_inclusive('/').next()?;
        Some(format!("{prefix}{name}"))
    };
    keys.iter().filter_map(child).collect::<BTreeSet<_>>().into_iter().collect()
}

/// `-` and `.` precede `/`, and `0` follows it.
#[test]
fn listings_agree_with_the_sorted_keys() {
    let segment =
        prop::sample::select(vec!["a", "a!", "a-", "a.", "a0", "aa", "b", "a\u{e9}", "\u{10000}", "\u{e000}"]);
    let key = vec(segment, 1..5).prop_map(|segments| segments.join("/"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) };
    let result = TestRunner::new(config).run(&(vec(key, 0..40), 1_usize..8), |(keys, limit)| {
        runtime.block_on(async {
            let fixture = Fixture::new().await;
            let keys = compatible(keys);
            keys.iter().for_each(|key| fixture.write(key, key));
            let below = |key: &String| {
                key.match_indices('/').map(|(at, _)| key.get(..=at).unwrap().to_owned()).collect::<Vec<_>>()
            };
            let mut prefixes: BTreeSet<String> = keys.iter().flat_map(below).collect();
            prefixes.extend(["", "none/", "a/none/"].map(str::to_owned));
            for prefix in prefixes {
                for limit in [limit, 1_000] {
                    let expected: Vec<_> = keys.iter().filter(|key| key.starts_with(&prefix)).cloned().collect();
                    prop_assert_eq!(fixture.keys(&prefix, limit).await, expected, "{:?}", &prefix);
                    prop_assert_eq!(
                        fixture.children(&prefix, limit).await,
                        children_of(&keys, &prefix),
                        "{:?}",
                        &prefix
                    );
                }
            }
            Ok(())
        })
    });
    result.unwrap();
}

#[tokio::test]
async fn a_directory_sorts_as_its_prefix() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["d/a", "d/a!", "d/a-b", "d/a.b", "d/b-", "d/b/x", "d/b0", "d/c"]);
    for limit in [1, 2, 3, 100] {
        let expected = ["d/a", "d/a!", "d/a-b", "d/a.b", "d/b-", "d/b/x", "d/b0", "d/c"];
        assert_eq!(fixture.keys("d/", limit).await, expected);
        let expected = ["d/a", "d/a!", "d/a-b", "d/a.b", "d/b-", "d/b/", "d/b0", "d/c"];
        assert_eq!(fixture.children("d/", limit).await, expected);
    }
}

#[tokio::test]
async fn deep_directories_are_listed_in_small_pages() {
    let fixture = Fixture::new().await;
    let mut keys = BTreeSet::new();
    for depth in 0..25 {
        for name in 0..12 {
            keys.insert(format!("{}b{name}", "a/".repeat(depth)));
            keys.insert(format!("{}c/{name}", "a/".repeat(depth)));
        }
    }
    for key in &keys {
        fs::create_dir_all(fixture.path(key).parent().unwrap()).unwrap();
        fs::write(fixture.path(key), "").unwrap();
    }
    let expected: Vec<_> = keys.into_iter().collect();
    for limit in [1, 5, 64, 10_000] {
        assert_eq!(fixture.keys("", limit).await, expected, "pages of {limit}");
    }
    // The deepest directory that a key can be in.
    let deep = format!("{}b", "a/".repeat(511));
    fixture.write(&deep, "");
    assert_eq!(fixture.keys("", 1).await.first(), Some(&deep));
}

#[tokio::test]
async fn empty_directories_have_no_keys() {
    let fixture = Fixture::new().await;
    for number in 0..1_000 {
        fs::create_dir(fixture.path(&format!("d{number}"))).unwrap();
    }
    fixture.write_names(&["d500x", "e/f/g", "z"]);
    for limit in [1, 2, 1_000] {
        assert_eq!(fixture.keys("", limit).await, ["d500x", "e/f/g", "z"], "pages of {limit}");
    }
    assert_eq!(fixture.keys("d7/", 10).await, NONE);
    assert_eq!(fixture.children("d7/", 10).await, NONE);
}

#[tokio::test]
async fn a_large_directory_is_listed_in_pages() {
    const FILES: usize = 100_000;
    let fixture = Fixture::new().await;
    fs::create_dir(fixture.path("c")).unwrap();
    let mut expected: Vec<_> = (0..FILES).map(|number| format!("c/{}.{}", number % 317, number / 317)).collect();
    for key in &expected {
        fs::File::create(fixture.path(key)).unwrap();
    }
    expected.sort_unstable();
    assert!(fixture.keys("", 10_000).await == expected);
    assert!(fixture.children("c/", 9_999).await == expected);
    let page = within(fixture.store.list_prefix(&Prefix::root(), PageRequest::first(3))).await.unwrap();
    let keys: Vec<_> = page.keys.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!((keys, page.cursor.is_some()), (expected[..3].iter().map(String::as_str).collect(), true));
}

#[tokio::test]
async fn only_regular_files_with_names_of_keys_are_listed_and_read() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let fixture = Fixture::new().await;
    fixture.write_names(&["d/a", "d/zarr.json"]);
    let temporary = [
        "d/zarr.0f5c0b7e5d1f4c1d8f3f5a0c2e9b7a61.partial",
        "d/zarr.json.__lock",
        "d/.zarr.json.a1B2c3",
        "d/.nfs000000000123abcd00000001",
        "d/.rsync-partial/zarr.json",
        "d/x.partial/a",
    ];
    fixture.write_names(&temporary);
    for bytes in [&b"d/not-utf8-\xff"[..], b"d/line\nend"] {
        fs::write(fixture.dir.path().join(OsStr::from_bytes(bytes)), "").unwrap();
    }
    mkfifoat(CWD, fixture.path("d/fifo"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(fixture.path("d/socket")).unwrap();
    // Only root can make a device.
    let _ = mknodat(CWD, fixture.path("d/device"), FileType::CharacterDevice, Mode::RWXU, rustix::fs::makedev(1, 3));
    assert_eq!(fixture.keys("", 100).await, ["d/a", "d/zarr.json"]);
    assert_eq!(fixture.children("d/", 100).await, ["d/a", "d/zarr.json"]);
    assert_eq!(fixture.keys("d/x.partial/", 100).await, NONE);
    assert_eq!(fixture.children("d/.rsync-partial/", 100).await, NONE);
    for key in temporary.into_iter().chain(["d", "d/a/below", "none", "d/none"]) {
        fixture.assert_absent(key).await;
    }
    fixture.assert_absent(&format!("d/{}", "x".repeat(300))).await;
}

#[tokio::test]
async fn links_within_the_directory_are_followed() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["d/a", "e/f/b"]);
    symlink("d/a", fixture.path("file")).unwrap();
    symlink("../e/f", fixture.path("d/dir")).unwrap();
    symlink("none", fixture.path("dangling")).unwrap();
    assert_eq!(fixture.keys("", 1).await, ["d/a", "d/dir/b", "e/f/b", "file"]);
    assert_eq!(fixture.children("", 100).await, ["d/", "e/", "file"]);
    assert_eq!(fixture.children("d/dir/", 100).await, ["d/dir/b"]);
    assert_eq!(fixture.read("d/dir/b").await.unwrap().1, "e/f/b");
    assert_eq!(fixture.read("file").await.unwrap().1, "d/a");
    assert!(fixture.get("dangling").await.is_err());
}

#[tokio::test]
async fn links_to_directories_above_do_not_make_listings_endless() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["d/e/a", "d/b"]);
    for (target, link) in [(".", "d/self"), ("..", "d/parent"), ("../..", "d/e/root"), ("../e", "d/e/again")] {
        symlink(target, fixture.path(link)).unwrap();
    }
    symlink("loop", fixture.path("loop")).unwrap();
    assert_eq!(fixture.keys("", 100).await, ["d/b", "d/e/a"]);
    assert_eq!(fixture.keys("d/self/", 100).await, ["d/self/b", "d/self/e/a"]);
    assert_eq!(fixture.children("d/", 100).await, ["d/b", "d/e/"]);
    assert_eq!(fixture.children("d/e/", 100).await, ["d/e/a"]);
}

#[tokio::test]
async fn links_out_of_the_directory_are_listed_if_all_are_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("dir")).unwrap();
    fs::write(outside.path().join("dir/file"), "outside").unwrap();
    for (symlinks, listed) in [(Symlinks::Within, vec!["a"]), (Symlinks::Follow, vec!["a", "l/file", "m"])] {
        let fixture = Fixture::with(Options::new("dir:test").symlinks(symlinks)).await;
        fixture.write("a", "");
        symlink(outside.path().join("dir"), fixture.path("l")).unwrap();
        symlink(outside.path().join("dir/file"), fixture.path("m")).unwrap();
        assert_eq!(fixture.keys("", 100).await, listed);
    }
}

#[tokio::test]
async fn a_directory_that_vanishes_is_empty() {
    let path = Arc::new(Mutex::new(None::<std::path::PathBuf>));
    let removed = Arc::clone(&path);
    let faults = Faults::default().on_moment(move |moment| {
        if let (Moment::Listing, Some(path)) = (moment, removed.lock().unwrap().take()) {
            fs::remove_dir_all(path).unwrap();
        }
    });
    let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
    for listing in 0..2 {
        fixture.write_names(&["a/b", "a/c", "d"]);
        *path.lock().unwrap() = Some(fixture.path("a"));
        if listing == 0 {
            assert_eq!(fixture.keys("a/", 100).await, NONE);
        } else {
            assert_eq!(fixture.children("a/", 100).await, NONE);
        }
        assert!(path.lock().unwrap().is_none());
    }
}

#[tokio::test]
async fn a_directory_that_cannot_be_read_fails_the_listing() {
    const PERMISSION_DENIED: i32 = 13;
    let faults = Faults::default().on_open(|path| (path == "a/closed").then_some(PERMISSION_DENIED));
    let fixture = Fixture::with(Options::new("dir:test").faults(faults)).await;
    fixture.write_names(&["a/b", "a/closed/c", "d"]);
    for prefix in ["", "a/", "a/closed/"] {
        let result = fixture.store.list_prefix(&Prefix::parse(prefix).unwrap(), PageRequest::first(100)).await;
        assert_eq!(result.unwrap_err().failed_at(), Some("a/closed/"));
    }
    assert_eq!(fixture.children("a/", 100).await, ["a/b", "a/closed/"]);
}

#[tokio::test]
async fn cursors_are_those_of_all_servers_of_one_name() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["a", "b", "c"]);
    let first = fixture.store.list(PageRequest::first(1)).await.unwrap().cursor.unwrap();
    for (name, accepted) in [("dir:test", true), ("dir:other", false)] {
        let other = zarrd_store_dir::DirStore::open(fixture.dir.path(), Options::new(name)).await.unwrap();
        let page = other.list(PageRequest::after(1, first.clone())).await;
        assert_eq!(page.is_ok_and(|page| page.keys[0].key.as_str() == "b"), accepted, "{name}");
    }
    let forged = fixture.store.list(PageRequest::after(1, Cursor::from_text("AAAAAAAAAAAA"))).await;
    assert!(matches!(forged, Err(StoreError::InvalidCursor)));
}

/// Keys that are replaced all the time are listed once, and keys that stay are not lost.
#[tokio::test(flavor = "multi_thread")]
async fn listings_are_complete_while_files_are_replaced() {
    let fixture = Fixture::new().await;
    let stable: Vec<_> = (0..300).map(|number| format!("d/{number:03}")).collect();
    stable.iter().for_each(|key| fixture.write(key, ""));
    let (path, rounds) = (fixture.path("d"), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&rounds);
    let writer = std::thread::spawn(move || {
        while Arc::strong_count(&counted) > 1 {
            for number in 0..50 {
                let busy = path.join(format!("{number:03}-busy"));
                fs::write(busy.with_extension("partial"), b"busy").unwrap();
                fs::rename(busy.with_extension("partial"), busy).unwrap();
                let _ = fs::remove_file(path.join(format!("{:03}-busy", (number + 25) % 50)));
            }
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    for limit in [7, 50, 1_000].into_iter().cycle().take(6) {
        let keys = fixture.keys("d/", limit).await;
        assert!(keys.is_sorted());
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        let found: Vec<_> = keys.into_iter().filter(|key| !key.ends_with("-busy")).collect();
        assert_eq!(found, stable, "pages of {limit}");
    }
    assert!(rounds.load(Ordering::Relaxed) > 0);
    drop(rounds);
    writer.join().unwrap();
}

/// What belongs to the server is not served, whatever leads there, and whenever it appears.
#[tokio::test]
async fn private_files_are_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    for path in [root.join("g"), outside.join("access/keys")] {
        fs::create_dir_all(path).unwrap();
    }
    fs::write(root.join("g/zarr.json"), "{}").unwrap();
    fs::write(outside.join("access/keys/1.json"), "secret").unwrap();
    fs::write(outside.join("log"), "secret").unwrap();
    let private = [outside.join("access"), outside.join("log"), outside.join("later")];
    let options = Options::new("test").symlinks(Symlinks::Follow).private(private.clone());
    let store = DirStore::open(&root, options.clone()).await.unwrap();
    let key = |text: &str| Key::parse(text).unwrap();
    let keys = async || {
        let page = store.list_prefix(&Prefix::root(), PageRequest::first(100)).await.unwrap();
        page.keys.into_iter().map(|entry| entry.key.to_string()).collect::<Vec<_>>()
    };
    symlink(outside.join("access"), root.join("access")).unwrap();
    symlink(outside.join("access/keys"), root.join("g/keys")).unwrap();
    symlink(outside.join("log"), root.join("log")).unwrap();
    fs::hard_link(outside.join("log"), root.join("g/hard")).unwrap();
    symlink(outside.join("access/keys/1.json"), root.join("key")).unwrap();
    for name in ["access/keys/1.json", "g/keys/1.json", "log", "key", "g/hard"] {
        let (value, meta) = (store.get(&key(name), None).await, store.head(&key(name)).await);
        for error in [value.map(drop).unwrap_err(), meta.map(drop).unwrap_err()] {
            assert!(error.backend_source::<FileError>().is_some(), "{name}: {error:?}");
        }
    }
    assert_eq!(keys().await, ["g/zarr.json"]);
    // It appears later, and is moved into the directory.
    fs::create_dir(outside.join("later")).unwrap();
    fs::write(outside.join("later/value"), "secret").unwrap();
    symlink(outside.join("later"), root.join("later")).unwrap();
    store.get(&key("later/value"), None).await.map(drop).unwrap_err();
    assert_eq!(keys().await, ["g/zarr.json"]);
    assert!(store.get(&key("g/zarr.json"), None).await.unwrap().is_some());
    for (root, inside) in
        [(dir.path(), false), (&outside, false), (&outside.join("access"), true), (&outside.join("access/keys"), true)]
    {
        let error = DirStore::open(root, options.clone()).await.unwrap_err();
        let is_inside = matches!(error, OpenError::InsidePrivate { .. });
        assert!(is_inside == inside && (inside || matches!(error, OpenError::ContainsPrivate { .. })), "{error:?}");
    }
    // What does not exist yet would be below.
    let options = Options::new("test").private([root.join("not/yet")]);
    assert!(matches!(DirStore::open(&root, options).await, Err(OpenError::ContainsPrivate { .. })));
    symlink(&root, dir.path().join("link")).unwrap();
    let options = Options::new("test").private([dir.path().join("link/../root/g/zarr.json")]);
    assert!(matches!(DirStore::open(&root, options).await, Err(OpenError::ContainsPrivate { .. })));
}
