//! Behaviour of real connections.

use std::time::{Duration, Instant};

use crate::common::{RawConnection, RunningServer};
use tokio::time::{sleep, timeout};
use zarrd_server::{Limits, Settings};
use zarrd_store::{Key, PageRequest, Precondition, Prefix};

const END: &str = "\r\n\r\n";

fn put(path: &str, more: &str) -> String {
    format!("PUT {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
}

#[track_caller]
fn assert_response(answer: &str, status: u16, slug: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    assert!(answer.contains(&format!("https://zarrd.dev/problems/{slug}\"")), "{answer}");
}

async fn keys(server: &RunningServer) -> usize {
    let page = server.store.list_prefix(&Prefix::root(), PageRequest::first(10)).await;
    page.map_or(usize::MAX, |page| page.keys.len())
}

#[tokio::test]
async fn connection_is_reused() {
    let server = RunningServer::start(Settings::default()).await;
    let mut raw = server.connect().await;
    raw.send(&(put("/store/v", "Content-Length: 5\r\n") + "hello")).await;
    assert!(raw.until(END).await.starts_with("HTTP/1.1 201 Created\r\n"));
    raw.send("GET /store/v HTTP/1.1\r\nHost: localhost\r\n\r\nHEAD /store/v HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert!(raw.until("hello").await.contains("content-length: 5\r\n"));
    let head = raw.until(END).await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-length: 5\r\n"), "{head}");
    raw.send("DELETE /store/v HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(raw.rest().await.starts_with("HTTP/1.1 204 No Content\r\n"));
}

#[tokio::test]
async fn expect_continue_is_answered() {
    let server = RunningServer::start(Settings::default()).await;
    let mut raw = server.connect().await;
    raw.send(&put("/store/v", "Content-Length: 2\r\nExpect: 100-continue\r\n")).await;
    assert_eq!(raw.until(END).await, "HTTP/1.1 100 Continue\r\n\r\n");
    raw.send("hi").await;
    assert!(raw.until(END).await.starts_with("HTTP/1.1 201 "));
}

#[tokio::test]
async fn rejected_body_gets_no_100_continue() {
    let settings = Settings { limits: Limits { value: 8, ..Limits::default() }, ..Settings::default() };
    let server = RunningServer::start(settings).await;
    let refused = put("/store/v", "Content-Length: 9\r\nExpect: 100-continue\r\nConnection: close\r\n");
    assert_response(&server.exchange(&refused).await, 413, "value-too-large");
    let refused = put("/store/..", "Content-Length: 9\r\nExpect: 100-continue\r\nConnection: close\r\n");
    assert_response(&server.exchange(&refused).await, 400, "invalid-key");
}

#[tokio::test]
async fn sending_client_receives_the_rejection() {
    let settings = Settings { limits: Limits { value: 8, ..Limits::default() }, ..Settings::default() };
    let server = RunningServer::start(settings).await;
    let mut raw = server.connect().await;
    raw.send(&put("/store/v", "Content-Length: 33554432\r\n")).await;
    let mut sent = 0;
    while sent < 32 << 20 {
        raw.send(&"x".repeat(1 << 20)).await;
        sent += 1 << 20;
    }
    assert_response(&raw.rest().await, 413, "value-too-large");
}

#[tokio::test]
async fn chunked_bodies_are_received_and_close() {
    let server = RunningServer::start(Settings::default()).await;
    let chunked =
        put("/store/v", "Transfer-Encoding: chunked\r\nConnection: close\r\n") + "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    assert!(server.exchange(&chunked).await.starts_with("HTTP/1.1 201 "));
    let value = server.store.get(&Key::parse("v").unwrap(), None).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap(), "hello");
    let bad = put("/store/w", "Transfer-Encoding: chunked\r\n") + "3\r\nhel\r\nzz\r\n";
    assert_response(&server.exchange(&bad).await, 400, "incomplete-body");
    assert_eq!(keys(&server).await, 1);
}

#[tokio::test]
async fn short_body_is_rejected() {
    let server = RunningServer::start(Settings::default()).await;
    let mut raw = server.connect().await;
    raw.send(&(put("/store/v", "Content-Length: 10\r\n") + "12345")).await;
    raw.close_sending().await;
    let answer = raw.rest().await;
    assert_response(&answer, 400, "length-mismatch");
    assert!(answer.contains(r#""announced":10,"received":5"#), "{answer}");
    assert_eq!(keys(&server).await, 0);
}

#[tokio::test]
async fn disconnected_upload_stores_nothing() {
    let server = RunningServer::start(Settings::default()).await;
    for more in ["Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut raw = server.connect().await;
        raw.send(&(put("/store/v", more) + "4\r\n12")).await;
        drop(raw);
    }
    sleep(Duration::from_millis(100)).await;
    assert_eq!(keys(&server).await, 0);
}

#[tokio::test]
async fn stalled_upload_times_out() {
    let limits = Limits { upload_timeout: Duration::from_millis(50), ..Limits::default() };
    let server = RunningServer::start(Settings { limits, ..Settings::default() }).await;
    let answer = server.exchange(&(put("/store/v", "Content-Length: 10\r\n") + "12345")).await;
    assert_response(&answer, 408, "body-timeout");
    assert_eq!(keys(&server).await, 0);
}

#[tokio::test]
async fn paths_are_not_normalized() {
    let server = RunningServer::start(Settings::default()).await;
    server.store.set(&Key::parse("b").unwrap(), "1".into(), Precondition::none()).await.unwrap();
    for path in ["/store/a/../b", "/store/./b", "/store/%2e%2e/store/b", "http://localhost/store/a/../b"] {
        for method in ["GET", "DELETE"] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            assert_response(&server.exchange(&request).await, 400, "invalid-key");
        }
    }
    assert_eq!(keys(&server).await, 1);
}

#[tokio::test]
async fn host_and_origin_are_checked() {
    let server = RunningServer::start(Settings::default()).await;
    for (request, status, slug) in [
        ("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "missing-host"),
        ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403, "forbidden-host"),
        (
            "DELETE /store/?confirm=all HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nConnection: close\r\n\r\n",
            403,
            "forbidden-origin",
        ),
    ] {
        assert_response(&server.exchange(request).await, status, slug);
    }
}

#[tokio::test]
async fn forwarded_requests_are_accepted_from_trusted_proxies_only() {
    let trusting = Settings { proxies: vec!["127.0.0.0/8".parse().unwrap()], ..Settings::default() };
    let (server, trusting) = (RunningServer::start(Settings::default()).await, RunningServer::start(trusting).await);
    for header in
        ["Forwarded: for=192.0.2.1", "Via: 1.1 proxy", "X-Forwarded-For: 192.0.2.1", "x-forwarded-proto: https"]
    {
        let request = format!("GET /store/ HTTP/1.1\r\nHost: localhost\r\n{header}\r\nConnection: close\r\n\r\n");
        let answer = server.exchange(&request).await;
        assert_response(&answer, 400, "untrusted-proxy");
        assert!(answer.contains("forwarded by 127.0.0.1") && answer.contains("--behind-proxy"), "{answer}");
        let name = header.split(':').next().unwrap().to_ascii_lowercase();
        assert!(answer.contains(&format!("\"header\":\"{name}\"")), "{answer}");
        assert!(trusting.exchange(&request).await.starts_with("HTTP/1.1 200 "));
    }
}

#[tokio::test]
async fn head_size_and_time_are_limited() {
    let limits = Limits { header_timeout: Duration::from_millis(100), ..Limits::default() };
    let server = RunningServer::start(Settings { limits, ..Settings::default() }).await;
    let long = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(200_000));
    let mut raw = server.connect().await;
    raw.send(&long).await;
    let answer = raw.until(END).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let mut raw = server.connect().await;
    raw.send("GET /healthz HTT").await;
    let began = Instant::now();
    raw.rest().await;
    assert!(began.elapsed() < Duration::from_secs(5));
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn with_connections(connections: usize) -> Settings {
    Settings { limits: Limits { connections, ..Limits::default() }, ..Settings::default() }
}

/// A connection with an upload in progress.
async fn busy(server: &RunningServer, key: &str) -> RawConnection {
    let mut raw = server.connect().await;
    raw.send(&put(&format!("/store/{key}"), "Content-Length: 2\r\nExpect: 100-continue\r\n")).await;
    raw.until(END).await;
    raw
}

#[tokio::test]
async fn excess_connection_gets_503() {
    let server = RunningServer::start(with_connections(1)).await;
    let mut first = busy(&server, "v").await;
    let request = "GET /store/v HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = server.exchange(request).await;
    assert_response(&answer, 503, "busy");
    assert!(answer.contains("(--max-connections)"), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n") && answer.contains("connection: close\r\n"), "{answer}");
    first.send("hi").await;
    assert!(first.until(END).await.starts_with("HTTP/1.1 201 "));
    let mut second = server.connect().await;
    second.send(request).await;
    assert!(second.until("hi").await.starts_with("HTTP/1.1 200 "), "the first is idle now, and makes room");
    assert_eq!(first.rest().await, "");
}

#[tokio::test]
async fn longest_idle_connection_is_evicted() {
    let server = RunningServer::start(with_connections(3)).await;
    // A silent connection, one in the middle of a head, and one between two requests, which is the youngest.
    let mut silent = server.connect().await;
    sleep(Duration::from_millis(20)).await;
    let mut halfway = server.connect().await;
    halfway.send("GET /healthz HT").await;
    sleep(Duration::from_millis(20)).await;
    let mut between = server.connect().await;
    between.send(HEALTH).await;
    between.until("}").await;
    for loser in [&mut silent, &mut halfway] {
        let mut new = busy(&server, "v").await;
        assert_eq!(loser.rest().await, "");
        between.send(HEALTH).await;
        assert!(between.until("}").await.starts_with("HTTP/1.1 200 "));
        new.send("hi").await;
        new.until(END).await;
        // It stays and is used again, so another one is evicted next.
        new.send(&put("/store/v", "Content-Length: 2\r\nExpect: 100-continue\r\n")).await;
        new.until(END).await;
        std::mem::forget(new);
    }
}

#[tokio::test]
async fn idle_connections_block_nobody() {
    let server = RunningServer::start(with_connections(50)).await;
    let mut idle = Vec::new();
    for _ in 0..200 {
        idle.push(server.connect().await);
    }
    for _ in 0..20 {
        let mut raw = server.connect().await;
        raw.send(HEALTH).await;
        assert!(raw.until("}").await.starts_with("HTTP/1.1 200 "));
    }
}

#[tokio::test]
async fn monitoring_is_served_while_all_slots_are_busy() {
    let server = RunningServer::start(with_connections(4)).await;
    let mut uploads = Vec::new();
    for number in 0..4 {
        uploads.push(busy(&server, &number.to_string()).await);
    }
    // More than the slots for rejections.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.connect().await);
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = server.exchange(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("connection: close\r\n"), "{path}: {answer}");
    }
    assert_response(&server.exchange("GET /store/ HTTP/1.1\r\nHost: localhost\r\n\r\n").await, 503, "busy");
}

#[tokio::test]
async fn trickling_upload_times_out() {
    let limits = Limits {
        upload_timeout: Duration::from_millis(400),
        min_rate: std::num::NonZeroU64::new(1000),
        ..Limits::default()
    };
    let server = RunningServer::start(Settings { limits, ..Settings::default() }).await;
    let mut raw = server.connect().await;
    raw.send(&put("/store/slow", "Content-Length: 100000\r\n")).await;
    let (mut read, mut write) = raw.0.into_split();
    let trickle = tokio::spawn(async move {
        while tokio::io::AsyncWriteExt::write_all(&mut write, b"x").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    });
    let mut answer = Vec::new();
    let begun = Instant::now();
    // Data sent after the response finally resets the connection.
    let _ =
        timeout(Duration::from_secs(8), tokio::io::AsyncReadExt::read_to_end(&mut read, &mut answer)).await.unwrap();
    assert_response(&String::from_utf8(answer).unwrap(), 408, "body-timeout");
    assert!(begun.elapsed() >= Duration::from_millis(400));
    trickle.abort();
    // Ten times the minimum rate is fast enough.
    let mut raw = server.connect().await;
    raw.send(&put("/store/quick", "Content-Length: 2000\r\n")).await;
    for _ in 0..20 {
        raw.send(&"x".repeat(100)).await;
        sleep(Duration::from_millis(50)).await;
    }
    assert!(raw.until(END).await.starts_with("HTTP/1.1 201 "));
    assert_eq!(keys(&server).await, 1);
}

#[tokio::test]
async fn unsupported_transfer_codings_are_rejected() {
    let server = RunningServer::start(Settings::default()).await;
    let body = "3\r\nhel\r\n0\r\n\r\n";
    for coding in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: GZIP , chunked\r\n",
        "Transfer-Encoding: deflate,chunked\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: x;y=\"z, chunked\", chunked\r\n",
    ] {
        assert_response(
            &server.exchange(&(put("/store/v", coding) + body)).await,
            501,
            "unsupported-transfer-encoding",
        );
    }
    for coding in
        ["Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"]
    {
        assert_response(&server.exchange(&(put("/store/v", coding) + body)).await, 400, "invalid-header");
    }
    // hyper rejects these before a problem document can be written.
    for framing in [
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: 18446744073709551616\r\n",
    ] {
        let answer = server.exchange(&(put("/store/v", framing) + body)).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{framing}: {answer}");
    }
    assert_eq!(keys(&server).await, 0);
}

#[tokio::test]
async fn request_smuggling_is_prevented() {
    let server = RunningServer::start(Settings::default()).await;
    for framing in
        ["Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"]
    {
        let hidden = "DELETE /store/v HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let answer = server.exchange(&(put("/store/v", framing) + "2\r\nhi\r\n0\r\n\r\n" + hidden)).await;
        assert!(answer.starts_with("HTTP/1.1 20") && answer.contains("connection: close\r\n"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
        assert_eq!(keys(&server).await, 1);
    }
}

#[tokio::test]
async fn slow_client_is_disconnected() {
    let limits = Limits {
        download_timeout: Duration::from_millis(100),
        stop_timeout: Duration::from_secs(60),
        ..Limits::default()
    };
    let mut server = RunningServer::start(Settings { limits, ..Settings::default() }).await;
    let large = vec![0_u8; 64 << 20];
    server.store.set(&Key::parse("v").unwrap(), large.into(), Precondition::none()).await.unwrap();
    let mut raw = server.connect().await;
    raw.send("GET /store/v HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    raw.until(END).await;
    server.stop();
    timeout(Duration::from_secs(10), server.stopped()).await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_finishes_running_requests() {
    let mut server = RunningServer::start(Settings::default()).await;
    let mut idle = server.connect().await;
    idle.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    idle.until("}").await;
    let mut running = server.connect().await;
    running.send(&put("/store/v", "Content-Length: 5\r\nExpect: 100-continue\r\n")).await;
    running.until(END).await;
    running.send("he").await;
    server.stop();
    assert_eq!(idle.rest().await, "", "idle connections are closed");
    let address = server.address;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nothing is taken any more");
    running.send("llo").await;
    let answer = running.rest().await;
    assert!(answer.starts_with("HTTP/1.1 201 ") && answer.contains("connection: close\r\n"), "{answer}");
    server.stopped().await.unwrap();
}

#[tokio::test]
async fn shutdown_timeout_aborts_requests() {
    let limits = Limits { stop_timeout: Duration::from_millis(100), ..Limits::default() };
    let mut server = RunningServer::start(Settings { limits, ..Settings::default() }).await;
    let mut raw = server.connect().await;
    raw.send(&put("/store/v", "Content-Length: 5\r\nExpect: 100-continue\r\n")).await;
    raw.until(END).await;
    server.stop();
    let store = server.store.clone();
    server.stopped().await.unwrap();
    assert!(store.list(PageRequest::first(1)).await.unwrap().keys.is_empty());
}
