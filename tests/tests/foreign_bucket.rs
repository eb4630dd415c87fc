//! A server of a bucket that other programs write.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::fs;

use http::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use wire::problem::ProblemType;
use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer, SECRET},
    problem::assert_problem,
    python::python_with_clients,
    sample::Sample,
    server::{Launch, Server},
};

#[tokio::test]
async fn buckets_and_directories_are_served_like_a_store() {
    let Some(python) = python_with_clients() else { return };
    let sample = Sample::of(&python);
    let lab = sample.lab();
    let Some(moto) = BucketServer::moto(&python, &lab) else { return };
    let Some(azurite) = BucketServer::azurite(&python, &lab) else { return };
    let buckets = [BucketServer::start(&python, &lab), moto, azurite];
    let directory = Launch::of(format_args!("dir:{}", lab.display()));
    let launches = buckets.iter().map(|bucket| bucket.launch(bucket.url, ACCESS_KEY)).chain([directory]);
    let foreign: Vec<Server> = launches.map(|launch| launch.start()).collect();
    let embedded = sample.clone().serve();
    for server in &foreign {
        embedded.assert_served_by(server, "").await;
    }
    let tree = "/node/?depth=all";
    let expected = foreign[0].answer(tree).await;
    for server in &foreign {
        assert!(server.answer(tree).await == expected);
    }
}

#[tokio::test]
async fn objects_that_change_are_served_as_they_are() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("lab")).unwrap();
    let path = dir.path().join("lab/v");
    fs::write(&path, "one").unwrap();
    let s3 = BucketServer::start(&python, dir.path());
    let [one, other] = [(); 2].map(|()| s3.launch("s3://bucket/lab?recheck=0", ACCESS_KEY).start());
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
    let s3 = BucketServer::start(&python, dir.path());
    for (url, access_key, reason) in [
        ("s3://missing/lab", ACCESS_KEY, "NoSuchBucket"),
        ("s3://bucket/lab", "AKIAOTHER", "InvalidAccessKeyId"),
        ("s3://bucket/lab?absent=404", ACCESS_KEY, "absent"),
    ] {
        let ended = s3.launch(url, access_key).start_expecting_failure();
        assert!(ended.stderr.contains(reason) && !ended.stderr.contains(SECRET), "{ended:?}");
    }
}
