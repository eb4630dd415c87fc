//! Staging the values of puts.

use crate::{Change, StoreError, TransactionalStore};

/// Stages the value of a [`Change::Put`], which becomes a [`Change::Set`]. Other changes stay as they are.
pub async fn stage_put(store: &dyn TransactionalStore, change: &mut Change) -> Result<(), StoreError> {
    if let Change::Put { key, value, precondition } = change {
        let staged = store.stage(key, std::mem::take(value).into()).await?;
        *change = Change::Set { staged, precondition: std::mem::take(precondition) };
    }
    Ok(())
}
