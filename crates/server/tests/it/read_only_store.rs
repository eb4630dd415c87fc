//! Stores that are served for reading only, and change while they are read.

use crate::common::{
    TestResponse, TestServer,
    arrays::{put, v3},
    foreign::ForeignStore,
};
use http::{Method, StatusCode};
use serde_json::json;
use zarrd_server::{Operation, ROUTES, Requirement, Route, Safety};
use zarrd_store::MemoryStore;
use zarrd_wire::{dav, problem::ProblemType};

const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0,
        "codecs": ["bytes"], "chunk_key_encoding": "default",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}"#;

async fn fill(server: &TestServer) {
    put(server, "g/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec()).await;
    v3(server, "g/a", json!("uint8"), &[200], &[2], json!(9)).await;
    for chunk in 0..90_u8 {
        put(server, &format!("g/a/c/{chunk}"), vec![chunk; 2]).await;
    }
    put(server, "k", b"value".to_vec()).await;
}

/// A server of data that others own, and one of the same data with all operations.
async fn both() -> (TestServer, TestServer) {
    let memory = MemoryStore::new();
    let plain = TestServer::over(std::sync::Arc::new(memory.clone()), zarrd_server::Settings::default());
    fill(&plain).await;
    (ForeignStore::new(memory).serve(), plain)
}

/// Targets and bodies for an operation that changes what is stored.
fn writes(route: &Route, operation: &Operation) -> Vec<(&'static str, &'static str)> {
    match (route.template, operation.selected_by) {
        ("/store/{key}", _) if operation.method == dav::mkcol() => vec![("/store/k", ""), ("/store/new", "")],
        ("/store/{key}", _) => vec![("/store/k", "new"), ("/store/new", "new")],
        ("/store/{prefix}/", _) => vec![("/store/g/", "")],
        ("/store/", _) => vec![("/store/?confirm=all", ""), ("/store/", "")],
        ("/array/{path}", Some("create")) => {
            vec![("/array/g/new?create&shape=1&dtype=uint8", "[7]"), ("/array/g/a?create", "")]
        }
        ("/array/{path}", Some(_)) => vec![("/array/g/a?append=0", "[7]"), ("/array/none?append=0", "[7]")],
        ("/array/{path}", None) => vec![("/array/g/a?select=0", "7"), ("/array/none", "7")],
        ("/node/{path}", Some("append")) => vec![("/node/g?append=x", ""), ("/node/none?append=x", "")],
        ("/node/{path}", Some(_)) => vec![("/node/g?convert=v2", ""), ("/node/g?convert=v3&target=/h", "")],
        ("/node/{path}", None) if operation.method == Method::PATCH => {
            vec![("/node/g", r#"{"attributes": {"a": 1}}"#), ("/node/none", "{")]
        }
        ("/node/{path}", None) => vec![("/node/g/new", ARRAY), ("/node/g", ARRAY), ("/node/", "{")],
        (template, selected_by) => panic!("{template} {selected_by:?}"),
    }
}

#[tokio::test]
async fn every_change_is_unsupported_and_changes_nothing() {
    let (server, plain) = both().await;
    let (before, mut found) = (plain.all().await, 0);
    for (route, operation) in ROUTES.iter().flat_map(|route| route.operations.iter().map(move |it| (route, it))) {
        if !operation.changes_store() {
            continue;
        }
        for (target, body) in writes(route, operation) {
            let headers = [("content-type", "application/json"), ("destination", "/store/copy"), ("if-match", "\"x\"")];
            for headers in [&headers[..2], &headers] {
                let answer = server.request(operation.method.clone(), target, headers, body).await;
                let problem = answer.problem(ProblemType::Unsupported);
                assert_eq!(problem.members.unsupported.as_deref(), Some("changes"), "{target}");
            }
            let options = server.request(Method::OPTIONS, target, &[], "").await;
            let is_allowed = |allow: &str| allow.split(", ").any(|method| method == operation.method.as_str());
            assert!(!is_allowed(options.header("allow")), "{} {target}: {options:?}", operation.method);
            assert!(options.header("allow").contains("GET"), "{target}: {options:?}");
        }
        found += 1;
    }
    assert_eq!(found, 22);
    assert_eq!(plain.all().await, before);
}

#[tokio::test]
async fn an_unknown_method_is_not_answered_with_what_is_unsupported() {
    let (server, _) = both().await;
    let answer = server.request(Method::PATCH, "/store/k", &[], "").await;
    assert_eq!(answer.problem(ProblemType::MethodNotAllowed).members.allow, ["GET", "HEAD", "PROPFIND", "OPTIONS"]);
}

#[tokio::test]
async fn a_server_that_cannot_write_is_ready() {
    let (server, _) = both().await;
    let ready = server.get("/readyz", &[]).await;
    let guarantees = json!([{
        "name": null, "reads": "key", "writes": "none", "conditions": "none", "listing": "sorted", "staleness": 0,
        "shared_names": true, "checked": false, "consolidated": "ignored", "reachable": true,
    }]);
    let expected = json!({"writable": false, "problem": ProblemType::Unsupported.uri(), "guarantees": guarantees});
    assert_eq!((ready.status, ready.json()), (StatusCode::OK, expected));
}

#[tokio::test]
async fn answers_with_several_values_have_their_consistency() {
    let (server, plain) = both().await;
    for (method, target, body) in [
        (Method::GET, "/array/g/a?select=0:4", ""),
        (Method::HEAD, "/array/g/a?select=0:4", ""),
        (Method::GET, "/array/g/a?format=json", ""),
        (Method::POST, "/array/g/a?read", r#"{"select": "0:4"}"#),
        (Method::GET, "/node/g", ""),
        (Method::HEAD, "/node/g", ""),
        (Method::GET, "/node/g?limit=1", ""),
    ] {
        for (server, expected) in [(&server, "key"), (&plain, "commit")] {
            let answer = server.request(method.clone(), target, &[("content-type", "application/json")], body).await;
            assert_eq!(answer.header("zarr-consistency"), expected, "{method} {target}");
        }
    }
    let ranged = server.get("/array/g/a?select=0:40&format=raw", &[("range", "bytes=3-7")]).await;
    assert_eq!((ranged.status, ranged.header("zarr-consistency")), (StatusCode::PARTIAL_CONTENT, "key"));
    for target in ["/store/k", "/store/g/", "/array/none", "/node/none"] {
        assert_eq!(server.get(target, &[]).await.header("zarr-consistency"), "", "{target}");
    }
}

/// Targets and bodies for an operation that reads.
fn reads(route: &Route, operation: &Operation) -> Vec<(&'static str, &'static str)> {
    match (route.template, &operation.method) {
        ("/store/{key}", _) => vec![("/store/k", ""), ("/store/g", ""), ("/store/none", ""), ("/store/g/a/c/7", "")],
        ("/store/{prefix}/", _) => vec![("/store/g/", ""), ("/store/g/?list=keys&limit=5", ""), ("/store/none/", "")],
        ("/store/", _) => vec![("/store/", ""), ("/store/?list=keys", "")],
        ("/array/{path}", &Method::POST) => {
            vec![("/array/g/a?read", r#"{"points": [[0], [199], [3]]}"#), ("/array/g/a?read", "{}"), ("/array/g", "{}")]
        }
        ("/array/{path}", _) if operation.selected_by.is_some() => {
            vec![("/array/g/a?chunks", ""), ("/array/g/a?chunks&bins=4&axis=0", ""), ("/array/none?chunks", "")]
        }
        ("/array/{path}", _) => vec![
            ("/array/g/a?select=0:50", ""),
            ("/array/g/a?select=0:5&format=json", ""),
            ("/array/g/a?format=npy", ""),
            ("/array/g/a?select=500", ""),
            ("/array/g", ""),
            ("/array/none", ""),
        ],
        ("/node/{path}", &Method::POST) => vec![("/node/g/a?validate", ARRAY), ("/node/none?validate", ARRAY)],
        ("/node/{path}", _) => vec![("/node/g", ""), ("/node/g/a?as=v2", ""), ("/node/none", ""), ("/node/", "")],
        ("/browse/{path}", _) => vec![("/browse/g/a", "")],
        (template, _) if template.contains("{version}") => vec![("/schema/zom/v3", "")],
        // These describe the server itself.
        ("/readyz" | "/metrics", _) => vec![],
        (template, _) => vec![(template, "")],
    }
}

/// The parts of an answer that do not depend on the moment.
fn said(answer: &TestResponse) -> (StatusCode, Vec<(String, String)>, String) {
    let varying = ["x-request-id", "server-timing", "etag", "accept-ranges", "zarr-consistency", "zarr-read"];
    let headers = answer.headers.iter().filter(|(name, _)| !varying.contains(&name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    let body = String::from_utf8_lossy(&answer.body).replace(answer.header("x-request-id"), "");
    (answer.status, headers, body)
}

#[tokio::test]
async fn every_read_answers_as_over_a_store_with_commits() {
    let (server, plain) = both().await;
    let (mut found, mut untagged) = (0, Vec::new());
    for (route, operation) in ROUTES.iter().flat_map(|route| route.operations.iter().map(move |it| (route, it))) {
        if operation.safety == Safety::Unsafe || operation.requires == Requirement::Token {
            continue;
        }
        for (target, body) in reads(route, operation) {
            let headers = [("content-type", "application/json")];
            let answer = server.request(operation.method.clone(), target, &headers, body).await;
            let expected = plain.request(operation.method.clone(), target, &headers, body).await;
            assert_eq!(said(&answer), said(&expected), "{} {target}", operation.method);
            let (read, expected_read) = (answer.header("zarr-read"), expected.header("zarr-read"));
            if answer.header("etag") != expected.header("etag") {
                assert!(answer.headers.get("etag").is_none(), "{} {target}", operation.method);
                // Stored chunks are counted by their versions, as the tag is made.
                assert_eq!(expected_read.strip_prefix(read), Some(", stored=90, bytes=180"), "{target}");
                untagged.push(format!("{} {target}", operation.method));
            } else {
                assert_eq!(read, expected_read, "{} {target}", operation.method);
            }
            found += 1;
        }
    }
    assert_eq!(found, 73);
    // Only where many chunks would have to be looked up.
    let all = "/array/g/a?format=npy";
    assert_eq!(untagged, [format!("GET {all}"), format!("HEAD {all}")]);
}

#[tokio::test]
async fn entity_tags_are_compared() {
    let (server, _) = both().await;
    for target in ["/store/k", "/array/g/a?select=0:20"] {
        let tag = server.get(target, &[]).await.header("etag").to_owned();
        let again = server.get(target, &[("if-none-match", &tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{target}");
    }
}

#[tokio::test]
async fn a_store_without_listings_serves_all_else() {
    let memory = MemoryStore::new();
    let server = ForeignStore::unlisted(memory).serve();
    fill(&server).await;
    for target in ["/store/", "/store/g/", "/store/g/?list=keys"] {
        let problem = server.get(target, &[]).await.problem(ProblemType::Unsupported);
        assert_eq!(problem.members.unsupported.as_deref(), Some("listings"), "{target}");
        let allowed = server.request(Method::OPTIONS, target, &[], "").await;
        assert_eq!((allowed.header("allow"), allowed.header("dav")), ("OPTIONS", ""), "{target}");
        let properties = server.request(dav::propfind(), target, &[], "").await;
        assert_eq!(properties.problem(ProblemType::Unsupported).members.unsupported.as_deref(), Some("listings"));
    }
    assert_eq!(server.get("/store/k", &[]).await.text(), "value");
    server.get("/store/g", &[]).await.problem(ProblemType::NoSuchKey);
    assert_eq!(server.request(dav::propfind(), "/store/k", &[], "").await.status, StatusCode::MULTI_STATUS);
    server.request(dav::propfind(), "/store/g", &[], "").await.problem(ProblemType::NoSuchKey);
    assert_eq!(server.get("/array/g/a?select=0:4&format=json", &[]).await.json(), json!([0, 0, 1, 1]));
    server.get("/array/none", &[]).await.problem(ProblemType::NoSuchNode);
    server.get("/node/none", &[]).await.problem(ProblemType::NoSuchNode);
    let problem = server.get("/node/g", &[]).await.problem(ProblemType::Unsupported);
    assert_eq!(problem.members.unsupported.as_deref(), Some("listings"));
    assert_eq!(server.get("/node/g?depth=0", &[]).await.status, StatusCode::OK);
    let named = br#"{"zarr_format": 3, "node_type": "group", "consolidated_metadata":
        {"kind": "inline", "must_understand": false, "metadata": {"a": {}}}}"#;
    put(&server, "g/zarr.json", named.to_vec()).await;
    let tree = server.get("/node/g", &[]).await;
    assert_eq!((tree.header("zarr-consistency"), &tree.json()["members"]["a"]["shape"]), ("key", &json!([200])));
}

#[tokio::test]
async fn elements_that_change_before_the_first_byte_are_read_again() {
    for (method, target, body) in [
        (Method::GET, "/array/g/a?select=0:4&format=raw", ""),
        (Method::POST, "/array/g/a?read&format=raw", r#"{"select": "0:4"}"#),
    ] {
        let foreign = ForeignStore::new(MemoryStore::new());
        let server = foreign.clone().serve();
        fill(&server).await;
        for value in 20..30 {
            foreign.change_after_look("g/a/c/1", vec![value; 2]);
        }
        let answer = server.request(method, target, &[("content-type", "application/json")], body).await;
        assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &[0, 0, 29, 29][..]));
    }
}

#[tokio::test]
async fn elements_that_never_stay_are_given_up() {
    let foreign = ForeignStore::new(MemoryStore::new());
    let server = foreign.clone().serve();
    fill(&server).await;
    for _ in 0..100 {
        foreign.change_after_look("g/a/c/1", b"xy".to_vec());
    }
    let answer = server.get("/array/g/a?select=0:4", &[]).await;
    assert_eq!(answer.problem(ProblemType::ValueChanged).members.key.as_deref(), Some("g/a/c/1"));
    assert_eq!(answer.header("retry-after"), "1");
    // Other elements stay.
    assert_eq!(server.get("/array/g/a?select=0:2&format=json", &[]).await.json(), json!([0, 0]));
}

#[tokio::test]
async fn a_value_that_never_stays_is_given_up() {
    let server = ForeignStore::restless(MemoryStore::new()).serve();
    fill(&server).await;
    for target in ["/store/k", "/array/g/a?select=0", "/node/g"] {
        let answer = server.get(target, &[]).await;
        answer.problem(ProblemType::ValueChanged);
        assert_eq!(answer.header("retry-after"), "1", "{target}");
    }
    server.get("/store/none", &[]).await.problem(ProblemType::NoSuchKey);
}
