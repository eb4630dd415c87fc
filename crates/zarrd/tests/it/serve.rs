//! `serve` from its start to its end.

use std::{fs, net::TcpListener};

use rustix::process::Signal;
use zarrd_store::{BackendErrorKind, Key, Precondition, ReadableStore, StoreError, WriteableStore};

use crate::runner::TestDir;

#[tokio::test]
async fn sigterm_and_sigint_exit_0_without_data_loss() {
    let dir = TestDir::new();
    let key = Key::parse("lab/notes").unwrap();
    for (index, (store, signal)) in [("sled:data", Signal::TERM), ("redb:other", Signal::INT)].into_iter().enumerate() {
        let server = dir.serve(&["--store", store]);
        let text = format!("mice {index}");
        server.store().set(&key, text.clone().into(), Precondition::none()).await.unwrap();
        server.signal(signal);
        assert_eq!(server.wait(), (0, String::new()));
        let server = dir.serve(&["--store", store]);
        assert_eq!(server.store().get(&key, None).await.unwrap().unwrap().bytes().await.unwrap(), text);
        server.stop();
    }
}

#[tokio::test]
async fn second_signal_ends_the_process_immediately() {
    use tokio::io::AsyncWriteExt;

    let dir = TestDir::new();
    let server = dir.serve(&["--shutdown-timeout", "10m"]);
    let address = server.url().replace("http://", "");
    // A request that does not end, for which the first signal waits.
    let mut upload = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!("PUT /store/half HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000\r\n\r\nbegun");
    upload.write_all(head.as_bytes()).await.unwrap();
    upload.flush().await.unwrap();
    // Sends until the server has received the request.
    for _ in 0..200 {
        upload.write_all(b".").await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    server.signal(Signal::TERM);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    server.signal(Signal::INT);
    assert_eq!(server.wait().0, 130);
    let server = dir.serve(&[]);
    assert!(server.store().get(&Key::parse("half").unwrap(), None).await.unwrap().is_none());
}

#[test]
fn store_is_opened_by_one_process_only() {
    let dir = TestDir::new();
    let server = dir.serve(&[]);
    let pid = format!("process {}", server.pid());
    dir.fails(&["serve", "--listen", "127.0.0.1:0"], 4, &[&pid, "zarrd-data"]);
    dir.fails(&["import", ".", "a", "--store", "zarrd-data"], 2, &["into itself"]);
    fs::create_dir(dir.path("tree")).unwrap();
    dir.fails(&["import", "tree"], 4, &[&pid, "--server"]);
    dir.fails(&["export", "", "out"], 4, &[&pid, "--server"]);
    dir.fails(&["check"], 4, &[&pid]);
    dir.fails(&["copy", "sled:zarrd-data", "redb:new"], 4, &[&pid]);
    assert!(!dir.path("out").exists() && !dir.path("new").exists());
    server.stop();
    dir.succeeds(&["check"]);
}

#[test]
fn address_in_use_is_exit_code_6() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = TestDir::new();
    dir.fails(&["serve", "--store", "memory:", "--listen", &address], 6, &[&address, "in use"]);
}

#[test]
fn unusable_store_is_exit_code_3() {
    let dir = TestDir::new();
    dir.write("stuff/notes.txt", "not a store");
    dir.fails(&["serve", "--store", "stuff", "--listen", "127.0.0.1:0"], 3, &["stuff"]);
    dir.fails(&["check", "--store", "redb:nowhere"], 3, &["no store at redb:nowhere"]);
    assert!(!dir.path("nowhere").exists());

    dir.write("tree/zarr.json", "{}");
    dir.succeeds(&["import", "tree", "--store", "redb:data"]);
    dir.fails(&["check", "--store", "sled:data"], 3, &["redb"]);
    dir.write("data/zarrd.json", "{");
    dir.fails(&["serve", "--store", "redb:data", "--listen", "127.0.0.1:0"], 3, &["zarrd.json"]);
}

#[tokio::test]
async fn anonymous_read_forbids_writes() {
    let dir = TestDir::new();
    let server = dir.serve(&["--anonymous", "read"]);
    let key = Key::parse("a").unwrap();
    let refused = server.store().set(&key, "b".into(), Precondition::none()).await.unwrap_err();
    let kind = refused.backend_kind();
    let refusals = [Some(BackendErrorKind::PermissionDenied), Some(BackendErrorKind::Unauthenticated)];
    assert!(refusals.contains(&kind), "{refused:?}");
    assert!(server.store().get(&key, None).await.unwrap().is_none());
}

#[tokio::test]
async fn too_large_values_are_rejected() {
    let dir = TestDir::new();
    let server = dir.serve(&["--max-body", "1KiB"]);
    let key = Key::parse("a").unwrap();
    server.store().set(&key, vec![0; 1024].into(), Precondition::none()).await.unwrap();
    let refused = server.store().set(&key, vec![0; 1025].into(), Precondition::none()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Upload(_)), "{refused:?}");
}

#[test]
fn health_sets_the_exit_code() {
    let mut dir = TestDir::new();
    let server = dir.serve(&["--store", "memory:"]);
    let url = server.url();
    dir.succeeds(&["health", "--url", &url]);
    // In a container the server listens on all addresses, and the same variable has the address.
    dir.env("ZARRD_LISTEN", &url.replace("http://127.0.0.1", "0.0.0.0"));
    dir.succeeds(&["health"]);
    server.stop();
    dir.fails(&["health"], 1, &[&url, "not healthy"]);
}

#[test]
fn directory_is_served_as_what_it_is() {
    let dir = TestDir::new();
    dir.write("files/g/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#);
    let served = |argument: &str| {
        let server = dir.serve(&[argument]);
        let line = server.line.clone();
        server.stop();
        line
    };
    let files = served("files");
    assert!(files.contains("(store: dir:files, ") && files.contains("zarrd import files"), "{files}");
    for (argument, store) in
        [("new", "sled:new"), ("new", "sled:new"), ("redb:other", "redb:other"), ("other", "redb:other")]
    {
        assert!(served(argument).contains(&format!("(store: {store})")), "{argument}");
    }
    fs::create_dir(dir.path("empty")).unwrap();
    assert!(served("empty").contains("(store: sled:empty)"));
    fs::remove_file(dir.path("new/zarrd.json")).unwrap();
    let serve = |argument| ["serve", argument, "--listen", "127.0.0.1:0"];
    dir.fails(&serve("new"), 3, &["part of a store", "zarrd.json"]);
    dir.write("damaged/access/keys/1.json", "{}");
    dir.write("damaged/g/zarr.json", "{}");
    dir.fails(&serve("damaged"), 3, &["access"]);
    dir.write("file", "1");
    dir.fails(&serve("file"), 3, &["has to be a directory"]);
    dir.fails(&serve("nonsense:x"), 2, &["nonsense"]);
    dir.fails(&["serve", "files", "--store", "files"], 2, &["not both"]);
}

#[test]
fn wrong_spellings_name_the_right_command() {
    let dir = TestDir::new();
    dir.write("era.zarr/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#);
    dir.fails(&["tree", "--store", "era.zarr"], 3, &["--store dir:era.zarr", "zarrd import era.zarr"]);
    dir.fails(&["serve", "--store", "era.zarr", "--listen", "127.0.0.1:0"], 3, &["--store dir:era.zarr"]);
    dir.fails(&["tree", "./era.zarr"], 2, &["--store dir:./era.zarr"]);
    dir.fails(&["tree", "era.zarr"], 2, &["zarrd tree --store dir:era.zarr"]);
    dir.succeeds(&["tree", "--store", "dir:era.zarr"]);
}

/// The signing key of tokens, and whatever else belongs to the server, is not served.
#[test]
fn files_of_the_server_are_not_served() {
    let dir = TestDir::new();
    dir.write("data/g/zarr.json", "{}");
    fs::create_dir(dir.path("keys")).unwrap();
    let serve = |more: &[&str]| {
        let all = [&["serve", "--listen", "127.0.0.1:0", "--anonymous", "read"], more].concat();
        dir.fails(&all, 3, &["never served"]);
    };
    serve(&["--store", "dir:data", "--access", "data/access"]);
    serve(&["--store", "dir:data/g", "--access", "data"]);
    serve(&["--store", "dir:.", "--access", "keys"]);
    serve(&["--store", "sled:store", "--mount", "m=dir:."]);
    serve(&["--store", "sled:store", "--mount", "m=dir:store"]);
    serve(&["--store", "dir:data", "--access", "keys", "--access-log", "all", "--access-log-file", "data/log"]);
    let server = dir.serve(&["--store", "dir:data?symlinks=follow", "--access", "keys", "--anonymous", "read"]);
    dir.succeeds(&["token", "create", "--name", "x", "--allow", "admin:/", "--access", "keys"]);
    std::os::unix::fs::symlink(dir.path("keys"), dir.path("data/keys")).unwrap();
    let url = server.url();
    dir.succeeds(&["export", "", "out", "--server", &url]);
    assert!(dir.path("out/g/zarr.json").exists() && !dir.path("out/keys").exists());
    assert_eq!((server.status_of("/store/g/zarr.json"), server.status_of("/store/keys/keys/1.json")), (200, 502));
    // An import does not read them either.
    fs::create_dir(dir.path("other")).unwrap();
    fs::rename(dir.path("keys"), dir.path("other/keys")).unwrap();
    dir.write("other/zarrd.toml", format!("access = {:?}", dir.path("other/keys")));
    let config = dir.path("other/zarrd.toml").display().to_string();
    let import = ["import", "other", "x", "--store", "sled:store", "--config", &config];
    dir.fails(&import, 1, &["\"keys\"", "\"zarrd.toml\"", "file of zarrd itself"]);
}
