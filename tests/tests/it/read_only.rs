//! A read-only server rejects every change.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::MetadataExt,
    time::{Duration, SystemTime},
};

use http::{Method, StatusCode, header::ALLOW};
use zarrd_tests::{
    problem::assert_problem,
    server::{Launch, zarrd_with, zarrd_with_environment},
};
use zarrd_wire::{health::Readiness, problem::ProblemType};

#[tokio::test]
async fn read_only_server_rejects_changes_before_the_body() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch::sled(dir.path());
    let server = launch.start();
    server.put("/store/v", "1").await.error_for_status().unwrap();
    server.stop();

    for launch in [launch.clone().arg("--read-only"), launch.clone().env("ZARRD_READ_ONLY", "true")] {
        let server = launch.start();
        for (method, path) in [
            (Method::PUT, "/store/v"),
            (Method::DELETE, "/store/v"),
            (Method::DELETE, "/store/?confirm=all"),
            (Method::PUT, "/array/a?select=0"),
            (Method::POST, "/array/a?append=0"),
            (Method::PUT, "/node/a"),
            (Method::PATCH, "/node/a"),
            (Method::DELETE, "/node/a"),
            (Method::POST, "/node/a?convert=v3"),
        ] {
            let rejected = server.request(method, path).body("2").send().await.unwrap();
            assert_problem(rejected, ProblemType::ReadOnlyServer).await;
        }
        let options = server.request(Method::OPTIONS, "/store/v").send().await.unwrap();
        assert_eq!(options.headers()[ALLOW], "GET, HEAD, PROPFIND, OPTIONS");
        let ready = server.get("/readyz").await;
        assert_eq!(ready.status(), StatusCode::OK);
        let ready: Readiness = serde_json::from_slice(&ready.bytes().await.unwrap()).unwrap();
        assert_eq!((ready.writable, ready.problem), (false, Some(ProblemType::ReadOnlyServer)));
        let health = zarrd_with(["health", "--url", &server.url("")]);
        assert_eq!(health.code, Some(0), "{health:?}");

        // No part of the body is sent.
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "PUT /store/v HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000000\r\n\r\n", server.address())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("read-only-server"), "{answer}");

        assert_eq!(server.get("/store/v").await.text().await.unwrap(), "1");
        server.stop();
    }
}

#[test]
fn read_only_server_does_not_create_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("mistyped");
    let rejected = Launch::sled(&store).arg("--read-only").start_expecting_failure();
    assert_eq!(rejected.code, Some(3), "{rejected:?}");
    assert!(rejected.stderr.contains("no store at"), "{rejected:?}");
    assert!(!store.exists());
}

#[tokio::test]
async fn copies_of_an_index_do_not_outlive_their_processes() {
    for kind in ["sled", "redb"] {
        let (dir, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = format!("{kind}:{}", dir.path().display());
        let server = Launch::of(&store).start();
        server.put("/store/secret/name", "1").await.error_for_status().unwrap();
        server.stop();
        let copies = || fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
        let reader = Launch::of(&store).arg("--read-only").env("TMPDIR", temporary.path());
        let server = reader.start();
        let [copy] = copies().try_into().unwrap();
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o700);
        server.kill();
        assert_eq!(copies(), std::slice::from_ref(&copy), "a killed process removes nothing");

        // The next process removes it, if it is not a process that has just begun.
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        File::open(&copy).unwrap().set_modified(hour_ago).unwrap();
        let server = reader.start();
        let [used] = copies().try_into().unwrap();
        assert_ne!(used, copy);
        File::open(&used).unwrap().set_modified(hour_ago).unwrap();
        let environment = [("TMPDIR", temporary.path().display().to_string())];
        let checked = zarrd_with_environment(environment, ["check", "--store", &store]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
        assert_eq!(copies(), [used], "that of a running process stays");
        assert_eq!(server.get("/store/secret/name").await.text().await.unwrap(), "1");
        server.stop();
        assert!(copies().is_empty());
    }
}
