//! Reading values: full, ranges and conditions.

use std::time::Duration;

use crate::common::TestServer;
use http::StatusCode;
use zarrd_wire::problem::ProblemType;

const DIGITS: &[u8] = b"0123456789";

#[tokio::test]
async fn get_returns_value_with_headers() {
    let server = TestServer::new();
    let etag = server.set("a/zarr.json", b"{}").await;
    let got = server.get("/store/a/zarr.json", &[]).await;
    assert_eq!((got.status, &got.body[..]), (StatusCode::OK, &b"{}"[..]));
    assert_eq!(got.header("content-length"), "2");
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert_eq!(got.header("etag"), etag);
    assert_eq!(got.header("accept-ranges"), "bytes");
    assert!(got.header("last-modified").ends_with(" GMT"));
    let millis = zarrd_wire::time::parse_rfc3339(got.header("zarr-modified")).unwrap();
    assert_eq!(zarrd_wire::time::http_date(millis), got.header("last-modified"), "it is not settled yet");
    assert!(!got.headers.contains_key("content-encoding"));

    let head = server.head("/store/a/zarr.json", &[]).await;
    assert!(head.body.is_empty());
    for name in ["content-length", "content-type", "etag", "last-modified", "accept-ranges", "zarr-modified"] {
        assert_eq!(head.header(name), got.header(name), "{name}");
    }
}

#[tokio::test]
async fn content_type_depends_on_key_name() {
    let server = TestServer::new();
    for (key, media) in [
        ("a/.zarray", "application/json"),
        ("a/.zattrs", "application/json"),
        (".zgroup", "application/json"),
        (".zmetadata", "application/json"),
        ("meta/root.array.json", "application/json"),
        ("c/0/1", "application/octet-stream"),
        ("index.html", "application/octet-stream"),
        ("json", "application/octet-stream"),
    ] {
        server.set(key, b"x").await;
        assert_eq!(server.get(&format!("/store/{key}"), &[]).await.header("content-type"), media, "{key}");
    }
}

#[tokio::test]
async fn absent_key_is_404() {
    let server = TestServer::new();
    let problem = server.get("/store/a%20b", &[]).await.problem(ProblemType::NoSuchKey);
    assert_eq!(problem.members.key.as_deref(), Some("a b"));
    let head = server.head("/store/a", &[]).await;
    assert_eq!(head.status, StatusCode::NOT_FOUND);
    assert_ne!(head.header("content-length"), "0", "the length that GET would have");
    server.get("/store/a", &[("if-match", "*")]).await.problem(ProblemType::NoSuchKey);
}

#[tokio::test]
async fn ranges_return_206() {
    let server = TestServer::new();
    let etag = server.set("v", DIGITS).await;
    for (range, body, content_range) in [
        ("bytes=0-0", "0", "bytes 0-0/10"),
        ("bytes=2-5", "2345", "bytes 2-5/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=7-99", "789", "bytes 7-9/10"),
        ("bytes=0-18446744073709551616", "0123456789", "bytes 0-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"),
        ("bytes=-99", "0123456789", "bytes 0-9/10"),
    ] {
        let got = server.get("/store/v", &[("range", range)]).await;
        assert_eq!((got.status, got.text()), (StatusCode::PARTIAL_CONTENT, body), "{range}");
        assert_eq!(got.header("content-range"), content_range);
        assert_eq!(got.header("content-length"), body.len().to_string());
        assert_eq!(got.header("etag"), etag);
    }
}

#[tokio::test]
async fn unsupported_ranges_are_ignored() {
    let server = TestServer::new();
    server.set("v", DIGITS).await;
    for range in ["bytes=0-1,4-5", "bytes=5-2", "bytes=x-y", "items=0-1", "bytes", "bytes=0-1,x", ""] {
        let got = server.get("/store/v", &[("range", range)]).await;
        assert_eq!((got.status, &got.body[..]), (StatusCode::OK, DIGITS), "{range}");
        assert!(!got.headers.contains_key("content-range"));
    }
    let twice = server.get("/store/v", &[("range", "bytes=0-1"), ("range", "bytes=2-3")]).await;
    assert_eq!(twice.status, StatusCode::OK);
    let head = server.head("/store/v", &[("range", "bytes=0-1")]).await;
    assert_eq!((head.status, head.header("content-length")), (StatusCode::OK, "10"));
}

#[tokio::test]
async fn unsatisfiable_ranges_are_416() {
    let server = TestServer::new();
    let etag = server.set("v", DIGITS).await;
    for range in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
        let got = server.get("/store/v", &[("range", range)]).await;
        let problem = got.problem(ProblemType::RangeNotSatisfiable);
        assert_eq!(problem.members.size, Some(10), "{range}");
        assert_eq!(got.header("content-range"), "bytes */10");
        assert_eq!(got.header("etag"), etag);
    }
    server.get("/store/absent", &[("range", "bytes=-0")]).await.problem(ProblemType::NoSuchKey);
}

#[tokio::test]
async fn suffix_range_of_empty_value_is_200() {
    let server = TestServer::new();
    server.set("v", b"").await;
    let suffix = server.get("/store/v", &[("range", "bytes=-5")]).await;
    assert_eq!((suffix.status, suffix.header("content-length")), (StatusCode::OK, "0"));
    let got = server.get("/store/v", &[("range", "bytes=0-")]).await;
    got.problem(ProblemType::RangeNotSatisfiable);
    assert_eq!(got.header("content-range"), "bytes */0");
}

#[tokio::test]
async fn conditions_decide_the_status() {
    let server = TestServer::new();
    let etag = server.set("v", DIGITS).await;
    let weak = format!("W/{etag}");
    let several = format!("\"x\", {etag}");
    let date = server.last_modified_once_valid("/store/v").await;
    let (before, after) = ("Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    for (headers, status) in [
        (&[("if-none-match", &*etag)][..], 304),
        (&[("if-none-match", &weak)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", &several)], 304),
        (&[("if-none-match", "\"other\"")], 200),
        (&[("if-match", &etag)], 200),
        (&[("if-match", &several)], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", &weak)], 412),
        (&[("if-match", "\"other\"")], 412),
        (&[("if-modified-since", &date)], 304),
        (&[("if-modified-since", after)], 304),
        (&[("if-modified-since", before)], 200),
        (&[("if-modified-since", "nonsense")], 200),
        (&[("if-unmodified-since", &date)], 200),
        (&[("if-unmodified-since", before)], 412),
        (&[("if-none-match", "\"other\""), ("if-modified-since", after)], 200),
        (&[("if-match", &etag), ("if-unmodified-since", before)], 200),
        (&[("if-match", "\"other\""), ("if-none-match", &etag)], 412),
        (&[("if-match", "\"other\""), ("range", "bytes=99-")], 412),
        (&[("if-none-match", &etag), ("range", "bytes=99-")], 304),
        (&[("if-none-match", &etag), ("range", "bytes=-0")], 304),
    ] {
        let got = server.get("/store/v", headers).await;
        assert_eq!(got.status.as_u16(), status, "{headers:?}");
        let head = server.head("/store/v", headers).await;
        assert_eq!(head.status.as_u16(), status, "HEAD {headers:?}");
        if status == 304 {
            assert!(got.body.is_empty());
            assert_eq!(got.header("etag"), etag);
        }
        if status == 412 {
            assert_eq!(got.problem(ProblemType::PreconditionFailed).members.current.as_deref(), Some(&*etag));
        }
    }
    let problem = server.get("/store/v", &[("if-none-match", "abc")]).await.problem(ProblemType::InvalidHeader);
    assert_eq!(problem.members.header.as_deref(), Some("If-None-Match"));
}

#[tokio::test]
async fn overwrite_within_a_second_is_not_304() {
    let server = TestServer::new();
    let second = |time: std::time::SystemTime| time.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let modified = async || {
        let head = server.head("/store/v", &[]).await;
        second(zarrd_wire::time::parse_rfc3339(head.header("zarr-modified")).unwrap())
    };
    // Until both fall into the same second.
    let (old, date) = loop {
        let old = server.set("v", b"old").await;
        let (first, date) = (modified().await, server.get("/store/v", &[]).await.header("last-modified").to_owned());
        server.set("v", b"new").await;
        if modified().await == first {
            break (old, date);
        }
    };
    let later = [Duration::ZERO, Duration::from_secs(6)];
    for wait in later {
        tokio::time::sleep(wait).await;
        let got = server.get("/store/v", &[("if-modified-since", &date)]).await;
        assert_eq!((got.status, got.text()), (StatusCode::OK, "new"));
        let range = server.get("/store/v", &[("range", "bytes=0-0"), ("if-range", &date)]).await;
        assert_eq!((range.status, range.text()), (StatusCode::OK, "new"));
        let unmodified = [("if-unmodified-since", &*date)];
        server.get("/store/v", &unmodified).await.problem(ProblemType::PreconditionFailed);
        server.put("/store/v", &unmodified, "lost").await.problem(ProblemType::PreconditionFailed);
        server.delete("/store/v", &unmodified).await.problem(ProblemType::PreconditionFailed);
        let tagged = server.get("/store/v", &[("if-none-match", &old)]).await;
        assert_eq!(tagged.status, StatusCode::OK);
    }
    let date = server.last_modified_once_valid("/store/v").await;
    assert_eq!(server.get("/store/v", &[("if-modified-since", &date)]).await.status, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn if_range_falls_back_to_the_full_value() {
    let server = TestServer::new();
    let etag = server.set("v", DIGITS).await;
    let date = server.last_modified_once_valid("/store/v").await;
    let weak = format!("W/{etag}");
    for (validator, status) in [
        (&*etag, 206),
        (&*date, 206),
        (&*weak, 200),
        ("\"other\"", 200),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 200),
        ("nonsense", 200),
    ] {
        let got = server.get("/store/v", &[("range", "bytes=2-3"), ("if-range", validator)]).await;
        assert_eq!(got.status.as_u16(), status, "{validator}");
        assert_eq!(got.body.len(), if status == 206 { 2 } else { 10 });
    }
    for range in ["bytes=50-", "bytes=-0"] {
        let got = server.get("/store/v", &[("range", range), ("if-range", "\"other\"")]).await;
        assert_eq!((got.status, got.body.len()), (StatusCode::OK, 10), "{range}");
        let got = server.get("/store/v", &[("range", range), ("if-range", &etag)]).await;
        got.problem(ProblemType::RangeNotSatisfiable);
    }
}

#[tokio::test]
async fn prefix_without_slash_redirects() {
    let server = TestServer::new();
    server.set("a:b/c d/x", b"1").await;
    for (path, location) in [
        ("/store/a:b", "a%3Ab/"),
        ("/store/a:b/c%20d", "c%20d/"),
        ("/store//a:b//c%20d", "c%20d/"),
        ("/store/a:b%2Fc%20d", "a%3Ab/c%20d/"),
        ("/store/a:b?list=keys", "a%3Ab/?list=keys"),
        ("/store/a:b?\u{fc}=%20", "a%3Ab/?%C3%BC=%20"),
    ] {
        for got in [server.get(path, &[]).await, server.head(path, &[]).await] {
            assert_eq!((got.status, got.header("location")), (StatusCode::MOVED_PERMANENTLY, location), "{path}");
        }
    }
    assert_eq!(server.get("/store/a:b", &[]).await.header("cache-control"), "no-cache", "a key may take its place");
    for headers in [[("range", "bytes=0-1")], [("if-none-match", "*")], [("if-match", "*")]] {
        server.get("/store/a:b", &headers).await.problem(ProblemType::NoSuchKey);
        assert_eq!(server.head("/store/a:b", &headers).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(server.head("/store/a", &[]).await.status, StatusCode::NOT_FOUND);
    let root = server.get("/store", &[]).await;
    assert_eq!((root.status, root.header("location")), (StatusCode::MOVED_PERMANENTLY, "store/"));
    let longest = "k".repeat(1024);
    server.get(&format!("/store/{longest}"), &[]).await.problem(ProblemType::NoSuchKey);
}

#[tokio::test]
async fn key_takes_precedence_over_prefix() {
    let server = TestServer::new();
    server.set("a", b"key").await;
    server.set("a/b", b"below").await;
    assert_eq!(server.get("/store/a", &[]).await.text(), "key");
    assert_eq!(server.get("/store/a/", &[]).await.json()["keys"], serde_json::json!(["a/b"]));
}

#[tokio::test]
async fn safe_methods_collapse_slashes() {
    let server = TestServer::new();
    server.set("a/b", b"1").await;
    server.set("ü %2F", b"2").await;
    for path in ["/store/a/b", "/store/a%2Fb", "/store/a%2fb", "/store//a///b", "/store/%61/b", "/store/a/b?x=1&list=?"]
    {
        assert_eq!(server.get(path, &[]).await.text(), "1", "{path}");
    }
    assert_eq!(server.get("/store/%C3%BC%20%252F", &[]).await.text(), "2", "decoded once");
    for path in [
        "/store/a/../b",
        "/store/%2e%2e/b",
        "/store/a/.%2E/b",
        "/store/./a",
        "/store/a%2F%2Fb",
        "/store/%2Fa",
        "/store/a%",
        "/store/a%zz",
        "/store/a%f",
        "/store/a%00",
        "/store/a%0A",
        "/store/a%7F",
        "/store/%FF",
        "/store/..",
        "/store/a/./",
    ] {
        server.get(path, &[]).await.problem(ProblemType::InvalidKey);
        assert_eq!(server.head(path, &[]).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    let problem = server.get(&format!("/store/{}", "k".repeat(1025)), &[]).await.problem(ProblemType::InvalidKey);
    assert!(problem.detail.contains("1025"), "{problem:?}");
}
