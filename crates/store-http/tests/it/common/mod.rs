//! A web server on this machine, with faults.

#![allow(dead_code, unused_imports, reason = "each test uses some of it")]

mod answers;
#[path = "../../../../store-object/tests/common/server.rs"]
mod server;

use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::{GetResult, Key, ReadableStore, StoreError};
use zarrd_store_http::{Failure, OpenError, Options, RequestError, WebStore};

pub(crate) use self::{
    answers::Dialect,
    server::{Fault, Request, Server},
};

/// Options that do not wait for long.
pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.connect_timeout = Duration::from_secs(2);
    options.read_timeout = Duration::from_millis(500);
    options.deadline = Duration::from_secs(5);
    options.retries = 3;
    options
}

/// A server and a store that reads what is below `/p/`.
pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) store: WebStore,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::open(Dialect::Complete, "").await
    }

    /// A store with these options in its URL.
    pub(crate) async fn open(dialect: Dialect, query: &str) -> Self {
        let server = Server::start(dialect).await;
        let store = open(&format!("{}/p{query}", server.url())).await.unwrap();
        server.forget();
        Self { server, store }
    }

    pub(crate) fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.server.put(&format!("p/{key}"), bytes);
    }

    pub(crate) async fn get(&self, at: &str) -> Result<Option<GetResult>, StoreError> {
        within(self.store.get(&key(at), None)).await
    }

    /// The bytes of a value; `None` if it is absent.
    pub(crate) async fn read(&self, at: &str) -> Result<Option<Bytes>, StoreError> {
        match self.get(at).await? {
            Some(value) => within(value.bytes()).await.map(Some),
            None => Ok(None),
        }
    }
}

pub(crate) async fn open(url: &str) -> Result<WebStore, OpenError> {
    within(WebStore::open(&url.parse().unwrap(), options())).await
}

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// The failure of the request that an error is.
pub(crate) fn failure(error: &StoreError) -> Failure {
    error.backend_source::<RequestError>().unwrap().failure.clone()
}

/// Waits for a future that must not take long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.unwrap()
}

/// Reads a stream until it ends or fails.
pub(crate) async fn drain(mut value: GetResult) -> (Vec<u8>, Result<(), StoreError>) {
    let mut bytes = Vec::new();
    loop {
        match within(value.stream.try_next()).await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return (bytes, Ok(())),
            Err(error) => return (bytes, Err(error)),
        }
    }
}
