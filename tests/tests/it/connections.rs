//! Clients that disconnect, and a server that is stopped while it is busy.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    path::Path,
    time::{Duration, Instant},
};

use http::StatusCode;
use zarrd_tests::{
    generated::Generated,
    server::{Launch, Server},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// The sizes of the value files below the store's directory, including incomplete ones.
fn value_files(dir: &Path) -> Vec<u64> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => found.extend(value_files(&entry.path())),
            Ok(metadata) => found.push(metadata.len()),
            // It was removed concurrently.
            Err(_) => {}
        }
    }
    found
}

/// Sends the head of an upload and the start of its body.
fn begin_upload(server: &Server, key: &str, framing: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "PUT /store/{key} HTTP/1.1\r\nHost: {}\r\n{framing}\r\n\r\n", server.address()).unwrap();
    let piece = vec![5; 1 << 20];
    for _ in 0..10 {
        if framing.starts_with("Transfer-Encoding") {
            write!(stream, "{:x}\r\n", piece.len()).unwrap();
        }
        stream.write_all(&piece).unwrap();
        if framing.starts_with("Transfer-Encoding") {
            stream.write_all(b"\r\n").unwrap();
        }
    }
    stream
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}: timeout after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn disconnected_upload_leaves_no_data() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let values = dir.path().join("values");
    let stored_value = Generated::new(3, 100_000).bytes();
    let put = server.put("/store/kept", stored_value.clone()).await;
    assert_eq!(put.status(), StatusCode::CREATED);
    let live = value_files(&values);
    assert_eq!(live.len(), 1);
    for framing in ["Content-Length: 52428800", "Transfer-Encoding: chunked"] {
        for key in ["new", "kept"] {
            for how in [Shutdown::Both, Shutdown::Write] {
                let stream = begin_upload(&server, key, framing);
                wait_until("the upload begins", || value_files(&values).iter().sum::<u64>() > 1 << 20);
                stream.shutdown(how).unwrap();
                wait_until("the partial upload is removed", || value_files(&values) == live);
                drop(stream);
            }
        }
    }
    assert_eq!(server.get("/store/new").await.status(), StatusCode::NOT_FOUND);
    assert_eq!(server.get("/store/kept").await.bytes().await.unwrap(), stored_value);
    server.stop();
}

#[tokio::test]
async fn running_download_completes_before_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let value = Generated::new(4, 48 << 20).bytes();
    server.put("/store/large", value.clone()).await.error_for_status().unwrap();

    let mut stream = TcpStream::connect(server.address()).unwrap();
    write!(stream, "GET /store/large HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address()).unwrap();
    let mut answer = vec![0; 1 << 20];
    stream.read_exact(&mut answer).unwrap();
    server.terminate();
    wait_until("new connections are rejected", || TcpStream::connect(server.address()).is_err());
    std::thread::sleep(Duration::from_millis(300));
    stream.read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(answer[head..] == value[..], "received {} of {} bytes", answer.len() - head, value.len());
    let ended = server.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[tokio::test]
async fn running_upload_is_stored_before_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).start();
    let mut stream = begin_upload(&server, "late", "Content-Length: 11534336");
    wait_until("the upload begins", || value_files(&dir.path().join("values")).iter().sum::<u64>() > 1 << 20);
    server.terminate();
    wait_until("new connections are rejected", || TcpStream::connect(server.address()).is_err());
    stream.write_all(&vec![5; 1 << 20]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(server.wait().code, Some(0));

    let server = Launch::sled(dir.path()).start();
    let value = server.get("/store/late").await.bytes().await.unwrap();
    assert!(value == vec![5; 11 << 20]);
}
