//! A store whose listings fail.

use async_trait::async_trait;
use zarrd_store::{MemoryStore, Operation, StoreError, StoreWrapper};

/// A store in memory whose listings fail, as a web server has none.
#[derive(Clone, Debug, Default)]
pub struct Unlisted(pub MemoryStore);

#[async_trait]
impl StoreWrapper for Unlisted {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation {
            Operation::ListPrefix(_) | Operation::ListDir(_) => Err(StoreError::Unsupported { what: "listings" }),
            _ => Ok(()),
        }
    }
}
