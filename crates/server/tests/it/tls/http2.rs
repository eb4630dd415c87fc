//! HTTP/2.

use std::time::{Duration, Instant};

use futures::future::join_all;
use http::{Method, StatusCode, header::HOST};
use tokio::time::{sleep, timeout};
use zarrd_server::{Limits, Settings};
use zarrd_store::Key;
use zarrd_wire::problem::{Problem, ProblemType};

use crate::tls::tls_server::{TIMEOUT, TlsServer, read, request};

async fn server_with(limits: Limits) -> TlsServer {
    TlsServer::start(Settings { limits, ..Settings::default() }).await
}

#[tokio::test]
async fn values_are_written_and_read() {
    let server = TlsServer::start(Settings::default()).await;
    let http2 = server.http2().await;
    let (response, mut body) = http2.begin_put("/store/v").await;
    body.send_data(vec![b'x'; 3 << 20].into(), true).unwrap();
    assert_eq!(read(response).await.unwrap().status(), StatusCode::CREATED);
    let got = http2.get("/store/v").await.unwrap();
    assert_eq!((got.status(), got.body().len()), (StatusCode::OK, 3 << 20));
    assert_eq!(got.headers()["content-length"], (3 << 20).to_string());
    assert!(got.headers().contains_key("x-request-id") && got.headers().contains_key("date"));
    let head = http2.send(request(Method::HEAD, "/store/v")).await.unwrap();
    assert_eq!(head.headers()["content-length"], (3 << 20).to_string());
    assert_eq!(http2.send(request(Method::DELETE, "/store/v")).await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_eq!(http2.get("/store/v").await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn requests_are_concurrent() {
    let server = TlsServer::start(Settings::default()).await;
    server.set("v", 300_000).await;
    let http2 = server.http2().await;
    // Uploads in progress, which must not delay the others.
    let mut uploads = Vec::new();
    for number in 0..20 {
        let (response, mut body) = http2.begin_put(&format!("/store/u{number}")).await;
        body.send_data("hel".into(), false).unwrap();
        uploads.push((response, body));
    }
    let got = join_all((0..60).map(|_| http2.get("/store/v"))).await;
    assert!(got.into_iter().all(|got| got.unwrap().body().len() == 300_000));
    for (response, mut body) in uploads {
        body.send_data("lo".into(), true).unwrap();
        assert_eq!(read(response).await.unwrap().status(), StatusCode::CREATED);
    }
    let value = server.store.get(&Key::parse("u7").unwrap(), None).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap(), "hello");
}

#[tokio::test]
async fn early_response_has_no_connection_header() {
    let server = server_with(Limits { value: 8, ..Limits::default() }).await;
    let http2 = server.http2().await;
    let mut requests = http2.requests.clone().ready().await.unwrap();
    let mut large = request(Method::PUT, "/store/v");
    large.headers_mut().insert("content-length", "1000".parse().unwrap());
    let (response, _body) = requests.send_request(large, false).unwrap();
    let response = read(response).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(!response.headers().contains_key("connection"));
    // The connection is still usable.
    assert_eq!(http2.get("/healthz").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn authority_is_checked() {
    let server = TlsServer::start(Settings::default()).await;
    let http2 = server.http2().await;
    let with = |authority: &str, host: Option<&str>| {
        let mut request = request(Method::GET, "/healthz");
        *request.uri_mut() = format!("https://{authority}/healthz").parse().unwrap();
        if let Some(host) = host {
            request.headers_mut().insert(HOST, host.parse().unwrap());
        }
        http2.send(request)
    };
    for (authority, host) in [("localhost", None), ("127.0.0.1:8000", None), ("localhost", Some("localhost"))] {
        assert_eq!(with(authority, host).await.unwrap().status(), StatusCode::OK, "{authority} {host:?}");
    }
    for (authority, host) in
        [("evil.example", None), ("localhost", Some("evil.example")), ("evil.example", Some("localhost"))]
    {
        let response = with(authority, host).await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{authority} {host:?}");
        let problem = Problem::from_json(response.body()).unwrap();
        assert_eq!(problem.kind, ProblemType::ForbiddenHost);
    }
}

#[tokio::test]
async fn requests_beyond_the_limit_get_503() {
    let server = server_with(Limits { connections: 2, ..Limits::default() }).await;
    let http2 = server.http2().await;
    let mut uploads = Vec::new();
    // The first request of the connection, and two that share it.
    for number in 0..3 {
        let (response, mut body) = http2.begin_put(&format!("/store/{number}")).await;
        body.send_data("x".into(), false).unwrap();
        uploads.push((response, body));
    }
    sleep(Duration::from_millis(200)).await;
    let response = http2.get("/store/v").await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(Problem::from_json(response.body()).unwrap().kind, ProblemType::Busy);
    assert_eq!(http2.get("/healthz").await.unwrap().status(), StatusCode::OK);
    for (response, mut body) in uploads {
        body.send_data("x".into(), true).unwrap();
        assert_eq!(read(response).await.unwrap().status(), StatusCode::CREATED);
    }
    assert_eq!(http2.get("/store/0").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn connection_with_any_request_is_not_evicted() {
    let server = server_with(Limits { connections: 1, ..Limits::default() }).await;
    let http2 = server.http2().await;
    let (response, mut body) = http2.begin_put("/store/v").await;
    body.send_data("x".into(), false).unwrap();
    assert_eq!(http2.get("/healthz").await.unwrap().status(), StatusCode::OK);
    let excess = "GET /store/v HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = server.exchange(excess).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let rejected = server.http2().await;
    assert_eq!(rejected.get("/store/v").await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    timeout(TIMEOUT, rejected.connection).await.expect("a rejected connection is closed").unwrap().unwrap();
    body.send_data("x".into(), true).unwrap();
    assert_eq!(read(response).await.unwrap().status(), StatusCode::CREATED);
    sleep(Duration::from_millis(100)).await;
    let answer = server.exchange(&excess.replace("Host", "Connection: close\r\nHost")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let server = server_with(Limits { header_timeout: Duration::from_millis(400), ..Limits::default() }).await;
    let mut http2 = server.http2().await;
    let (response, mut body) = http2.begin_put("/store/v").await;
    // A request is not idle, however long it takes.
    sleep(Duration::from_millis(900)).await;
    body.send_data("x".into(), true).unwrap();
    assert_eq!(read(response).await.unwrap().status(), StatusCode::CREATED);
    let started = Instant::now();
    timeout(TIMEOUT, &mut http2.connection).await.expect("it is closed").unwrap().unwrap();
    assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
}

#[tokio::test]
async fn shutdown_finishes_running_requests() {
    let mut server = TlsServer::start(Settings::default()).await;
    let http2 = server.http2().await;
    let idle = server.http2().await;
    assert_eq!(idle.get("/healthz").await.unwrap().status(), StatusCode::OK);
    let (response, mut body) = http2.begin_put("/store/v").await;
    body.send_data("hel".into(), false).unwrap();
    sleep(Duration::from_millis(100)).await;
    server.stop();
    timeout(TIMEOUT, idle.connection).await.expect("idle connections are closed").unwrap().unwrap();
    body.send_data("lo".into(), true).unwrap();
    assert_eq!(read(response).await.unwrap().status(), StatusCode::CREATED);
    timeout(TIMEOUT, http2.connection).await.expect("it is closed").unwrap().unwrap();
    server.stopped().await;
}

#[tokio::test]
async fn shutdown_timeout_aborts_requests() {
    let mut server = server_with(Limits { stop_timeout: Duration::from_millis(200), ..Limits::default() }).await;
    let http2 = server.http2().await;
    let (response, mut body) = http2.begin_put("/store/v").await;
    body.send_data("hel".into(), false).unwrap();
    sleep(Duration::from_millis(100)).await;
    server.stop();
    let store = server.store.clone();
    server.stopped().await;
    read(response).await.unwrap_err();
    assert!(store.get(&Key::parse("v").unwrap(), None).await.unwrap().is_none());
}
