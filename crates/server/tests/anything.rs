//! Whatever a stranger sends, the server answers, and keeps its store in order.

mod common;

use axum::body::Body;
use common::{Site, read};
use http::{HeaderValue, Request, Uri};
use proptest::prelude::*;
use store::{Page, Precondition};

/// Pieces of paths and queries that mean something, and some that do not.
fn target() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/",
        "//",
        "store",
        "/store/",
        "a",
        "b",
        ".",
        "..",
        "%2F",
        "%2e",
        "%",
        "%zz",
        "%00",
        "%FF",
        "ü",
        "?",
        "&",
        "=",
        "list",
        "keys",
        "dir",
        "limit",
        "1",
        "99999999999",
        "cursor",
        "AAAA",
        "confirm",
        "all",
        "~",
        ":",
        "@",
        "healthz",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/store/{}", pieces.concat()))
}

fn header() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let name = prop::sample::select(vec![
        "range",
        "if-match",
        "if-none-match",
        "if-range",
        "if-modified-since",
        "if-unmodified-since",
        "accept",
        "origin",
        "content-digest",
        "content-range",
        "content-encoding",
        "x-request-id",
        "user-agent",
        "host",
        "expect",
    ]);
    let text = prop::sample::select(vec![
        "bytes=",
        "0",
        "-",
        "5",
        ",",
        "18446744073709551616",
        "*",
        "\"",
        "W/",
        "x",
        " ",
        "text/html",
        ";q=",
        "0.5",
        "sha-256=:",
        ":",
        "null",
        "http://",
        "localhost",
        "[::1]",
        "Sat, 21 Nov 2026 06:28:08 GMT",
        "\u{e4}",
        "aiohttp/",
    ]);
    (name, prop::collection::vec(text, 0..6).prop_map(|texts| texts.concat().into_bytes()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_request_has_a_good_answer(
        method in prop::sample::select(vec!["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PROPFIND"]),
        target in target(),
        headers in prop::collection::vec(header(), 0..4),
        body in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let Ok(uri) = target.parse::<Uri>() else { return Ok(()) };
        let mut request = Request::builder().method(method).uri(uri).header("host", "localhost");
        for (name, value) in headers {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                request = request.header(name, value);
            }
        }
        let request = request.body(Body::from(body)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let site = Site::new();
            site.set("a", b"value").await;
            site.set("b/a", b"").await;
            let answer = read(site.send(request).await).await;
            assert!(!answer.status.is_server_error(), "{answer:?}");
            assert!(!answer.header("x-request-id").is_empty());
            if answer.status.is_client_error() && method != "HEAD" {
                assert_eq!(answer.header("content-type"), "application/problem+json");
            }
            // The store works as before, whatever is in it now.
            let page = site.store.list(Page::first(10)).await.unwrap();
            let key = page.keys.first().map_or_else(|| "a".parse().unwrap(), |entry| entry.key.clone());
            site.store.erase(&key, Precondition::none()).await.unwrap();
        });
    }
}
