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
    environment::clients,
    problem::assert_problem,
    python::python_with_clients,
    server::{Launch, Server, zarrd_with},
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
    assert!(listed.code == Some(0) && listed.stdout.contains('a'), "{listed:?}");
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
async fn zarr_python_and_the_server_write_the_chunks_of_one_array() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let server = launch(dir.path()).start();
    let group = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;
    assert_eq!(put(&server, "/store/shared/zarr.json", group).await.status(), StatusCode::CREATED);
    let mut command = python.command();
    command.args(["-W", "error"]).arg(clients().join("share_directory.py")).arg(dir.path()).arg(server.url("/store"));
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The elements, by the engine.
    let elements = server.get("/array/shared/a?format=json&select=:,0").await.text().await.unwrap();
    let elements: Vec<i32> = serde_json::from_str(&elements).unwrap();
    assert_eq!(elements, (29_000..29_008).collect::<Vec<_>>());
}
