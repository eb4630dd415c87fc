//! A zarrd server with an in-memory store, in the test process.
#![allow(dead_code, reason = "each test file uses its own part of this module")]

use std::sync::Arc;

use tokio::{net::TcpListener, task::JoinHandle};
use zarrd_client::{BaseUrl, HttpStore};
use zarrd_server::{App, Settings, serve};
use zarrd_store::{MemoryStore, ServedStore};

/// A server that runs until it is dropped.
pub(crate) struct TestServer {
    pub(crate) base: BaseUrl,
    /// A client of its store.
    pub(crate) store: HttpStore,
    serving: JoinHandle<()>,
}

impl TestServer {
    /// Starts a server with an empty store.
    pub(crate) async fn start() -> Self {
        Self::with(MemoryStore::new(), Settings::default()).await
    }

    /// Starts a server.
    pub(crate) async fn with(store: MemoryStore, settings: Settings) -> Self {
        Self::over(Arc::new(store), settings).await
    }

    /// Starts a server over a store that may be written key by key.
    pub(crate) async fn over(store: impl Into<ServedStore>, settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let app = App::new(store, settings);
        let serving = tokio::spawn(async move { serve(listener, app, std::future::pending()).await.unwrap() });
        Self { store: HttpStore::new(base.clone()).unwrap(), base, serving }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
