//! A server from its start to its end.

use std::{fs, net::TcpListener};

use rustix::process::Signal;
use store::{BackendErrorKind, Key, Precondition, ReadableStore, StoreError, WriteableStore};

use crate::runner::Place;

#[tokio::test]
async fn sigterm_and_sigint_end_it_with_0_and_everything_is_kept() {
    let place = Place::new();
    let key = Key::parse("lab/notes").unwrap();
    for (index, (store, signal)) in [("sled:data", Signal::TERM), ("redb:other", Signal::INT)].into_iter().enumerate() {
        let server = place.serve(&["--store", store]);
        let text = format!("mice {index}");
        server.store().set(&key, text.clone().into(), Precondition::none()).await.unwrap();
        server.signal(signal);
        assert_eq!(server.wait(), (0, String::new()));
        let server = place.serve(&["--store", store]);
        assert_eq!(server.store().get(&key, None).await.unwrap().unwrap().bytes().await.unwrap(), text);
        server.stop();
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    use tokio::io::AsyncWriteExt;

    let place = Place::new();
    let server = place.serve(&["--shutdown-timeout", "10m"]);
    let address = server.url().replace("http://", "");
    // A request that never ends, which the first signal waits for.
    let mut upload = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!("PUT /store/half HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000\r\n\r\nbegun");
    upload.write_all(head.as_bytes()).await.unwrap();
    upload.flush().await.unwrap();
    // Until the server has seen the request.
    for _ in 0..200 {
        upload.write_all(b".").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    server.signal(Signal::TERM);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    server.signal(Signal::INT);
    assert_eq!(server.wait().0, 130);
    let server = place.serve(&[]);
    assert!(server.store().get(&Key::parse("half").unwrap(), None).await.unwrap().is_none());
}

#[test]
fn a_store_has_one_process() {
    let place = Place::new();
    let server = place.serve(&[]);
    let pid = format!("process {}", server.pid());
    place.fails(&["serve", "--listen", "127.0.0.1:0"], 4, &[&pid, "zarrd-data"]);
    place.fails(&["import", ".", "a", "--store", "zarrd-data"], 2, &["into itself"]);
    fs::create_dir(place.path("tree")).unwrap();
    place.fails(&["import", "tree"], 4, &[&pid, "--server"]);
    place.fails(&["export", "", "out"], 4, &[&pid, "--server"]);
    place.fails(&["check"], 4, &[&pid]);
    place.fails(&["copy", "sled:zarrd-data", "redb:new"], 4, &[&pid]);
    assert!(!place.path("out").exists() && !place.path("new").exists());
    server.stop();
    place.done(&["check"]);
}

#[test]
fn an_address_has_one_server() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let place = Place::new();
    place.fails(&["serve", "--store", "memory:", "--listen", &address], 6, &[&address, "in use"]);
}

#[test]
fn what_is_no_store_or_a_damaged_one_is_refused_with_the_file_named() {
    let place = Place::new();
    place.write("stuff/notes.txt", "not a store");
    place.fails(&["serve", "--store", "stuff", "--listen", "127.0.0.1:0"], 3, &["stuff"]);
    place.fails(&["check", "--store", "redb:nowhere"], 3, &["no store at redb:nowhere"]);
    assert!(!place.path("nowhere").exists());

    place.write("tree/zarr.json", "{}");
    place.done(&["import", "tree", "--store", "redb:data"]);
    place.fails(&["check", "--store", "sled:data"], 3, &["redb"]);
    place.write("data/zarrd.json", "{");
    place.fails(&["serve", "--store", "redb:data", "--listen", "127.0.0.1:0"], 3, &["zarrd.json"]);
}

#[tokio::test]
async fn anonymous_read_lets_nobody_write() {
    let place = Place::new();
    let server = place.serve(&["--anonymous", "read"]);
    let key = Key::parse("a").unwrap();
    let refused = server.store().set(&key, "b".into(), Precondition::none()).await.unwrap_err();
    let kind = refused.backend_kind();
    let refusals = [Some(BackendErrorKind::PermissionDenied), Some(BackendErrorKind::Unauthenticated)];
    assert!(refusals.contains(&kind), "{refused:?}");
    assert!(server.store().get(&key, None).await.unwrap().is_none());
}

#[tokio::test]
async fn values_have_the_limit_that_was_set() {
    let place = Place::new();
    let server = place.serve(&["--max-body", "1KiB"]);
    let key = Key::parse("a").unwrap();
    server.store().set(&key, vec![0; 1024].into(), Precondition::none()).await.unwrap();
    let refused = server.store().set(&key, vec![0; 1025].into(), Precondition::none()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Upload(_)), "{refused:?}");
}

#[test]
fn health_is_an_exit_code() {
    let mut place = Place::new();
    let server = place.serve(&["--store", "memory:"]);
    let url = server.url();
    place.done(&["health", "--url", &url]);
    // In a container the server listens on all addresses, and the same variable tells where.
    place.env("ZARRD_LISTEN", &url.replace("http://127.0.0.1", "0.0.0.0"));
    place.done(&["health"]);
    server.stop();
    place.fails(&["health"], 1, &[&url, "not healthy"]);
}
