//! The table of rights: every kind of caller, every operation, and names inside, at the edge of and outside a prefix; on the
//! API, on WebDAV at the root of its listener, and on S3.
//!
//! Each answer is compared with a model that shares no code with the server: a caller is a list of prefixes, and a name
//! is decoded by hand.

mod callers;
mod routes;
mod s3;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::Router;
use serde_json::json;
use zarrd_server::{AccessPolicy, App, Settings, Surface, router, surface_router};
use zarrd_store::{MemoryStore, Operation as StoreOperation, Prefix, StoreError, StoreWrapper};

use self::callers::{Caller, CallerKind, Callers, Credential};
use crate::common::{
    TestResponse, TestServer,
    arrays::{put, v3},
};

const NAMES: [&str; 11] =
    ["lab/exp1", "lab/x", "lab", "lab2/x", "%6cab/x", "LAB/x", "lab/../x", "lab//x", "x", "la", "lab%2Fx"];

/// A store that counts its calls.
#[derive(Default)]
struct CountingStore {
    store: MemoryStore,
    calls: AtomicUsize,
}

#[async_trait]
impl StoreWrapper for CountingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, _: StoreOperation<'_>) -> Result<(), StoreError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A server whose store counts its calls, with its surfaces.
struct CountedServer {
    server: TestServer,
    root: Router,
    s3: Router,
    store: Arc<CountingStore>,
}

impl CountedServer {
    fn new(access: AccessPolicy) -> Self {
        let store = Arc::new(CountingStore::default());
        let app = App::new(store.clone(), Settings { access, ..Settings::default() });
        let [root, s3] = [Surface::Root, Surface::S3].map(|surface| surface_router(app.clone(), surface));
        Self { server: TestServer { router: router(app), store: store.clone() }, root, s3, store }
    }

    fn router(&self, surface: Surface) -> Router {
        match surface {
            Surface::Api => &self.server.router,
            Surface::Root => &self.root,
            Surface::S3 => &self.s3,
        }
        .clone()
    }

    /// Sends the request of a cell; returns the response and the number of calls to the store.
    async fn send(&self, cell: &impl Cell, caller: &Caller) -> (TestResponse, usize) {
        let before = self.store.calls.load(Ordering::Relaxed);
        let answer = cell.send(self, caller).await;
        (answer, self.store.calls.load(Ordering::Relaxed) - before)
    }

    async fn fill(&self) {
        for node in ["lab/exp1", "lab/x", "lab2/x", "LAB/x", "lab"] {
            if node == "lab" {
                put(&self.server, "lab/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec()).await;
                put(&self.server, "lab/value", b"1".to_vec()).await;
            } else {
                v3(&self.server, node, json!("uint8"), &[4], &[2], json!(0)).await;
            }
        }
    }
}

/// An operation on a name, on one of the surfaces.
trait Cell {
    /// The request, for messages.
    fn shown(&self) -> String;

    /// True if a caller has a credential for the surface.
    fn applies(&self, caller: &Caller) -> bool;

    /// The outcome that the model expects.
    fn expected(&self, caller: &Caller) -> Outcome;

    /// The outcome of a response; `None` if it does not say.
    fn outcome(&self, answer: &TestResponse) -> Option<Outcome>;

    /// Sends the request as a caller.
    async fn send(&self, server: &CountedServer, caller: &Caller) -> TestResponse;
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Allowed,
    Invalid,
    Unauthorized,
    Forbidden,
}

/// The rights of the table, by hand: `right` on everything below `prefix`.
fn has(grants: &[(&str, &str)], right: &str, name: &str) -> bool {
    let level = |right: &str| ["read", "write", "admin"].iter().position(|known| *known == right);
    grants.iter().any(|(granted, prefix)| level(granted) >= level(right) && name.starts_with(prefix))
}

/// The parts of a response that must not depend on what exists.
fn visible(answer: &TestResponse) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let mut headers: Vec<_> = answer.headers.iter().map(header).collect();
    headers.sort();
    (answer.status.as_u16(), headers, answer.body.to_vec())
}

#[tokio::test]
async fn every_caller_has_exactly_the_rights_of_the_table() {
    let callers = Callers::new();
    tokio::time::sleep(Duration::from_millis(1600)).await;
    let mut table = Table::default();
    table.fill(&callers, &[], &callers.callers).await;
    // A public prefix gives no right to a credential that is not accepted, and none to a token either.
    let public: &[(&str, &str)] = &[("read", "lab/"), ("write", "lab/inbox/")];
    let anyone = Caller { name: "public", credential: Credential::None, kind: CallerKind::Anonymous(public) };
    let others = callers.callers.iter().filter(|caller| ["revoked", "write lab2"].contains(&caller.name));
    let others: Vec<_> = others.cloned().chain([anyone]).collect();
    table.fill(&callers, public, &others).await;
    let Table { counts, holes } = table;
    assert!(holes.is_empty(), "{} holes: {:#?}", holes.len(), &holes[..holes.len().min(10)]);
    println!("requests of the table of rights: {counts:?}");
}

/// The numbers of requests by their expected outcome, and the requests with another one.
#[derive(Default)]
struct Table {
    counts: BTreeMap<Outcome, usize>,
    holes: Vec<String>,
}

impl Table {
    /// Sends each request as each caller to a server with these anonymous rights.
    async fn fill(&mut self, callers: &Callers, anonymous: &[(&str, &str)], who: &[Caller]) {
        let (full, empty) =
            (CountedServer::new(callers.policy(anonymous)), CountedServer::new(callers.policy(anonymous)));
        for caller in who {
            full.server.store.erase_prefix(&Prefix::root()).await.unwrap();
            full.fill().await;
            for cell in routes::requests() {
                self.fill_cell(&full, &empty, caller, &cell).await;
            }
            full.fill().await;
            for cell in s3::requests() {
                self.fill_cell(&full, &empty, caller, &cell).await;
            }
        }
    }

    async fn fill_cell(&mut self, full: &CountedServer, empty: &CountedServer, caller: &Caller, cell: &impl Cell) {
        if !cell.applies(caller) {
            return;
        }
        let expected = cell.expected(caller);
        *self.counts.entry(expected).or_default() += 1;
        let (answer, calls) = full.send(cell, caller).await;
        let shown = format!("{} as {}", cell.shown(), caller.name);
        let found = cell.outcome(&answer);
        if found.is_some_and(|found| found != expected) {
            self.holes.push(format!("{shown}: {found:?} instead of {expected:?}: {answer:?}"));
        }
        if !matches!(expected, Outcome::Unauthorized | Outcome::Forbidden) {
            return;
        }
        if calls > 0 {
            self.holes.push(format!("{shown}: denied, with {calls} calls to the store"));
        }
        let (missing, _) = empty.send(cell, caller).await;
        if visible(&missing) != visible(&answer) {
            self.holes.push(format!("{shown}: {answer:?} if it exists, {missing:?} if not"));
        }
    }
}
