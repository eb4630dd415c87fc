//! A store that fails.

use std::sync::Arc;

use async_trait::async_trait;
use zarrd_server::Settings;
use zarrd_store::{Key, MemoryStore, Operation, StoreError, StoreWrapper};

use super::TestServer;

/// A store whose every operation fails with one error.
struct FaultyStore {
    store: MemoryStore,
    error: fn(&Key) -> StoreError,
}

pub fn some_key() -> Key {
    Key::parse("some/key").expect("a key")
}

#[async_trait]
impl StoreWrapper for FaultyStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        Err((self.error)(operation.key().unwrap_or(&some_key())))
    }
}

/// A site over such a store.
pub fn failing_server(error: fn(&Key) -> StoreError) -> TestServer {
    TestServer::over(Arc::new(FaultyStore { store: MemoryStore::new(), error }), Settings::default())
}
