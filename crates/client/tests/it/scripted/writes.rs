//! Writes and erasures of values.

use std::{io, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use zarrd_client::{RemoteError, Retries, Timeouts, TransportError};
use zarrd_store::{
    KeyCount, Payload, Precondition, Prefix, StoreError, UploadError, Version, VersionMatch, WriteableStore,
};

use crate::scripted::scripted_server::{ETAG, ScriptedServer, Step, head, key, problem, response, transport_error};

fn written(status: u16) -> Step {
    Step::Respond(head(status, &[&format!("ETag: {ETAG}"), "Content-Length: 0"]) + "\r\n")
}

fn erased(existed: bool) -> Step {
    Step::Respond(head(204, &[&format!("Zarr-Existed: {existed}")]) + "\r\n")
}

/// Content of `count` buffers of 1 MiB, with a pause before each.
fn buffers(count: usize, pause: Duration) -> Payload {
    Payload::from_stream(stream::iter(0..count).then(move |_| async move {
        tokio::time::sleep(pause).await;
        Ok(Bytes::from(vec![7; 1 << 20]))
    }))
}

#[tokio::test]
async fn content_in_memory_is_retried() {
    let large = Bytes::from(vec![7; 3 << 20]);
    let two = Payload::from_stream(stream::iter(["ab", "", "cd"]).map(|text| Ok(Bytes::from(text))));
    for (content, body) in [(Payload::from("x"), Bytes::from("x")), (large.clone().into(), large), (two, "abcd".into())]
    {
        let server = ScriptedServer::start([Step::Close, written(201)]).await;
        let written = server.store().set(&key("k"), content, Precondition::none()).await.unwrap();
        assert_eq!((written.version, written.replaced), (Version::from_u128(42), false));
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].line, "PUT /mount/store/k");
        assert_eq!(requests[1].body, body);
        assert_eq!(requests[1].header("content-length"), Some(body.len().to_string().as_str()));
    }
}

#[tokio::test]
async fn streamed_content_is_not_retried() {
    let server = ScriptedServer::start([Step::Close, written(201)]).await;
    let error = server.store().set(&key("k"), buffers(3, Duration::ZERO), Precondition::none()).await.unwrap_err();
    assert!(matches!(transport_error(error), TransportError::Http(_)));
    assert_eq!(server.requests().len(), 1);

    let server = ScriptedServer::start([written(204)]).await;
    let outcome = server.store().set(&key("k"), buffers(3, Duration::ZERO), Precondition::none()).await.unwrap();
    assert!(outcome.replaced);
    assert_eq!(server.requests()[0].header("transfer-encoding"), Some("chunked"));
    assert_eq!(server.requests()[0].body, vec![7; 3 << 20]);

    let server = ScriptedServer::start([written(204)]).await;
    let content = Payload { size: Some(3 << 20), ..buffers(3, Duration::ZERO) };
    server.store().set(&key("k"), content, Precondition::none()).await.unwrap();
    assert_eq!(server.requests()[0].header("content-length"), Some("3145728"));
}

#[tokio::test]
async fn conditional_changes_with_a_lost_response_are_not_retried() {
    let server = ScriptedServer::start([Step::Close, written(201)]).await;
    let error = server.store().set(&key("k"), "x".into(), Precondition::absent()).await.unwrap_err();
    assert!(matches!(transport_error(error), TransportError::Http(_)));
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].header("if-none-match"), Some("*"));

    // The status of a gateway or proxy does not tell whether the server executed the request.
    for status in [502, 503, 504] {
        let server = ScriptedServer::start([Step::Respond(response(status, &[], "")), erased(true)]).await;
        server.store().erase(&key("k"), Precondition::at(Version::from_u128(42))).await.unwrap_err();
        assert_eq!(server.requests().len(), 1);
        assert_eq!(server.requests()[0].header("if-match"), Some(ETAG));
    }
}

#[tokio::test]
async fn conditional_changes_that_were_not_executed_are_retried() {
    let server = ScriptedServer::start([Step::Respond(problem(503, "busy", &[], "")), written(201)]).await;
    let unwanted = VersionMatch::OneOf(vec![Version::from_u128(42)]);
    let precondition = Precondition { if_match: Some(VersionMatch::Any), if_none_match: Some(unwanted) };
    server.store().set(&key("k"), "x".into(), precondition).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].header("if-match"), Some("*"));
    assert_eq!(requests[1].header("if-none-match"), Some(ETAG));
}

#[tokio::test]
async fn failed_preconditions_have_the_current_version() {
    let current = format!(r#","current":{ETAG:?}"#);
    let server = ScriptedServer::start([
        Step::Respond(problem(412, "precondition-failed", &[], &current)),
        Step::Respond(response(412, &[], "no")),
    ])
    .await;
    for expected in [Some(Version::from_u128(42)), None] {
        match server.store().set(&key("k"), "x".into(), Precondition::absent()).await.unwrap_err() {
            StoreError::PreconditionFailed { key: of, current } => assert_eq!((of, current), (key("k"), expected)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn erasures_are_retried() {
    let server = ScriptedServer::start([
        Step::Close,
        erased(false),
        Step::Close,
        Step::Respond(response(200, &[], r#"{"erased":7}"#)),
        Step::Respond(response(200, &[], r#"{"erased":100000,"at_least":true}"#)),
        Step::Respond(head(204, &[]) + "\r\n"),
        Step::Respond(response(200, &[], "7")),
    ])
    .await;
    let store = server.store();
    assert!(!store.erase(&key("k"), Precondition::none()).await.unwrap());
    assert_eq!(store.erase_prefix(&Prefix::parse("a/").unwrap()).await.unwrap(), KeyCount::exact(7));
    assert_eq!(store.erase_prefix(&Prefix::root()).await.unwrap(), KeyCount { count: 100_000, exact: false });
    let lines: Vec<String> = server.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines[3..], ["DELETE /mount/store/a/", "DELETE /mount/store/?confirm=all"]);
    let error = store.erase(&key("k"), Precondition::none()).await.unwrap_err();
    assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{error:?}");
    let error = store.erase_prefix(&Prefix::root()).await.unwrap_err();
    assert!(matches!(error.backend_source(), Some(RemoteError::InvalidResponse { .. })), "{error:?}");
}

#[tokio::test]
async fn content_of_another_length_than_announced_is_never_complete() {
    let mib = 1 << 20;
    for (announced, count) in [(3 * mib - 1, 3), (3 * mib + 1, 3), (2 * mib, 3), (5, 0)] {
        let server = ScriptedServer::start([written(201)]).await;
        let content = Payload { size: Some(announced), ..buffers(count, Duration::ZERO) };
        match server.store().set(&key("k"), content, Precondition::none()).await.unwrap_err() {
            StoreError::Upload(UploadError::LengthMismatch { announced: length, received }) => {
                assert_eq!(length, announced);
                assert_ne!(received, announced);
            }
            other => panic!("{announced}: {other:?}"),
        }
        for request in server.requests() {
            assert!((request.body.len() as u64) < announced, "the request was complete");
        }
    }
}

#[tokio::test]
async fn failing_content_fails_the_write() {
    let failure = || StoreError::Upload(UploadError::Aborted(Box::new(io::Error::other("the disk went away"))));
    for size in [None, Some(4 << 20)] {
        let server = ScriptedServer::start([written(201)]).await;
        let beginning = buffers(3, Duration::ZERO).stream;
        let content =
            Payload { size, ..Payload::from_stream(beginning.chain(stream::once(async move { Err(failure()) }))) };
        let error = server.store().set(&key("k"), content, Precondition::none()).await.unwrap_err();
        assert!(matches!(error, StoreError::Upload(UploadError::Aborted(_))), "{error:?}");
    }
    let server = ScriptedServer::start([]).await;
    let content = Payload::from_stream(stream::once(async move { Err(failure()) }));
    let error = server.store().set(&key("k"), content, Precondition::none()).await.unwrap_err();
    assert!(matches!(error, StoreError::Upload(UploadError::Aborted(_))), "{error:?}");
    assert!(server.requests().is_empty(), "no request is sent for content that has already failed");
}

#[tokio::test]
async fn slow_content_is_not_an_idle_timeout() {
    let timeouts = Timeouts { idle: Duration::from_millis(150), ..Timeouts::default() };
    let server = ScriptedServer::start([written(201)]).await;
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    store.set(&key("k"), buffers(4, Duration::from_millis(300)), Precondition::none()).await.unwrap();
    assert_eq!(server.requests()[0].body.len(), 4 << 20);
}

#[tokio::test]
async fn server_that_accepts_no_data_is_an_idle_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let timeouts = Timeouts { idle: Duration::from_millis(150), ..Timeouts::default() };
    let store = zarrd_client::HttpStore::builder(base).timeouts(timeouts).build().unwrap();
    let error = store.set(&key("k"), buffers(64, Duration::ZERO), Precondition::none()).await.unwrap_err();
    assert!(matches!(transport_error(error), TransportError::Idle(_)));
}

#[tokio::test]
async fn readiness_tells_if_the_store_is_writable() {
    let server = ScriptedServer::start([
        Step::Respond(response(200, &[], r#"{"writable":true}"#)),
        Step::Respond(response(200, &[], r#"{"writable":false,"problem":"https://zarrd.dev/problems/out-of-space"}"#)),
        Step::Respond(problem(503, "read-only-store", &[], "")),
        Step::Respond(response(200, &[], "ready")),
    ])
    .await;
    let store = server.store();
    store.check_writable().await.unwrap();
    assert!(matches!(store.check_writable().await.unwrap_err(), StoreError::OutOfSpace));
    assert!(matches!(store.check_writable().await.unwrap_err(), StoreError::ReadOnly));
    assert!(matches!(
        store.check_writable().await.unwrap_err().backend_source(),
        Some(RemoteError::InvalidResponse { .. })
    ));
    assert_eq!(server.requests()[0].line, "GET /mount/readyz");
    assert_eq!(server.requests().len(), 4);
}
