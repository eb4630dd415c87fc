//! Values and listings on their way down.

use std::time::{Duration, Instant, SystemTime};

use client::{RemoteCorruption, RemoteError, Retries, Timeouts, TransportError};
use store::{
    ByteRange, Cursor, ListableStore, PageRequest, Prefix, ReadableStore, StoreError, Version, WriteableStore,
};

use crate::server::{ETAG, Server, Step, answer, beginning, head, key, part, problem, transport, value, value_head};

#[tokio::test]
async fn a_value_that_breaks_off_is_read_on() {
    let server = Server::play([
        Step::SayAndClose(beginning(10, "0123")),
        Step::SayAndClose(part("bytes 4-9/10", "456").replace("Content-Length: 3", "Content-Length: 6")),
        Step::Say(part("bytes 7-9/10", "789")),
    ])
    .await;
    let value = server.store().get(&key("a b/c"), None).await.unwrap().unwrap();
    assert_eq!((value.meta.size, value.range.clone()), (10, 0..10));
    assert_eq!(value.meta.version, Version::from_u128(42));
    let since = value.meta.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(since.subsec_millis(), 123);
    assert_eq!(value.bytes().await.unwrap(), "0123456789");
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request.line == "GET /mount/store/a%20b/c"), "{requests:?}");
    assert_eq!(requests[0].header("range"), None);
    for (request, range) in requests[1..].iter().zip(["bytes=4-9", "bytes=7-9"]) {
        assert_eq!(request.header("range"), Some(range));
        assert_eq!(request.header("if-match"), Some(ETAG));
    }
}

#[tokio::test]
async fn a_part_that_breaks_off_is_read_on() {
    let broken = part("bytes 2-7/10", "234").replace("Content-Length: 3", "Content-Length: 6");
    let server = Server::play([Step::SayAndClose(broken), Step::Say(part("bytes 5-7/10", "567"))]).await;
    let value = server.store().get(&key("k"), Some(ByteRange::bounded(2, 8).unwrap())).await.unwrap().unwrap();
    assert_eq!(value.range, 2..8);
    assert_eq!(value.bytes().await.unwrap(), "234567");
    assert_eq!(server.requests()[0].header("range"), Some("bytes=2-7"));
}

#[tokio::test]
async fn a_value_that_was_replaced_is_not_read_on() {
    for status in [412, 404] {
        let server = Server::play([
            Step::SayAndClose(beginning(10, "0123")),
            Step::Say(problem(status, "precondition-failed", &[], "")),
        ])
        .await;
        let value = server.store().get(&key("k"), None).await.unwrap().unwrap();
        assert!(matches!(transport(value.bytes().await.unwrap_err()), TransportError::Replaced));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn another_value_is_never_taken_for_the_rest() {
    let other = part("bytes 4-9/10", "456789").replace("2a\"", "2b\"");
    for rest in [other, value("0123456789"), part("bytes 3-9/10", "3456789"), part("bytes 4-9/11", "456789")] {
        let server = Server::play([Step::SayAndClose(beginning(10, "0123")), Step::Say(rest.clone())]).await;
        let error = server.store().get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap_err();
        assert!(!matches!(error.backend_source(), Some(RemoteError::Transport(_))), "{rest}: {error:?}");
    }
}

#[tokio::test]
async fn reading_on_comes_to_an_end() {
    let server = Server::play(vec![Step::SayAndClose(beginning(10, "0123")); 1]).await;
    let value = server.store().get(&key("k"), None).await.unwrap().unwrap();
    assert!(matches!(transport(value.bytes().await.unwrap_err()), TransportError::Http(_)));
    assert_eq!(server.requests().len(), 3, "one, and two that are made again");
}

#[tokio::test]
async fn an_empty_value() {
    let server = Server::play([Step::Say(value("")), Step::Say(value(""))]).await;
    let store = server.store();
    assert_eq!(store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "");
    let last = store.get(&key("k"), Some(ByteRange::Last(3))).await.unwrap().unwrap();
    assert_eq!(last.range, 0..0, "a suffix of an empty value is all of it");
}

#[tokio::test]
async fn answers_that_lie_are_errors() {
    let whole = value("0123456789");
    for (answer, range) in [
        (whole.replace("Content-Length: 10\r\n", "Connection: close\r\n"), None),
        (whole.replace("ETag", "X-Tag"), None),
        (whole.replace(ETAG, "W/\"0000000000000000000000000000002a\""), None),
        (whole.replace(ETAG, "\"abc\""), None),
        (whole.replace("Zarr-Modified", "X-Modified"), None),
        (whole.replace("ETag", "Content-Encoding: gzip\r\nETag"), None),
        (whole.clone(), Some(ByteRange::From(1))),
        (part("bytes 0-9/10", "0123456789"), None),
        (part("bytes 0-3/10", "0123"), Some(ByteRange::From(1))),
        (part("bytes 1-9/10", "01234567"), Some(ByteRange::From(1))),
        (part("bytes */10", ""), Some(ByteRange::From(1))),
        (part("bytes 5-1/10", "0123"), Some(ByteRange::From(1))),
        (part("items 1-9/10", "012345678"), Some(ByteRange::From(1))),
    ] {
        let server = Server::play([Step::SayAndClose(answer.clone())]).await;
        let error = server.store().get(&key("k"), range).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{answer}: {error:?}");
        assert_eq!(server.requests().len(), 1, "a lie is not asked for again: {answer}");
    }
}

#[tokio::test]
async fn a_range_beyond_the_end() {
    let text = format!("{}Content-Length: 0\r\n\r\n", value_head(416, &["Content-Range: bytes */10"]));
    let server = Server::play([Step::Say(text)]).await;
    match server.store().get(&key("k"), Some(ByteRange::From(10))).await.unwrap_err() {
        StoreError::RangeNotSatisfiable { meta: info } => {
            assert_eq!((info.size, info.version), (10, Version::from_u128(42)));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_key_without_a_value_is_told_from_a_wrong_server() {
    let bare = head(404, &["Content-Length: 0"]) + "\r\n";
    let stranger = bare.replace("X-Request-Id", "X-Other");
    let server = Server::play([
        Step::Say(problem(404, "no-such-key", &[], "")),
        Step::Say(problem(404, "not-found", &[], "")),
        Step::Say(answer(404, &["Content-Type: text/html"], "<html>")),
        Step::Say(bare),
        Step::Say(stranger),
    ])
    .await;
    let store = server.store();
    assert!(store.get(&key("k"), None).await.unwrap().is_none());
    for _ in 0..2 {
        let error = store.get(&key("k"), None).await.unwrap_err();
        assert!(
            matches!(error.backend_source(), Some(RemoteError::Status { status: 404, request }) if request == "req-7"),
            "{error:?}"
        );
    }
    assert_eq!(store.head(&key("k")).await.unwrap(), None);
    let error = store.head(&key("k")).await.unwrap_err();
    assert!(
        matches!(error.backend_source(), Some(RemoteError::Status { status: 404, request }) if request.is_empty()),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let busy = problem(503, "busy", &["Retry-After: 1"], "");
    let server = Server::play([Step::Say(busy), Step::Say(value("x"))]).await;
    let begun = Instant::now();
    assert_eq!(server.store().get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "x");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.connections(), 1, "an answer that was read to its end leaves the connection to the next");
}

#[tokio::test]
async fn a_server_that_wants_too_long_is_not_waited_for() {
    for busy in [problem(503, "busy", &["Retry-After: 3600"], ""), answer(429, &["Retry-After: 3600"], "no")] {
        let server = Server::play([Step::Say(busy)]).await;
        let error = server.store().head(&key("k")).await.unwrap_err();
        let hour = Some(Duration::from_secs(3600));
        assert!(matches!(&error, StoreError::Busy { retry_after } if *retry_after == hour), "{error:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn lost_answers_are_asked_for_again_so_often() {
    let listing = r#"{"prefix":"","keys":[],"values":[],"cursor":null}"#;
    let server = Server::play([
        Step::Close,
        Step::SayAndClose("HTTP/1.1 200".into()),
        Step::Say(answer(200, &[], listing)),
        Step::Say(answer(502, &[], "bad gateway")),
        Step::Say(answer(504, &[], "gateway timeout")),
        Step::Say(answer(503, &[], "")),
    ])
    .await;
    let store = server.store();
    assert!(store.list(PageRequest::first(1)).await.unwrap().keys.is_empty());
    assert_eq!(server.requests().len(), 3);
    let error = store.head(&key("k")).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { retry_after: None }), "{error:?}");
    assert_eq!(server.requests().len(), 6, "one, and two that are made again");
    let error = server.builder().retries(Retries::none()).build().unwrap().head(&key("k")).await.unwrap_err();
    assert!(matches!(transport(error), TransportError::Http(_)));
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn what_the_server_means_is_not_asked_again() {
    let server = Server::play([
        Step::Say(problem(500, "internal", &[], "")),
        Step::Say(problem(500, "corrupt-value", &[], r#","key":"a/b""#)),
        Step::Say(problem(500, "made-up", &[], "")),
    ])
    .await;
    let store = server.store();
    let internal = store.get(&key("k"), None).await.unwrap_err();
    assert!(
        matches!(internal.backend_source(), Some(RemoteError::Status { status: 500, request }) if request == "req-7"),
        "{internal:?}"
    );
    match store.get(&key("k"), None).await.unwrap_err() {
        StoreError::Corrupt { key, cause } => {
            let cause: &RemoteCorruption = cause.downcast_ref().unwrap();
            assert_eq!((key.as_str(), cause.request.as_str()), ("a/b", "req-7"));
        }
        other => panic!("{other:?}"),
    }
    let unknown = store.get(&key("k"), None).await.unwrap_err();
    assert!(matches!(unknown.backend_source(), Some(RemoteError::Status { status: 500, .. })), "{unknown:?}");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn silence_is_not_waited_for_forever() {
    let timeouts = Timeouts { idle: Duration::from_millis(100), ..Timeouts::default() };
    let server = Server::play([Step::Hang, Step::Hang]).await;
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    assert!(matches!(transport(store.head(&key("k")).await.unwrap_err()), TransportError::Idle(_)));
    let content = store::Payload::from_bytes("x");
    let error = store.set(&key("k"), content, store::Precondition::none()).await.unwrap_err();
    assert!(matches!(transport(error), TransportError::Idle(_)));

    let server = Server::play([Step::Say(beginning(10, "0123"))]).await;
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    let value = store.get(&key("k"), None).await.unwrap().unwrap();
    assert!(matches!(transport(value.bytes().await.unwrap_err()), TransportError::Idle(_)));
}

#[tokio::test]
async fn a_whole_operation_has_its_time() {
    let timeouts = Timeouts { total: Some(Duration::from_millis(200)), ..Timeouts::default() };
    let busy = problem(503, "busy", &["Retry-After: 1"], "");
    let server = Server::play([Step::Hang, Step::Say(busy), Step::Say(beginning(10, "0123"))]).await;
    let store = server.builder().timeouts(timeouts).build().unwrap();
    let begun = Instant::now();
    assert!(matches!(transport(store.head(&key("k")).await.unwrap_err()), TransportError::Total(_)));
    let error = store.get(&key("k"), None).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "what cannot be in time is not begun: {error:?}");
    let value = store.get(&key("k"), None).await.unwrap().unwrap();
    assert!(matches!(transport(value.bytes().await.unwrap_err()), TransportError::Total(_)));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_problem_without_end_is_not_read_to_it() {
    let endless = head(500, &["Content-Type: application/problem+json", "Transfer-Encoding: chunked"]) + "\r\n";
    let server = Server::play([Step::Endless(endless)]).await;
    let error = server.store().head(&key("k")).await.unwrap_err();
    assert!(matches!(error.backend_source(), Some(RemoteError::Status { status: 500, .. })), "{error:?}");
    let endless = head(200, &["Content-Type: application/json", "Transfer-Encoding: chunked"]) + "\r\n";
    let server = Server::play([Step::Endless(endless)]).await;
    let error = server.store().list_dir(&Prefix::root(), PageRequest::first(10)).await.unwrap_err();
    assert!(
        matches!(error.backend_source(), Some(RemoteError::InvalidResponse { detail }) if detail.contains("longer")),
        "{error:?}"
    );
}

#[tokio::test]
async fn listings_that_the_contract_does_not_allow() {
    let entry = format!(r#"{{"size":1,"etag":{ETAG:?},"modified":"2026-11-21T06:28:08.123Z"}}"#);
    let listing = |keys: &str, values: usize, cursor: &str| {
        let values = vec![entry.as_str(); values].join(",");
        format!(r#"{{"prefix":"a/","keys":[{keys}],"values":[{values}],"prefixes":[],"cursor":{cursor}}}"#)
    };
    let (prefix, page) = (Prefix::parse("a/").unwrap(), PageRequest::after(2, Cursor::from_text("now")));
    for body in [
        "".to_owned(),
        "<html>".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        listing(r#""a/b""#, 2, "null"),
        listing(r#""a/..""#, 1, "null"),
        listing(r#""b/c""#, 1, "null"),
        listing(r#""a/c","a/b""#, 2, "null"),
        listing(r#""a/b","a/b""#, 2, "null"),
        listing(r#""a/b","a/c","a/d""#, 3, "null"),
        listing(r#""a/b""#, 1, r#""now""#),
        listing("", 0, r#""next""#),
        listing(r#""a/b""#, 1, "null").replace("T06", "X06"),
        listing(r#""a/b""#, 1, "null").replace("2a", "2A"),
    ] {
        let server = Server::play([Step::Say(answer(200, &[], &body)), Step::Say(answer(200, &[], &body))]).await;
        let store = server.store();
        let error = store.list_prefix(&prefix, page.clone()).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{body}: {error:?}");
        let error = store.list_dir(&prefix, page.clone()).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{body}: {error:?}");
    }
    let good = listing(r#""a/b","a/c""#, 2, r#""next""#);
    let server = Server::play([Step::Say(answer(200, &[], &good))]).await;
    let found = server.store().list_prefix(&prefix, page).await.unwrap();
    assert_eq!(found.keys[1].key, key("a/c"));
    assert_eq!(found.cursor, Some(Cursor::from_text("next")));
    assert_eq!(server.requests()[0].line, "GET /mount/store/a/?list=keys&limit=2&cursor=now");
}
