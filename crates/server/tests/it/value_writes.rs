//! Setting and erasing values.

use std::time::Duration;

use crate::common::TestServer;
use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Method, StatusCode};
use zarrd_server::{Limits, Settings};
use zarrd_wire::problem::ProblemType;

#[tokio::test]
async fn put_creates_and_replaces() {
    let server = TestServer::new();
    let first = server.put("/store/a/b", &[], "one").await;
    assert_eq!((first.status, first.body.len()), (StatusCode::CREATED, 0));
    let second = server.put("/store/a/b", &[], "two").await;
    assert_eq!(second.status, StatusCode::NO_CONTENT);
    assert_ne!(first.header("etag"), second.header("etag"));
    assert_eq!(server.get("/store/a/b", &[]).await.header("etag"), second.header("etag"));
    assert_eq!(server.value("a/b").await.unwrap(), "two");
    let empty = server.put("/store/empty", &[], "").await;
    assert_eq!(empty.status, StatusCode::CREATED);
    assert_eq!(server.value("empty").await.unwrap(), "");
}

#[tokio::test]
async fn put_checks_preconditions() {
    let server = TestServer::new();
    let create = [("if-none-match", "*")];
    let created = server.put("/store/v", &create, "1").await;
    assert_eq!(created.status, StatusCode::CREATED);
    let etag = created.header("etag").to_owned();
    let problem = server.put("/store/v", &create, "2").await.problem(ProblemType::PreconditionFailed);
    assert_eq!((problem.members.key.as_deref(), problem.members.current.as_deref()), (Some("v"), Some(&*etag)));
    let (weak, date) = (format!("W/{etag}"), server.last_modified_once_valid("/store/v").await);
    for headers in [
        [("if-match", "\"other\"")],
        [("if-match", &weak)],
        [("if-none-match", &etag)],
        [("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT")],
    ] {
        server.put("/store/v", &headers, "2").await.problem(ProblemType::PreconditionFailed);
    }
    server.put("/store/absent", &[("if-match", "*")], "2").await.problem(ProblemType::PreconditionFailed);
    server.put("/store/v", &[("if-match", "unquoted")], "2").await.problem(ProblemType::InvalidHeader);
    assert_eq!(server.value("v").await.unwrap(), "1");
    let dated = server.put("/store/v", &[("if-unmodified-since", &date)], "2").await;
    assert_eq!(dated.status, StatusCode::NO_CONTENT);
    let matched = server.put("/store/v", &[("if-match", dated.header("etag"))], "3").await;
    assert_eq!(matched.status, StatusCode::NO_CONTENT);
    let differs = server.put("/store/v", &[("if-none-match", &etag)], "4").await;
    assert_eq!(differs.status, StatusCode::NO_CONTENT, "it has another version by now");
    assert_eq!(server.value("v").await.unwrap(), "4");
}

#[tokio::test]
async fn delete_erases_a_key() {
    let server = TestServer::new();
    let etag = server.set("v", b"1").await;
    server.delete("/store/v", &[("if-match", "\"other\"")]).await.problem(ProblemType::PreconditionFailed);
    let gone = server.delete("/store/v", &[("if-match", &etag)]).await;
    assert_eq!((gone.status, gone.header("zarr-existed")), (StatusCode::NO_CONTENT, "true"));
    let again = server.delete("/store/v", &[]).await;
    assert_eq!((again.status, again.header("zarr-existed")), (StatusCode::NO_CONTENT, "false"));
    server.delete("/store/v", &[("if-match", "*")]).await.problem(ProblemType::PreconditionFailed);
}

#[tokio::test]
async fn delete_erases_a_prefix() {
    let server = TestServer::new();
    for key in ["a", "a/b", "a/c/d", "ab"] {
        server.set(key, b"1").await;
    }
    let erased = server.delete("/store/a/", &[]).await;
    assert_eq!((erased.status, erased.json()), (StatusCode::OK, serde_json::json!({"erased": 2})));
    assert!(server.value("a").await.is_some() && server.value("ab").await.is_some());
    assert_eq!(server.delete("/store/a%2F", &[]).await.json()["erased"], 0);
    server.delete("/store/", &[]).await.problem(ProblemType::ConfirmationRequired);
    server.delete("/store/?confirm=yes", &[]).await.problem(ProblemType::InvalidParameter);
    server.delete("/store/ab/", &[("if-match", "*")]).await.problem(ProblemType::InvalidHeader);
    assert!(server.value("ab").await.is_some());
    assert_eq!(server.delete("/store/?confirm=all", &[]).await.json()["erased"], 2);
}

#[tokio::test]
async fn unsafe_methods_reject_empty_segments() {
    let server = TestServer::new();
    server.set("a/b", b"1").await;
    for path in [
        "/store//",
        "/store//a/",
        "/store/a//",
        "/store//a/b",
        "/store/a//b",
        "/store/a/../a/b",
        "/store/%2e%2e/a/b",
        "/store/a%2F%2Fb",
        "/store/a%zz",
        "/store/a%",
        "/store/a%00",
        "/store/%ff",
    ] {
        server.delete(path, &[]).await.problem(ProblemType::InvalidKey);
        server.put(path, &[], "2").await.problem(ProblemType::InvalidKey);
    }
    for path in ["/store/", "/store/a/", "/store/a%2f"] {
        server.put(path, &[], "2").await.problem(ProblemType::InvalidKey);
    }
    server.put(&format!("/store/{}", "k".repeat(1025)), &[], "2").await.problem(ProblemType::InvalidKey);
    assert_eq!(server.value("a/b").await.unwrap(), "1");
    assert_eq!(server.get("/store/?list=keys", &[]).await.json()["keys"], serde_json::json!(["a/b"]));
}

#[tokio::test]
async fn unknown_parameters_are_rejected() {
    let server = TestServer::new();
    server.set("a/b", b"1").await;
    let problem = server.put("/store/a/b?overwrite=no", &[], "2").await.problem(ProblemType::UnknownParameter);
    assert_eq!(problem.members.parameter.as_deref(), Some("overwrite"));
    assert_eq!(problem.members.known, Some(vec![]));
    server.delete("/store/a/b?confirm=all", &[]).await.problem(ProblemType::UnknownParameter);
    let problem = server.delete("/store/a/?confrim=all", &[]).await.problem(ProblemType::UnknownParameter);
    assert_eq!(problem.members.known, Some(vec!["confirm".to_owned()]));
    server.delete("/store/?confirm=all&confirm=all", &[]).await.problem(ProblemType::DuplicateParameter);
    assert_eq!(server.value("a/b").await.unwrap(), "1");
}

fn small_limit() -> Settings {
    Settings {
        limits: Limits { value: 8, upload_timeout: Duration::from_millis(50), ..Limits::default() },
        ..Settings::default()
    }
}

fn chunked_body(count: usize) -> Body {
    Body::from_stream(stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"1234")))))
}

#[tokio::test]
async fn oversized_bodies_are_413() {
    let server = TestServer::with(small_limit());
    let problem = server.put("/store/v", &[], "123456789").await.problem(ProblemType::ValueTooLarge);
    assert_eq!(problem.members.limit, Some(8));
    server.put("/store/v", &[], chunked_body(3)).await.problem(ProblemType::ValueTooLarge);
    assert_eq!(server.value("v").await, None);
    assert_eq!(server.put("/store/v", &[], chunked_body(2)).await.status, StatusCode::CREATED);
    assert_eq!(server.value("v").await.unwrap(), "12341234");
}

#[tokio::test]
async fn stalled_or_aborted_bodies_store_nothing() {
    let server = TestServer::with(small_limit());
    let stalled = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"12"))]).chain(stream::pending());
    server.put("/store/v", &[], Body::from_stream(stalled)).await.problem(ProblemType::BodyTimeout);
    let broken = stream::iter([Ok(Bytes::from_static(b"12")), Err(std::io::Error::other("secret"))]);
    let answer = server.put("/store/v", &[], Body::from_stream(broken)).await;
    answer.problem(ProblemType::IncompleteBody);
    assert!(!answer.text().contains("secret"), "causes are for the log");
    assert_eq!(server.value("v").await, None);
}

#[tokio::test]
async fn digests_are_verified() {
    let server = TestServer::new();
    let hello = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";
    let right = format!(
        "{hello}, sha-512=:m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw==:"
    );
    let wrong = format!("{hello}, sha-512=:{}:", "A".repeat(86) + "==");
    server.put("/store/v", &[("content-digest", &wrong)], "hello").await.problem(ProblemType::DigestMismatch);
    server.put("/store/v", &[("content-digest", hello)], "hallo").await.problem(ProblemType::DigestMismatch);
    for bad in ["sha-256", "sha-256=:AAAA:", "md5=:XUFAKrxLKna5cZ2REBfFkg==:"] {
        let problem = server.put("/store/v", &[("content-digest", bad)], "hello").await;
        assert_eq!(problem.problem(ProblemType::InvalidHeader).members.header.as_deref(), Some("Content-Digest"));
    }
    assert_eq!(server.value("v").await, None);
    assert_eq!(server.put("/store/v", &[("content-digest", &right)], "hello").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn encoded_or_partial_bodies_are_rejected() {
    let server = TestServer::new();
    let encoded = server.put("/store/v", &[("content-encoding", "gzip")], "x").await;
    let problem = encoded.problem(ProblemType::UnsupportedContentEncoding);
    assert_eq!(problem.members.header.as_deref(), Some("Content-Encoding"));
    let partial = server.put("/store/v", &[("content-range", "bytes 0-0/2")], "x").await;
    let problem = partial.problem(ProblemType::InvalidHeader);
    assert_eq!(problem.members.header.as_deref(), Some("Content-Range"));
    assert_eq!(server.value("v").await, None);
    assert_eq!(server.put("/store/v", &[("content-encoding", "identity")], "x").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_rejected() {
    let server = TestServer::new();
    for (method, path, allow) in [
        (Method::POST, "/store/v", "GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, COPY, MOVE, MKCOL, OPTIONS"),
        (Method::PATCH, "/store/v/", "GET, HEAD, DELETE, PROPFIND, PROPPATCH, COPY, MOVE, MKCOL, OPTIONS"),
        (Method::POST, "/store/", "GET, HEAD, DELETE, PROPFIND, PROPPATCH, COPY, OPTIONS"),
        (Method::DELETE, "/store", "GET, HEAD, PROPFIND, OPTIONS"),
        (Method::PUT, "/healthz", "GET, HEAD, OPTIONS"),
        (Method::TRACE, "/node/a", "GET, HEAD, PUT, PATCH, DELETE, POST, OPTIONS"),
        (Method::TRACE, "/node", "GET, HEAD, PUT, PATCH, DELETE, POST, OPTIONS"),
        (Method::PUT, "/schema/zom/v2", "GET, HEAD, OPTIONS"),
        (Method::DELETE, "/readyz", "GET, HEAD, OPTIONS"),
        (Method::TRACE, "/metrics", "GET, HEAD, OPTIONS"),
        (Method::from_bytes(b"BREW").unwrap(), "/openapi.yaml", "GET, HEAD, OPTIONS"),
    ] {
        let answer = server.request(method, path, &[], "").await;
        assert_eq!(answer.header("allow"), allow, "{path}");
        assert_eq!(answer.problem(ProblemType::MethodNotAllowed).members.allow.join(", "), allow);
    }
    for path in
        ["/stores", "/Store/a", "/nodes", "/Node/a", "/schema/zom/draft", "/schema/zom/v3/", "/healthz/", "//store/a"]
    {
        server.get(path, &[]).await.problem(ProblemType::NotFound);
        server.put(path, &[], "").await.problem(ProblemType::NotFound);
    }
}

#[tokio::test]
async fn deleting_a_node_as_a_key_is_a_conflict() {
    let server = TestServer::new();
    for document in ["zarr.json", ".zarray", ".zgroup"] {
        server.set(&format!("lab/a b/{document}"), b"{}").await;
        let problem = server.delete("/store/lab/a%20b", &[]).await.problem(ProblemType::PrefixNotEmpty);
        assert!(problem.detail.contains("DELETE /node/lab/a%20b "), "{}", problem.detail);
        assert_eq!(problem.members.prefix.as_deref(), Some("lab/a b/"));
        assert!(server.value(&format!("lab/a b/{document}")).await.is_some());
        server.delete(&format!("/store/lab/a%20b/{document}"), &[]).await;
    }
    // A prefix is no node, and a key of that name is erased.
    server.set("lab/a b/c/0", b"1").await;
    assert_eq!(server.delete("/store/lab/a%20b", &[]).await.status, StatusCode::NO_CONTENT);
    server.set("g", b"1").await;
    server.set("g/zarr.json", b"{}").await;
    assert_eq!(server.delete("/store/g", &[]).await.header("zarr-existed"), "true");
    server.delete("/store/g", &[]).await.problem(ProblemType::PrefixNotEmpty);
}
