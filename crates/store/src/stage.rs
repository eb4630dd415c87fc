//! Staging the values of puts.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    Attributes, BatchStore, ByteStream, Change, Key, Payload, Precondition, Snapshot, Staged, StoreError, Version,
};

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

/// Stages a copy of the values of other keys, one after the other, in bounded memory: [`BatchStore::stage_joined`] of stores
/// that cannot refer to them.
pub async fn stage_copy_of_parts(
    store: &(impl BatchStore + ?Sized),
    key: &Key,
    parts: &[(Key, Version)],
) -> Result<Staged, StoreError> {
    let keys: Vec<Key> = parts.iter().map(|(key, _)| key.clone()).collect();
    let snapshot = store.snapshot(&keys).await?;
    let mut size = 0_u64;
    for (key, version) in parts {
        let meta = snapshot.meta(key).await?;
        let current = meta.as_ref().map(|meta| meta.version);
        let meta = meta.filter(|_| current == Some(*version));
        let meta = meta.ok_or_else(|| StoreError::PreconditionFailed { key: key.clone(), current })?;
        size = size.saturating_add(meta.size);
    }
    let reading = stream::try_unfold((snapshot, keys.into_iter()), async |(snapshot, mut keys)| {
        let Some(key) = keys.next() else { return Ok::<_, StoreError>(None) };
        let part = open_part(&*snapshot, &key).await?;
        Ok(Some((part, (snapshot, keys))))
    });
    store.stage(key, Payload::sized(size, reading.try_flatten())).await
}

async fn open_part(snapshot: &dyn Snapshot, key: &Key) -> Result<ByteStream, StoreError> {
    match snapshot.get(key, None).await? {
        Some(part) => Ok(part.stream.boxed()),
        None => Err(StoreError::NotInSnapshot { key: key.clone() }),
    }
}
