//! Many clients that read nothing, send nothing or disconnect: the short form of the command `crowds`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use zarrd_tests::{
    crowds::{Crowd, Kind, Plan, run},
    server::Launch,
};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn crowds_use_bounded_memory_and_block_no_client() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        clients: 400,
        keys: 10_000,
        stay: Duration::from_secs(2),
        calm: Duration::from_secs(60),
        crowds: Crowd::of_keys(),
        program: Some(env!("CARGO_BIN_EXE_long").into()),
    };
    for one in run(&plan, dir.path()).await {
        assert!(one.is_within_limits(), "{one}");
        assert_eq!(one.bystander.failed(), 0, "{one}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crowds_that_compute_use_bounded_memory_and_end_with_their_clients() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        clients: 100,
        keys: 0,
        stay: Duration::from_secs(3),
        calm: Duration::from_secs(60),
        crowds: Crowd::of_abandoned_computations(),
        program: Some(env!("CARGO_BIN_EXE_long").into()),
    };
    for one in run(&plan, dir.path()).await {
        assert!(one.is_within_limits(), "{one}");
        assert_eq!(one.bystander.failed(), 0, "{one}");
        assert_eq!(one.status, Some(200), "{one}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_silent_connections_block_no_client() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        clients: 2000,
        keys: 0,
        stay: Duration::from_secs(5),
        calm: Duration::from_secs(60),
        crowds: vec![Kind::Silent.into(), Kind::Heads.into()],
        program: None,
    };
    for one in run(&plan, dir.path()).await {
        assert!(one.is_within_limits() && one.bystander.failed() == 0, "{one}");
    }
}

#[test]
fn operational_endpoints_respond_while_every_connection_uploads() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).arg("--max-connections=15").start();
    let uploads: Vec<_> = (0..15)
        .map(|number| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            let head = format!(
                "PUT /store/{number} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.read_exact(&mut [0; 25]).unwrap();
            stream
        })
        .collect();
    let ask = |request: &[u8]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask(HEALTH).starts_with("HTTP/1.1 200 "));
    for _ in 0..50 {
        let answer = ask(b"GET /store/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 503 "), "a response, not a reset: {answer:?}");
    }
    drop(uploads);
    server.stop();
}

#[test]
fn slow_trickling_upload_is_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).arg("--upload-timeout=2s").start();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"PUT /store/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let (started, mut answer) = (Instant::now(), [0; 12]);
    while stream.read_exact(&mut answer).is_err() {
        assert!(started.elapsed() < Duration::from_secs(30), "it lives for ever");
        stream.write_all(b"x").unwrap();
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
    server.stop();
    let server = Launch::sled(dir.path()).arg("--upload-timeout=2s").arg("--min-rate=0").start();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"PUT /store/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n").unwrap();
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(500));
        stream.write_all(b"x").unwrap();
    }
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201", "without a rate any byte will do");
    server.stop();
}
