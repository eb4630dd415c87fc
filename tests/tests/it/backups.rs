//! Backups: taken of running and stopped servers, restored, and compared with what the server had at one commit.

mod writers;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use http::{Method, StatusCode};
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    generated::Generated,
    server::{Ended, Launch, Process, Server, Signal, zarrd_with, zarrd_with_environment},
};

use self::writers::{Writers, is_of_one_commit};

/// A backup directory, and a number for the directories of restored stores.
struct Site {
    dir: tempfile::TempDir,
    restored: AtomicU32,
}

impl Site {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), restored: AtomicU32::new(0) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn back_up(&self, server: &Server, arguments: &[&str]) -> Ended {
        let url = server.url("");
        let backup = self.text("backup");
        zarrd_with([&["backup", backup.as_str(), "--server", url.as_str()], arguments].concat())
    }

    /// Restores the newest backup, and serves it.
    fn restore(&self, kind: &str) -> Server {
        let to =
            format!("{kind}:{}", self.text(&format!("restored-{}", self.restored.fetch_add(1, Ordering::Relaxed))));
        let restored = zarrd_with(["restore", &self.text("backup"), &to, "--without-access"]);
        assert_eq!(restored.code, Some(0), "{restored:?}");
        Launch::of(to).start()
    }

    /// The files of values.
    fn values(&self) -> usize {
        let directories = fs::read_dir(self.path("backup/values")).unwrap();
        directories.map(|directory| fs::read_dir(directory.unwrap().path()).unwrap().count()).sum()
    }
}

/// The number of copies that are made of one store: writers go on adding keys, which are compared each time.
const MAX_ROUNDS_OF_A_STORE: usize = 10;

/// The numbers of copies that are made while writers go on, of one store after the other: 4 of a single one, or as many as
/// `ZARRD_BACKUP_ROUNDS` says.
fn rounds_of_stores() -> impl Iterator<Item = usize> {
    let all: usize = std::env::var("ZARRD_BACKUP_ROUNDS").map_or(4, |rounds| rounds.parse().unwrap());
    (0..all).step_by(MAX_ROUNDS_OF_A_STORE).map(move |done| MAX_ROUNDS_OF_A_STORE.min(all - done))
}

fn large(number: usize) -> Vec<u8> {
    Generated::new(number as u64, 20_000).bytes().to_vec()
}

async fn created(server: &Server, path: &str, body: impl Into<reqwest::Body>) {
    let status = server.put(path, body).await.status();
    assert!(status.is_success(), "{path}: {status}");
}

#[tokio::test]
async fn backups_beside_writers_are_of_one_commit() {
    for (kind, other) in [("sled", "redb"), ("redb", "sled")] {
        for rounds in rounds_of_stores() {
            back_up_during_writes(kind, other, rounds).await;
        }
    }
}

async fn back_up_during_writes(kind: &str, other: &str, rounds: usize) {
    let site = Site::new();
    let server = Launch::of(format_args!("{kind}:{}", site.text("data"))).start();
    let writers = Writers::start(&server).await;
    for round in 0..rounds {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let acknowledged = writers.acknowledged();
        let taken = site.back_up(&server, &["--keep", "2"]);
        assert_eq!(taken.code, Some(0), "{taken:?}");
        let restored = site.restore(if round % 2 == 0 { kind } else { other });
        is_of_one_commit(&restored, acknowledged).await;
    }
    writers.stop().await;
    let listed = zarrd_with(["restore", &site.text("backup"), "--list"]).stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    server.stop();
}

#[tokio::test]
async fn exports_and_imports_beside_writers_are_of_one_commit() {
    for rounds in rounds_of_stores() {
        copy_during_writes(rounds).await;
    }
}

fn succeeds(arguments: &[&str]) {
    let ended = zarrd_with(arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

async fn copy_during_writes(rounds: usize) {
    let site = Site::new();
    let server = Launch::sled(&site.path("data")).start();
    let writers = Writers::start(&server).await;
    for round in 0..rounds {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let acknowledged = writers.acknowledged();
        let to = site.text(&format!("copy-{round}"));
        let source = server.url("/store/");
        let copy = match round % 3 {
            0 => {
                succeeds(&["export", "", &to, "--server", &server.url("")]);
                Launch::of(format_args!("dir:{to}")).start()
            }
            1 => {
                succeeds(&["import", &source, "", "--store", &to]);
                Launch::of(to).start()
            }
            _ => {
                let copy = Launch::of(to).start();
                succeeds(&["import", &source, "", "--server", &copy.url("")]);
                copy
            }
        };
        is_of_one_commit(&copy, acknowledged).await;
    }
    writers.stop().await;
    // Nothing is left of the snapshots.
    let taken = server.request(Method::POST, "/snapshot").send().await.unwrap();
    assert_eq!(taken.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn backups_have_only_what_is_new() {
    let site = Site::new();
    let server = Launch::sled(&site.path("data")).start();
    for number in 0..60 {
        created(&server, &format!("/store/v/{number}"), large(number)).await;
        created(&server, &format!("/store/s/{number}"), format!("{number}")).await;
    }
    let first = site.back_up(&server, &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.contains("\"keys\":120,"), "{first:?}");
    assert_eq!(site.values(), 60);
    for number in 0..3 {
        created(&server, &format!("/store/v/{number}"), large(number + 100)).await;
    }
    server.delete("/store/v/59").await;
    let second = site.back_up(&server, &["--verify"]);
    assert!(second.stdout.contains("\"keys\":119,") && second.stdout.contains("\"bytes\":60000,"), "{second:?}");
    assert_eq!(site.values(), 63);
    let third = site.back_up(&server, &["--keep", "1"]);
    assert_eq!(third.code, Some(0), "{third:?}");
    assert_eq!(site.values(), 59, "values that only older backups had are removed");
    let restored = site.restore("redb");
    for number in 0..59 {
        let expected = large(if number < 3 { number + 100 } else { number });
        assert_eq!(restored.answer(&format!("/store/v/{number}")).await, (StatusCode::OK, expected));
    }
    assert_eq!(restored.count_keys("").await, 119);
    // A file that was lost is copied again, with what is new.
    let lost = fs::read_dir(site.path("backup/values"))
        .unwrap()
        .find_map(|directory| fs::read_dir(directory.unwrap().path()).unwrap().next().map(|file| file.unwrap().path()));
    fs::remove_file(lost.unwrap()).unwrap();
    assert_eq!(site.back_up(&server, &[]).code, Some(0));
    assert_eq!(site.values(), 59);
}

#[tokio::test]
async fn stopped_stores_are_backed_up_with_their_tokens() {
    let site = Site::new();
    let data = site.text("data");
    let server = Launch::sled(&site.path("data")).start();
    created(&server, "/store/a", "1").await;
    let tag = server.get("/store/a").await.headers()["etag"].to_str().unwrap().to_owned();
    server.stop();
    let made = zarrd_with(["token", "create", "--name", "reader", "--allow", "read:/", "--store", &data]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let backup = site.text("backup");
    let taken = zarrd_with(["backup", &backup, "--store", &data]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let to = site.text("restored");
    assert_eq!(zarrd_with(["restore", &backup, &to]).code, Some(0));
    let restored = Launch::of(&to).start();
    assert_eq!(
        restored.get("/store/a").await.status(),
        StatusCode::UNAUTHORIZED,
        "the copy of a closed store is closed"
    );
    restored.stop();
    let open = site.restore("sled");
    let answer = open.request(Method::GET, "/store/a").header("if-none-match", tag).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "a restored store has versions of its own");
}

#[tokio::test]
async fn servers_that_are_closed_need_a_token() {
    let site = Site::new();
    let data = site.text("data");
    let made = zarrd_with(["token", "create", "--name", "all", "--allow", "read:/", "--store", &data]);
    let token = made.stdout.trim().to_owned();
    let server = Launch::sled(&site.path("data")).arg("--anonymous").arg("read:/").start();
    let (url, backup) = (server.url(""), site.text("backup"));
    let refused = zarrd_with(["backup", &backup, "--server", &url]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("token"), "{refused:?}");
    let access = format!("{data}/access");
    let environment = || [("ZARRD_TOKEN", token.clone())];
    let taken = zarrd_with_environment(environment(), ["backup", &backup, "--server", &url]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert!(taken.stderr.contains("tokens of the server are not part of it"), "{taken:?}");
    let refused = zarrd_with(["restore", &backup, &site.text("none")]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--without-access") && !site.path("none").exists(), "{refused:?}");
    let taken = zarrd_with_environment(environment(), ["backup", &backup, "--server", &url, "--tokens", &access]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert_eq!(zarrd_with(["restore", &backup, &site.text("some")]).code, Some(0));
    assert!(site.path("some/access").is_dir());
}

/// Ends a backup at many moments; the one before stays, and the next one is complete.
#[tokio::test]
async fn killed_backups_leave_the_one_before() {
    let site = Site::new();
    let (backup, data) = (site.text("backup"), site.text("data"));
    let (mut complete, mut killed) = (0, 0);
    for round in 0..10_u32 {
        let server = Launch::sled(&site.path("data")).start();
        for number in 0..25 {
            created(&server, &format!("/store/{round}/{number}"), large(round as usize * 100 + number)).await;
        }
        server.stop();
        let process = Process::start(["backup", &backup, "--store", &data, "--jobs", "1"], []);
        // The first one is killed before it can be complete.
        std::thread::sleep(Duration::from_millis(40) * round);
        process.signal(Signal::KILL);
        killed += usize::from(process.wait().code != Some(0));
        let found = match site.path("backup/zarrd-backup.json").exists() {
            true => zarrd_with(["restore", &backup, "--list"]).stdout.lines().count(),
            false => 0,
        };
        // It may have been killed after it was complete.
        assert!(found == complete || found == complete + 1, "{found} {complete}");
        complete = found;
    }
    assert!(killed > 0, "no backup was killed");
    let taken = zarrd_with(["backup", &backup, "--store", &data, "--verify"]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let partial = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().contains("partial");
    assert_eq!(walk(&site.path("backup")).iter().filter(|path| partial(path)).count(), 0);
    let restored = site.restore("sled");
    for round in 0..10 {
        for number in 0..25 {
            let found = restored.answer(&format!("/store/{round}/{number}")).await;
            assert_eq!(found, (StatusCode::OK, large(round * 100 + number)));
        }
    }
}

#[tokio::test]
async fn killed_client_does_not_hold_up_the_next_backup() {
    let site = Site::new();
    let server = Launch::sled(&site.path("data")).start();
    for number in 0..200 {
        created(&server, &format!("/store/{number}"), large(number)).await;
    }
    let (backup, url) = (site.text("backup"), server.url(""));
    let process = Process::start(["backup", &backup, "--server", &url, "--jobs", "1"], []);
    std::thread::sleep(Duration::from_millis(150));
    process.signal(Signal::KILL);
    process.wait();
    let taken = site.back_up(&server, &[]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert_eq!(site.restore("sled").count_keys("").await, 200);
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn unsuitable_directories_are_refused() {
    let site = Site::new();
    let (data, backup) = (site.text("data"), site.text("backup"));
    let server = Launch::sled(&site.path("data")).start();
    created(&server, "/store/a", "1").await;
    created(&server, "/store/b", large(7)).await;
    server.stop();
    let take = |to: &str, from: &str| zarrd_with(["backup", to, "--store", from]);
    assert_eq!(take(&backup, &data).code, Some(0));
    // Another store.
    let other = Launch::sled(&site.path("other")).start();
    created(&other, "/store/a", "2").await;
    let refused = site.back_up(&other, &[]);
    assert!(refused.code == Some(2) && refused.stderr.contains("another store"), "{refused:?}");
    other.stop();
    // A directory of other files, or within the store.
    fs::create_dir(site.path("files")).unwrap();
    fs::write(site.path("files/thesis.tex"), "").unwrap();
    let refused = take(&site.text("files"), &data);
    assert!(refused.code == Some(2) && refused.stderr.contains("not empty"), "{refused:?}");
    assert_eq!(walk(&site.path("files")).len(), 1);
    assert_eq!(take(&format!("{data}/backup"), &data).code, Some(2));
    // Not a backup, or none of that name.
    let restore = |arguments: &[&str]| zarrd_with([&["restore"], arguments].concat());
    assert_eq!(restore(&[&site.text("files"), &site.text("r")]).code, Some(2));
    assert_eq!(restore(&[&backup, &site.text("r"), "--backup", "20200101T000000Z"]).code, Some(2));
    // What is not empty, a running server.
    let running = Launch::sled(&site.path("data")).start();
    let refused = restore(&[&backup, &data]);
    assert!(refused.code == Some(2) && refused.stderr.contains("not empty"), "{refused:?}");
    running.stop();
    // Another process.
    let lock = fs::File::open(site.path("backup/lock")).unwrap();
    lock.lock().unwrap();
    for refused in [take(&backup, &data), restore(&[&backup, &site.text("r")])] {
        assert!(refused.code == Some(4) && refused.stderr.contains(&backup), "{refused:?}");
    }
    drop(lock);
    // A newer version.
    let identity = site.path("backup/zarrd-backup.json");
    let text = fs::read_to_string(&identity).unwrap();
    fs::write(&identity, text.replace("\"format\": 1", "\"format\": 9")).unwrap();
    for refused in [take(&backup, &data), restore(&[&backup, &site.text("r")])] {
        assert!(refused.code == Some(2) && refused.stderr.contains("format 9"), "{refused:?}");
    }
    fs::write(&identity, text).unwrap();
    assert!(!site.path("r").exists());
    assert_eq!(restore(&[&backup, &site.text("r")]).code, Some(0));
}

#[tokio::test]
async fn damaged_backups_name_the_file_and_the_key() {
    let site = Site::new();
    let (data, backup) = (site.text("data"), site.text("backup"));
    let server = Launch::sled(&site.path("data")).start();
    for number in 0..6 {
        created(&server, &format!("/store/v/{number}"), large(number)).await;
    }
    server.stop();
    assert_eq!(zarrd_with(["backup", &backup, "--store", &data]).code, Some(0));
    let files: Vec<PathBuf> = walk(&site.path("backup/values"));
    assert_eq!(files.len(), 6);
    fs::remove_file(&files[0]).unwrap();
    let mut bytes = fs::read(&files[1]).unwrap();
    bytes[5000] ^= 1;
    fs::write(&files[1], &bytes).unwrap();
    fs::write(&files[2], &bytes[..100]).unwrap();
    let refused = zarrd_with(["restore", &backup, &site.text("r")]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    for file in &files[..3] {
        assert!(refused.stderr.contains(file.to_str().unwrap()), "{} {refused:?}", file.display());
    }
    assert_eq!(refused.stderr.matches("not restored: \"v/").count(), 3, "{refused:?}");
    assert_eq!(Launch::of(site.text("r")).start_expecting_failure().code, Some(3), "it is incomplete");
    let partly = zarrd_with(["restore", &backup, &site.text("p"), "--skip-damaged"]);
    assert_eq!(partly.code, Some(5), "{partly:?}");
    assert_eq!(Launch::of(site.text("p")).start().count_keys("").await, 3);
    // The records.
    let records =
        walk(&site.path("backup/backups")).into_iter().find(|path| path.extension().unwrap() == "records").unwrap();
    let mut bytes = fs::read(&records).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&records, bytes).unwrap();
    let refused = zarrd_with(["restore", &backup, &site.text("q")]);
    assert!(refused.code == Some(5) && refused.stderr.contains(".records"), "{refused:?}");
}

#[tokio::test]
async fn full_disk_ends_a_backup_and_names_the_file() {
    let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 16) else { return };
    let site = Site::new();
    let data = site.text("data");
    let server = Launch::sled(&site.path("data")).start();
    for number in 0..1000 {
        created(&server, &format!("/store/v/{number}"), large(number)).await;
    }
    server.stop();
    let backup = disk.store().to_str().unwrap().to_owned();
    let refused = zarrd_with(["backup", &backup, "--store", &data]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("No space left on device") && refused.stderr.contains(&backup), "{refused:?}");
    assert_eq!(zarrd_with(["restore", &backup, "--list"]).stdout, "");
}

#[tokio::test]
async fn store_on_a_full_disk_is_backed_up() {
    let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 64) else { return };
    let site = Site::new();
    let server = Launch::sled(&disk.store()).start();
    // Few and large values: a backup is copied one value at a time, at a low priority.
    let value = |number| Generated::new(number, 200_000).bytes().to_vec();
    let mut written = 0;
    while server.put(&format!("/store/v/{written}"), value(written)).await.status() == StatusCode::CREATED {
        written += 1;
    }
    disk.fill(0);
    let taken = site.back_up(&server, &[]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let restored = site.restore("sled");
    for number in 0..written {
        assert_eq!(restored.answer(&format!("/store/v/{number}")).await, (StatusCode::OK, value(number)));
    }
}
