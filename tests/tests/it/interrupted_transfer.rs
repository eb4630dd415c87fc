//! `COPY` and `MOVE` of WebDAV that a kill or a full disk interrupts: the destination has everything or nothing.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, StatusCode};
use reqwest::RequestBuilder;
use zarrd_store::Prefix;
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    eventually::eventually,
    generated::Generated,
    problem::assert_problem,
    server::{Launch, Server, zarrd_with},
    skip::note,
    store_files::value_files,
};
use zarrd_wire::{dav, problem::ProblemType};

/// The values of a prefix: a number of values and their size. Values of 20 kB are files of their own, small ones are not.
const VALUES: [(u64, u64); 2] = [(100, 100), (20, 20_000)];
const FILES_OF_PREFIX: usize = 20;
const LARGE: u64 = 16 << 20;

/// What is copied or moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Everything below a prefix.
    Prefix,
    /// One large value.
    Value,
}

impl Kind {
    /// The values, by what follows the name in their keys.
    fn values(self) -> BTreeMap<String, Bytes> {
        let of_size = |(count, size)| {
            (0..count).map(move |number| (format!("/{size}/{number}"), Generated::new(number, size).bytes()))
        };
        match self {
            Self::Prefix => VALUES.into_iter().flat_map(of_size).collect(),
            Self::Value => BTreeMap::from([(String::new(), Generated::new(7, LARGE).bytes())]),
        }
    }

    /// The number of files of its values.
    fn files(self) -> usize {
        match self {
            Self::Prefix => FILES_OF_PREFIX,
            Self::Value => 1,
        }
    }

    /// The two names between which it is copied and moved.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Prefix => ["lab", "copies/of/lab"],
            Self::Value => ["large", "copies/of/large"],
        }
    }

    /// Sets the values.
    async fn put(self, server: &Server, name: &str) {
        let puts = self.values().into_iter().map(|(rest, value)| async move {
            let path = format!("/store/{name}{rest}");
            server.put(&path, value).await.error_for_status().unwrap();
        });
        stream::iter(puts).buffer_unordered(8).collect::<()>().await;
    }

    /// The values that a server has of it.
    async fn found(self, server: &Server, name: &str) -> BTreeMap<String, Bytes> {
        let keys: Vec<String> = match self {
            Self::Value => vec![name.to_owned()],
            Self::Prefix => {
                let (store, prefix) = (server.store(), Prefix::parse(&format!("{name}/")).unwrap());
                let listed = zarrd_store::list_all(&store, &prefix);
                listed.map_ok(|entry| entry.key.as_str().to_owned()).try_collect().await.unwrap()
            }
        };
        let values = keys.into_iter().map(|key| async move {
            let (status, value) = server.answer(&format!("/store/{key}")).await;
            let rest = key.strip_prefix(name).unwrap().to_owned();
            assert!(
                status == StatusCode::OK || self == Self::Value && status == StatusCode::NOT_FOUND,
                "{key} {status}"
            );
            (status == StatusCode::OK).then(|| (rest, value.into()))
        });
        stream::iter(values).buffer_unordered(8).filter_map(async |value| value).collect().await
    }

    /// True if a server has all values of it, false if it has none.
    async fn is_whole(self, server: &Server, name: &str) -> bool {
        let found = self.found(server, name).await;
        assert!(found.is_empty() || found == self.values(), "{name}: {} values, or others", found.len());
        !found.is_empty()
    }
}

fn transfer(server: &Server, method: Method, from: &str, to: &str) -> RequestBuilder {
    server.request(method, &format!("/store/{from}")).header("destination", format!("/store/{to}"))
}

/// Removes what a copy has made.
async fn erase(server: &Server, kind: Kind, name: &str) {
    let path = match kind {
        Kind::Prefix => format!("/store/{name}/"),
        Kind::Value => format!("/store/{name}"),
    };
    server.delete(&path).await.error_for_status().unwrap();
}

/// What happened to requests.
#[derive(Debug, Default)]
struct Report {
    answered: usize,
    /// Interrupted ones that had no effect, and those that were complete.
    without_effect: usize,
    complete: usize,
}

/// A store whose server is killed.
struct Site<'d> {
    launch: Launch,
    dir: &'d Path,
    /// The names of what is moved, the current one first.
    names: [[&'static str; 2]; 2],
    report: Report,
}

const CASES: [Kind; 2] = [Kind::Prefix, Kind::Value];

impl Site<'_> {
    /// The time that a request takes without interruption. A copy is removed; a move is followed by one back.
    async fn duration(&self, server: &Server, method: &Method, case: usize) -> Duration {
        let ([from, to], started) = (self.names[case], Instant::now());
        let answer = transfer(server, method.clone(), from, to).send().await.unwrap();
        let duration = started.elapsed();
        assert_eq!(answer.status(), StatusCode::CREATED);
        match *method == dav::copy() {
            true => erase(server, CASES[case], to).await,
            false => drop(transfer(server, dav::move_(), to, from).send().await.unwrap().error_for_status().unwrap()),
        }
        duration
    }

    /// Kills the server after a time, starts another one, and compares what it has with what there may be.
    async fn interrupt(&mut self, server: Server, method: &Method, case: usize, after: Duration) -> Server {
        let (kind, [from, to]) = (CASES[case], self.names[case]);
        let sent = tokio::spawn(transfer(&server, method.clone(), from, to).send());
        tokio::time::sleep(after).await;
        server.kill();
        let answered = match sent.await.unwrap() {
            Ok(answer) => {
                assert_eq!(answer.status(), StatusCode::CREATED);
                true
            }
            Err(_) => false,
        };
        let server = self.launch.start();
        let (source, target) = (kind.is_whole(&server, from).await, kind.is_whole(&server, to).await);
        assert!(target || !answered, "{method} {from} was acknowledged and is lost");
        assert_eq!(source, *method == dav::copy() || !target, "{method} {from}: source {source}, target {target}");
        match (answered, target) {
            (true, _) => self.report.answered += 1,
            (false, true) => self.report.complete += 1,
            (false, false) => self.report.without_effect += 1,
        }
        let copies = usize::from(source) + usize::from(target);
        self.has_files(kind.files() * copies + CASES[1 - case].files()).await;
        match (source, target) {
            (true, true) => erase(&server, kind, to).await,
            (false, true) => self.names[case].swap(0, 1),
            _ => {}
        }
        server
    }

    /// Waits until each file is one of a value. Others are orphans, which another directory has.
    async fn has_files(&self, files: usize) {
        let what = format!("{files} files, and no other");
        eventually(&what, Duration::from_secs(20), async || value_files(self.dir) == files).await;
    }
}

async fn kills(index: &str, rounds: usize) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("store");
    let store = format!("{index}:{}", dir.display());
    let names = CASES.map(Kind::names);
    let mut site = Site { launch: Launch::of(&store), dir: &dir, names, report: Report::default() };
    let mut server = site.launch.start();
    for kind in CASES {
        kind.put(&server, kind.names()[0]).await;
    }
    for case in 0..CASES.len() {
        for method in [dav::copy(), dav::move_()] {
            let duration = site.duration(&server, &method, case).await;
            for _ in 0..rounds {
                let after = duration.mul_f64(rand::random_range(0.0..1.1));
                server = site.interrupt(server, &method, case, after).await;
            }
        }
    }
    server.stop();
    note(format_args!("{index}: {:?}", site.report));
    assert!(site.report.without_effect >= rounds, "too few were interrupted: {:?}", site.report);
    assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_leaves_everything_or_nothing_with_sled() {
    kills("sled", 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_leaves_everything_or_nothing_with_redb() {
    kills("redb", 8).await;
}

/// A value below a prefix on a small disk.
fn value(number: u64) -> Bytes {
    Generated::new(number, 1 << 20).bytes()
}

/// The values below a prefix, whose keys are numbers.
async fn hold(server: &Server, prefix: &str, values: u64) {
    assert_eq!(server.count_keys(prefix).await as u64, values, "{prefix}");
    for number in 0..values {
        let (status, found) = server.answer(&format!("/store/{prefix}{number}")).await;
        assert!(status == StatusCode::OK && found == value(number), "{prefix}{number}: {status}");
    }
}

#[tokio::test]
async fn full_disk_leaves_nothing_half() {
    for index in ["sled", "redb"] {
        let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 96) else { return };
        let store = format!("{index}:{}", disk.store().display());
        let server = Launch::of(&store).start();
        for (prefix, values) in [("lab/", 20), ("old/", 2)] {
            for number in 0..values {
                server.put(&format!("/store/{prefix}{number}"), value(number)).await.error_for_status().unwrap();
            }
        }
        let large = Generated::new(99, 16 << 20).bytes();
        server.put("/store/large", large.clone()).await.error_for_status().unwrap();
        // Space for some of what is copied.
        disk.fill(14 << 20);
        for (method, from, to) in [
            (dav::copy(), "lab/", "new/"),
            (dav::move_(), "lab/", "new/"),
            (dav::copy(), "lab/", "old/"),
            (dav::copy(), "large", "new"),
            (dav::copy(), "large", "old"),
            (dav::move_(), "large", "new"),
        ] {
            let refused = transfer(&server, method, from, to).send().await.unwrap();
            assert_problem(refused, ProblemType::OutOfSpace).await;
            hold(&server, "new/", 0).await;
            let (status, _) = server.answer("/store/new").await;
            assert_eq!(status, StatusCode::NOT_FOUND);
            let none_else = async || value_files(&disk.store()) == 23;
            eventually("what was staged is removed", Duration::from_secs(10), none_else).await;
        }
        hold(&server, "lab/", 20).await;
        hold(&server, "old/", 2).await;
        assert!(server.answer("/store/large").await.1 == large);
        disk.remove_filler();
        for (method, from, to) in [(dav::copy(), "lab/", "old/"), (dav::move_(), "large", "new")] {
            eventually("there is space again", Duration::from_secs(10), async || {
                transfer(&server, method.clone(), from, to).send().await.unwrap().status().is_success()
            })
            .await;
        }
        hold(&server, "old/", 20).await;
        assert!(server.answer("/store/new").await.1 == large);
        server.stop();
        assert_eq!(value_files(&disk.store()), 41);
        assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
    }
}
