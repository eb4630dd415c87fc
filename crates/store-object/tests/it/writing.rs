//! Writing, in one request and in parts, and erasing.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use zarrd_store::{KeyCount, Payload, Precondition, Prefix, ReadableStore, StoreError, UploadError, WriteableStore};
use zarrd_store_object::{BucketStore, WriteMode};

use crate::common::{Dialect, Fault, Server, key, options, within};

const SERVICES: [&str; 3] = ["s3://b/p", "gs://b/p", "az://b/p"];

async fn open(url: &str) -> (Server, BucketStore) {
    let server = Server::start(if url.starts_with("az") { Dialect::Azure } else { Dialect::S3 }).await;
    let mut options = options(&server);
    options.writes = WriteMode::Conditional;
    // A slow machine is no lost answer.
    (options.read_timeout, options.deadline) = (Duration::from_secs(20), Duration::from_secs(50));
    let store = BucketStore::open(&url.parse().unwrap(), options).await.unwrap();
    server.forget();
    server.bucket().history.clear();
    (server, store)
}

/// Bytes of which no two parts are equal.
fn large(size: usize) -> Bytes {
    (0..size.div_ceil(8) as u64).flat_map(u64::to_le_bytes).take(size).collect::<Vec<u8>>().into()
}

fn in_chunks(value: &Bytes, size: usize) -> impl futures::Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
    let chunks: Vec<_> =
        (0..value.len()).step_by(size).map(|at| Ok(value.slice(at..value.len().min(at + size)))).collect();
    stream::iter(chunks)
}

#[tokio::test]
async fn writes_take_as_few_requests_as_they_can() {
    for url in SERVICES {
        let (server, store) = open(url).await;
        let methods = async |write: &dyn Fn() -> Precondition| {
            server.forget();
            let written = store.set(&key("k"), "value".into(), write()).await.unwrap();
            (written.version, server.methods())
        };
        let (version, created) = methods(&Precondition::absent).await;
        assert_eq!(created, ["PUT"], "{url}");
        let (version, replaced) = methods(&|| Precondition::at(version)).await;
        let google = url.starts_with("gs");
        assert_eq!(replaced, if google { vec!["HEAD", "PUT"] } else { vec!["PUT"] }, "{url}");
        assert_eq!(store.head(&key("k")).await.unwrap().unwrap().version, version, "{url}");
        let (_, unconditional) = methods(&Precondition::none).await;
        assert_eq!(unconditional, ["HEAD", "PUT"], "{url}");
    }
}

#[tokio::test]
async fn large_values_without_a_condition_are_sent_in_parts() {
    let value = large(40 << 20);
    for url in SERVICES {
        for (announced, parts) in [(Some(40 << 20), 5), (None, 3)] {
            let (server, store) = open(url).await;
            let payload = Payload { size: announced, ..Payload::from_stream(in_chunks(&value, 3_000_001)) };
            let written = within(store.set(&key("k"), payload, Precondition::none())).await.unwrap();
            assert!(!written.replaced);
            assert!(server.bucket().objects["p/k"].bytes == value, "{url}");
            assert!(server.bucket().uploads.is_empty(), "{url}");
            let is_part = |request: &crate::common::Request| {
                request.query.contains_key("partNumber")
                    || request.query.get("comp").is_some_and(|comp| comp == "block")
            };
            assert_eq!(server.requests().iter().filter(|request| is_part(request)).count(), parts, "{url}");
            assert_eq!(store.head(&key("k")).await.unwrap().unwrap().version, written.version, "{url}");
            let again = Payload::from_stream(in_chunks(&value, 1 << 20));
            assert!(within(store.set(&key("k"), again, Precondition::none())).await.unwrap().replaced, "{url}");
        }
    }
}

#[tokio::test]
async fn parts_that_are_lost_are_sent_again_and_lost_completions_are_settled() {
    let value = large(20 << 20);
    for url in SERVICES {
        let (server, store) = open(url).await;
        let (mut parts, mut ends) = (0, 0);
        server.on_request(move |request| {
            let comp = request.query.get("comp").map(String::as_str);
            let is_end =
                request.method == "POST" && request.query.contains_key("uploadId") || comp == Some("blocklist");
            if request.query.contains_key("partNumber") || comp == Some("block") {
                parts += 1;
                return [Some(Fault::Lost), Some(Fault::Misreported(500)), None].into_iter().nth(parts - 1).flatten();
            }
            ends += u32::from(is_end);
            (is_end && ends == 1).then_some(Fault::Unanswered)
        });
        let written =
            within(store.set(&key("k"), Payload::from_stream(in_chunks(&value, 1 << 20)), Precondition::none()))
                .await
                .unwrap();
        assert!(server.bucket().objects["p/k"].bytes == value, "{url}");
        assert_eq!(server.bucket().history.len(), 1, "{url}");
        assert_eq!(store.head(&key("k")).await.unwrap().unwrap().version, written.version, "{url}");
        // A completion that never arrived.
        let (server, store) = open(url).await;
        server.on_request(|request| {
            let comp = request.query.get("comp").map(String::as_str);
            let is_end =
                request.method == "POST" && request.query.contains_key("uploadId") || comp == Some("blocklist");
            is_end.then_some(Fault::Lost)
        });
        let error =
            within(store.set(&key("k"), Payload::from_stream(in_chunks(&value, 1 << 20)), Precondition::none()))
                .await
                .unwrap_err();
        assert!(matches!(&error, StoreError::OutcomeUnknown { .. }), "{url} {error:?}");
    }
}

#[tokio::test]
async fn an_upload_that_ends_early_leaves_no_parts() {
    for cancelled in [false, true] {
        let (server, store) = open("s3://b/p").await;
        let value = large(30 << 20);
        let broken = stream::once(async { Err(StoreError::Upload(UploadError::TimedOut)) });
        let pending = stream::pending();
        let chunks = in_chunks(&value, 1 << 20);
        let rest = if cancelled { pending.boxed() } else { broken.boxed() };
        let set = async { store.set(&key("k"), Payload::from_stream(chunks.chain(rest)), Precondition::none()).await };
        let started = async {
            while !server.requests().iter().any(|request| request.query.contains_key("partNumber")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        match cancelled {
            true => {
                tokio::select! {
                    result = set => panic!("{result:?}"),
                    () = within(started) => {}
                }
            }
            false => {
                let error = within(set).await.unwrap_err();
                assert!(matches!(error, StoreError::Upload(UploadError::TimedOut)), "{error:?}");
            }
        }
        within(async {
            while !server.bucket().uploads.is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert!(server.names().is_empty());
    }
}

#[tokio::test]
async fn large_values_with_a_condition_are_sent_in_one_request() {
    let value = large(20 << 20);
    for url in SERVICES {
        let (server, store) = open(url).await;
        let set = async |precondition| within(store.set(&key("k"), value.clone().into(), precondition)).await;
        let written = set(Precondition::absent()).await.unwrap();
        assert_eq!(server.methods(), ["PUT"], "{url}");
        let error = set(Precondition::absent()).await.unwrap_err();
        assert!(matches!(error, StoreError::PreconditionFailed { current, .. } if current == Some(written.version)));
        let too_large = Payload::sized(1 << 30, stream::pending());
        let error = within(store.set(&key("k"), too_large, Precondition::present())).await.unwrap_err();
        assert!(
            matches!(error, StoreError::Upload(UploadError::TooLarge { limit }) if limit == 256 << 20),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_prefix_is_erased_documents_first() {
    for url in SERVICES {
        let (server, store) = open(url).await;
        let documents = ["p/a/.zgroup", "p/a/.zmetadata", "p/a/zarr.json", "p/a/v/.zarray", "p/a/w/zarr.json"];
        let others = ["p/a/.zattrs", "p/a/v/.zattrs", "p/a/v/0.0", "p/a/w/c/0", "p/a/A"];
        documents.iter().chain(&others).chain(&["p/ab", "p/a"]).for_each(|name| server.put(name, *name));
        server.bucket().history.clear();
        let erased = store.erase_prefix(&Prefix::parse("a/").unwrap()).await.unwrap();
        assert_eq!(erased, KeyCount::exact(10), "{url}");
        assert_eq!(server.names(), ["p/a", "p/ab"], "{url}");
        let order: Vec<String> = server.bucket().history.iter().map(|change| change.name.clone()).collect();
        let (first, last) = order.split_at(documents.len());
        assert!(first.iter().all(|name| documents.contains(&name.as_str())), "{url} {order:?}");
        assert!(last.iter().all(|name| others.contains(&name.as_str())), "{url} {order:?}");
        assert!(first[..3].iter().all(|name| name.matches('/').count() == 2), "groups before members: {order:?}");
    }
}

#[tokio::test]
async fn an_erase_of_a_prefix_that_fails_midway_is_completed_by_repeating_it() {
    let (server, store) = open("s3://b/p").await;
    for number in 0..2_500 {
        server.put(&format!("p/a/c/{number}"), "x");
    }
    server.put("p/a/zarr.json", "{}");
    let mut deletes = 0;
    server.on_request(move |request| {
        deletes += u32::from(request.method == "POST");
        (request.method == "POST" && deletes >= 3).then_some(Fault::Answer(403, Vec::new(), String::new()))
    });
    let prefix = Prefix::parse("a/").unwrap();
    assert!(store.erase_prefix(&prefix).await.is_err());
    let left = server.names().len();
    assert!((1..2_500).contains(&left) && !server.names().contains(&"p/a/zarr.json".to_owned()), "{left}");
    server.on_request(|_| None);
    assert_eq!(store.erase_prefix(&prefix).await.unwrap(), KeyCount::exact(left as u64));
    assert!(server.names().is_empty());
}

#[tokio::test]
async fn an_erase_with_a_precondition_is_refused() {
    let (server, store) = open("s3://b/p").await;
    server.put("p/k", "value");
    let error = store.erase(&key("k"), Precondition::present()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported { .. }), "{error:?}");
    assert_eq!(server.names(), ["p/k"]);
}

#[tokio::test]
async fn answers_to_deletes_about_other_objects_are_errors() {
    let batch = "--x\r\nContent-Type: application/http\r\nContent-ID: 7\r\n\r\nHTTP/1.1 404 NotFound\r\n\r\n--x--\r\n";
    let named =
        "<DeleteResult><Error><Key>other</Key><Code>InternalError</Code><Message>m</Message></Error></DeleteResult>";
    for (url, headers, body) in [
        ("s3://b/p", vec![], named),
        ("s3://b/p", vec![], "<html></html>"),
        ("az://b/p", vec![("Content-Type", "multipart/mixed; boundary=x".to_owned())], batch),
    ] {
        let (server, store) = open(url).await;
        server.put("p/k", "value");
        let answer = Fault::Answer(200, headers, body.to_owned());
        server.on_request(move |request| (request.method == "POST").then(|| answer.clone()));
        let result = within(store.erase_prefix(&Prefix::root())).await;
        assert!(result.is_err(), "{url} {body}");
    }
}

#[tokio::test]
async fn a_store_that_was_not_opened_for_writing_writes_nothing() {
    let server = Server::start(Dialect::S3).await;
    let store = BucketStore::open(&"s3://b/p".parse().unwrap(), options(&server)).await.unwrap();
    server.forget();
    for error in [
        store.set(&key("k"), "value".into(), Precondition::none()).await.unwrap_err(),
        store.erase(&key("k"), Precondition::none()).await.unwrap_err(),
        store.erase_prefix(&Prefix::root()).await.unwrap_err(),
        store.check_writable().await.unwrap_err(),
    ] {
        assert!(matches!(error, StoreError::Unsupported { what: "changes" }), "{error:?}");
    }
    assert!(server.requests().is_empty());
}
