//! Values that a store without commits has received, and that are set later.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Key, Payload, ReceivedValue, StoreError};

/// A store that can receive a value to where it will be. Setting the key to [its payload](Payload::of_received) later moves no
/// byte.
#[async_trait]
pub trait ReceivingStore: Send + Sync {
    /// Receives a value for a key, without making it visible. Fails like [`WriteableStore::set`](crate::WriteableStore::set).
    async fn receive(&self, key: &Key, payload: Payload) -> Result<Reception, StoreError>;
}

/// The answer to a value that a store should receive.
pub enum Reception {
    /// The value, which is discarded with its last clone unless it was set.
    Received(Arc<dyn ReceivedValue>),
    /// The payload, of which nothing was read: the store has as many values already as it may have.
    Full(Payload),
}
