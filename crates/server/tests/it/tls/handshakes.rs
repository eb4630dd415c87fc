//! Handshakes, and HTTP/1 over TLS.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use zarrd_server::{Limits, Settings};

use crate::tls::tls_server::{TIMEOUT, TlsServer};

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
/// The beginning of a TLS record with a handshake message of 200 bytes.
const HALF_HELLO: &[u8] = &[0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];

/// Reads until the server closes the connection.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the server closes");
    bytes
}

#[tokio::test]
async fn http1_is_served_over_tls() {
    let server = TlsServer::start(Settings::default()).await;
    server.set("v", 3 << 20).await;
    for protocols in [["http/1.1"].as_slice(), &["http/1.1", "h2c"], &[]] {
        let mut stream = server.connect(protocols).await;
        stream.write_all(b"GET /store/v HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        let body = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(answer.len() - body, 3 << 20);
    }
}

#[tokio::test]
async fn protocol_is_negotiated() {
    let server = TlsServer::start(Settings::default()).await;
    for (protocols, agreed) in [
        (["h2", "http/1.1"].as_slice(), Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = server.connect(protocols).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes), "{protocols:?}");
    }
}

#[tokio::test]
async fn stalled_handshake_times_out() {
    let limits = Limits { header_timeout: Duration::from_millis(300), ..Limits::default() };
    let server = TlsServer::start(Settings { limits, ..Settings::default() }).await;
    for begun in [b"".as_slice(), HALF_HELLO] {
        let started = Instant::now();
        let mut stream = server.connect_tcp().await;
        stream.write_all(begun).await.unwrap();
        rest(stream).await;
        let elapsed = started.elapsed();
        assert!(elapsed >= Duration::from_millis(300) && elapsed < Duration::from_secs(5), "{elapsed:?}");
    }
}

#[tokio::test]
async fn unfinished_handshakes_are_evicted() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let server = TlsServer::start(Settings { limits, ..Settings::default() }).await;
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let mut stream = server.connect_tcp().await;
        stream.write_all(HALF_HELLO).await.unwrap();
        stalled.push(stream);
    }
    assert!(server.exchange(HEALTH).await.unwrap().starts_with("HTTP/1.1 200 "));
    // All except the last.
    for stream in stalled.drain(..19) {
        rest(stream).await;
    }
}

#[tokio::test]
async fn unfinished_handshake_does_not_delay_the_shutdown() {
    let mut server = TlsServer::start(Settings::default()).await;
    let mut stream = server.connect_tcp().await;
    stream.write_all(HALF_HELLO).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.stop();
    let started = Instant::now();
    server.stopped().await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[tokio::test]
async fn plain_http_gets_a_readable_response() {
    let server = TlsServer::start(Settings::default()).await;
    for request in ["GET /store/v HTTP/1.1\r\nHost: localhost\r\n\r\n", "PUT /v HTTP/1.1\r\n"] {
        let mut stream = server.connect_tcp().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = String::from_utf8(rest(stream).await).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n") && head.contains("connection: close"), "{answer}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{answer}");
        assert!(body.contains("https://"), "{answer}");
    }
}

#[tokio::test]
async fn garbage_is_rejected() {
    let server = TlsServer::start(Settings::default()).await;
    let mut stream = server.connect_tcp().await;
    stream.write_all(&[0xff; 100]).await.unwrap();
    assert!(!rest(stream).await.starts_with(b"HTTP"));
    assert!(server.exchange(HEALTH).await.unwrap().starts_with("HTTP/1.1 200 "));
}
