//! The requests of each operation, and their variants.

use std::sync::LazyLock;

use http::{HeaderName, HeaderValue};

use super::observed::TestRequest;

/// Path suffixes of nodes that take much memory; requested only from servers with little of it.
const LARGE_PATHS: [&str; 3] = ["/large", "/huge", "/wide"];

const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0,
        "codecs": ["bytes"], "chunk_key_encoding": "default",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}"#;
const COMPRESSED: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0,
        "codecs": ["bytes", "example.squeeze"], "chunk_key_encoding": "default",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}"#;
const NAMED: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "uint8", "fill_value": 0,
        "codecs": ["bytes"], "chunk_key_encoding": "default", "dimension_names": ["x"],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}"#;

const UPDATE: &str = "<propertyupdate xmlns='DAV:'><set><prop><getetag/></prop></set></propertyupdate>";

/// The queries of an operation with their bodies.
fn operations_of(template: &str, method: &str) -> &'static [(&'static str, &'static str)] {
    match (template, method) {
        ("/store/{key}", "put") => &[("", "1"), ("", "12345678901234567890")],
        ("/store/{key}", "get" | "head") => &[("", ""), ("?snapshot=0", "")],
        ("/store" | "/store/" | "/store/{prefix}/" | "/store/{key}", "PROPFIND") => {
            &[("", ""), ("?snapshot=0", ""), ("", "<a/>")]
        }
        ("/store/" | "/store/{prefix}/" | "/store/{key}", "PROPPATCH") => &[("", UPDATE), ("", "<a/>")],
        ("/store/{prefix}/", "MKCOL") => &[("", ""), ("", "x")],
        ("/store/" | "/store/{prefix}/", "get" | "head") => {
            &[("", ""), ("?list=keys&limit=10000", ""), ("?snapshot=0", ""), ("?contents=all", "")]
        }
        ("/store/", "delete") => &[("?confirm=all", "")],
        ("/array/{path}", "put") => &[("", "7"), ("", "[7, 7, 7, 7]"), ("?create&shape=4&dtype=uint8", "[7, 7, 7, 7]")],
        ("/array/{path}", "post") => &[("?append=0", "[7]"), ("?read", r#"{"select": ""}"#)],
        ("/array/{path}", _) => &[("", ""), ("?format=csv", ""), ("?format=raw", "")],
        ("/node/{path}", "put") => &[
            ("", ARRAY),
            ("", COMPRESSED),
            ("?dialect=v2", NAMED),
            ("?overwrite", ARRAY),
            ("?overwrite&dialect=v2", ARRAY),
        ],
        ("/node/{path}", "patch") => {
            &[("", r#"{"attributes": {"a": 1}}"#), ("?dialect=draft", r#"{"attributes": {"a": 1}}"#)]
        }
        ("/node/{path}", "post") => &[
            ("?validate", ARRAY),
            ("?convert=v2", ""),
            ("?convert=v3", ""),
            ("?convert=draft&target=/a", ""),
            ("?validate&dialect=draft", ARRAY),
            ("?append=x", ""),
        ],
        ("/node/{path}", _) => {
            &[("", ""), ("?depth=0", ""), ("?as=v2", ""), ("?dialect=draft", ""), ("?dialect=v2", "")]
        }
        _ => &[("", "")],
    }
}

/// The path of a file of the page.
static ASSET: LazyLock<String> = LazyLock::new(|| format!("/assets/{}", zarrd_page::files()[0].name));

/// The paths of an operation: existing, missing and broken.
fn paths(template: &str) -> Vec<&str> {
    match template {
        "/store/{key}" => vec!["/store/k", "/store/new", "/store/g"],
        "/store/{prefix}/" => vec!["/store/g/", "/store/none/"],
        "/array/{path}" => vec![
            "/array/a",
            "/array/g",
            "/array/none",
            "/array/broken",
            "/array/squeezed",
            "/array/junk",
            "/array/narrow",
            "/array/two",
            "/array/large",
            "/array/wide",
        ],
        "/node/{path}" => vec![
            "/node/a",
            "/node/g",
            "/node/none",
            "/node/broken",
            "/node/squeezed",
            "/node/two",
            "/node/large",
            "/node/huge",
            "/node/lost",
            "/node/lost/x",
        ],
        "/assets/{file}" => vec![&**ASSET, "/assets/none"],
        "/schema/zom/{version}" => vec!["/schema/zom/v3", "/schema/zom/v9"],
        path => vec![path],
    }
}

/// The requests of an operation: each query for each path.
pub(super) fn requests(template: &str, method: &str) -> Vec<TestRequest> {
    let operations_of = operations_of(template, method);
    let headers = [("host", "localhost:8000"), ("content-type", "application/json")];
    let headers = headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let request = |path: &str, (query, body): &(&str, &'static str)| TestRequest {
        method: method.to_uppercase().parse().unwrap(),
        target: format!("{path}{query}"),
        headers: headers.to_vec(),
        body,
    };
    let request = |path: &str, of: &(&str, &'static str)| match method {
        "COPY" | "MOVE" => request(path, of).with("destination", "/store/copy"),
        _ => request(path, of),
    };
    let uses_of = |path: &str| if is_large(path) { &operations_of[..1] } else { operations_of };
    paths(template).into_iter().flat_map(|path| uses_of(path).iter().map(move |of| request(path, of))).collect()
}

pub(super) fn is_large(path: &str) -> bool {
    LARGE_PATHS.iter().any(|end| path.ends_with(end))
}

/// The request, and variants of its headers.
pub(super) fn variants(request: &TestRequest, tag: Option<String>) -> Vec<TestRequest> {
    let mut found = vec![request.without_host(), request.with("host", "rebound.example")];
    for (name, value) in [
        ("if-match", "\"x\""),
        ("if-none-match", "*"),
        ("if", "([\"x\"])"),
        ("range", "bytes=0-0"),
        ("range", "bytes=100-"),
        ("accept", "text/html"),
        ("accept", "text/plain"),
        ("content-encoding", "gzip"),
        ("transfer-encoding", "gzip"),
        ("content-type", "text/plain"),
        ("content-length", "99999999999"),
        ("authorization", "Bearer none"),
    ] {
        found.push(request.with(name, value));
    }
    found.extend(tag.map(|tag| request.with("if-none-match", &tag)));
    if !["get", "head", "put", "post", "patch", "delete"].contains(&request.method.as_str().to_lowercase().as_str()) {
        for (name, value) in [
            ("user-agent", "object_store/0.14.2"),
            ("depth", "0"),
            ("depth", "1"),
            ("depth", "2"),
            ("overwrite", "F"),
            ("overwrite", "x"),
            ("destination", "/store/a"),
            ("destination", "/store/k"),
            ("destination", "/store/g/new"),
            ("destination", "/node/a"),
            ("destination", "https://other.example/store/copy"),
            ("if", "("),
        ] {
            found.push(request.with(name, value));
        }
    }
    found
}
