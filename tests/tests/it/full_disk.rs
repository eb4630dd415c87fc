//! A full disk: sets are rejected, no partial data remains, erases work, and everything works again once there is
//! space.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::stream;
use http::{Method, StatusCode};
use reqwest::{Body, Response};
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    eventually::eventually,
    full_disk::{Plan, run},
    generated::Generated,
    problem::assert_problem,
    server::{Launch, Server, zarrd_with},
    skip::note,
    store_files::value_files,
};
use zarrd_wire::problem::ProblemType;

async fn put(server: &Server, key: &str, body: impl Into<Body>) -> Response {
    server.put(&format!("/store/{key}"), body).await
}

async fn holds(server: &Server, key: &str, value: &Bytes) {
    let answer = server.get(&format!("/store/{key}")).await;
    assert_eq!(answer.status(), StatusCode::OK, "{key}");
    assert!(answer.bytes().await.unwrap() == *value, "{key}");
}

async fn is_absent(server: &Server, key: &str) {
    let answer = server.get(&format!("/store/{key}")).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{key}");
}

fn value(number: u64) -> Bytes {
    Generated::new(number, 1 << 20).bytes()
}

/// A body without a known length.
fn of_unknown_length(mib: u64) -> Body {
    Body::wrap_stream(stream::iter((0..mib).map(|number| Ok::<_, std::io::Error>(value(number)))))
}

#[tokio::test]
async fn full_disk_rejects_writes_until_space_is_free() {
    for kind in ["sled", "redb"] {
        let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 96) else { return };
        fills_and_heals(kind, &disk.store()).await;
    }
}

async fn fills_and_heals(kind: &str, dir: &Path) {
    let store = format!("{kind}:{}", dir.display());
    let server = Launch::of(&store).start();
    put(&server, "small", "old").await.error_for_status().unwrap();

    // Large values first, so that little space remains in the end.
    let mut accepted: Vec<Bytes> = Vec::new();
    for size in [1 << 20, 64 << 10, 5000, 4000] {
        let rejected = loop {
            let value = Generated::new(accepted.len() as u64, size).bytes();
            let answer = put(&server, &format!("values/{}", accepted.len()), value.clone()).await;
            if !answer.status().is_success() {
                break answer;
            }
            accepted.push(value);
            assert!(accepted.len() < 10_000, "the disk is never full");
        };
        assert_problem(rejected, ProblemType::OutOfSpace).await;
        is_absent(&server, &format!("values/{}", accepted.len())).await;
    }
    let files = accepted.iter().filter(|value| value.len() > 4096).count();
    note(format_args!("{kind}: {} values, {files} of them files, on a disk of 96 MiB", accepted.len()));
    assert!(files >= 60);
    // Replacing a value needs space too; the old value remains.
    assert_problem(put(&server, "values/0", value(77)).await, ProblemType::OutOfSpace).await;
    // A client that is still sending may only observe a closed connection.
    if let Ok(answer) = server.request(Method::PUT, "/store/streamed").body(of_unknown_length(100)).send().await {
        assert_problem(answer, ProblemType::OutOfSpace).await;
    }
    is_absent(&server, "streamed").await;
    for (number, value) in accepted.iter().enumerate() {
        holds(&server, &format!("values/{number}"), value).await;
    }
    holds(&server, "small", &"old".into()).await;
    assert_eq!(value_files(dir), files, "nothing half-written is left");
    // Another program takes the space above the reserve.
    let filler = dir.with_file_name("filler");
    fs::write(&filler, vec![1; 8 << 10]).unwrap();
    let ready = server.get("/readyz").await;
    assert_eq!(ready.status(), StatusCode::OK);
    let ready: zarrd_wire::health::Readiness = serde_json::from_slice(&ready.bytes().await.unwrap()).unwrap();
    assert_eq!((ready.writable, ready.problem), (false, Some(ProblemType::OutOfSpace)));

    fs::remove_file(filler).unwrap();
    for number in 0..6 {
        let erased = server.delete(&format!("/store/values/{number}")).await;
        assert_eq!(erased.status(), StatusCode::NO_CONTENT);
    }
    let again = put(&server, "again", value(1000)).await;
    assert_eq!(again.status(), StatusCode::CREATED, "space is available again: {}", again.text().await.unwrap());
    holds(&server, "again", &value(1000)).await;
    let erased = server.delete("/store/values/").await;
    assert_eq!(erased.text().await.unwrap(), format!("{{\"erased\":{}}}", accepted.len() - 6));
    put(&server, "small", "new").await.error_for_status().unwrap();
    server.stop();

    let server = Launch::of(&store).start();
    holds(&server, "again", &value(1000)).await;
    holds(&server, "small", &"new".into()).await;
    assert_eq!(value_files(dir), 1);
    server.stop();
    assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
}

/// Another program takes all space, including the reserve.
#[tokio::test]
async fn acknowledged_writes_survive_a_disk_filled_by_others() {
    for kind in ["sled", "redb"] {
        let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 96) else { return };
        let store = format!("{kind}:{}", disk.store().display());
        let server = Launch::of(&store).start();
        for number in 0..10 {
            put(&server, &format!("values/{number}"), value(number)).await.error_for_status().unwrap();
        }
        let filler = disk.path().join("filler");
        let full = fs::write(&filler, vec![1; 96 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        for (key, size) in [("small", 100), ("middle", 10_000), ("large", 1 << 20)] {
            assert_problem(put(&server, key, Generated::new(1, size).bytes()).await, ProblemType::OutOfSpace).await;
            is_absent(&server, key).await;
        }
        fs::remove_file(filler).unwrap();
        put(&server, "small", "space is available").await.error_for_status().unwrap();
        server.kill();
        let server = Launch::of(&store).start();
        for number in 0..10 {
            holds(&server, &format!("values/{number}"), &value(number)).await;
        }
        holds(&server, "small", &"space is available".into()).await;
        server.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn store_survives_any_sequence_of_full_disks() {
    for index in ["sled", "redb"] {
        for (kind, value_bytes, steps) in [(FileSystem::Tmpfs, 256 << 10, 30), (FileSystem::Ext4, 8 << 10, 10)] {
            let Some(disk) = SmallDisk::mount(kind, 64) else { return };
            let plan = Plan { index: index.to_owned(), value_bytes, steps, seed: rand::random() };
            note(format_args!("{kind:?}: {plan:?}"));
            let report = run(&plan, &disk).await;
            note(format_args!("{report:?}"));
            assert!(report.errors.is_empty(), "{kind:?}, {plan:?}: {report:#?}");
        }
    }
}

/// Small values are in the index alone, so a write of its own may be the one that finds no space, in the background and
/// while nothing waits to be applied. Writers who go on leave it none of what is freed.
#[tokio::test(flavor = "multi_thread")]
async fn small_values_that_filled_a_disk_are_erased_while_others_are_written() {
    const WRITERS: u64 = 8;
    let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 128) else { return };
    let server = Arc::new(Launch::of(format_args!("sled:{}", disk.store().display())).start());
    let (is_full, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let writers = (0..WRITERS).map(|writer| {
        let (server, is_full, is_over) = (server.clone(), is_full.clone(), is_over.clone());
        tokio::spawn(async move {
            for number in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let value = Generated::new(number * WRITERS + writer, 1000).bytes();
                let status = put(&server, &format!("values/{writer}/{number}"), value).await.status();
                is_full.fetch_or(status == StatusCode::INSUFFICIENT_STORAGE, Ordering::Relaxed);
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    // That takes some 130,000 requests, which are slow beside the other tests.
    eventually("the disk is full", Duration::from_secs(300), async || is_full.load(Ordering::Relaxed)).await;
    // The index applies what was accepted.
    tokio::time::sleep(Duration::from_secs(3)).await;
    eventually("the values are erased", Duration::from_secs(60), async || {
        let status = server.delete("/store/values/").await.status();
        assert!(status == StatusCode::OK || status == StatusCode::SERVICE_UNAVAILABLE, "{status}");
        status == StatusCode::OK
    })
    .await;
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    server.delete("/store/values/").await;
    eventually("values are accepted again", Duration::from_secs(60), async || {
        put(&server, "again", "value").await.status() == StatusCode::CREATED
    })
    .await;
}

/// No space can be freed except the reserved file.
#[tokio::test]
async fn store_reopens_repeatedly_on_a_full_disk() {
    for index in ["sled", "redb"] {
        for kind in [FileSystem::Tmpfs, FileSystem::Ext4] {
            let Some(disk) = SmallDisk::mount(kind, 64) else { return };
            let launch = Launch::of(format_args!("{index}:{}", disk.store().display()));
            let server = launch.start();
            for number in 0..200 {
                put(&server, &format!("values/{number}"), "value").await.error_for_status().unwrap();
            }
            disk.fill(0);
            server.kill();
            for round in 0..6 {
                // Takes the space that the last server freed.
                disk.fill(0);
                let server = launch.start();
                assert_eq!(erase(&server, round).await, StatusCode::NO_CONTENT, "{index}, {kind:?}, round {round}");
                if round % 2 == 0 { server.kill() } else { server.stop() }
            }
            disk.remove_filler();
            let server = launch.start();
            for number in 0..6 {
                is_absent(&server, &format!("values/{number}")).await;
            }
            for number in 6..200 {
                holds(&server, &format!("values/{number}"), &"value".into()).await;
            }
            server.stop();
        }
    }
}

/// Erases a key; retries for a while if the index is reopening.
async fn erase(server: &Server, number: u32) -> StatusCode {
    let started = Instant::now();
    loop {
        let status = server.delete(&format!("/store/values/{number}")).await.status();
        if status != StatusCode::SERVICE_UNAVAILABLE || started.elapsed() > Duration::from_secs(10) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
