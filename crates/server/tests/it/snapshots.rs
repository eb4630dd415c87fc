//! Snapshots of a prefix: taken by `/snapshot`, read by `/store?snapshot=`.

use crate::common::{TestServer, tokens::ServerWithTokens};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_server::AnonymousAccess;
use zarrd_store::{Change, IntentId, Precondition, WriteableStore};
use zarrd_wire::problem::ProblemType;

async fn take(server: &TestServer, prefix: &str) -> Value {
    let taken = server.request(Method::POST, &format!("/snapshot?prefix={prefix}"), &[], "").await;
    assert_eq!(taken.status, StatusCode::CREATED, "{taken:?}");
    let snapshot = taken.json();
    assert_eq!(taken.header("location"), format!("/snapshot/{}", snapshot["id"].as_str().unwrap()));
    snapshot
}

fn id(snapshot: &Value) -> &str {
    snapshot["id"].as_str().unwrap()
}

#[tokio::test]
async fn values_and_listings_are_those_of_the_commit() {
    let server = TestServer::new();
    server.set("lab/a", b"old").await;
    server.set("lab/sub/b", b"kept").await;
    server.set("other", b"1").await;
    let taken = take(&server, "lab/").await;
    assert_eq!((&taken["prefix"], &taken["keys"], &taken["idle_seconds"]), (&json!("lab/"), &json!(2), &json!(600)));
    assert_eq!(taken["intents"], json!(null), "anybody may do everything, but nobody administers tokens here");
    let of = |path: &str| match path.contains('?') {
        true => format!("{path}&snapshot={}", id(&taken)),
        false => format!("{path}?snapshot={}", id(&taken)),
    };
    let before = server.get("/store/lab/a", &[]).await;
    server.set("lab/a", b"newer").await;
    server.set("lab/c", b"new").await;
    assert_eq!(server.delete("/store/lab/sub/b", &[]).await.status, StatusCode::NO_CONTENT);

    let value = server.get(&of("/store/lab/a"), &[]).await;
    assert_eq!((value.text(), value.header("etag")), ("old", before.header("etag")));
    assert_eq!(server.get("/store/lab/a", &[]).await.text(), "newer");
    assert_eq!(server.head(&of("/store/lab/a"), &[]).await.header("content-length"), "3");
    assert_eq!(server.get(&of("/store/lab/sub/b"), &[("range", "bytes=1-2")]).await.text(), "ep");
    let tag = before.header("etag").to_owned();
    let same = server.get(&of("/store/lab/a"), &[("if-none-match", &tag)]).await;
    assert_eq!(same.status, StatusCode::NOT_MODIFIED);
    server.get(&of("/store/lab/c"), &[]).await.problem(ProblemType::NoSuchKey);
    // The current state has a redirect to the prefix of this name, and so had the snapshot: it names no value.
    server.get(&of("/store/lab/sub"), &[]).await.problem(ProblemType::NoSuchKey);

    let keys = server.get(&of("/store/lab/?list=keys"), &[]).await.json();
    assert_eq!(keys["keys"], json!(["lab/a", "lab/sub/b"]));
    let first = server.get(&of("/store/lab/?list=keys&limit=1"), &[]).await.json();
    assert_eq!(first["keys"], json!(["lab/a"]));
    let rest =
        server.get(&of(&format!("/store/lab/?list=keys&cursor={}", first["cursor"].as_str().unwrap())), &[]).await;
    assert_eq!(rest.json()["keys"], json!(["lab/sub/b"]));
    let children = server.get(&of("/store/lab/"), &[]).await.json();
    assert_eq!((&children["keys"], &children["prefixes"]), (&json!(["lab/a"]), &json!(["lab/sub/"])));
    assert_eq!(server.get(&of("/store/lab/sub/?list=keys"), &[]).await.json()["keys"], json!(["lab/sub/b"]));
}

#[tokio::test]
async fn small_values_come_with_their_keys_on_request() {
    let server = TestServer::new();
    let headers = [("zarr-content-type", "text/csv"), ("zarr-meta-unit", "um")];
    server.request(Method::PUT, "/store/lab/csv", &headers, "1,2").await;
    server.set("lab/large", &[7; 4097]).await;
    for number in 0..300 {
        let key = format!("lab/small/{number:03}");
        server.set(&key, b"small").await;
    }
    let taken = take(&server, "lab/").await;
    let target = format!("/store/lab/?list=keys&contents=small&snapshot={}", id(&taken));
    server.set("lab/csv", b"3").await;
    let first = server.get(&target, &[]).await;
    assert_eq!(first.header("content-type"), "application/json");
    let first = first.json();
    assert_eq!(first["values"][0]["content"], "MSwy");
    assert_eq!(first["values"][0]["headers"], json!({"zarr-content-type": "text/csv", "zarr-meta-unit": "um"}));
    assert_eq!(first["keys"][1], "lab/large");
    let plain = server.get(&format!("/store/lab/?list=keys&snapshot={}", id(&taken)), &[]).await.json();
    assert_eq!(first["values"][1], plain["values"][1], "it is read by its key");
    assert_eq!(first["keys"].as_array().unwrap().len(), 256);
    let next = format!("{target}&limit=10000&cursor={}", first["cursor"].as_str().unwrap());
    let rest = server.get(&next, &[]).await.json();
    assert_eq!((rest["keys"].as_array().unwrap().len(), &rest["cursor"]), (46, &Value::Null));
    assert_eq!(rest["values"][45]["content"], "c21hbGw=");
    let ended = server.get("/store/lab/?list=keys&contents=small&snapshot=0", &[]).await;
    ended.problem(ProblemType::SnapshotExpired);
    for other in ["/store/lab/?list=keys&contents=small", "/store/lab/?contents=small&snapshot=0"] {
        server.get(other, &[]).await.problem(ProblemType::InvalidParameter);
    }
    let outside = server.get(&target.replace("/lab/", "/"), &[]).await;
    outside.problem(ProblemType::InvalidParameter);
}

#[tokio::test]
async fn a_snapshot_has_only_its_prefix() {
    let server = TestServer::new();
    server.set("lab/a", b"1").await;
    server.set("other", b"1").await;
    let taken = take(&server, "lab/").await;
    for outside in ["/store/other", "/store/labs/a", "/store/", "/store/l/"] {
        let refused = server.get(&format!("{outside}?snapshot={}", id(&taken)), &[]).await;
        let problem = refused.problem(ProblemType::InvalidParameter);
        assert_eq!(problem.detail, r#"the snapshot was taken of "lab/""#, "{outside}");
    }
}

#[tokio::test]
async fn a_snapshot_ends_once() {
    let server = TestServer::new();
    server.set("a", b"1").await;
    let taken = take(&server, "").await;
    let path = format!("/snapshot/{}", id(&taken));
    assert_eq!(server.delete(&path, &[]).await.status, StatusCode::NO_CONTENT);
    server.delete(&path, &[]).await.problem(ProblemType::SnapshotExpired);
    for unknown in [id(&taken), "0", "00000000000000000000000000000000", "%2e", ""] {
        server.get(&format!("/store/a?snapshot={unknown}"), &[]).await.problem(ProblemType::SnapshotExpired);
        server.get(&format!("/store/?snapshot={unknown}"), &[]).await.problem(ProblemType::SnapshotExpired);
    }
    let twice = server.get("/store/a?snapshot=1&snapshot=2", &[]).await;
    twice.problem(ProblemType::DuplicateParameter);
}

#[tokio::test]
async fn a_token_has_one_snapshot_and_all_callers_have_four() {
    let server = ServerWithTokens::closed();
    let (_, token) = server.token(&["read:/"]);
    let post = async |token: &str| server.send(token, Method::POST, "/snapshot", Value::Null).await;
    let taken = post(&token).await.json();
    let refused = post(&token).await;
    let problem = refused.problem(ProblemType::TooManyRequests);
    assert!(problem.detail.contains("DELETE"), "{problem:?}");
    assert_eq!(refused.header("retry-after"), "30");
    for _ in 0..3 {
        assert_eq!(post(&server.token(&["read:/"]).1).await.status, StatusCode::CREATED);
    }
    let refused = post(&server.token(&["read:/"]).1).await;
    assert!(refused.problem(ProblemType::Busy).detail.contains("4 snapshots"));
    let path = format!("/snapshot/{}", id(&taken));
    assert_eq!(server.send(&token, Method::DELETE, &path, Value::Null).await.status, StatusCode::NO_CONTENT);
    assert_eq!(post(&token).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn malformed_requests_take_no_snapshot() {
    let server = TestServer::new();
    for (target, kind) in [
        ("/snapshot?prefix=a", ProblemType::InvalidParameter),
        ("/snapshot?prefix=a//b/", ProblemType::InvalidParameter),
        ("/snapshot?prefix=a/../b/", ProblemType::InvalidParameter),
        ("/snapshot?prefix=%ff/", ProblemType::InvalidParameter),
        ("/snapshot?prefix=a/&prefix=b/", ProblemType::DuplicateParameter),
        ("/snapshot?below=a/", ProblemType::UnknownParameter),
    ] {
        server.request(Method::POST, target, &[], "").await.problem(kind);
    }
    for _ in 0..4 {
        take(&server, "").await;
    }
    server.request(Method::GET, "/snapshot", &[], "").await.problem(ProblemType::MethodNotAllowed);
}

#[tokio::test]
async fn rights_are_those_of_each_request() {
    let server =
        ServerWithTokens::with(AnonymousAccess::Granted(crate::common::tokens::grants(&["read:"])), Default::default());
    server.server.set("lab/a", b"1").await;
    server.server.set("other/b", b"1").await;
    let (_, all) = server.token(&["read:/"]);
    let (_, lab) = server.token(&["read:lab/"]);
    let (_, admin) = server.token(&["admin:/"]);
    let anonymous = server.server.request(Method::POST, "/snapshot", &[], "").await;
    anonymous.problem(ProblemType::Unauthorized);
    let post = async |token: &str, prefix: &str| {
        server.send(token, Method::POST, &format!("/snapshot?prefix={prefix}"), Value::Null).await
    };
    post(&lab, "").await.problem(ProblemType::Forbidden);
    post(&lab, "other/").await.problem(ProblemType::Forbidden);
    assert_eq!(post(&lab, "lab/").await.status, StatusCode::CREATED);
    let taken = post(&all, "").await.json();
    assert_eq!(taken["intents"], Value::Null);
    // The id gives no right that its caller does not have.
    let of = |path: &str| format!("{path}?snapshot={}", id(&taken));
    assert_eq!(server.get(&lab, &of("/store/lab/a")).await.text(), "1");
    server.get(&lab, &of("/store/other/b")).await.problem(ProblemType::Forbidden);
    let stranger = server.send(&lab, Method::DELETE, &format!("/snapshot/{}", id(&taken)), Value::Null).await;
    stranger.problem(ProblemType::SnapshotExpired);
    assert_eq!(server.get(&all, &of("/store/other/b")).await.text(), "1");
    // Administrators see what is under way.
    let intent = Change::AddIntent { id: IntentId::from_u128(7), record: "shrink".into() };
    server.server.store.commit(vec![intent]).await.unwrap();
    let taken = post(&admin, "").await.json();
    let expected = json!([{ "id": "00000000000000000000000000000007", "record": "c2hyaW5r" }]);
    assert_eq!(taken["intents"], expected);
}

#[tokio::test]
async fn revoked_tokens_read_no_snapshot() {
    let server = ServerWithTokens::closed();
    server.server.set("lab/a", b"1").await;
    let (token, authorization) = server.token(&["read:lab/"]);
    let taken = server.send(&authorization, Method::POST, "/snapshot?prefix=lab/", Value::Null).await.json();
    let path = format!("/store/lab/a?snapshot={}", id(&taken));
    assert_eq!(server.get(&authorization, &path).await.status, StatusCode::OK);
    server.directory.revoke(token).unwrap();
    server.get(&authorization, &path).await.problem(ProblemType::Unauthorized);
}

#[tokio::test]
async fn stores_without_commits_have_no_snapshots() {
    let memory = zarrd_store::MemoryStore::new();
    memory.set(&"a".parse().unwrap(), "1".into(), Precondition::none()).await.unwrap();
    let server = crate::common::foreign::ForeignStore::new(memory).serve();
    let refused = server.request(Method::POST, "/snapshot", &[], "").await;
    assert_eq!(refused.problem(ProblemType::Unsupported).members.unsupported.as_deref(), Some("snapshots of a prefix"));
}
