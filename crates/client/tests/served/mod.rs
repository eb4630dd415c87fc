//! A server of this project over a store in memory, in this process.

use std::sync::Arc;

use client::{BaseUrl, HttpStore};
use server::{App, Settings, serve};
use store::MemoryStore;
use tokio::{net::TcpListener, task::JoinHandle};

/// A running server; it ends with this.
pub(crate) struct Served {
    /// A store over it.
    pub(crate) store: HttpStore,
    serving: JoinHandle<()>,
}

impl Served {
    /// Starts a server over an empty store.
    pub(crate) async fn start() -> Self {
        Self::of(MemoryStore::new(), Settings::default()).await
    }

    /// Starts a server.
    pub(crate) async fn of(store: MemoryStore, settings: Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let app = App::new(Arc::new(store), settings);
        let serving = tokio::spawn(async move { serve(listener, app, std::future::pending()).await.unwrap() });
        Self { store: HttpStore::new(base).unwrap(), serving }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
