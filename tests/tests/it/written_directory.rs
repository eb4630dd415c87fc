//! A server that writes into a directory, which other programs go on reading and writing.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use http::{
    Method, StatusCode,
    header::{ETAG, IF_MATCH, IF_NONE_MATCH},
};
use reqwest::Response;
use serde_json::{Value, json};
use zarrd_tests::{
    disk::{FileSystem, SmallDisk},
    environment::clients,
    problem::assert_problem,
    python::python_with_clients,
    server::{Launch, Server, zarrd_with},
    shared_folder::write_together,
};
use zarrd_wire::problem::ProblemType;

fn launch(dir: &Path) -> Launch {
    Launch::of(format_args!("dir:{}?writes=yes", dir.display()))
}

async fn put(server: &Server, path: &str, value: &'static str) -> Response {
    server.request(Method::PUT, path).body(value).send().await.unwrap()
}

async fn delete(server: &Server, path: &str) -> Response {
    server.request(Method::DELETE, path).send().await.unwrap()
}

async fn json_of(server: &Server, path: &str) -> Value {
    serde_json::from_slice(&server.get(path).await.bytes().await.unwrap()).unwrap()
}

#[tokio::test]
async fn values_are_set_and_erased_as_files() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("theirs"), "file").unwrap();
    let server = launch(dir.path()).start();
    let created = put(&server, "/store/lab/a/zarr.json", "{}").await;
    assert_eq!(created.status(), StatusCode::CREATED);
    assert_eq!(fs::read(dir.path().join("lab/a/zarr.json")).unwrap(), b"{}");
    let read = server.get("/store/lab/a/zarr.json").await;
    let tag = read.headers()[ETAG].clone();
    assert_eq!(created.headers()[ETAG], tag);
    assert_eq!(read.text().await.unwrap(), "{}");

    let set = |header, value: &_| {
        let request = server.request(Method::PUT, "/store/lab/a/zarr.json");
        request.header(header, value).body("[]").send()
    };
    assert_eq!(set(IF_MATCH, &tag).await.unwrap().status(), StatusCode::NO_CONTENT);
    assert_problem(set(IF_MATCH, &tag).await.unwrap(), ProblemType::PreconditionFailed).await;
    let any = "*".parse().unwrap();
    assert_problem(set(IF_NONE_MATCH, &any).await.unwrap(), ProblemType::PreconditionFailed).await;
    assert_eq!(fs::read(dir.path().join("lab/a/zarr.json")).unwrap(), b"[]");

    let conflict = put(&server, "/store/theirs/below", "x").await;
    let problem = assert_problem(conflict, ProblemType::NameConflict).await;
    assert_eq!(problem.members.keys, ["theirs/below", "theirs"]);
    let listed = json_of(&server, "/store/?list=keys").await;
    assert_eq!(listed["keys"], json!(["lab/a/zarr.json", "theirs"]));
    assert_eq!(delete(&server, "/store/theirs").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(delete(&server, "/store/lab/").await.status(), StatusCode::OK);
    server.stop();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_server_says_what_it_promises() {
    let dir = tempfile::tempdir().unwrap();
    let server = launch(dir.path()).start();
    let ready = json_of(&server, "/readyz").await;
    assert_eq!(ready["writable"], true, "{ready}");
    let [guarantees] = ready["guarantees"].as_array().unwrap().as_slice() else { panic!("{ready}") };
    assert_eq!((&guarantees["writes"], &guarantees["conditions"]), (&json!("key"), &json!("this-process")));
    server.stop();
    let server = launch(dir.path()).arg("--read-only").start();
    assert_eq!(put(&server, "/store/a", "x").await.status(), StatusCode::FORBIDDEN);
    server.stop();
    let server = Launch::of(format_args!("dir:{}", dir.path().display())).start();
    assert_problem(put(&server, "/store/a", "x").await, ProblemType::Unsupported).await;
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn directory_is_written_by_one_server_and_read_by_any_number() {
    let dir = tempfile::tempdir().unwrap();
    let server = launch(dir.path()).start();
    put(&server, "/store/a", "x").await;
    let second = launch(dir.path()).start_expecting_failure();
    assert!(second.stderr.contains("is written by another zarrd, process "), "{second:?}");
    let reader = Launch::of(format_args!("dir:{}", dir.path().display())).start();
    assert_eq!(reader.get("/store/a").await.text().await.unwrap(), "x");
    let listed = zarrd_with(["ls", "--store", &*format!("dir:{}?writes=yes", dir.path().display())]);
    assert_eq!(listed.code, Some(0), "commands only read: {listed:?}");
    server.kill();
    let next = launch(dir.path()).start();
    assert_eq!(put(&next, "/store/a", "y").await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn mounted_directory_is_written_below_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let mount = format!("lab=dir:{}?writes=yes", dir.path().display());
    let server = Launch::of("memory:").arg("--mount").arg(&mount).start();
    assert_eq!(put(&server, "/store/lab/a/b", "x").await.status(), StatusCode::CREATED);
    assert_eq!(fs::read(dir.path().join("a/b")).unwrap(), b"x");
    let conflict = put(&server, "/store/lab/a", "x").await;
    let problem = assert_problem(conflict, ProblemType::NameConflict).await;
    assert_eq!(problem.members.keys, ["lab/a", "lab/a/"]);
    assert_eq!(delete(&server, "/store/lab/a/b").await.status(), StatusCode::NO_CONTENT);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    server.stop();
    let server = Launch::of("memory:").arg("--mount").arg(mount.replace("?writes=yes", "")).start();
    assert_problem(put(&server, "/store/lab/a/b", "x").await, ProblemType::Unsupported).await;
}

#[tokio::test]
async fn killed_server_leaves_temporary_files_that_are_swept_when_they_are_old() {
    let dir = tempfile::tempdir().unwrap();
    let server = launch(dir.path()).start();
    let upload = futures::stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(vec![7_u8; 64 << 10])));
    let stalled = futures::StreamExt::chain(upload, futures::stream::pending());
    let request = server.request(Method::PUT, "/store/a/b").body(reqwest::Body::wrap_stream(stalled));
    let sending = tokio::spawn(request.send());
    let partial = || {
        let files = fs::read_dir(dir.path().join("a")).into_iter().flatten().flatten();
        files.map(|file| file.path()).find(|path| path.extension().is_some_and(|end| end == "partial"))
    };
    while partial().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.kill();
    sending.abort();
    let left = partial().expect("nothing removes it");
    let server = launch(dir.path()).start();
    assert_problem(server.get("/store/a/b").await, ProblemType::NoSuchKey).await;
    assert!(left.exists(), "it may be of a server that is still writing");
    server.stop();
    let old = SystemTime::now() - Duration::from_secs(2 * 3600);
    fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();
    let server = launch(dir.path()).start();
    while left.exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "with the directory that was made for it");
}

#[tokio::test]
async fn full_and_read_only_file_systems_refuse_changes_and_keep_values() {
    let Some(disk) = SmallDisk::mount(FileSystem::Tmpfs, 4) else { return };
    let server = launch(&disk.path()).start();
    put(&server, "/store/a/old", "old").await;
    let large = || server.request(Method::PUT, "/store/a/old").body(vec![7_u8; 8 << 20]).send();
    assert_problem(large().await.unwrap(), ProblemType::OutOfSpace).await;
    let new = server.request(Method::PUT, "/store/b/new").body(vec![7_u8; 8 << 20]).send();
    assert_problem(new.await.unwrap(), ProblemType::OutOfSpace).await;
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 1, "neither a file nor a folder is left");
    assert_eq!(fs::read_dir(disk.path().join("a")).unwrap().count(), 1);
    let remount = |how: &str| {
        let status = std::process::Command::new("mount").args(["-o", how]).arg(disk.path()).status();
        assert!(status.unwrap().success(), "{how}");
    };
    remount("remount,ro");
    assert_problem(put(&server, "/store/a/old", "new").await, ProblemType::ReadOnlyStore).await;
    assert_problem(delete(&server, "/store/a/old").await, ProblemType::ReadOnlyStore).await;
    assert_problem(server.get("/readyz").await, ProblemType::ReadOnlyStore).await;
    assert_eq!(server.get("/store/a/old").await.text().await.unwrap(), "old");
    remount("remount,rw");
    assert_eq!(put(&server, "/store/a/old", "new").await.status(), StatusCode::NO_CONTENT);
    server.stop();
}

#[test]
fn libraries_and_the_server_write_chunks_of_one_array_at_the_same_time() {
    let rounds = 4;
    assert!(write_together(rounds).is_none_or(|rows| rows == 12 * rounds));
}

#[tokio::test]
async fn zarr_python_and_the_server_write_the_chunks_of_one_array() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = launch(dir.path()).start();
    let group = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;
    assert_eq!(put(&server, "/store/shared/zarr.json", group).await.status(), StatusCode::CREATED);
    // An array that the engine makes, writes, grows and patches.
    let array = json!({"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "attributes": {}, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}});
    for (method, path, body, status) in [
        (Method::PUT, "/node/shared/b", array, StatusCode::CREATED),
        (Method::PUT, "/array/shared/b?select=2:6", json!([1, 2, 3, 4]), StatusCode::OK),
        (Method::POST, "/array/shared/b?append=0", json!([5, 6]), StatusCode::OK),
        (Method::PATCH, "/node/shared/b", json!({"shape": [9], "attributes": {"n": 1}}), StatusCode::OK),
    ] {
        let answer = server.request(method.clone(), path).json(&body).send().await.unwrap();
        let found = answer.status();
        assert_eq!(found, status, "{method} {path}: {}", answer.text().await.unwrap());
    }
    let mut command = python.command();
    command.args(["-W", "error"]).arg(clients().join("share_directory.py")).arg(dir.path()).arg(server.url("/store"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The elements, by the engine.
    let elements = server.get("/array/shared/a?format=json&select=:,0").await.text().await.unwrap();
    let elements: Vec<i32> = serde_json::from_str(&elements).unwrap();
    assert_eq!(elements, (9_001..9_009).collect::<Vec<_>>());
}
