//! Every status documented in `openapi.yaml` is provoked here, or listed with the reason why it cannot be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
    time::Duration,
};

use crate::common::{
    TestServer,
    arrays::{put, two_layouts, v3, v3_with},
    contract::{CONTRACT, RequestInfo},
    failing::failing_server,
    foreign::ForeignStore,
    low_memory_server, low_memory_settings, read,
    tokens::{ServerWithTokens, caller_of, create_link, create_token, new_link, new_token},
};
use axum::body::Body;
use futures::stream;
use http::{HeaderName, HeaderValue, Method, Request, header::HOST};
use serde_json::json;
use zarrd_access::CredentialId;
use zarrd_array::Permit;
use zarrd_server::{AnonymousAccess, App, Caller, Limits, Settings};
use zarrd_store::{BackendErrorKind, Key, MemoryStore, Prefix, StoreError};

const MIB: u64 = 1 << 20;

/// Statuses that no request here provokes: operation, status and reason.
const UNREACHABLE: &[(&str, &str, &str)] = &[
    ("metrics", "500", "metrics that cannot be written as text would be a mistake of the program"),
    ("headMetrics", "500", "as `metrics`"),
    ("endSnapshot", "204", "the id is that of the caller's own snapshot: `snapshots` ends some"),
    ("propfind", "413", "the body would have to be large: `webdav::properties` sends one"),
    ("proppatch", "413", "as `propfind`: `webdav::property_changes` sends one"),
    ("copy", "413", "there would have to be more keys than fit into a commit: `webdav::transfers` has so many"),
    ("move", "413", "as `copy`"),
    ("takeSnapshot", "429", "the token has to have a snapshot: `snapshots` has such a token"),
];

/// Path suffixes of nodes that take much memory; requested only from servers with little of it.
const LARGE_PATHS: [&str; 3] = ["/large", "/huge", "/wide"];

/// A request that may succeed.
#[derive(Clone, Debug)]
struct TestRequest {
    method: Method,
    target: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: &'static str,
}

impl TestRequest {
    fn with(&self, name: &'static str, value: &str) -> Self {
        let mut request = self.clone();
        request.headers.retain(|(known, _)| known != name);
        request.headers.push((HeaderName::from_static(name), value.parse().unwrap()));
        request
    }

    fn without_host(&self) -> Self {
        let mut request = self.clone();
        request.headers.retain(|(name, _)| name != HOST);
        request
    }

    fn request(&self, body: Body) -> Request<Body> {
        let mut request = Request::builder().method(&self.method).uri(&self.target);
        request.headers_mut().unwrap().extend(self.headers.iter().cloned());
        request.extension(Caller::new(1)).body(body).unwrap()
    }
}

/// The statuses observed for one operation.
#[derive(Debug, Default)]
struct ObservedStatuses {
    statuses: BTreeSet<String>,
    undocumented: BTreeSet<String>,
}

impl ObservedStatuses {
    /// Sends a request and returns the entity tag of the response.
    async fn request(&mut self, server: &TestServer, request: &TestRequest) -> Option<String> {
        self.send(server, request, Body::from(request.body)).await
    }

    async fn send(&mut self, server: &TestServer, request: &TestRequest, body: Body) -> Option<String> {
        let http_request = request.request(body);
        let info = RequestInfo::new(http_request.method(), http_request.uri());
        let answer = read(server.send_unchecked(http_request).await).await;
        if let Err(reason) = CONTRACT.try_check(&info, answer.status, &answer.headers, Some(&answer.body)) {
            self.undocumented.insert(format!("{} {}: {} {reason}", request.method, request.target, answer.status));
        }
        self.statuses.insert(answer.status.as_str().to_owned());
        answer.headers.get("etag").map(|tag| tag.to_str().unwrap().to_owned())
    }
}

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
            &[("", ""), ("?list=keys&limit=10000", ""), ("?snapshot=0", "")]
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
fn requests(template: &str, method: &str) -> Vec<TestRequest> {
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

fn is_large(path: &str) -> bool {
    LARGE_PATHS.iter().any(|end| path.ends_with(end))
}

/// Sets one node of each kind.
async fn fill(server: &TestServer) {
    server.store.erase_prefix(&Prefix::root()).await.unwrap();
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    put(server, "k", b"1".to_vec()).await;
    v3(server, "a", json!("uint8"), &[4], &[2], json!(0)).await;
    v3_with(server, "squeezed", json!("uint8"), &[4], &[2], json!(0), json!([bytes, {"name": "example.squeeze"}]))
        .await;
    v3_with(server, "junk", json!("uint8"), &[4], &[2], json!(0), json!([bytes, {"name": "crc32c"}])).await;
    put(server, "junk/c/0", b"junk".to_vec()).await;
    // Elements are stored as single bytes, which cannot represent all of them.
    let narrow = json!({"name": "numcodecs.astype", "configuration": {"encode_dtype": "|u1", "decode_dtype": "<f8"}});
    v3_with(server, "narrow", json!("float64"), &[4], &[4], json!(0), json!([narrow, {"name": "bytes"}])).await;
    put(server, "g/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec()).await;
    put(server, "broken/zarr.json", b"{".to_vec()).await;
    // The documents of v2 and v3 describe the same chunks differently.
    let [of_v2, of_v3] = two_layouts();
    put(server, "two/.zarray", of_v2).await;
    put(server, "two/zarr.json", of_v3).await;
    // An unreadable entry point of a draft hierarchy.
    put(server, "lost/zarr.json", br#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"}"#.to_vec()).await;
    put(server, "lost/meta/root/x.group.json", b"{}".to_vec()).await;
}

/// Groups with attributes of 300 KiB and 5 MiB.
static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| group(300 << 10));
static HUGE: LazyLock<Vec<u8>> = LazyLock::new(|| group(5 << 20));

fn group(size: usize) -> Vec<u8> {
    let text = "x".repeat(size);
    json!({"zarr_format": 3, "node_type": "group", "attributes": {"text": text}}).to_string().into_bytes()
}

/// Sets nodes that take much memory.
async fn fill_large(server: &TestServer) {
    fill(server).await;
    server.set("large/zarr.json", &LARGE).await;
    server.set("huge/zarr.json", &HUGE).await;
    v3(server, "wide", json!("uint8"), &[4 << 20], &[4 << 20], json!(0)).await;
}

/// Settings with small limits.
fn small_limits() -> Settings {
    let limits = Limits { value: 8, selection: 1, text_selection: 1, read_request: 8, ..Limits::default() };
    Settings { limits, ..Settings::default() }
}

/// The request, and variants of its headers.
fn variants(request: &TestRequest, tag: Option<String>) -> Vec<TestRequest> {
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

/// Servers for all requests of an operation.
struct TestServers {
    ordinary: TestServer,
    small_limits: TestServer,
    impatient: TestServer,
    low_memory_server: TestServer,
    app: App,
    /// Their stores are served for reading only, and one has no listings.
    foreign: [TestServer; 2],
}

impl TestServers {
    fn new() -> Self {
        let limits = Limits { upload_timeout: Duration::from_millis(1), ..Limits::default() };
        let impatient = TestServer::with(Settings { limits, ..Settings::default() });
        let (low_memory_server, app) = low_memory_server(Duration::ZERO);
        Self {
            ordinary: TestServer::new(),
            small_limits: TestServer::with(small_limits()),
            impatient,
            low_memory_server,
            app,
            foreign: [ForeignStore::new, ForeignStore::unlisted].map(|store| store(MemoryStore::new()).serve()),
        }
    }

    /// Sends a request unchanged, in variants, with a stalled body, and to servers whose store fails.
    async fn request(&self, request: &TestRequest, answers: &mut ObservedStatuses) {
        let path = request.target.split('?').next().unwrap_or_default();
        if is_large(path) {
            return self.request_large(request, answers).await;
        }
        fill(&self.ordinary).await;
        let tag = answers.request(&self.ordinary, request).await;
        for variant in variants(request, tag) {
            if !request.method.is_safe() {
                fill(&self.ordinary).await;
            }
            answers.request(&self.ordinary, &variant).await;
        }
        fill(&self.small_limits).await;
        answers.request(&self.small_limits, request).await;
        if !request.body.is_empty() {
            fill(&self.impatient).await;
            let pending = stream::pending::<Result<Vec<u8>, std::io::Error>>();
            answers.send(&self.impatient, request, Body::from_stream(pending)).await;
        }
        for foreign in &self.foreign {
            fill(foreign).await;
            answers.request(foreign, request).await;
        }
        fill(&self.low_memory_server).await;
        self.request_under_memory_pressure(request, answers).await;
        answers.request(&failing_server(|_| StoreError::backend(BackendErrorKind::Internal, "broken")), request).await;
        answers.request(&failing_server(|_| StoreError::Closed), request).await;
    }

    /// Sends a request that takes much memory to a server with little of it, and while its caller holds most of that.
    async fn request_large(&self, request: &TestRequest, answers: &mut ObservedStatuses) {
        fill_large(&self.low_memory_server).await;
        answers.request(&self.low_memory_server, request).await;
        if !request.method.is_safe() {
            fill_large(&self.low_memory_server).await;
        }
        self.request_under_memory_pressure(request, answers).await;
    }

    async fn request_under_memory_pressure(&self, request: &TestRequest, answers: &mut ObservedStatuses) {
        let _full = fill_memory(&self.app, Caller::new(1)).await;
        answers.request(&self.low_memory_server, request).await;
    }
}

/// Takes the memory of a server with little of it: most of it for this caller, and almost all of the rest for another.
async fn fill_memory(app: &App, caller: Caller) -> [Permit; 2] {
    let memory = app.arrays().memory();
    let most = memory.claim(caller).take(15 * MIB).await.unwrap();
    [most, memory.claim(Caller::new(2)).take(MIB - (64 << 10)).await.unwrap()]
}

#[tokio::test]
async fn every_documented_status_occurs_and_no_other() {
    let mut undocumented = BTreeSet::new();
    let mut documented: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    // Some operations are at several paths.
    let mut observed: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, item) in CONTRACT.document()["paths"].as_object().unwrap() {
        for (method, operation) in CONTRACT.operations(item) {
            let id = operation["operationId"].as_str().unwrap();
            if operation["tags"] == json!(["access"]) {
                continue;
            }
            let (sites, mut answers) = (TestServers::new(), ObservedStatuses::default());
            for request in requests(path, method) {
                sites.request(&request, &mut answers).await;
                if operation["responses"].get("507").is_some() {
                    answers.request(&failing_server(|_| StoreError::OutOfSpace), &request).await;
                }
                if operation["responses"].get("502").is_some() {
                    answers.request(&failing_server(denied), &request).await;
                    answers.request(&failing_server(silent), &request).await;
                }
            }
            undocumented.extend(answers.undocumented);
            observed.entry(id).or_default().extend(answers.statuses);
            documented
                .entry(id)
                .or_default()
                .extend(operation["responses"].as_object().unwrap().keys().map(String::as_str));
        }
    }
    let all = documented.iter().flat_map(|(id, statuses)| statuses.iter().map(move |status| (*id, *status)));
    let missing: BTreeSet<_> = all.filter(|(id, status)| !observed[id].contains(*status)).collect();
    let listed: BTreeSet<_> = UNREACHABLE.iter().map(|(id, status, _)| (*id, *status)).collect();
    assert!(undocumented.is_empty(), "{undocumented:#?}");
    assert_eq!(missing, listed, "documented and not provoked, and what is listed as such");
}

/// The failure of a store that may not read a key.
fn denied(key: &Key) -> StoreError {
    StoreError::backend(BackendErrorKind::PermissionDenied, "denied").at(key.as_str())
}

/// A server with tokens, one of which is that of an administrator.
struct AdministeredServer {
    tokens: ServerWithTokens,
    id: CredentialId,
    admin: String,
}

impl AdministeredServer {
    fn new(limits: Limits) -> Self {
        let settings = Settings { limits, ..low_memory_settings(Duration::ZERO) };
        let tokens = ServerWithTokens::with(AnonymousAccess::UntilFirstToken, settings);
        let (id, admin) = tokens.token(&["admin:/"]);
        Self { tokens, id, admin }
    }

    /// The request as an administrator.
    fn request(&self, request: &TestRequest) -> TestRequest {
        request.with("authorization", &self.admin)
    }

    /// Sends a request with all credentials that matter, while its caller holds most memory, and to the server after
    /// its directory has vanished.
    async fn send_all(self, request: &TestRequest, answers: &mut ObservedStatuses) {
        let authorized = self.request(request);
        let ServerWithTokens { dir, directory, app, server } = &self.tokens;
        answers.request(server, &authorized).await;
        let full = fill_memory(app, caller_of(self.id)).await;
        answers.request(server, &authorized).await;
        drop(full);
        answers.request(server, request).await;
        answers.request(server, &authorized.without_host()).await;
        answers.request(server, &authorized.with("content-type", "text/plain")).await;
        let (_, link) = create_link(directory, new_link(""));
        let target = format!("/s/{link}{}", request.target);
        answers.request(server, &TestRequest { target, ..request.clone() }).await;
        if !request.body.is_empty() {
            let large = Body::from(" ".repeat(65 << 10));
            answers.send(server, &authorized, large).await;
        }
        std::fs::remove_dir_all(dir.path()).unwrap();
        directory.reload_if_changed();
        answers.request(server, &authorized).await;
    }
}

#[tokio::test]
async fn every_documented_status_of_tokens_and_share_links_occurs() {
    let mut undocumented = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for (path, item) in CONTRACT.document()["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"] != json!(["access"]) {
                continue;
            }
            let mut answers = ObservedStatuses::default();
            for (query, body) in [
                ("", r#"{"name": "n", "allow": ["read:a/"]}"#),
                ("", r#"{"prefix": "a/", "expires": "2999-01-01T00:00:00Z"}"#),
                ("?unknown", "{}"),
            ] {
                let body = if method == "post" { body } else { "" };
                let sites = AdministeredServer::new(Limits::default());
                let directory = &sites.tokens.directory;
                let ids = [create_token(directory, new_token(&["admin:/"])), create_link(directory, new_link(""))];
                let ids = ids.map(|(id, _)| id.to_string());
                let other = "00000000000000000000000000000000".to_owned();
                let targets = ids.into_iter().chain([other]).map(|id| path.replace("{id}", &id) + query);
                for target in targets {
                    let headers = [("host", "localhost:8000"), ("content-type", "application/json")];
                    let headers =
                        headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
                    let method = method.to_uppercase().parse().unwrap();
                    let request = TestRequest { method, target, headers: headers.to_vec(), body };
                    answers.request(&sites.tokens.server, &sites.request(&request)).await;
                    if !body.is_empty() {
                        let impatient = Limits { upload_timeout: Duration::from_millis(1), ..Limits::default() };
                        let sites = AdministeredServer::new(impatient);
                        let pending = stream::pending::<Result<Vec<u8>, std::io::Error>>();
                        answers.send(&sites.tokens.server, &sites.request(&request), Body::from_stream(pending)).await;
                    }
                    AdministeredServer::new(Limits::default()).send_all(&request, &mut answers).await;
                }
            }
            undocumented.extend(answers.undocumented);
            let id = operation["operationId"].as_str().unwrap();
            let documented = operation["responses"].as_object().unwrap().keys();
            missing.extend(documented.filter(|&status| !answers.statuses.contains(status)).map(|status| (id, status)));
        }
    }
    assert!(undocumented.is_empty(), "{undocumented:#?}");
    assert!(missing.is_empty(), "documented and not provoked: {missing:?}");
}

fn silent(key: &Key) -> StoreError {
    StoreError::backend(BackendErrorKind::Timeout, "silent").at(key.as_str())
}
