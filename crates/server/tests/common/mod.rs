//! Test servers, requests to them, and raw connections.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of this module")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only"
)]

pub mod arrays;
pub mod contract;
pub mod failing;
pub mod foreign;
pub mod nodes;
pub mod npz;
pub mod tokens;
pub mod traced;

use std::{sync::Arc, time::Duration};

use axum::{Router, body::Body, response::Response};
use bytes::Bytes;
use contract::{CONTRACT, RequestInfo};
use http::{HeaderName, Method, Request, StatusCode, header::HOST};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tower::ServiceExt;
use zarrd_server::{App, ArrayOptions, RequestLogs, Settings, router, serve};
use zarrd_store::{Key, MemoryStore, PageRequest, TransactionalStore};
use zarrd_wire::problem::{Problem, ProblemType};

pub struct TestServer {
    pub router: Router,
    pub store: Arc<dyn TransactionalStore>,
}

/// A server with the minimum of memory, and its app.
pub fn low_memory_server(patience: Duration) -> (TestServer, App) {
    let store = Arc::new(MemoryStore::new());
    let served = App::new(store.clone(), low_memory_settings(patience));
    (TestServer { router: router(served.clone()), store }, served)
}

/// Settings with the minimum of memory, for which requests wait so long.
pub fn low_memory_settings(patience: Duration) -> Settings {
    let arrays = ArrayOptions {
        max_memory: 16 << 20,
        slab_memory: 2 << 20,
        cache_capacity: 0,
        memory_timeout: patience,
        ..ArrayOptions::default()
    };
    Settings { arrays, ..Settings::default() }
}

/// A complete response.
#[derive(Debug)]
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

impl TestServer {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Self {
        Self::over(Arc::new(MemoryStore::new()), settings)
    }

    pub fn over(store: Arc<dyn TransactionalStore>, settings: Settings) -> Self {
        Self { router: router(App::new(store.clone(), settings)), store }
    }

    pub async fn set(&self, key: &str, bytes: &'static [u8]) -> String {
        let key = Key::parse(key).unwrap();
        let written = self.store.set(&key, bytes.into(), zarrd_store::Precondition::none()).await.unwrap();
        zarrd_wire::etag::text(written.version)
    }

    /// The `Last-Modified` date of a key, once conditions with it can hold.
    pub async fn last_modified_once_valid(&self, path: &str) -> String {
        loop {
            let found = self.head(path, &[]).await;
            let date = zarrd_wire::time::parse_http_date(found.header("last-modified")).unwrap();
            if date > zarrd_wire::time::parse_rfc3339(found.header("zarr-modified")).unwrap() {
                return found.header("last-modified").to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn value(&self, key: &str) -> Option<Bytes> {
        let found = self.store.get(&Key::parse(key).unwrap(), None).await.unwrap()?;
        Some(found.bytes().await.unwrap())
    }

    /// Sends a request and checks the head of the response against the contract.
    pub async fn send(&self, request: Request<Body>) -> Response {
        let info = RequestInfo::new(request.method(), request.uri());
        let response = self.send_unchecked(request).await;
        CONTRACT.check(&info, response.status(), response.headers(), None);
        response
    }

    /// Sends a request without checking the response, since the check allocates.
    pub async fn send_unchecked(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost:8000");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let info = RequestInfo::new(request.method(), request.uri());
        let answer = read(self.send(request).await).await;
        CONTRACT.check(&info, answer.status, &answer.headers, Some(&answer.body));
        answer
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.request(Method::GET, path, headers, Body::empty()).await
    }

    pub async fn head(&self, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.request(Method::HEAD, path, headers, Body::empty()).await
    }

    pub async fn put(&self, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> TestResponse {
        self.request(Method::PUT, path, headers, body).await
    }

    /// Sends a JSON document.
    pub async fn json(&self, method: Method, path: &str, body: &serde_json::Value) -> TestResponse {
        self.request(method, path, &[("content-type", "application/json")], body.to_string()).await
    }

    /// All keys with their versions.
    pub async fn all(&self) -> Vec<(Key, zarrd_store::Version)> {
        let page = self.store.list(PageRequest::first(1000)).await.unwrap();
        assert!(page.cursor.is_none());
        page.keys.into_iter().map(|entry| (entry.key, entry.meta.version)).collect()
    }

    /// All keys.
    pub async fn keys(&self) -> Vec<String> {
        self.all().await.into_iter().map(|(key, _)| key.to_string()).collect()
    }

    pub async fn delete(&self, path: &str, headers: &[(&str, &str)]) -> TestResponse {
        self.request(Method::DELETE, path, headers, Body::empty()).await
    }
}

pub async fn read(response: Response) -> TestResponse {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    TestResponse { status: parts.status, headers: parts.headers, body }
}

impl TestResponse {
    pub fn header(&self, name: impl AsRef<str>) -> &str {
        let name: HeaderName = name.as_ref().parse().unwrap();
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The problem document, after checking its type, status and request id.
    #[track_caller]
    pub fn problem(&self, kind: ProblemType) -> Problem {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = Problem::from_json(&self.body).unwrap();
        assert_eq!(problem.kind, kind, "{self:?}");
        assert_eq!(self.status, kind.status());
        assert_eq!(problem.request, self.header("x-request-id"));
        assert!(!problem.request.is_empty());
        problem
    }
}

/// A server listening on a port of its own.
pub struct RunningServer {
    pub address: std::net::SocketAddr,
    pub store: Arc<dyn TransactionalStore>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl RunningServer {
    pub async fn start(settings: Settings) -> Self {
        Self::over(Arc::new(MemoryStore::new()), settings).await
    }

    pub async fn over(store: Arc<dyn TransactionalStore>, settings: Settings) -> Self {
        Self::with_logs(store, settings, RequestLogs::default()).await
    }

    pub async fn with_logs(store: Arc<dyn TransactionalStore>, settings: Settings, logs: RequestLogs) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        let task = tokio::spawn(serve(listener, App::with_logs(store.clone(), settings, logs), stopped));
        Self { address, store, stop: Some(stop), task }
    }

    pub async fn connect(&self) -> RawConnection {
        RawConnection(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends a request on a new connection and reads until the server closes it. Checks the first response against the
    /// contract.
    pub async fn exchange(&self, request: &str) -> String {
        let mut raw = self.connect().await;
        raw.send(request).await;
        let answer = raw.rest().await;
        check_text(request, &answer);
        answer
    }

    /// Begins the shutdown without waiting for it.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub async fn stopped(self) -> std::io::Result<()> {
        timeout(Duration::from_secs(10), self.task).await.expect("the server stops").unwrap()
    }
}

/// Checks the head of the first response against the contract, unless hyper's parser wrote it.
fn check_text(request: &str, answer: &str) {
    let answer = answer.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(answer);
    let (Some(info), Some((head, _))) = (RequestInfo::parse(request), answer.split_once("\r\n\r\n")) else { return };
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap().parse().unwrap();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
    };
    let headers: http::HeaderMap = lines.map(header).collect();
    if headers.contains_key("x-request-id") {
        CONTRACT.check(&info, status, &headers, None);
    }
}

/// A raw connection.
pub struct RawConnection(pub TcpStream);

impl RawConnection {
    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Shuts down the sending side.
    pub async fn close_sending(&mut self) {
        self.0.shutdown().await.unwrap();
    }

    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        timeout(Duration::from_secs(10), self.0.read_to_end(&mut bytes)).await.expect("the server closes").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Reads until the text ends with `end`.
    pub async fn until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).ends_with(end) {
            let mut byte = [0];
            let read = timeout(Duration::from_secs(10), self.0.read_exact(&mut byte)).await;
            read.unwrap_or_else(|_| panic!("waiting for {end:?}, got {:?}", String::from_utf8_lossy(&bytes))).unwrap();
            bytes.push(byte[0]);
        }
        String::from_utf8(bytes).unwrap()
    }
}
