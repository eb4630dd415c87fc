//! Monitoring endpoints.

use crate::common::TestServer;
use http::{Method, StatusCode};
use serde_json::json;
use zarrd_server::Settings;

#[tokio::test]
async fn health_is_ok() {
    let health = TestServer::new().get("/healthz", &[]).await;
    assert_eq!((health.status, health.json()["version"].is_string()), (StatusCode::OK, true));
}

#[tokio::test]
async fn metrics_are_exported() {
    let server = TestServer::new();
    server.put("/store/v", &[], "12345").await;
    server.get("/store/v", &[]).await;
    server.get("/store/v", &[]).await;
    server.get("/store/absent", &[]).await;
    let metrics = server.get("/metrics", &[]).await;
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    let text = metrics.text();
    for line in [
        "zarrd_http_requests_total{route=\"/store/{key}\",method=\"PUT\",status=\"201\"} 1",
        "zarrd_http_requests_total{route=\"/store/{key}\",method=\"GET\",status=\"200\"} 2",
        "zarrd_http_requests_total{route=\"/store/{key}\",method=\"GET\",status=\"404\"} 1",
        "zarrd_http_request_duration_seconds_count{route=\"/store/{key}\",method=\"GET\"} 3",
        "zarrd_http_received_bytes_total 5",
        "zarrd_http_requests_running 1",
        "zarrd_http_connections 0",
        "zarrd_queue_wait_seconds_count{queue=\"memory\"} 0",
        "zarrd_queue_wait_seconds_bucket{le=\"+Inf\",queue=\"decoding_threads\"} 0",
        "zarrd_store_keys 1",
        "zarrd_store_bytes 5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

/// Counts are made when they are asked for, so they must not become a load of their own.
#[tokio::test(start_paused = true)]
async fn values_are_counted_again_after_a_change_and_a_pause() {
    let server = TestServer::new();
    let keys = async || {
        let metrics = server.get("/metrics", &[]).await;
        metrics.text().lines().find_map(|line| line.strip_prefix("zarrd_store_keys ").map(str::to_owned))
    };
    assert_eq!(keys().await.as_deref(), Some("0"));
    server.put("/store/a", &[], "1").await;
    server.put("/store/b", &[], "1").await;
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(keys().await.as_deref(), Some("2"));
    server.delete("/store/a", &[]).await;
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(keys().await.as_deref(), Some("1"));
}

/// What other programs write is not counted: each page of a listing would be a request.
#[tokio::test]
async fn values_of_other_programs_are_not_counted() {
    let store = std::sync::Arc::new(zarrd_store::MemoryStore::new());
    let foreign = zarrd_store::Keyed::new(zarrd_store::MemoryStore::clone(&store), zarrd_store::Guarantees::READ_ONLY);
    let served = zarrd_store::ServedStore::read_only(std::sync::Arc::new(foreign));
    let app = zarrd_server::App::new(served, Settings::default());
    let server = TestServer { router: zarrd_server::router(app), store };
    let metrics = server.get("/metrics", &[]).await;
    assert_eq!((metrics.status, metrics.text().contains("zarrd_store")), (StatusCode::OK, false));
}

/// The value of a metric after one mean, asked for twice.
async fn results_remembered(capacity: u64) -> (u64, u64) {
    let mut settings = Settings::default();
    settings.arrays.result_cache = capacity;
    let server = TestServer::with(settings);
    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 3,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    });
    let made = server.json(Method::PUT, "/node/a", &document).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    for _ in 0..2 {
        assert_eq!(server.get("/array/a?reduce=mean", &[]).await.json(), json!(3.0));
    }
    let metrics = server.get("/metrics", &[]).await;
    let value = |name: &str| {
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    (value("zarrd_result_cache_bytes "), value("zarrd_result_cache_used_bytes "))
}

#[tokio::test]
async fn results_are_remembered_within_the_capacity_of_their_cache() {
    let (capacity, used) = results_remembered(1 << 20).await;
    assert!(capacity == 1 << 20 && (1..=1024).contains(&used), "{capacity} {used}");
    assert_eq!(results_remembered(0).await, (0, 0));
}
