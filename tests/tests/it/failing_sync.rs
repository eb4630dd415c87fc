//! Failing syncs: writes are not acknowledged any more, and acknowledged data is not lost.

use std::fs;

use bytes::Bytes;
use http::StatusCode;
use reqwest::Response;
use zarrd_tests::{
    generated::Generated,
    problem::assert_problem,
    server::{Launch, Server, zarrd_with},
    shim::shim,
};
use zarrd_wire::problem::ProblemType;

async fn put(server: &Server, key: &str, value: Bytes) -> Response {
    server.put(&format!("/store/{key}"), value).await
}

fn value(number: u64) -> Bytes {
    // Small values are stored in the index, the others in files.
    Generated::new(number, if number.is_multiple_of(2) { 300 } else { 60_000 }).bytes()
}

async fn has_all_values(server: &Server, count: u64) {
    for number in 0..count {
        let answer = server.get(&format!("/store/kept/{number}")).await;
        assert_eq!(answer.status(), StatusCode::OK, "{number}");
        assert_eq!(answer.bytes().await.unwrap(), value(number), "{number}");
    }
}

#[tokio::test]
async fn failed_fsync_makes_the_store_read_only_until_restart() {
    for kind in ["sled", "redb"] {
        for (what, after) in [("small", 100), ("large", 100_000)] {
            fails_and_recovers(kind, what, after).await;
        }
    }
}

/// Makes syncs fail while a value of `size` bytes is set.
async fn fails_and_recovers(kind: &str, what: &str, size: u64) {
    let (dir, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(library) = shim("failing_sync", tools.path()) else { return };
    let marker = tools.path().join("fail");
    let store = format!("{kind}:{}", dir.path().display());
    let server = Launch::of(&store).env("LD_PRELOAD", library).env("FAILING_SYNC", &marker).start();
    for number in 0..20 {
        assert_eq!(put(&server, &format!("kept/{number}"), value(number)).await.status(), StatusCode::CREATED);
    }
    assert_eq!(server.get("/readyz").await.status(), StatusCode::OK);

    fs::write(&marker, "").unwrap();
    // The first write may find the disk failing, or the store already read-only; it is not acknowledged.
    let answer = put(&server, "lost", Generated::new(99, size).bytes()).await;
    assert!(answer.status().is_server_error(), "{kind}, {what}: {answer:?}");
    let ready = server.get("/readyz").await;
    assert_problem(ready, ProblemType::ReadOnlyStore).await;
    // The disk works again, but the data that it dropped is unknown.
    fs::remove_file(&marker).unwrap();
    assert_problem(put(&server, "kept/1", "new".into()).await, ProblemType::ReadOnlyStore).await;
    let erased = server.delete("/store/kept/1").await;
    assert_problem(erased, ProblemType::ReadOnlyStore).await;
    let erased = server.delete("/store/kept/").await;
    assert_problem(erased, ProblemType::ReadOnlyStore).await;
    assert_eq!(server.get("/healthz").await.status(), StatusCode::OK);
    let health = zarrd_with(["health", "--url", &server.url("")]);
    assert_eq!(health.code, Some(1), "{health:?}");
    has_all_values(&server, 20).await;
    server.kill();

    let server = Launch::of(&store).start();
    has_all_values(&server, 20).await;
    assert_eq!(put(&server, "kept/20", value(20)).await.status(), StatusCode::CREATED);
    has_all_values(&server, 21).await;
    server.stop();
    assert_eq!(zarrd_with(["check", "--store", &store]).code, Some(0));
}
