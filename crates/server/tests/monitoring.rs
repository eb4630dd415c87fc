//! Monitoring endpoints.

mod common;

use common::TestServer;
use http::StatusCode;

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
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}
