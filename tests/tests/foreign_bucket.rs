//! A server of a bucket that other programs write.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use http::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use wire::{problem::ProblemType, routes::encode};
use zarrd_tests::{
    environment::clients,
    problem::assert_problem,
    python::{Python, python_with_clients},
    sample::{FILES, Sample},
    server::{Launch, Server},
};

/// The number of arrays of the sample.
const ARRAYS: usize = 37;
const ACCESS_KEY: &str = "AKIATEST";
const SECRET: &str = "very-secret-0123456789";

/// A server that speaks S3, with the files of a directory as objects.
struct S3 {
    process: Child,
    endpoint: String,
}

impl S3 {
    fn start(python: &Python, dir: &Path) -> Self {
        let mut command = python.command();
        command.arg(clients().join("s3_server.py")).arg(dir).arg(ACCESS_KEY).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, endpoint: format!("http://127.0.0.1:{}", port.trim()) }
    }

    fn launch(&self, url: &str, access_key: &str) -> Launch {
        let variables = [
            ("AWS_ENDPOINT", &*self.endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", access_key),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
        ];
        variables.into_iter().fold(Launch::of(url), |launch, (name, value)| launch.env(name, value))
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The status, and the body if that is 200.
async fn answer(server: &Server, path: &str) -> (StatusCode, Vec<u8>) {
    let response = server.get(path).await;
    let status = response.status();
    let body = response.bytes().await.unwrap().to_vec();
    (status, if status == StatusCode::OK { body } else { Vec::new() })
}

#[tokio::test]
async fn buckets_and_directories_are_served_like_a_store() {
    let Some(python) = python_with_clients() else { return };
    let sample = Sample::of(&python);
    let s3 = S3::start(&python, &sample.lab());
    let foreign = [s3.launch("s3://bucket", ACCESS_KEY), Launch::of(format_args!("dir:{}", sample.lab().display()))]
        .map(|launch| launch.start());
    let embedded = sample.clone().serve();
    let (mut values, mut arrays) = (0, 0);
    for (key, bytes) in sample.values() {
        let expected = (StatusCode::OK, bytes);
        let array = match key.rsplit_once('/') {
            Some((path, "zarr.json" | ".zarray")) => Some(encode(path).to_string()),
            _ => None,
        };
        for server in &foreign {
            assert!(answer(server, &format!("/store/{}", encode(&key))).await == expected, "{key}");
            let Some(path) = &array else { continue };
            let found = answer(server, &format!("/array/{path}")).await;
            assert!(found == answer(&embedded.server, &format!("/array/lab/{path}")).await, "{path}");
            arrays += usize::from(found.0 == StatusCode::OK);
        }
        values += 1;
    }
    assert_eq!((values, arrays), (FILES, 2 * ARRAYS));
    let tree = |server| async move { answer(server, "/node/?depth=all").await };
    assert!(tree(&foreign[0]).await == tree(&foreign[1]).await);
}

#[tokio::test]
async fn objects_that_change_are_served_as_they_are() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("lab")).unwrap();
    let path = dir.path().join("lab/v");
    fs::write(&path, "one").unwrap();
    let s3 = S3::start(&python, dir.path());
    let [one, other] = [(); 2].map(|()| s3.launch("s3://bucket/lab", ACCESS_KEY).start());
    let first = one.get("/store/v").await.headers()[ETAG].clone();
    assert_eq!(other.get("/store/v").await.headers()[ETAG], first, "servers of one bucket agree");
    let again = || one.request(Method::GET, "/store/v").header(IF_NONE_MATCH, first.clone()).send();
    assert_eq!(again().await.unwrap().status(), StatusCode::NOT_MODIFIED);
    fs::write(&path, "two").unwrap();
    assert_eq!(again().await.unwrap().bytes().await.unwrap(), "two");
    fs::remove_file(&path).unwrap();
    assert_eq!(again().await.unwrap().status(), StatusCode::NOT_FOUND);
    for (method, path) in [(Method::PUT, "/store/v"), (Method::DELETE, "/store/v"), (Method::DELETE, "/node/a")] {
        let rejected = one.request(method, path).body("2").send().await.unwrap();
        assert_problem(rejected, ProblemType::Unsupported).await;
    }
}

#[test]
fn buckets_that_cannot_be_read_are_not_served() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let s3 = S3::start(&python, dir.path());
    for (url, access_key, reason) in [
        ("s3://missing/lab", ACCESS_KEY, "NoSuchBucket"),
        ("s3://bucket/lab", "AKIAOTHER", "InvalidAccessKeyId"),
        ("s3://bucket/lab?absent=404", ACCESS_KEY, "absent"),
    ] {
        let ended = s3.launch(url, access_key).start_expecting_failure();
        assert!(ended.stderr.contains(reason) && !ended.stderr.contains(SECRET), "{ended:?}");
    }
}
