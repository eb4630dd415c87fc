//! CORS, origins, hosts and access.

use crate::common::{TestServer, read};
use axum::body::Body;
use http::{Method, Request, StatusCode, Version};
use serde_json::json;
use zarrd_server::{AccessPolicy, Changes, Hosts, Right, Settings};
use zarrd_store::Guarantees;
use zarrd_wire::{dav, health::StoreGuarantees, problem::ProblemType};

const UNSAFE: [Method; 4] = [Method::PUT, Method::DELETE, Method::POST, Method::PATCH];

fn with_origins() -> Settings {
    Settings { origins: vec!["https://viewer.example".parse().unwrap()], ..Settings::default() }
}

#[tokio::test]
async fn pages_of_any_origin_may_read() {
    let server = TestServer::new();
    server.set("v", b"1").await;
    for (path, status) in [("/store/v", 200), ("/store/", 200), ("/store/absent", 404), ("/nowhere", 404)] {
        let got = server.get(path, &[("origin", "https://other.example")]).await;
        assert_eq!(got.status.as_u16(), status);
        assert_eq!(got.header("access-control-allow-origin"), "*", "{path}");
        let exposed = got.header("access-control-expose-headers");
        for name in [
            "content-range",
            "content-length",
            "etag",
            "accept-ranges",
            "last-modified",
            "x-request-id",
            "zarr-consistency",
        ] {
            assert!(exposed.split(", ").any(|exposed| exposed == name), "{path}: {name} in {exposed}");
        }
        assert_eq!(got.header("x-content-type-options"), "nosniff", "{path}");
    }
}

#[tokio::test]
async fn only_pages_of_allowed_origins_may_change() {
    let server = TestServer::with(with_origins());
    server.set("v", b"1").await;
    for origin in [
        "https://other.example",
        "null",
        "http://localhost:8000",
        "http://viewer.example",
        "https://viewer.example:8443",
        "https://viewer.example.evil.example",
        "",
    ] {
        for method in [Method::PUT, Method::DELETE] {
            let answer = server.request(method, "/store/v", &[("origin", origin)], "2").await;
            assert_eq!(answer.problem(ProblemType::ForbiddenOrigin).members.origin.as_deref(), Some(origin));
        }
        for method in [Method::POST, Method::PATCH] {
            let answer = server.request(method, "/store/v", &[("origin", origin)], "2").await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
        }
        server.delete("/store/?confirm=all", &[("origin", origin)]).await.problem(ProblemType::ForbiddenOrigin);
    }
    let two = [("origin", "https://viewer.example"), ("origin", "https://other.example")];
    server.put("/store/v", &two, "2").await.problem(ProblemType::ForbiddenOrigin);
    assert_eq!(server.value("v").await.unwrap(), "1");
    let allowed = server.put("/store/v", &[("origin", "https://viewer.example")], "2").await;
    assert_eq!(allowed.status, StatusCode::NO_CONTENT);
    assert_eq!(allowed.header("access-control-allow-origin"), "*");
}

#[tokio::test]
async fn page_without_origin_cannot_change() {
    let server = TestServer::with(with_origins());
    server.set("v", b"1").await;
    for page in ["cross-site", "same-site", "same-origin"] {
        let headers = [("sec-fetch-site", page)];
        for method in [Method::PUT, Method::DELETE] {
            server.request(method, "/store/v", &headers, "2").await.problem(ProblemType::ForbiddenOrigin);
        }
        server.delete("/store/?confirm=all", &headers).await.problem(ProblemType::ForbiddenOrigin);
        assert_eq!(server.get("/store/v", &headers).await.status, StatusCode::OK, "{page} may read");
        let named = [("sec-fetch-site", page), ("origin", "https://viewer.example")];
        assert_eq!(server.put("/store/allowed", &named, "2").await.status.as_u16() / 100, 2, "{page}");
    }
    assert_eq!(server.value("v").await.unwrap(), "1");
    // A user's own navigation, and unknown values (Fetch Metadata, section 2.3).
    for site_of in ["none", "something-new"] {
        let put = server.put("/store/v", &[("sec-fetch-site", site_of)], "2").await;
        assert_eq!(put.status, StatusCode::NO_CONTENT, "{site_of}");
    }
}

#[tokio::test]
async fn preflight_allows_permitted_methods() {
    let server = TestServer::with(with_origins());
    let ask = async |origin, method| {
        let headers = [("origin", origin), ("access-control-request-method", method)];
        server.request(Method::OPTIONS, "/store/v", &headers, "").await
    };
    for method in UNSAFE.iter().map(Method::as_str) {
        let answer = ask("https://other.example", method).await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        assert_eq!(answer.header("access-control-allow-methods"), "GET, HEAD, PROPFIND, OPTIONS");
    }
    let answer = ask("https://viewer.example", "PUT").await;
    assert_eq!(
        answer.header("access-control-allow-methods"),
        "GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, COPY, MOVE, MKCOL, OPTIONS"
    );
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let allowed = answer.header("access-control-allow-headers");
    let allowed: Vec<&str> = allowed.split(',').map(str::trim).collect();
    for name in ["range", "if-match", "if-none-match", "authorization", "content-type", "content-digest"] {
        assert!(allowed.contains(&name), "{name}");
    }
    for name in ["cache-control", "pragma"] {
        assert!(allowed.contains(&name), "{name}: asks for what is current");
    }
    assert_eq!(answer.header("access-control-max-age"), "86400");
    let plain = server.request(Method::OPTIONS, "/store/a/", &[], "").await;
    assert_eq!(
        (plain.status, plain.header("allow")),
        (StatusCode::NO_CONTENT, "GET, HEAD, DELETE, PROPFIND, PROPPATCH, COPY, MOVE, MKCOL, OPTIONS")
    );
    assert!(!plain.headers.contains_key("access-control-allow-methods"));
    server.request(Method::OPTIONS, "/nowhere", &[], "").await.problem(ProblemType::NotFound);
}

async fn with_hosts(server: &TestServer, hosts: &[&str], version: Version) -> crate::common::TestResponse {
    let mut request = Request::get("/healthz").version(version);
    for host in hosts {
        request = request.header("host", *host);
    }
    read(server.send(request.body(Body::empty()).unwrap()).await).await
}

#[tokio::test]
async fn loopback_server_rejects_other_hosts() {
    let hosts = Hosts::Loopback(vec!["data.lab".parse().unwrap()]);
    let server = TestServer::with(Settings { hosts, ..Settings::default() });
    for good in ["localhost", "localhost:8000", "127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "data.lab", "Data.Lab:1"] {
        assert_eq!(with_hosts(&server, &[good], Version::HTTP_11).await.status, StatusCode::OK, "{good}");
    }
    for bad in ["evil.example", "evil.example:8000", "localhost.evil.example", "", "10.0.0.1"] {
        let problem = with_hosts(&server, &[bad], Version::HTTP_11).await.problem(ProblemType::ForbiddenHost);
        assert_eq!(problem.members.host.as_deref(), Some(bad));
    }
    with_hosts(&server, &[], Version::HTTP_11).await.problem(ProblemType::MissingHost);
    with_hosts(&server, &["localhost", "localhost"], Version::HTTP_11).await.problem(ProblemType::InvalidHeader);
    assert_eq!(with_hosts(&server, &[], Version::HTTP_10).await.status, StatusCode::OK);
    let absolute = Request::get("http://evil.example/healthz").header("host", "localhost").body(Body::empty()).unwrap();
    read(server.send(absolute).await).await.problem(ProblemType::ForbiddenHost);
}

#[tokio::test]
async fn network_server_accepts_any_host() {
    let server = TestServer::with(Settings { hosts: Hosts::Any, ..Settings::default() });
    assert_eq!(with_hosts(&server, &["anything.example"], Version::HTTP_11).await.status, StatusCode::OK);
    with_hosts(&server, &[], Version::HTTP_11).await.problem(ProblemType::MissingHost);
}

#[tokio::test]
async fn read_only_access_rejects_changes() {
    let server = TestServer::with(Settings { access: AccessPolicy::anonymous(Right::Read), ..Settings::default() });
    server.set("v", b"1").await;
    assert_eq!(server.get("/store/v", &[]).await.status, StatusCode::OK);
    assert_eq!(server.head("/store/v", &[]).await.status, StatusCode::OK);
    server.put("/store/v", &[], "2").await.problem(ProblemType::Unauthorized);
    server.delete("/store/v", &[]).await.problem(ProblemType::Unauthorized);
    server.delete("/store/?confirm=all", &[]).await.problem(ProblemType::Unauthorized);
    assert_eq!(server.value("v").await.unwrap(), "1");
}

#[tokio::test]
async fn read_only_server_rejects_all_changes() {
    let viewer = "https://viewer.example";
    let server = TestServer::with(Settings { changes: Changes::Rejected, ..with_origins() });
    server.set("v", b"1").await;
    for headers in [&[][..], &[("origin", viewer)], &[("origin", "https://other.example")]] {
        for (method, path) in [
            (Method::PUT, "/store/v"),
            (Method::DELETE, "/store/v"),
            (Method::DELETE, "/store/?confirm=all"),
            (Method::PUT, "/array/a?select=0"),
            (Method::POST, "/array/a?append=0"),
            (Method::PUT, "/node/a"),
            (Method::PATCH, "/node/a"),
            (Method::DELETE, "/node/a"),
            (Method::POST, "/node/a?convert=v3"),
            (dav::proppatch(), "/store/v"),
            (dav::copy(), "/store/v"),
            (dav::move_(), "/store/v/"),
            (dav::mkcol(), "/store/new/"),
        ] {
            let problem = server.request(method, path, headers, "{").await.problem(ProblemType::ReadOnlyServer);
            assert!(problem.title.contains("--read-only"), "{problem:?}");
        }
    }
    for (path, allow) in [
        ("/store/v", "GET, HEAD, PROPFIND, OPTIONS"),
        ("/store/", "GET, HEAD, PROPFIND, OPTIONS"),
        ("/array/a", "GET, HEAD, POST, OPTIONS"),
        ("/array/a?append=0", "GET, HEAD, OPTIONS"),
        ("/node/a", "GET, HEAD, POST, OPTIONS"),
    ] {
        let options = server.request(Method::OPTIONS, path, &[], "").await;
        assert_eq!((options.status, options.header("allow")), (StatusCode::NO_CONTENT, allow), "{path}");
        let asked = [("origin", viewer), ("access-control-request-method", "PUT")];
        let options = server.request(Method::OPTIONS, path, &asked, "").await;
        assert_eq!(options.header("access-control-allow-methods"), allow, "{path}");
    }
    let wrong = server.request(Method::PATCH, "/store/v", &[], "").await;
    assert_eq!(wrong.problem(ProblemType::MethodNotAllowed).members.allow, ["GET", "HEAD", "PROPFIND", "OPTIONS"]);
    let ready = server.get("/readyz", &[]).await;
    let problem = ProblemType::ReadOnlyServer.uri();
    let guarantees = [StoreGuarantees::new(None, Guarantees { checked: false, ..Guarantees::COMMITS })];
    let expected = json!({"writable": false, "problem": problem, "guarantees": guarantees});
    assert_eq!((ready.status, ready.json()), (StatusCode::OK, expected));
    assert_eq!(server.value("v").await.unwrap(), "1");
}

#[tokio::test]
async fn valid_request_ids_are_echoed() {
    let server = TestServer::new();
    let own = server.get("/healthz", &[("x-request-id", "my-id_1.2")]).await;
    assert_eq!(own.header("x-request-id"), "my-id_1.2");
    let long = "x".repeat(65);
    for bad in ["", "two words", "a\"b", &long] {
        let made = server.get("/healthz", &[("x-request-id", bad)]).await;
        let id = made.header("x-request-id");
        assert!(id != bad && zarrd_wire::headers::is_request_id(id.as_bytes()), "{bad}: {id}");
    }
    let (one, two) = (server.get("/healthz", &[]).await, server.get("/healthz", &[]).await);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
}
