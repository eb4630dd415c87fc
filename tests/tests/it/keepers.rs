//! What keepers of a store do around it: quotas, disks without inodes, and directories that are moved, replaced and copied
//! with ordinary programs.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    eventually::eventually,
    generated::Generated,
    server::{Launch, Server, zarrd_with},
};

const KINDS: [&str; 2] = ["sled", "redb"];

fn large(number: usize) -> Bytes {
    Generated::new(number as u64, 20_000).bytes()
}

async fn put(server: &Server, number: usize) -> StatusCode {
    server.put(&format!("/store/v/{number}"), large(number)).await.status()
}

/// A server on a new store with this many values, each in a file of its own.
async fn with_values(launch: &Launch, values: usize) -> Server {
    let server = launch.start();
    for number in 0..values {
        assert_eq!(put(&server, number).await, StatusCode::CREATED);
    }
    server
}

/// The first answer that is not 503: while an index that had no space is opened again, readers get that.
async fn once_open<T>(request: impl AsyncFn() -> T, status: impl Fn(&T) -> StatusCode) -> T {
    for _ in 0..200 {
        let answer = request().await;
        if status(&answer) != StatusCode::SERVICE_UNAVAILABLE {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    request().await
}

async fn holds(server: &Server, values: usize) {
    for number in 0..values {
        let target = format!("/store/v/{number}");
        let (status, body) = once_open(async || server.answer(&target).await, |(status, _)| *status).await;
        assert!(status == StatusCode::OK && body == large(number), "{number}: {status}");
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// The files and directories below a directory.
fn entries(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            waiting.extend(path.is_dir().then(|| path.clone()));
            found.insert(path);
        }
    }
    found
}

/// Sets values until one is refused.
async fn fill(server: &Server) -> usize {
    for number in 0..100_000 {
        let status = once_open(async || put(server, number).await, |status| *status).await;
        if status != StatusCode::CREATED {
            assert_eq!(status, StatusCode::INSUFFICIENT_STORAGE);
            return number;
        }
    }
    panic!("the disk is never full");
}

/// Kills a server whose disk is full, starts another one, erases, and sets again.
async fn opens_erases_and_accepts(launch: &Launch, server: Server, values: usize, give_back: impl FnOnce()) {
    let refused = once_open(async || put(&server, values).await, |status| *status).await;
    assert_eq!(refused, StatusCode::INSUFFICIENT_STORAGE);
    server.kill();
    let server = launch.start();
    holds(&server, values.min(20)).await;
    assert_eq!(server.delete("/store/v/0").await.status(), StatusCode::NO_CONTENT);
    let erased = server.delete("/store/v/").await;
    assert_eq!(erased.text().await.unwrap(), format!("{{\"erased\":{}}}", values - 1));
    give_back();
    eventually("values are accepted again", Duration::from_secs(20), async || {
        put(&server, 0).await == StatusCode::CREATED
    })
    .await;
    holds(&server, 1).await;
    server.stop();
}

#[tokio::test]
async fn store_at_its_quota_opens_and_frees_space() {
    for kind in KINDS {
        let Some(disk) = SmallDisk::mount(FileSystem::BtrfsWithQuota, 320) else { return };
        let launch = Launch::of(format_args!("{kind}:{}", disk.store().display()));
        let server = launch.start();
        let values = fill(&server).await;
        assert!(values > 1000, "{values}");
        disk.fill(0);
        opens_erases_and_accepts(&launch, server, values, || disk.remove_filler()).await;
    }
}

#[tokio::test]
async fn store_without_inodes_opens_and_frees_some() {
    for kind in KINDS {
        for file_system in [FileSystem::TmpfsOfFewInodes, FileSystem::Ext4OfFewInodes] {
            let Some(disk) = SmallDisk::mount(file_system, 256) else { return };
            let launch = Launch::of(format_args!("{kind}:{}", disk.store().display()));
            let server = launch.start();
            let values = fill(&server).await;
            assert!(values > 1000, "{values}");
            disk.take_inodes();
            opens_erases_and_accepts(&launch, server, values, || disk.give_back_inodes()).await;
        }
    }
}

/// A killed server leaves files that no key refers to. They stay for a week, unless their space is needed.
#[tokio::test]
async fn orphans_are_removed_before_a_value_is_refused() {
    for kind in KINDS {
        let Some(disk) = SmallDisk::mount(FileSystem::Ext4, 320) else { return };
        let launch = Launch::of(format_args!("{kind}:{}", disk.store().display()));
        with_values(&launch, 20).await.kill();
        // Files of the first run of the store.
        for number in 0..4 {
            let orphan = disk.store().join(format!("values/f{number}/{:016x}", (1_u64 << 40) | 0xff_ff00 | number));
            fs::write(orphan, vec![number as u8; 10 << 20]).unwrap();
        }
        let server = launch.start();
        let orphans = disk.store().join("orphans");
        eventually("orphans are found", Duration::from_secs(20), async || {
            fs::read_dir(&orphans).is_ok_and(|found| found.count() == 4)
        })
        .await;
        fs::write(orphans.join("notes.txt"), "of an administrator").unwrap();
        disk.fill(0);
        for number in 20..200 {
            let status = once_open(async || put(&server, number).await, |status| *status).await;
            assert_eq!(status, StatusCode::CREATED, "{number}");
        }
        let left: Vec<_> = fs::read_dir(&orphans).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"], "{kind}");
        holds(&server, 200).await;
        server.stop();
    }
}

/// XFS gives back the space of a removed file later, so that one block after the other was released for the same need.
#[tokio::test]
async fn no_more_ballast_is_released_than_is_needed() {
    for kind in KINDS {
        for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
            let Some(disk) = SmallDisk::mount(file_system, 512) else { return };
            let launch = Launch::of(format_args!("{kind}:{}", disk.store().display()));
            let server = launch.start();
            // So that little time passes between the last value and the full disk.
            disk.fill(48 << 20);
            for number in 0..400 {
                assert_eq!(put(&server, number).await, StatusCode::CREATED);
            }
            let ballast = || fs::read_dir(disk.store().join("ballast")).unwrap().flatten();
            let blocks = || ballast().filter(|entry| entry.file_name().to_string_lossy().parse::<u8>().is_ok()).count();
            let before = blocks();
            // The index takes the values within the next seconds.
            disk.fill(1 << 20);
            tokio::time::sleep(Duration::from_secs(4)).await;
            let released = before - blocks();
            assert!(released <= 2, "{kind} {file_system:?}: {released} of {before}");
            server.stop();
        }
    }
}

/// Overwriting what a copy shares takes new blocks, so that erasing does too.
#[tokio::test]
async fn store_that_shares_blocks_with_its_copy_erases_on_a_full_disk() {
    for kind in KINDS {
        let Some(disk) = SmallDisk::mount(FileSystem::Xfs, 512) else { return };
        let launch = Launch::of(format_args!("{kind}:{}", disk.store().display()));
        let server = with_values(&launch, 200).await;
        let mut cp = Command::new("cp");
        cp.args(["-a", "--reflink=always"]).args([disk.store(), disk.path().join("copy")]);
        assert!(cp.status().unwrap().success());
        disk.fill(0);
        assert_eq!(put(&server, 200).await, StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(server.delete("/store/v/0").await.status(), StatusCode::NO_CONTENT);
        let erased = server.delete("/store/v/").await;
        assert_eq!(erased.text().await.unwrap(), r#"{"erased":199}"#);
        disk.remove_filler();
        eventually("values are accepted again", Duration::from_secs(20), async || {
            put(&server, 0).await == StatusCode::CREATED
        })
        .await;
        server.stop();
    }
}

#[tokio::test]
async fn moved_store_goes_on_and_another_one_in_its_place_is_untouched() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let launch = |name: &str| Launch::of(format_args!("{kind}:{}", path(name).display()));
        with_values(&launch("store"), 20).await.stop();
        copy(&path("store"), &path("backup"));
        let server = launch("store").start();
        fs::rename(path("store"), path("moved")).unwrap();
        copy(&path("backup"), &path("store"));
        let restored = entries(&path("store"));
        assert_eq!(server.delete("/store/v/0").await.status(), StatusCode::NO_CONTENT);
        for number in (0..40).rev() {
            assert!(put(&server, number).await.is_success());
        }
        // Files that are replaced are removed in the background.
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(put(&server, 40).await, StatusCode::CREATED);
        server.stop();
        assert_eq!(entries(&path("store")), restored);
        for (name, values) in [("store", 20), ("moved", 41)] {
            let server = launch(name).start();
            holds(&server, values).await;
            assert_eq!(server.count_keys("").await, values);
            server.stop();
            let store = format!("{kind}:{}", path(name).display());
            assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
        }
    }
}

#[tokio::test]
async fn server_whose_files_are_replaced_or_removed_stops_writing() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let (store, backup) = (dir.path().join("store"), dir.path().join("backup"));
        let launch = Launch::of(format_args!("{kind}:{}", store.display()));
        with_values(&launch, 20).await.stop();
        copy(&store, &backup);
        for is_restored in [true, false] {
            let server = launch.start();
            for entry in fs::read_dir(&store).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
            }
            if is_restored {
                copy(&backup.join("."), &store);
            }
            let restored = entries(&store);
            server.wait_for_log("were removed or replaced while the store was open");
            assert_eq!(put(&server, 3).await, StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(server.delete("/store/v/").await.status(), StatusCode::SERVICE_UNAVAILABLE);
            server.terminate();
            assert_ne!(server.wait().code, Some(0));
            assert_eq!(entries(&store), restored);
        }
        copy(&backup.join("."), &store);
        let server = launch.start();
        holds(&server, 20).await;
        server.stop();
    }
}

#[tokio::test]
async fn copy_of_a_store_in_use_says_so_and_names_missing_values() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let (store, copied) = (dir.path().join("store"), dir.path().join("copied"));
        let server = with_values(&Launch::of(format_args!("{kind}:{}", store.display())), 20).await;
        copy(&store, &copied);
        server.stop();
        let values = entries(&copied.join("values"));
        fs::remove_file(values.iter().rfind(|path| path.is_file()).unwrap()).unwrap();
        let checked = zarrd_with(["check", "--store", &format!("{kind}:{}", copied.display())]);
        assert!(format!("{checked:?}").contains("this is a copy of a store that was in use"), "{checked:?}");
        assert_eq!(checked.code, Some(5));
        let server = Launch::of(format_args!("{kind}:{}", copied.display())).start();
        server.wait_for_log("this is a copy of a store that was in use");
        server.wait_for_log("the files of values are missing");
        assert!(server.log().contains("values=1 keys=[\"v/19\"]"), "{}", server.log());
        assert_eq!(server.get("/store/v/19").await.status(), StatusCode::INTERNAL_SERVER_ERROR);
        holds(&server, 19).await;
        // A value that is set again is there.
        assert!(put(&server, 19).await.is_success());
        holds(&server, 20).await;
        server.kill();
        let server = Launch::of(format_args!("{kind}:{}", copied.display())).start();
        assert!(!server.log().contains("this is a copy"), "{}", server.log());
        server.stop();
    }
}

#[tokio::test]
async fn copy_without_empty_directories_opens() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let launch = Launch::of(format_args!("{kind}:{}", store.display()));
        with_values(&launch, 3).await.stop();
        for path in entries(&store).into_iter().rev().filter(|path| path.is_dir()) {
            // Fails for those that are not empty.
            let _ = fs::remove_dir(path);
        }
        let checked = zarrd_with(["check", "--store", &format!("{kind}:{}", store.display())]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        let server = launch.start();
        holds(&server, 3).await;
        assert_eq!(put(&server, 300).await, StatusCode::CREATED);
        server.stop();
    }
}

#[tokio::test]
async fn store_without_its_lock_file_is_in_use_as_long_as_its_index_is() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("{kind}:{}", dir.path().join("store").display());
        let server = with_values(&Launch::of(&store), 3).await;
        fs::remove_file(dir.path().join("store/lock")).unwrap();
        for arguments in [&["check", "--store", &store][..], &["serve", "--listen", "127.0.0.1:0", "--store", &store]] {
            let ended = zarrd_with(arguments);
            assert_eq!(ended.code, Some(4), "{ended:?}");
            assert!(ended.stderr.contains("in use"), "{ended:?}");
        }
        drop(server);
    }
}
