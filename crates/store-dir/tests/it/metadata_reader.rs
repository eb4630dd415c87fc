//! Metadata of many files, one after another.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use crate::common::{Fixture, replace, within};
use rustix::fs::{CWD, Mode, mkfifoat};
use zarrd_store::{CachedMeta, Key, MetadataCache, ReadableStore, ValueMeta};
use zarrd_store_dir::{Faults, Options, Symlinks};

/// Keys of all kinds of places, in the order of a listing.
const KEYS: [&str; 14] = [
    "a",
    "a/b",
    "c",
    "d/.0.partial",
    "d/0",
    "d/1",
    "d/2",
    "d/e/0",
    "d/e/1",
    "link",
    "links/0",
    "out/0",
    "out/none",
    "pipe",
];

/// A change of files, with its name.
type Change<'c> = (&'static str, &'c dyn Fn(&Fixture));

/// A time after which each file is quiet.
const QUIET: Duration = Duration::from_millis(60);

/// The cached metadata of each key.
fn read_all(fixture: &Fixture) -> Vec<CachedMeta> {
    let mut read = fixture.store.reader().unwrap();
    KEYS.iter().map(|key| read(&Key::parse(key).unwrap())).collect()
}

/// The metadata of each key.
async fn heads(fixture: &Fixture) -> Vec<Result<Option<ValueMeta>, ()>> {
    let mut found = Vec::new();
    for key in KEYS {
        found.push(within(fixture.store.head(&Key::parse(key).unwrap())).await.map_err(drop));
    }
    found
}

/// Checks that the cached metadata of keys are current. Returns the keys without any.
async fn assert_current(fixture: &Fixture) -> Vec<&'static str> {
    let cached = read_all(fixture);
    let (mut unknown, found) = (Vec::new(), heads(fixture).await);
    for ((key, cached), found) in KEYS.into_iter().zip(cached).zip(found) {
        match cached {
            CachedMeta::Known(meta) => assert_eq!(Ok(meta), found, "{key}"),
            CachedMeta::Unknown => unknown.push(key),
        }
    }
    unknown
}

/// Repeats [`assert_current`] until the unknown keys are `expected`, for at most 10 s; returns them. What the kernel has in
/// its caches may be unknown for a moment, while a file system is mounted or a directory renamed anywhere on the machine.
async fn assert_current_until(fixture: &Fixture, expected: impl Fn(&[&str]) -> bool) -> Vec<&'static str> {
    let mut unknown = assert_current(fixture).await;
    for _ in 0..1000 {
        if expected(&unknown) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        unknown = assert_current(fixture).await;
    }
    unknown
}

#[tokio::test]
async fn cached_metadata_are_current() {
    for symlinks in [Symlinks::Within, Symlinks::Follow] {
        let fixture = Fixture::with(Options::new("dir:test").symlinks(symlinks)).await;
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("0"), "outside").unwrap();
        fixture.write_names(&["c", "d/.0.partial", "d/0", "d/1", "d/e/0", "elsewhere/d/0", "elsewhere/d/e/1"]);
        symlink("c", fixture.path("link")).unwrap();
        symlink("d", fixture.path("links")).unwrap();
        symlink(outside.path(), fixture.path("out")).unwrap();
        mkfifoat(CWD, fixture.path("pipe"), Mode::RUSR).unwrap();
        let unknown = assert_current(&fixture).await;
        assert!(["c", "d/0", "d/e/0", "pipe"].iter().all(|key| unknown.contains(key)), "nobody asked: {unknown:?}");
        // What may not be followed, and a pipe, fail in another way.
        let never: &[_] = match symlinks {
            Symlinks::Within => &["out/0", "out/none", "pipe"],
            Symlinks::Follow => &["pipe"],
        };
        assert_eq!(assert_current_until(&fixture, |unknown| unknown == never).await, never, "{symlinks:?}");
        let changes: [Change<'_>; 9] = [
            ("a file is replaced", &|at| replace(&at.path("d/0"), b"another")),
            ("a file is removed", &|at| fs::remove_file(at.path("d/1")).unwrap()),
            ("a file is created", &|at| at.write("d/2", "2")),
            ("a file takes the place of nothing", &|at| at.write("a", "a")),
            ("a directory takes the place of a file", &|at| {
                fs::remove_file(at.path("a")).unwrap();
                fs::create_dir(at.path("a")).unwrap();
                at.write("a/b", "b");
            }),
            ("a directory is replaced", &|at| {
                fs::rename(at.path("d"), at.path("former")).unwrap();
                fs::rename(at.path("elsewhere/d"), at.path("d")).unwrap();
            }),
            ("a link takes the place of a directory", &|at| {
                fs::rename(at.path("d"), at.path("latter")).unwrap();
                symlink("former", at.path("d")).unwrap();
            }),
            ("a file takes the place of a directory", &|at| {
                fs::remove_file(at.path("d")).unwrap();
                at.write("d", "d");
            }),
            ("nothing is left", &|at| {
                for entry in fs::read_dir(at.path("")).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() && !path.is_symlink() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
                        .unwrap();
                }
            }),
        ];
        for (what, change) in changes {
            change(&fixture);
            std::thread::sleep(QUIET);
            assert_current(&fixture).await;
            // The kernel does not tell without waiting that a file is no directory.
            let below_file =
                |key: &str| Path::new(key).ancestors().skip(1).any(|above| fixture.dir.path().join(above).is_file());
            let is_expected = |unknown: &[&str]| unknown.iter().all(|key| never.contains(key) || below_file(key));
            let unknown = assert_current_until(&fixture, is_expected).await;
            assert!(is_expected(&unknown), "{what}: {unknown:?}");
        }
    }
}

/// The files of a directory that was replaced are removed before their metadata are read.
#[tokio::test]
async fn what_is_removed_with_a_former_directory_is_not_absent() {
    let fixture = Fixture::new().await;
    fixture.write_names(&["d/0", "d/1", "new/0", "new/1"]);
    std::thread::sleep(QUIET);
    let keys = ["d/0", "d/1"].map(|key| Key::parse(key).unwrap());
    let first = fixture.store.reader().unwrap();
    assert_eq!(keys.each_ref().map(first), [const { CachedMeta::Unknown }; 2]);
    let mut read = fixture.store.reader().unwrap();
    assert!(matches!(read(&keys[0]), CachedMeta::Known(Some(_))));
    fs::rename(fixture.path("d"), fixture.path("former")).unwrap();
    fs::rename(fixture.path("new"), fixture.path("d")).unwrap();
    fs::remove_dir_all(fixture.path("former")).unwrap();
    std::thread::sleep(QUIET);
    let found = fixture.store.head(&keys[1]).await.unwrap();
    assert!(found.is_some());
    assert_eq!(read(&keys[1]), CachedMeta::Known(found));
    fs::remove_file(fixture.path("d/1")).unwrap();
    assert_eq!(read(&keys[1]), CachedMeta::Known(None));
}

#[tokio::test]
async fn a_file_that_may_still_be_written_is_not_known() {
    let fixture = Fixture::new().await;
    fixture.write("c", "1");
    assert_current(&fixture).await;
    fs::write(fixture.path("c"), "2").unwrap();
    assert_eq!(read_all(&fixture)[2], CachedMeta::Unknown);
}

#[tokio::test]
async fn the_directory_itself_may_be_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let make = |bytes: &str| {
        fs::create_dir(&data).unwrap();
        fs::write(data.join("c"), bytes).unwrap();
        std::thread::sleep(QUIET);
        std::os::unix::fs::chown(data.join("c"), None, None).unwrap();
        std::thread::sleep(QUIET);
    };
    make("1");
    let store = zarrd_store_dir::DirStore::open(Path::new(&data), Options::new("dir:test")).await.unwrap();
    let fixture = Fixture { dir: parent, store };
    assert_current(&fixture).await;
    let before = read_all(&fixture)[2].clone();
    assert!(matches!(before, CachedMeta::Known(Some(_))), "{before:?}");
    fs::rename(&data, fixture.path("former")).unwrap();
    assert_eq!(read_all(&fixture)[2], CachedMeta::Unknown, "there is none");
    make("2");
    assert_current(&fixture).await;
    assert_current(&fixture).await;
    let found = heads(&fixture).await[2].clone();
    assert_eq!(read_all(&fixture)[2], CachedMeta::Known(found.unwrap()));
    assert_ne!(read_all(&fixture)[2], before);
}

#[tokio::test]
async fn metadata_that_may_wait_for_a_disk_are_not_read() {
    let uncached = Fixture::with(Options::new("dir:test").faults(Faults::default().nothing_cached())).await;
    assert!(uncached.store.reader().is_none());
}
