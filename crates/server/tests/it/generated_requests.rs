//! Generated requests: every one gets a valid response and leaves the store consistent.

use crate::common::{TestServer, arrays, read};
use axum::body::Body;
use http::{HeaderValue, Request, Uri};
use proptest::prelude::*;
use zarrd_store::{PageRequest, Precondition};

/// Fragments of paths and queries, meaningful and not.
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
        "accept-encoding",
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
        "text/csv",
        "image/*",
        "zstd",
        "gzip",
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

/// The same for `/array`.
fn elements_target() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec![
        "/array/m",
        "/array/m/",
        "/array",
        "/array/",
        "/array//m",
        "/array/%6d",
        "/array/g",
        "/array/m/c",
    ]);
    let parameter = prop::sample::select(vec![
        "select=",
        "format=",
        "dialect=",
        "min=",
        "max=",
        "cmap=viridis",
        "scale=log",
        "scale=",
        "limits=robust",
        "under=",
        "nan=",
        "rgb",
        "thresholds",
        "read",
        "read=",
        "append=",
        "",
        "x=",
    ]);
    let value = prop::sample::select(vec![
        "0",
        "-1",
        "99999999999999999999",
        ":",
        "::",
        ",",
        "...",
        "(",
        ")",
        "[",
        "]",
        "%20",
        "%",
        "+",
        "raw",
        "npy",
        "json",
        "csv",
        "png",
        "v2",
        "v3",
        "draft",
        "nan",
        "1e999",
        "0.5",
        "\u{fc}",
    ]);
    let parameter =
        (parameter, prop::collection::vec(value, 0..5)).prop_map(|(name, values)| name.to_owned() + &values.concat());
    (path, prop::collection::vec(parameter, 0..3))
        .prop_map(|(path, parameters)| format!("{path}?{}", parameters.join("&")))
}

/// The same for `/node`.
fn node_target() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec![
        "/node/m",
        "/node/m/",
        "/node",
        "/node/",
        "/node//m",
        "/node/g",
        "/node/g/a",
        "/node/m/c",
        "/node/new/one",
        "/node/__x",
        "/schema/zom/v3",
    ]);
    let parameter = prop::sample::select(vec![
        "depth=0",
        "depth=all",
        "depth=",
        "as=v2",
        "as=v3",
        "as=",
        "flat",
        "include=source",
        "include=files",
        "dialect=v2",
        "dialect=v3",
        "dialect=draft",
        "overwrite",
        "adopt",
        "allow_lossy",
        "confirm=all",
        "validate",
        "convert=v2",
        "convert=v3",
        "convert=draft",
        "target=/copy",
        "target=/m/c",
        "target=",
        "",
    ]);
    (path, prop::collection::vec(parameter, 0..3))
        .prop_map(|(path, parameters)| format!("{path}?{}", parameters.join("&")))
}

/// Nearly valid nodes and patches.
fn node_body() -> impl Strategy<Value = Vec<u8>> {
    let member = prop::sample::select(vec![
        "\"zarr_format\":3",
        "\"zarr_format\":2",
        "\"node_type\":\"group\"",
        "\"node_type\":\"array\"",
        "\"attributes\":{\"a\":null}",
        "\"attributes\":5",
        "\"shape\":[2]",
        "\"shape\":[18446744073709551615]",
        "\"shape\":[1,9]",
        "\"dimension_names\":[\"x\"]",
        "\"dimension_names\":null",
        "\"data_type\":\"int8\"",
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[1]}}",
        "\"chunk_key_encoding\":{\"name\":\"default\"}",
        "\"fill_value\":0",
        "\"codecs\":[]",
        "\"chunks\":[1]",
        "\"dtype\":\"|i1\"",
        "\"compressor\":null",
        "\"order\":\"C\"",
        "\"filters\":null",
        "\"members\":{}",
        "\"members\":{\"a\":{\"zarr_format\":3,\"node_type\":\"group\"}}",
        "\"members\":{\"a\":{\"zarr_format\":2}}",
        "\"members\":null",
        "\"x\":[",
    ]);
    prop::collection::vec(member, 0..10).prop_map(|members| format!("{{{}}}", members.join(",")).into_bytes())
}

/// Nearly valid requests for elements.
fn elements_body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"select\":",
        "\"points\":",
        "\"stack\":",
        "\"start\":",
        "\"0:2\"",
        "0",
        "-1",
        "[0,1]",
        "[[0,1],[3,5]]",
        "null",
        "1e9",
        "\"",
        "\\u0000",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Sends a request if it is valid HTTP, and checks the response.
fn assert_valid_response(method: &str, target: &str, headers: Vec<(&'static str, Vec<u8>)>, body: Vec<u8>) {
    let Ok(uri) = target.parse::<Uri>() else { return };
    let mut request = Request::builder().method(method).uri(uri).header("host", "localhost");
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            request = request.header(name, value);
        }
    }
    let request = request.body(Body::from(body)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let server = TestServer::new();
        server.set("a", b"value").await;
        server.set("b/a", b"").await;
        if !target.starts_with("/store") {
            arrays::matrix(&server).await;
        }
        let answer = read(server.send(request).await).await;
        assert!(!answer.status.is_server_error(), "{answer:?}");
        assert!(!answer.header("x-request-id").is_empty());
        if answer.status.is_client_error() && method != "HEAD" {
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
        // The store still works.
        let page = server.store.list(PageRequest::first(10)).await.unwrap();
        let key = page.keys.first().map_or_else(|| "a".parse().unwrap(), |entry| entry.key.clone());
        server.store.erase(&key, Precondition::none()).await.unwrap();
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_store_request_gets_a_valid_response(
        method in prop::sample::select(vec!["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "POST", "PROPFIND", "PROPPATCH"]),
        target in target(),
        headers in prop::collection::vec(header(), 0..4),
        body in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        assert_valid_response(method, &target, headers, body);
    }

    #[test]
    fn every_array_request_gets_a_valid_response(
        method in prop::sample::select(vec!["GET", "HEAD", "POST", "OPTIONS", "PUT"]),
        target in elements_target(),
        headers in prop::collection::vec(header(), 0..3),
        kind in prop::sample::select(vec!["application/json", "application/x-npy", "application/octet-stream", "text/csv"]),
        body in elements_body(),
    ) {
        let kind = ("content-type", kind.as_bytes().to_vec());
        assert_valid_response(method, &target, headers.into_iter().chain([kind]).collect(), body);
    }

    #[test]
    fn every_node_request_gets_a_valid_response(
        method in prop::sample::select(vec!["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"]),
        target in node_target(),
        headers in prop::collection::vec(header(), 0..2),
        body in node_body(),
    ) {
        let json = ("content-type", b"application/json".to_vec());
        assert_valid_response(method, &target, headers.into_iter().chain([json]).collect(), body);
    }
}
