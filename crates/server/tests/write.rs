//! Setting and erasing values.

mod common;

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use common::Site;
use futures::{StreamExt, stream};
use http::{Method, StatusCode};
use server::{Limits, Settings};
use wire::problem::ProblemType;

#[tokio::test]
async fn set_and_replace() {
    let site = Site::new();
    let first = site.put("/store/a/b", &[], "one").await;
    assert_eq!((first.status, first.body.len()), (StatusCode::CREATED, 0));
    let second = site.put("/store/a/b", &[], "two").await;
    assert_eq!(second.status, StatusCode::NO_CONTENT);
    assert_ne!(first.header("etag"), second.header("etag"));
    assert_eq!(site.get("/store/a/b", &[]).await.header("etag"), second.header("etag"));
    assert_eq!(site.value("a/b").await.unwrap(), "two");
    let empty = site.put("/store/empty", &[], "").await;
    assert_eq!(empty.status, StatusCode::CREATED);
    assert_eq!(site.value("empty").await.unwrap(), "");
}

#[tokio::test]
async fn set_under_conditions() {
    let site = Site::new();
    let create = [("if-none-match", "*")];
    let created = site.put("/store/v", &create, "1").await;
    assert_eq!(created.status, StatusCode::CREATED);
    let etag = created.header("etag").to_owned();
    let problem = site.put("/store/v", &create, "2").await.problem(ProblemType::PreconditionFailed);
    assert_eq!((problem.members.key.as_deref(), problem.members.current.as_deref()), (Some("v"), Some(&*etag)));
    let (weak, date) = (format!("W/{etag}"), site.settled_date("/store/v").await);
    for headers in [
        [("if-match", "\"other\"")],
        [("if-match", &weak)],
        [("if-none-match", &etag)],
        [("if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT")],
    ] {
        site.put("/store/v", &headers, "2").await.problem(ProblemType::PreconditionFailed);
    }
    site.put("/store/absent", &[("if-match", "*")], "2").await.problem(ProblemType::PreconditionFailed);
    site.put("/store/v", &[("if-match", "unquoted")], "2").await.problem(ProblemType::InvalidHeader);
    assert_eq!(site.value("v").await.unwrap(), "1");
    let dated = site.put("/store/v", &[("if-unmodified-since", &date)], "2").await;
    assert_eq!(dated.status, StatusCode::NO_CONTENT);
    let matched = site.put("/store/v", &[("if-match", dated.header("etag"))], "3").await;
    assert_eq!(matched.status, StatusCode::NO_CONTENT);
    let differs = site.put("/store/v", &[("if-none-match", &etag)], "4").await;
    assert_eq!(differs.status, StatusCode::NO_CONTENT, "it has another version by now");
    assert_eq!(site.value("v").await.unwrap(), "4");
}

#[tokio::test]
async fn erase() {
    let site = Site::new();
    let etag = site.set("v", b"1").await;
    site.delete("/store/v", &[("if-match", "\"other\"")]).await.problem(ProblemType::PreconditionFailed);
    let gone = site.delete("/store/v", &[("if-match", &etag)]).await;
    assert_eq!((gone.status, gone.header("zarr-existed")), (StatusCode::NO_CONTENT, "true"));
    let again = site.delete("/store/v", &[]).await;
    assert_eq!((again.status, again.header("zarr-existed")), (StatusCode::NO_CONTENT, "false"));
    site.delete("/store/v", &[("if-match", "*")]).await.problem(ProblemType::PreconditionFailed);
}

#[tokio::test]
async fn erase_prefixes() {
    let site = Site::new();
    for key in ["a", "a/b", "a/c/d", "ab"] {
        site.set(key, b"1").await;
    }
    let erased = site.delete("/store/a/", &[]).await;
    assert_eq!((erased.status, erased.json()), (StatusCode::OK, serde_json::json!({"erased": 2})));
    assert!(site.value("a").await.is_some() && site.value("ab").await.is_some());
    assert_eq!(site.delete("/store/a%2F", &[]).await.json()["erased"], 0);
    site.delete("/store/", &[]).await.problem(ProblemType::ConfirmationRequired);
    site.delete("/store/?confirm=yes", &[]).await.problem(ProblemType::InvalidParameter);
    site.delete("/store/ab/", &[("if-match", "*")]).await.problem(ProblemType::InvalidHeader);
    assert!(site.value("ab").await.is_some());
    assert_eq!(site.delete("/store/?confirm=all", &[]).await.json()["erased"], 2);
}

#[tokio::test]
async fn writes_take_paths_literally() {
    let site = Site::new();
    site.set("a/b", b"1").await;
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
        site.delete(path, &[]).await.problem(ProblemType::InvalidKey);
        site.put(path, &[], "2").await.problem(ProblemType::InvalidKey);
    }
    for path in ["/store/", "/store/a/", "/store/a%2f"] {
        site.put(path, &[], "2").await.problem(ProblemType::InvalidKey);
    }
    site.put(&format!("/store/{}", "k".repeat(1025)), &[], "2").await.problem(ProblemType::InvalidKey);
    assert_eq!(site.value("a/b").await.unwrap(), "1");
    assert_eq!(site.get("/store/?list=keys", &[]).await.json()["keys"], serde_json::json!(["a/b"]));
}

#[tokio::test]
async fn writes_know_their_parameters() {
    let site = Site::new();
    site.set("a/b", b"1").await;
    let problem = site.put("/store/a/b?overwrite=no", &[], "2").await.problem(ProblemType::UnknownParameter);
    assert_eq!(problem.members.parameter.as_deref(), Some("overwrite"));
    assert_eq!(problem.members.known, Some(vec![]));
    site.delete("/store/a/b?confirm=all", &[]).await.problem(ProblemType::UnknownParameter);
    let problem = site.delete("/store/a/?confrim=all", &[]).await.problem(ProblemType::UnknownParameter);
    assert_eq!(problem.members.known, Some(vec!["confirm".to_owned()]));
    site.delete("/store/?confirm=all&confirm=all", &[]).await.problem(ProblemType::DuplicateParameter);
    assert_eq!(site.value("a/b").await.unwrap(), "1");
}

fn small() -> Settings {
    Settings {
        limits: Limits { value: 8, upload_timeout: Duration::from_millis(50), ..Limits::default() },
        ..Settings::default()
    }
}

fn pieces(count: usize) -> Body {
    Body::from_stream(stream::iter((0..count).map(|_| Ok::<_, std::io::Error>(Bytes::from_static(b"1234")))))
}

#[tokio::test]
async fn bodies_over_the_limit() {
    let site = Site::with(small());
    let problem = site.put("/store/v", &[], "123456789").await.problem(ProblemType::ValueTooLarge);
    assert_eq!(problem.members.limit, Some(8));
    site.put("/store/v", &[], pieces(3)).await.problem(ProblemType::ValueTooLarge);
    assert_eq!(site.value("v").await, None);
    assert_eq!(site.put("/store/v", &[], pieces(2)).await.status, StatusCode::CREATED);
    assert_eq!(site.value("v").await.unwrap(), "12341234");
}

#[tokio::test]
async fn bodies_that_stop_or_break_off() {
    let site = Site::with(small());
    let stalled = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"12"))]).chain(stream::pending());
    site.put("/store/v", &[], Body::from_stream(stalled)).await.problem(ProblemType::BodyTimeout);
    let broken = stream::iter([Ok(Bytes::from_static(b"12")), Err(std::io::Error::other("secret"))]);
    let answer = site.put("/store/v", &[], Body::from_stream(broken)).await;
    answer.problem(ProblemType::IncompleteBody);
    assert!(!answer.text().contains("secret"), "causes are for the log");
    assert_eq!(site.value("v").await, None);
}

#[tokio::test]
async fn digests() {
    let site = Site::new();
    let hello = "sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:";
    let right = format!(
        "{hello}, sha-512=:m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw==:"
    );
    let wrong = format!("{hello}, sha-512=:{}:", "A".repeat(86) + "==");
    site.put("/store/v", &[("content-digest", &wrong)], "hello").await.problem(ProblemType::DigestMismatch);
    site.put("/store/v", &[("content-digest", hello)], "hallo").await.problem(ProblemType::DigestMismatch);
    for bad in ["sha-256", "sha-256=:AAAA:", "md5=:XUFAKrxLKna5cZ2REBfFkg==:"] {
        let problem = site.put("/store/v", &[("content-digest", bad)], "hello").await;
        assert_eq!(problem.problem(ProblemType::InvalidHeader).members.header.as_deref(), Some("Content-Digest"));
    }
    assert_eq!(site.value("v").await, None);
    assert_eq!(site.put("/store/v", &[("content-digest", &right)], "hello").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn bodies_that_would_not_come_back_as_they_are() {
    let site = Site::new();
    let encoded = site.put("/store/v", &[("content-encoding", "gzip")], "x").await;
    encoded.problem(ProblemType::UnsupportedContentEncoding);
    site.put("/store/v", &[("content-range", "bytes 0-0/2")], "x").await.problem(ProblemType::InvalidHeader);
    assert_eq!(site.value("v").await, None);
    assert_eq!(site.put("/store/v", &[("content-encoding", "identity")], "x").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn methods_and_paths_that_there_are_not() {
    let site = Site::new();
    for (method, path, allow) in [
        (Method::POST, "/store/v", "GET, HEAD, PUT, DELETE, OPTIONS"),
        (Method::PATCH, "/store/v/", "GET, HEAD, DELETE, OPTIONS"),
        (Method::POST, "/store/", "GET, HEAD, DELETE, OPTIONS"),
        (Method::DELETE, "/store", "GET, HEAD, OPTIONS"),
        (Method::PUT, "/healthz", "GET, HEAD, OPTIONS"),
        (Method::TRACE, "/node/a", "GET, HEAD, PUT, PATCH, DELETE, POST, OPTIONS"),
        (Method::TRACE, "/node", "GET, HEAD, PUT, PATCH, DELETE, POST, OPTIONS"),
        (Method::PUT, "/schema/zom/v2", "GET, HEAD, OPTIONS"),
        (Method::DELETE, "/readyz", "GET, HEAD, OPTIONS"),
        (Method::TRACE, "/metrics", "GET, HEAD, OPTIONS"),
        (Method::from_bytes(b"BREW").unwrap(), "/openapi.yaml", "GET, HEAD, OPTIONS"),
    ] {
        let answer = site.ask(method, path, &[], "").await;
        assert_eq!(answer.header("allow"), allow, "{path}");
        assert_eq!(answer.problem(ProblemType::MethodNotAllowed).members.allow.join(", "), allow);
    }
    for path in [
        "/",
        "/stores",
        "/Store/a",
        "/nodes",
        "/Node/a",
        "/schema/zom/draft",
        "/schema/zom/v3/",
        "/healthz/",
        "//store/a",
    ] {
        site.get(path, &[]).await.problem(ProblemType::NotFound);
        site.put(path, &[], "").await.problem(ProblemType::NotFound);
    }
}
