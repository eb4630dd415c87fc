//! Staging the values of puts.

use bytes::Bytes;

use crate::{Attributes, BatchStore, Change, Key, Payload, Precondition, StoreError};

/// Stages the value of a [`Change::Put`], which becomes a [`Change::Set`]. Other changes stay as they are.
pub async fn stage_put(store: &(impl BatchStore + ?Sized), change: &mut Change) -> Result<(), StoreError> {
    if let Change::Put { key, value, precondition } = change {
        let staged = store.stage(key, std::mem::take(value).into()).await?;
        *change = Change::Set { staged, precondition: std::mem::take(precondition) };
    }
    Ok(())
}

/// The change that sets a key to a small value: a [`Change::Put`], or the [`Change::Set`] of a staged value if it has
/// attributes, which a put has not.
pub async fn put_or_stage(
    store: &(impl BatchStore + ?Sized),
    key: &Key,
    value: Bytes,
    attributes: Attributes,
) -> Result<Change, StoreError> {
    let precondition = Precondition::none();
    if attributes.is_empty() {
        return Ok(Change::Put { key: key.clone(), value, precondition });
    }
    let staged = store.stage(key, Payload::from_bytes(value).with_attributes(attributes)).await?;
    Ok(Change::Set { staged, precondition })
}
