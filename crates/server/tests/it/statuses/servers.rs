//! Servers that requests are sent to: with little memory, small limits, impatience, and stores that fail.

use std::{sync::LazyLock, time::Duration};

use axum::body::Body;
use futures::stream;
use serde_json::json;
use zarrd_array::Permit;
use zarrd_server::{App, Caller, Limits, Settings};
use zarrd_store::{BackendErrorKind, MemoryStore, Prefix, StoreError};

use super::{
    observed::{ObservedStatuses, TestRequest},
    requests::{is_large, variants},
};
use crate::common::{
    TestServer,
    arrays::{put, two_layouts, v3, v3_with},
    failing::failing_server,
    foreign::ForeignStore,
    low_memory_server,
};

const MIB: u64 = 1 << 20;

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

/// Servers for all requests of an operation.
pub(super) struct TestServers {
    ordinary: TestServer,
    small_limits: TestServer,
    impatient: TestServer,
    low_memory_server: TestServer,
    app: App,
    /// Their stores are served for reading only, and one has no listings.
    foreign: [TestServer; 2],
}

impl TestServers {
    pub(super) fn new() -> Self {
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
    pub(super) async fn request(&self, request: &TestRequest, answers: &mut ObservedStatuses) {
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
pub(super) async fn fill_memory(app: &App, caller: Caller) -> [Permit; 2] {
    let memory = app.arrays().memory();
    let most = memory.claim(caller).take(15 * MIB).await.unwrap();
    [most, memory.claim(Caller::new(2)).take(MIB - (64 << 10)).await.unwrap()]
}
