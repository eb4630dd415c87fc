//! The conformance suite for the files of web servers, which another program changes.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_store::{Key, Keyed, SnapshotStore};
use zarrd_store_http::WebStore;
use zarrd_store_testkit::{Foreign, ForeignData};

use crate::common::{Dialect, Server, options};

/// A server with entity tags.
struct Site {
    server: Server,
    store: Arc<Keyed<WebStore>>,
}

impl ForeignData for Site {
    async fn create() -> Self {
        let server = Server::start(Dialect::Complete).await;
        let store = WebStore::open(&server.url().parse().unwrap(), options()).await.unwrap();
        let guarantees = store.guarantees();
        Self { server, store: Arc::new(Keyed::new(store, guarantees)) }
    }

    fn store(&self) -> Arc<dyn SnapshotStore> {
        self.store.clone()
    }

    async fn put(&self, key: &Key, value: Bytes) {
        self.server.put(key.as_str(), value);
    }

    async fn remove(&self, key: &Key) {
        self.server.remove(key.as_str());
    }
}

zarrd_store_testkit::conformance_tests!(Foreign::<Site>::new() => readable_writeable_listable, snapshots);
