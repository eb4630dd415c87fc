//! Reads of values and listings.

use std::time::{Duration, Instant, SystemTime};

use zarrd_client::{RemoteCorruption, RemoteError, Retries, Timeouts, TransportError};
use zarrd_store::{
    ByteRange, Cursor, ListableStore, PageRequest, Prefix, ReadableStore, StoreError, Version, WriteableStore,
};

use crate::scripted::scripted_server::{
    ETAG, ScriptedServer, Step, head, incomplete_value, key, partial_value, problem, response, transport_error, value,
    value_head,
};

#[tokio::test]
async fn interrupted_values_are_resumed() {
    let server = ScriptedServer::start([
        Step::RespondAndClose(incomplete_value(10, "0123")),
        Step::RespondAndClose(partial_value("bytes 4-9/10", "456").replace("Content-Length: 3", "Content-Length: 6")),
        Step::Respond(partial_value("bytes 7-9/10", "789")),
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
async fn interrupted_ranges_are_resumed() {
    let broken = partial_value("bytes 2-7/10", "234").replace("Content-Length: 3", "Content-Length: 6");
    let server =
        ScriptedServer::start([Step::RespondAndClose(broken), Step::Respond(partial_value("bytes 5-7/10", "567"))])
            .await;
    let value = server.store().get(&key("k"), Some(ByteRange::bounded(2, 8).unwrap())).await.unwrap().unwrap();
    assert_eq!(value.range, 2..8);
    assert_eq!(value.bytes().await.unwrap(), "234567");
    assert_eq!(server.requests()[0].header("range"), Some("bytes=2-7"));
}

#[tokio::test]
async fn replaced_values_are_not_resumed() {
    for status in [412, 404] {
        let server = ScriptedServer::start([
            Step::RespondAndClose(incomplete_value(10, "0123")),
            Step::Respond(problem(status, "precondition-failed", &[], "")),
        ])
        .await;
        let value = server.store().get(&key("k"), None).await.unwrap().unwrap();
        assert!(matches!(transport_error(value.bytes().await.unwrap_err()), TransportError::Replaced));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn other_values_are_never_taken_for_the_rest() {
    let other = partial_value("bytes 4-9/10", "456789").replace("2a\"", "2b\"");
    for rest in
        [other, value("0123456789"), partial_value("bytes 3-9/10", "3456789"), partial_value("bytes 4-9/11", "456789")]
    {
        let server =
            ScriptedServer::start([Step::RespondAndClose(incomplete_value(10, "0123")), Step::Respond(rest.clone())])
                .await;
        let error = server.store().get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap_err();
        assert!(!matches!(error.backend_source(), Some(RemoteError::Transport(_))), "{rest}: {error:?}");
    }
}

#[tokio::test]
async fn resumptions_count_as_retries() {
    let server = ScriptedServer::start(vec![Step::RespondAndClose(incomplete_value(10, "0123")); 1]).await;
    let value = server.store().get(&key("k"), None).await.unwrap().unwrap();
    assert!(matches!(transport_error(value.bytes().await.unwrap_err()), TransportError::Http(_)));
    assert_eq!(server.requests().len(), 3, "one request and two retries");
}

#[tokio::test]
async fn empty_values_are_read() {
    let server = ScriptedServer::start([Step::Respond(value("")), Step::Respond(value(""))]).await;
    let store = server.store();
    assert_eq!(store.get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "");
    let last = store.get(&key("k"), Some(ByteRange::Last(3))).await.unwrap().unwrap();
    assert_eq!(last.range, 0..0, "a suffix of an empty value is empty");
}

#[tokio::test]
async fn invalid_responses_are_protocol_errors() {
    let full = value("0123456789");
    for (response, range) in [
        (full.replace("Content-Length: 10\r\n", "Connection: close\r\n"), None),
        (full.replace("ETag", "X-Tag"), None),
        (full.replace(ETAG, "W/\"0000000000000000000000000000002a\""), None),
        (full.replace(ETAG, "\"abc\""), None),
        (full.replace("Zarr-Modified", "X-Modified"), None),
        (full.replace("ETag", "Content-Encoding: gzip\r\nETag"), None),
        (full.clone(), Some(ByteRange::From(1))),
        (partial_value("bytes 0-9/10", "0123456789"), None),
        (partial_value("bytes 0-3/10", "0123"), Some(ByteRange::From(1))),
        (partial_value("bytes 1-9/10", "01234567"), Some(ByteRange::From(1))),
        (partial_value("bytes */10", ""), Some(ByteRange::From(1))),
        (partial_value("bytes 5-1/10", "0123"), Some(ByteRange::From(1))),
        (partial_value("items 1-9/10", "012345678"), Some(ByteRange::From(1))),
    ] {
        let server = ScriptedServer::start([Step::RespondAndClose(response.clone())]).await;
        let error = server.store().get(&key("k"), range).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{response}: {error:?}");
        assert_eq!(server.requests().len(), 1, "protocol errors are not retried: {response}");
    }
}

#[tokio::test]
async fn range_beyond_the_end_is_an_error() {
    let text = format!("{}Content-Length: 0\r\n\r\n", value_head(416, &["Content-Range: bytes */10"]));
    let server = ScriptedServer::start([Step::Respond(text)]).await;
    match server.store().get(&key("k"), Some(ByteRange::From(10))).await.unwrap_err() {
        StoreError::RangeNotSatisfiable { meta: info } => {
            assert_eq!((info.size, info.version), (10, Version::from_u128(42)));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn missing_keys_are_distinguished_from_wrong_servers() {
    let bare = head(404, &["Content-Length: 0"]) + "\r\n";
    let without_id = bare.replace("X-Request-Id", "X-Other");
    let server = ScriptedServer::start([
        Step::Respond(problem(404, "no-such-key", &[], "")),
        Step::Respond(problem(404, "not-found", &[], "")),
        Step::Respond(response(404, &["Content-Type: text/html"], "<html>")),
        Step::Respond(bare),
        Step::Respond(without_id),
    ])
    .await;
    let store = server.store();
    assert!(store.get(&key("k"), None).await.unwrap().is_none());
    for _ in 0..2 {
        let error = store.get(&key("k"), None).await.unwrap_err();
        assert!(
            matches!(error.backend_source(), Some(RemoteError::Status { status: 404, request, .. }) if request == "req-7"),
            "{error:?}"
        );
    }
    assert_eq!(store.head(&key("k")).await.unwrap(), None);
    let error = store.head(&key("k")).await.unwrap_err();
    assert!(
        matches!(error.backend_source(), Some(RemoteError::Status { status: 404, request, .. }) if request.is_empty()),
        "{error:?}"
    );
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let busy = problem(503, "busy", &["Retry-After: 1"], "");
    let server = ScriptedServer::start([Step::Respond(busy), Step::Respond(value("x"))]).await;
    let begun = Instant::now();
    assert_eq!(server.store().get(&key("k"), None).await.unwrap().unwrap().bytes().await.unwrap(), "x");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.connections(), 1, "a response that was read to its end leaves the connection usable");
}

#[tokio::test]
async fn long_retry_after_fails_at_once() {
    for busy in [problem(503, "busy", &["Retry-After: 3600"], ""), response(429, &["Retry-After: 3600"], "no")] {
        let server = ScriptedServer::start([Step::Respond(busy)]).await;
        let error = server.store().head(&key("k")).await.unwrap_err();
        let hour = Some(Duration::from_secs(3600));
        assert!(matches!(&error, StoreError::Busy { retry_after } if *retry_after == hour), "{error:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn lost_responses_are_retried_up_to_the_limit() {
    let listing = r#"{"prefix":"","keys":[],"values":[],"cursor":null}"#;
    let server = ScriptedServer::start([
        Step::Close,
        Step::RespondAndClose("HTTP/1.1 200".into()),
        Step::Respond(response(200, &[], listing)),
        Step::Respond(response(502, &[], "bad gateway")),
        Step::Respond(response(504, &[], "gateway timeout")),
        Step::Respond(response(503, &[], "")),
    ])
    .await;
    let store = server.store();
    assert!(store.list(PageRequest::first(1)).await.unwrap().keys.is_empty());
    assert_eq!(server.requests().len(), 3);
    let error = store.head(&key("k")).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { retry_after: None }), "{error:?}");
    assert_eq!(server.requests().len(), 6, "one request and two retries");
    let error = server.builder().retries(Retries::none()).build().unwrap().head(&key("k")).await.unwrap_err();
    assert!(matches!(transport_error(error), TransportError::Http(_)));
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn internal_errors_are_not_retried() {
    let server = ScriptedServer::start([
        Step::Respond(problem(500, "internal", &[], "")),
        Step::Respond(problem(500, "corrupt-value", &[], r#","key":"a/b""#)),
        Step::Respond(problem(500, "made-up", &[], "")),
    ])
    .await;
    let store = server.store();
    let internal = store.get(&key("k"), None).await.unwrap_err();
    assert!(
        matches!(internal.backend_source(), Some(RemoteError::Status { status: 500, request, .. }) if request == "req-7"),
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
async fn silent_server_is_an_idle_timeout() {
    let timeouts = Timeouts { idle: Duration::from_millis(100), ..Timeouts::default() };
    let server = ScriptedServer::start([Step::Hang, Step::Hang]).await;
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    assert!(matches!(transport_error(store.head(&key("k")).await.unwrap_err()), TransportError::Idle(_)));
    let content = zarrd_store::Payload::from_bytes("x");
    let error = store.set(&key("k"), content, zarrd_store::Precondition::none()).await.unwrap_err();
    assert!(matches!(transport_error(error), TransportError::Idle(_)));

    let server = ScriptedServer::start([Step::Respond(incomplete_value(10, "0123"))]).await;
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    let value = store.get(&key("k"), None).await.unwrap().unwrap();
    assert!(matches!(transport_error(value.bytes().await.unwrap_err()), TransportError::Idle(_)));
}

#[tokio::test]
async fn total_timeout_includes_retries_and_the_body() {
    let timeouts = Timeouts { total: Some(Duration::from_millis(200)), ..Timeouts::default() };
    let busy = problem(503, "busy", &["Retry-After: 1"], "");
    let server =
        ScriptedServer::start([Step::Hang, Step::Respond(busy), Step::Respond(incomplete_value(10, "0123"))]).await;
    let store = server.builder().timeouts(timeouts).build().unwrap();
    let begun = Instant::now();
    assert!(matches!(transport_error(store.head(&key("k")).await.unwrap_err()), TransportError::Total(_)));
    let error = store.get(&key("k"), None).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy { .. }), "no retry that cannot finish in time: {error:?}");
    let value = store.get(&key("k"), None).await.unwrap().unwrap();
    assert!(matches!(transport_error(value.bytes().await.unwrap_err()), TransportError::Total(_)));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn endless_responses_are_cut_off() {
    let endless = head(500, &["Content-Type: application/problem+json", "Transfer-Encoding: chunked"]) + "\r\n";
    let server = ScriptedServer::start([Step::RespondEndlessly(endless)]).await;
    let error = server.store().head(&key("k")).await.unwrap_err();
    assert!(matches!(error.backend_source(), Some(RemoteError::Status { status: 500, .. })), "{error:?}");
    let endless = head(200, &["Content-Type: application/json", "Transfer-Encoding: chunked"]) + "\r\n";
    let server = ScriptedServer::start([Step::RespondEndlessly(endless)]).await;
    let error = server.store().list_dir(&Prefix::root(), PageRequest::first(10)).await.unwrap_err();
    assert!(
        matches!(error.backend_source(), Some(RemoteError::InvalidResponse { detail }) if detail.contains("longer")),
        "{error:?}"
    );
}

#[tokio::test]
async fn invalid_listings_are_protocol_errors() {
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
        let server =
            ScriptedServer::start([Step::Respond(response(200, &[], &body)), Step::Respond(response(200, &[], &body))])
                .await;
        let store = server.store();
        let error = store.list_prefix(&prefix, page.clone()).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{body}: {error:?}");
        let error = store.list_dir(&prefix, page.clone()).await.unwrap_err();
        assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{body}: {error:?}");
    }
    let good = listing(r#""a/b","a/c""#, 2, r#""next""#);
    let server = ScriptedServer::start([Step::Respond(response(200, &[], &good))]).await;
    let result = server.store().list_prefix(&prefix, page).await.unwrap();
    assert_eq!(result.keys[1].key, key("a/c"));
    assert_eq!(result.cursor, Some(Cursor::from_text("next")));
    assert_eq!(server.requests()[0].line, "GET /mount/store/a/?list=keys&limit=2&cursor=now");
}
