//! Errors of the store.

use std::{io, sync::Arc, time::SystemTime};

use crate::common::{TestResponse, TestServer, failing::failing_server, read};
use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;
use zarrd_server::Settings;
use zarrd_store::{
    BackendErrorKind, ByteRange, GetResult, Guarantees, Key, MemoryStore, Prefix, StoreError, StoreWrapper, ValueMeta,
    Version,
};
use zarrd_wire::{health::StoreGuarantees, problem::ProblemType};

async fn erase_requests(server: &TestServer) -> Vec<TestResponse> {
    vec![server.delete("/store/a", &[]).await, server.delete("/store/a/", &[]).await]
}

async fn read_requests(server: &TestServer) -> Vec<TestResponse> {
    let html = [("accept", "text/html")];
    let lines = [("accept", "application/x-ndjson")];
    vec![
        server.get("/store/a", &[]).await,
        server.get("/store/a", &[("range", "bytes=0-1")]).await,
        server.get("/store/a/", &[]).await,
        server.get("/store/a/", &html).await,
        server.get("/store/a/?list=keys", &[]).await,
        server.get("/store/a/?list=keys", &lines).await,
        server.get("/array/a", &[]).await,
        server
            .request(http::Method::POST, "/array/a?read", &[("content-type", "application/json")], r#"{"points": []}"#)
            .await,
    ]
}

#[tokio::test]
async fn changes_of_unknown_outcome_are_named_and_not_to_be_repeated() {
    let server = failing_server(|key| StoreError::OutcomeUnknown { key: key.clone(), source: "secret".into() });
    for answer in [server.put("/store/a", &[], "1").await, server.delete("/store/a", &[]).await] {
        let problem = answer.problem(ProblemType::OutcomeUnknown);
        assert_eq!(problem.members.key.as_deref(), Some("a"));
        assert!(!answer.text().contains("secret"), "{answer:?}");
        assert!(!answer.headers.contains_key("retry-after"), "{answer:?}");
    }
}

#[tokio::test]
async fn store_errors_map_to_problems() {
    fn damaged(key: &Key) -> StoreError {
        StoreError::corrupt(key.clone(), "the file secret/1 is missing")
    }
    fn failed(_: &Key) -> StoreError {
        StoreError::io("read a secret file", io::Error::other("secret"))
    }
    for (how, kind) in [
        (damaged as fn(&Key) -> StoreError, ProblemType::CorruptValue),
        (failed, ProblemType::Internal),
        (|_| StoreError::backend(BackendErrorKind::Internal, "secret"), ProblemType::Internal),
        (|_| StoreError::OutOfSpace, ProblemType::OutOfSpace),
        (|_| StoreError::ReadOnly, ProblemType::ReadOnlyStore),
        (|_| StoreError::Closed, ProblemType::ShuttingDown),
        (|_| StoreError::Busy { retry_after: None }, ProblemType::Busy),
        (|_| panic!("secret"), ProblemType::Internal),
    ] {
        let server = failing_server(how);
        let mut answers = vec![server.put("/store/a", &[], "1").await];
        // Only sets need space, and only changes need a writable store.
        if kind != ProblemType::OutOfSpace {
            answers.extend(erase_requests(&server).await);
        }
        if ![ProblemType::OutOfSpace, ProblemType::ReadOnlyStore].contains(&kind) {
            answers.extend(read_requests(&server).await);
        }
        for answer in answers {
            let problem = answer.problem(kind);
            assert!(!answer.text().contains("secret"), "causes are for the log: {answer:?}");
            assert_eq!(problem.members.key.is_some(), kind == ProblemType::CorruptValue);
            assert_eq!(answer.headers.contains_key("retry-after"), kind == ProblemType::Busy);
        }
    }
}

#[tokio::test]
async fn failures_of_another_service_name_what_could_not_be_read_and_keep_their_causes() {
    fn failed(kind: BackendErrorKind, key: &Key) -> StoreError {
        StoreError::backend(kind, "secret").at(key.as_str())
    }
    for (how, kind, detail) in [
        (
            (|key| failed(BackendErrorKind::Connection, key)) as fn(&Key) -> StoreError,
            ProblemType::StoreUnavailable,
            "the connection to the store failed",
        ),
        (
            |key| failed(BackendErrorKind::PermissionDenied, key),
            ProblemType::StoreFailed,
            "the store denies this operation",
        ),
        (
            |key| failed(BackendErrorKind::InvalidResponse, key),
            ProblemType::StoreFailed,
            "the store sent an invalid response",
        ),
        (
            |key| failed(BackendErrorKind::Internal, key).because("it is a FIFO"),
            ProblemType::StoreFailed,
            "it is a FIFO",
        ),
    ] {
        let server = failing_server(how);
        for answer in read_requests(&server).await {
            let problem = answer.problem(kind);
            assert_eq!(problem.detail, detail);
            assert!(problem.members.key.is_some_and(|key| !key.is_empty()), "{answer:?}");
            assert!(!answer.text().contains("secret"), "causes are for the log: {answer:?}");
            assert_eq!(answer.headers.contains_key("retry-after"), kind == ProblemType::StoreUnavailable);
        }
    }
}

#[tokio::test]
async fn non_empty_prefix_names_its_first_key() {
    let server = failing_server(|key| StoreError::NotEmpty {
        prefix: Prefix::parse("some/").expect("a prefix"),
        key: key.clone(),
    });
    // No store returns this error when erasing a prefix, so the contract does not document it.
    let request = http::Request::delete("/store/a/").header("host", "localhost").body(axum::body::Body::empty());
    let answer = read(server.send_unchecked(request.unwrap()).await).await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    let members = answer.problem(ProblemType::PrefixNotEmpty).members;
    assert_eq!((members.prefix.as_deref(), members.key.as_deref()), (Some("some/"), Some("some/key")));
}

#[tokio::test]
async fn name_conflict_names_both_keys() {
    let server = failing_server(|key| StoreError::NameConflict { key: key.clone(), existing: format!("{key}/") });
    for answer in [server.put("/store/some/key", &[], "1").await, server.delete("/store/some/key", &[]).await] {
        assert_eq!(answer.status, StatusCode::CONFLICT);
        let members = answer.problem(ProblemType::NameConflict).members;
        let key = members.key.expect("a key");
        assert_eq!(members.keys, [key.clone(), format!("{key}/")]);
    }
}

#[tokio::test]
async fn readiness_reports_writability() {
    let guarantees = [StoreGuarantees::new(None, Guarantees { checked: false, ..Guarantees::COMMITS })];
    let ready = TestServer::new().get("/readyz", &[]).await;
    assert_eq!((ready.status, ready.json()), (StatusCode::OK, json!({"writable": true, "guarantees": guarantees})));
    let full = failing_server(|_| StoreError::OutOfSpace).get("/readyz", &[]).await;
    let out_of_space = ProblemType::OutOfSpace.uri();
    let expected = json!({"writable": false, "problem": out_of_space, "guarantees": guarantees});
    assert_eq!((full.status, full.json()), (StatusCode::OK, expected));
    let read_only = failing_server(|_| StoreError::ReadOnly).get("/readyz", &[]).await;
    read_only.problem(ProblemType::ReadOnlyStore);
    failing_server(|_| StoreError::Closed).get("/readyz", &[]).await.problem(ProblemType::ShuttingDown);
    assert_eq!(failing_server(|_| StoreError::ReadOnly).get("/healthz", &[]).await.status, StatusCode::OK);
}

/// A store with one value of two pieces, some of which are corrupt.
struct CorruptStore {
    store: MemoryStore,
    first_is: Result<(), ()>,
}

#[async_trait]
impl StoreWrapper for CorruptStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn get(&self, key: &Key, _: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let corrupt = || StoreError::corrupt(key.clone(), "a checksum does not match");
        let first = self.first_is.map(|()| Bytes::from_static(b"12")).map_err(|()| corrupt());
        let meta = ValueMeta {
            size: 4,
            version: Version::from_u128(1),
            modified: SystemTime::UNIX_EPOCH,
            attributes: zarrd_store::Attributes::NONE,
        };
        Ok(Some(GetResult { meta, range: 0..4, stream: stream::iter([first, Err(corrupt())]).boxed() }))
    }
}

#[tokio::test]
async fn early_corruption_is_a_problem_document() {
    let server =
        TestServer::over(Arc::new(CorruptStore { store: MemoryStore::new(), first_is: Err(()) }), Settings::default());
    let problem = server.get("/store/a", &[]).await.problem(ProblemType::CorruptValue);
    assert_eq!(problem.members.key.as_deref(), Some("a"));
}

#[tokio::test]
async fn late_corruption_aborts_the_response() {
    let server =
        TestServer::over(Arc::new(CorruptStore { store: MemoryStore::new(), first_is: Ok(()) }), Settings::default());
    let request = http::Request::get("/store/a").header("host", "localhost").body(axum::body::Body::empty());
    let response = server.send(request.unwrap()).await;
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "12");
    assert!(body.frame().await.unwrap().is_err());
}
