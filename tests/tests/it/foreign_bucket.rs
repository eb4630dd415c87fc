//! A server of a bucket that other programs write.

use std::{collections::BTreeMap, fs, time::Duration};

use bytes::Bytes;
use http::{
    Method, StatusCode,
    header::{ETAG, IF_NONE_MATCH},
};
use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer, SECRET},
    distant_bucket::{DistantBucket, Fault},
    problem::assert_problem,
    python::python_with_clients,
    sample::Sample,
    server::{Launch, Server},
};
use zarrd_wire::problem::ProblemType;

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

/// An array of one chunk, which is stored.
fn objects() -> BTreeMap<String, Bytes> {
    let document = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}, "codecs": [{"name": "bytes"}],
        "chunk_key_encoding": {"name": "default"}}"#;
    BTreeMap::from([("a/zarr.json".into(), document.into()), ("a/c/0".into(), Bytes::from_static(&[1, 2, 3, 4]))])
}

#[tokio::test]
async fn failures_of_a_bucket_are_problems_that_name_mount_and_key_and_never_fill_values() {
    let bucket = DistantBucket::start(objects(), Duration::ZERO);
    let embedded = tempfile::tempdir().unwrap();
    let mounted = Launch::sled(embedded.path()).arg("--mount").arg("lab=s3://bucket?recheck=0");
    let mounted = bucket.s3().environment().into_iter().fold(mounted, |launch, (name, value)| launch.env(name, value));
    let servers = [(bucket.s3().launch("s3://bucket?recheck=0").start(), None), (mounted.start(), Some("lab/"))];
    for (fault, kind) in [
        (Fault::Refusal(403, "AccessDenied", ""), ProblemType::StoreFailed),
        (Fault::Refusal(403, "InvalidAccessKeyId", ""), ProblemType::StoreFailed),
        (Fault::Refusal(400, "ExpiredToken", ""), ProblemType::StoreFailed),
        (Fault::Refusal(404, "NoSuchBucket", ""), ProblemType::StoreFailed),
        (Fault::Refusal(301, "PermanentRedirect", "x-amz-bucket-region: eu-west-1\r\n"), ProblemType::StoreFailed),
        (Fault::Refusal(503, "SlowDown", "Retry-After: 600\r\n"), ProblemType::Busy),
        (Fault::Html, ProblemType::StoreFailed),
        (Fault::Lost, ProblemType::StoreUnavailable),
        (Fault::Short, ProblemType::StoreUnavailable),
    ] {
        bucket.fail("a/c/0", fault.clone());
        for (server, mount) in &servers {
            let key = format!("{}a/c/0", mount.unwrap_or_default());
            let targets = [format!("/array/{}a?format=raw", mount.unwrap_or_default()), format!("/store/{key}")];
            for target in &targets {
                // Versions of chunks are asked for by HEAD, which has no code: in a bucket that was just seen, the
                // object does not exist.
                if matches!(fault, Fault::Refusal(404, ..)) && target.starts_with("/array") {
                    continue;
                }
                let answer = server.get(target).await;
                if fault == Fault::Short && target.starts_with("/store") {
                    assert!(answer.bytes().await.is_err(), "{target}: a short value");
                    continue;
                }
                let problem = assert_problem(answer, kind).await;
                if kind != ProblemType::Busy {
                    let members = &problem.members;
                    assert_eq!((members.key.as_deref(), members.prefix.as_deref()), (Some(&*key), *mount), "{fault:?}");
                }
                assert!(!format!("{problem:?}").contains("bucket"), "{problem:?}");
            }
        }
    }
    for (server, _) in &servers {
        assert!(server.log().contains("s3://bucket/a/c/0"), "the log has the cause: {}", server.log());
        for secret in [SECRET, ACCESS_KEY] {
            assert!(!server.log().contains(secret), "{}", server.log());
        }
    }
}
