//! Reading objects from a service that fails, and that other programs change.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::sync::Semaphore;
use zarrd_store::{BackendErrorKind, ByteRange, Keyed, ReadableStore, SnapshotStore, StoreError};
use zarrd_store_object::{BucketStore, Failure, RequestError};

use crate::common::{Dialect, Fault, Fixture, Server, drain, key, open, options, texts, within};

fn large() -> Bytes {
    (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>().into()
}

fn failure(error: &StoreError) -> Failure {
    let source = error.backend_source::<RequestError>();
    source.unwrap_or_else(|| panic!("{error:?} is not the failure of a request")).failure.clone()
}

fn refused(status: u16, code: &str) -> Fault {
    Fault::Answer(status, vec![], format!("<Error><Code>{code}</Code></Error>"))
}

#[tokio::test]
async fn a_read_of_each_service_takes_one_request() {
    for url in ["s3://b/p", "gs://b/p", "az://b/p"] {
        let fixture = Fixture::open(url).await;
        fixture.put("a b/ä%2F", "value");
        assert_eq!(fixture.read("a b/ä%2F").await.unwrap().as_deref(), Some(&b"value"[..]), "{url}");
        assert_eq!(fixture.server.methods(), ["GET"], "{url}");
        assert_eq!(fixture.read("none").await.unwrap(), None, "{url}");
    }
}

#[tokio::test]
async fn ranges_are_read_from_each_service() {
    for url in ["s3://b/p", "gs://b/p", "az://b/p"] {
        let fixture = Fixture::open(url).await;
        fixture.put("a", "0123456789");
        fixture.put("empty", "");
        let get = async |at: &str, range| fixture.store.get(&key(at), Some(range)).await;
        let bounded = |start, end| ByteRange::bounded(start, end).unwrap();
        let last = |count| ByteRange::last(count).unwrap();
        for (range, expected) in [
            (bounded(2, 5), "234"),
            (bounded(8, u64::MAX), "89"),
            (ByteRange::From(7), "789"),
            (last(3), "789"),
            (last(30), "0123456789"),
            (last(u64::MAX), "0123456789"),
        ] {
            let value = get("a", range).await.unwrap().unwrap();
            assert_eq!(value.bytes().await.unwrap(), expected, "{url} {range:?}");
        }
        for range in [bounded(10, 12), ByteRange::From(10), ByteRange::From(u64::MAX)] {
            let result = get("a", range).await;
            assert!(
                matches!(result, Err(StoreError::RangeNotSatisfiable { meta }) if meta.size == 10),
                "{url} {range:?}"
            );
            assert!(get("none", range).await.unwrap().is_none(), "{url} {range:?}");
        }
        let value = get("empty", last(3)).await.unwrap().unwrap();
        assert_eq!((value.range.clone(), value.bytes().await.unwrap().len()), (0..0, 0), "{url}");
        let result = get("empty", ByteRange::From(0)).await;
        assert!(matches!(result, Err(StoreError::RangeNotSatisfiable { meta }) if meta.size == 0), "{url}");
    }
}

#[tokio::test]
async fn a_service_that_ignores_ranges_is_an_error_unless_the_object_is_empty() {
    let fixture = Fixture::new().await;
    fixture.put("a", "0123456789");
    fixture.put("empty", "");
    fixture.server.on_request(|_| Some(Fault::Ignoring("range")));
    let error = fixture.store.get(&key("a"), Some(ByteRange::From(3))).await.unwrap_err();
    assert_eq!(failure(&error), Failure::Whole);
    let value = fixture.store.get(&key("empty"), ByteRange::last(3).ok()).await.unwrap().unwrap();
    assert_eq!(value.range, 0..0);
}

#[tokio::test]
async fn a_body_that_breaks_is_resumed_where_it_broke_and_only_for_the_same_value() {
    for url in ["s3://b/p", "gs://b/p", "az://b/p"] {
        let fixture = Fixture::open(url).await;
        fixture.put("a", large());
        fixture.server.faults([Fault::Broken(1_000_000), Fault::Lost, Fault::StalledAfter(2_000_000)]);
        assert_eq!(fixture.read("a").await.unwrap(), Some(large()), "{url}");
        let requests = fixture.server.requests();
        assert_eq!(requests.len(), 4, "{url}");
        assert_eq!(requests[0].header("if-match"), None);
        let mut starts = Vec::new();
        for request in &requests[1..] {
            assert_eq!(request.header("if-match"), Some("\"00000000000000000000000000000001\""), "{url}");
            let range = request.header("range").unwrap().strip_prefix("bytes=").unwrap();
            starts.push(range.strip_suffix("-11999999").unwrap().parse::<u32>().unwrap());
        }
        assert!(starts[0] <= 1_000_000 && starts[1] == starts[0] && starts[2] > starts[1], "{url} {starts:?}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_while_the_object_changes_fails_and_mixes_nothing() {
    for replacement in [Some("other".repeat(2_400_000)), Some("short".to_owned()), None] {
        let fixture = Fixture::new().await;
        fixture.put("a", large());
        fixture.server.faults([Fault::Broken(1_000_000)]);
        let value = fixture.get("a").await.unwrap().unwrap();
        match replacement {
            Some(replacement) => fixture.put("a", replacement),
            None => fixture.server.remove("p/a"),
        }
        let (bytes, end) = drain(value).await;
        assert!(matches!(end, Err(StoreError::Changed { .. })), "{end:?}");
        assert_eq!(bytes[..], large()[..bytes.len()]);
    }
}

#[tokio::test]
async fn a_resumed_body_of_another_value_is_not_used_even_if_if_match_is_ignored() {
    let fixture = Fixture::new().await;
    fixture.put("a", large());
    let put = fixture.server.handle();
    let mut count = 0;
    fixture.server.on_request(move |_| {
        count += 1;
        if count == 1 {
            return Some(Fault::Broken(1_000_000));
        }
        put("p/a", "other".repeat(2_400_000).into());
        Some(Fault::Ignoring("if-match"))
    });
    let (bytes, end) = drain(fixture.get("a").await.unwrap().unwrap()).await;
    assert!(matches!(end, Err(StoreError::Changed { .. })), "{end:?}");
    assert_eq!(bytes[..], large()[..bytes.len()]);
}

#[tokio::test]
async fn a_body_that_always_ends_early_is_an_error_and_never_a_short_value() {
    let fixture = Fixture::new().await;
    fixture.put("a", "0123456789");
    fixture.server.on_request(|_| Some(Fault::Broken(0)));
    let (bytes, end) = drain(fixture.get("a").await.unwrap().unwrap()).await;
    assert_eq!(bytes, b"");
    assert_eq!(end.unwrap_err().backend_kind(), Some(BackendErrorKind::Connection));
    assert_eq!(fixture.server.requests().len(), 4, "the request and three retries");
}

#[tokio::test]
async fn lost_answers_and_failures_that_pass_are_retried() {
    for fault in [
        Fault::Lost,
        Fault::Stalled,
        refused(500, "InternalError"),
        refused(502, "x"),
        refused(503, "SlowDown"),
        refused(429, "TooManyRequests"),
    ] {
        let fixture = Fixture::new().await;
        fixture.put("a", "value");
        fixture.server.faults([fault.clone(), fault.clone()]);
        assert_eq!(fixture.read("a").await.unwrap().as_deref(), Some(&b"value"[..]), "{fault:?}");
        assert_eq!(fixture.server.requests().len(), 3, "{fault:?}");
        fixture.server.faults([fault.clone()]);
        assert_eq!(fixture.keys("", 10).await.unwrap(), ["a"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_service_that_stays_busy_is_reported_as_busy_after_the_last_retry() {
    let fixture = Fixture::new().await;
    fixture.put("a", "value");
    fixture.server.on_request(|_| Some(refused(503, "SlowDown")));
    let error = fixture.get("a").await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { retry_after: None }), "{error:?}");
    assert_eq!(fixture.server.requests().len(), 4);
    // A time beyond the deadline is not waited for.
    fixture.server.forget();
    fixture.server.on_request(|_| Some(Fault::Answer(429, vec![("Retry-After", "600".to_owned())], String::new())));
    let error = fixture.keys("", 10).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { retry_after: Some(after) } if after.as_secs() == 600), "{error:?}");
    assert_eq!(fixture.server.requests().len(), 1);
}

#[tokio::test]
async fn a_retry_is_not_made_before_the_service_asks_for_it() {
    let fixture = Fixture::new().await;
    fixture.put("a", "value");
    fixture.server.faults([Fault::Answer(503, vec![("Retry-After", "1".to_owned())], String::new())]);
    let begin = Instant::now();
    assert!(fixture.read("a").await.unwrap().is_some());
    assert!(begin.elapsed() >= Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_given_up_at_the_deadline() {
    let server = Server::start(Dialect::S3).await;
    let mut options = options(&server);
    options.read_timeout = Duration::from_secs(50);
    options.deadline = Duration::from_millis(600);
    let store = BucketStore::open(&"s3://b/p".parse().unwrap(), options).await.unwrap();
    server.on_request(|_| Some(Fault::Stalled));
    let begin = Instant::now();
    let error = within(store.head(&key("a"))).await.unwrap_err();
    assert_eq!(failure(&error), Failure::Deadline(Duration::from_millis(600)));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn only_404_is_absence_and_other_answers_are_errors_that_name_the_object() {
    let html = "<!DOCTYPE html><html><body>Please log in</body></html>".to_owned();
    for (fault, kind, text) in [
        (refused(403, "AccessDenied"), BackendErrorKind::PermissionDenied, "403 AccessDenied"),
        (refused(401, "x"), BackendErrorKind::Unauthenticated, "401"),
        (refused(400, "ExpiredToken"), BackendErrorKind::Internal, "400 ExpiredToken"),
        (refused(404, "NoSuchBucket"), BackendErrorKind::Internal, "404 NoSuchBucket"),
        (
            Fault::Answer(301, vec![("x-amz-bucket-region", "eu-west-1".to_owned())], String::new()),
            BackendErrorKind::Internal,
            "the region of the bucket is eu-west-1",
        ),
        (Fault::Answer(200, vec![], html.clone()), BackendErrorKind::InvalidResponse, "neither a strong ETag"),
        (Fault::Answer(403, vec![], html), BackendErrorKind::PermissionDenied, "?absent=403"),
        (Fault::Without("ETag"), BackendErrorKind::InvalidResponse, "neither a strong ETag"),
        (Fault::With("ETag", "W/\"x\"".to_owned()), BackendErrorKind::InvalidResponse, "neither a strong ETag"),
    ] {
        let fixture = Fixture::new().await;
        fixture.put("a/b", "value");
        fixture.server.on_request(move |_| Some(fault.clone()));
        let error = fixture.get("a/b").await.unwrap_err();
        assert_eq!(error.backend_kind(), Some(kind), "{error:?}");
        let texts = texts(&error);
        assert!(texts.contains(text) && texts.contains("s3://b/p/a/b"), "{texts}");
        assert_eq!(fixture.server.requests().len(), 1, "{text}");
        if text != "404 NoSuchBucket" {
            let error = fixture.store.head(&key("a/b")).await.unwrap_err();
            assert!(crate::common::texts(&error).contains("s3://b/p/a/b"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn an_object_with_a_version_and_no_etag_is_read_by_its_version() {
    let fixture = Fixture::new().await;
    fixture.put("a", "value");
    let store = Keyed::new(fixture.store.clone(), fixture.store.guarantees());
    let snapshot = store.snapshot(&[key("a")]).await.unwrap();
    fixture.server.on_request(|_| Some(Fault::Versioned("v7")));
    snapshot.meta(&key("a")).await.unwrap().unwrap();
    let value = snapshot.get(&key("a"), None).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap(), "value");
    let requests = fixture.server.requests();
    assert_eq!(requests[1].query.get("versionId").map(String::as_str), Some("v7"));
    fixture.server.on_request(|_| Some(Fault::Versioned("v8")));
    assert!(matches!(snapshot.get(&key("a"), None).await, Err(StoreError::Changed { .. })));
    fixture.server.on_request(|_| Some(Fault::Versioned("null")));
    assert_eq!(failure(&fixture.get("a").await.unwrap_err()), Failure::NoValidator);
}

#[tokio::test]
async fn with_absent_403_what_may_not_be_read_is_absent_but_bad_credentials_and_archives_are_errors() {
    let fixture = Fixture::open("s3://b/p?absent=403").await;
    fixture.put("a", "value");
    fixture.server.on_request(|request| (!request.is_list()).then(|| refused(403, "AccessDenied")));
    assert_eq!(fixture.read("a").await.unwrap(), None);
    assert_eq!(fixture.store.head(&key("a")).await.unwrap(), None);
    for code in ["SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidObjectState"] {
        fixture.server.on_request(move |_| Some(refused(403, code)));
        let error = fixture.get("a").await.unwrap_err();
        assert!(texts(&error).contains(code), "{error:?}");
    }
}

#[tokio::test]
async fn a_bucket_that_may_not_be_listed_opens_only_with_absent_403_and_without_listings() {
    let server = Server::start(Dialect::S3).await;
    server.put("p/a", "value");
    server
        .on_request(|request| (request.is_list() || request.path == "/b/p/none").then(|| refused(403, "AccessDenied")));
    let error = open(&server, "s3://b/p").await.unwrap_err();
    assert!(texts(&error).contains("?absent=403"), "{error}");
    let store = open(&server, "s3://b/p?absent=403").await.unwrap();
    assert_eq!(store.guarantees().listing, zarrd_store::Listing::None);
    assert_eq!(store.head(&key("a")).await.unwrap().unwrap().size, 5);
    assert_eq!(store.head(&key("none")).await.unwrap(), None);
    let listed = zarrd_store::ListableStore::list(&store, zarrd_store::PageRequest::first(1)).await;
    assert!(matches!(listed, Err(StoreError::Unsupported { .. })), "{listed:?}");
}

#[tokio::test]
async fn a_missing_bucket_is_an_error_when_it_is_opened_and_later() {
    let server = Server::start(Dialect::S3).await;
    let error = open(&server, "s3://missing/p").await.unwrap_err();
    assert!(texts(&error).contains("404 NoSuchBucket") && texts(&error).contains("s3://missing/p"), "{error}");
    let azure = Server::start(Dialect::Azure).await;
    assert!(texts(&open(&azure, "az://missing").await.unwrap_err()).contains("ContainerNotFound"));

    let fixture = Fixture::new().await;
    fixture.server.on_request(|_| Some(refused(404, "NoSuchBucket")));
    let error = fixture.get("a").await.unwrap_err();
    assert!(texts(&error).contains("NoSuchBucket"), "{error:?}");
}

#[tokio::test]
async fn a_head_does_not_take_a_missing_bucket_for_a_missing_object() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.store.head(&key("none")).await.unwrap(), None);
    assert_eq!(fixture.server.methods(), ["HEAD"], "the bucket was seen a moment ago");
    pass(Duration::from_secs(11)).await;
    fixture.server.forget();
    assert_eq!(fixture.store.head(&key("none")).await.unwrap(), None);
    assert_eq!(fixture.server.methods(), ["HEAD", "LIST"]);
    pass(Duration::from_secs(11)).await;
    fixture.server.on_request(|_| Some(refused(404, "NoSuchBucket")));
    let error = fixture.store.head(&key("none")).await.unwrap_err();
    assert!(texts(&error).contains("NoSuchBucket"), "{error:?}");
}

/// Lets time pass for the store.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_later_read_in_a_snapshot_is_conditional_and_a_changed_object_is_not_transferred() {
    for url in ["s3://b/p", "gs://b/p", "az://b/p"] {
        let fixture = Fixture::open(url).await;
        fixture.put("a", large());
        let store = Keyed::new(fixture.store.clone(), fixture.store.guarantees());
        let snapshot = store.snapshot(&[key("a")]).await.unwrap();
        let size = snapshot.meta(&key("a")).await.unwrap().unwrap().size;
        assert_eq!(size, 12_000_000);
        let range = ByteRange::bounded(0, 4).ok();
        let value = snapshot.get(&key("a"), range).await.unwrap().unwrap();
        assert_eq!(value.bytes().await.unwrap()[..], [0; 4]);
        fixture.put("a", "other");
        for range in [None, range, ByteRange::last(2).ok(), Some(ByteRange::From(100))] {
            let result = snapshot.get(&key("a"), range).await;
            assert!(matches!(result, Err(StoreError::Changed { .. })), "{url} {range:?} {result:?}");
        }
        let is_conditional = |request: &crate::common::Request| request.header("if-match").is_some();
        let gets: Vec<_> = fixture.server.requests().into_iter().filter(|request| request.method == "GET").collect();
        assert!(gets.iter().all(is_conditional) && gets.len() >= 4, "{url}");
    }
}

#[tokio::test]
async fn at_most_64_requests_wait_for_an_answer_at_a_time() {
    let server = Server::start(Dialect::S3).await;
    let mut options = options(&server);
    // None is given up while they are held.
    options.read_timeout = Duration::from_secs(50);
    options.deadline = Duration::from_secs(50);
    let store = Arc::new(BucketStore::open(&"s3://b/p".parse().unwrap(), options).await.unwrap());
    server.put("p/a", "value");
    server.forget();
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    server.on_request(move |_| Some(Fault::Held(held.clone())));
    let mut reads = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let store = Arc::clone(&store);
        reads.spawn(async move { store.head(&key("a")).await.unwrap().unwrap() });
    }
    let all_arrive = async {
        while server.requests().len() < 64 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(all_arrive).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(server.requests().len(), 64);
    gate.close();
    within(reads.join_all()).await;
    assert_eq!(server.requests().len(), 100);
}
