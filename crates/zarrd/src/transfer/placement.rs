//! Putting values in place that were imported below a hidden prefix.

use futures::{StreamExt, TryStreamExt, stream};
use zarrd_store::{
    BatchStore, Change, Key, KeyError, ListableStore, PageRequest, Precondition, Prefix, ReadableStore, StoreError,
    TransactionalStore, WriteableStore, list_all,
};
use zarrd_store_local::LocalStore;

use super::upload_order::{UploadPhase, upload_phase};

/// The prefix below which values wait until all of them are there. Zarr reserves names that begin so, and a store is
/// open in one process only.
const HIDDEN: &str = "__zarrd-import/";
/// The number of values in one commit.
const BATCH: usize = 1024;
/// The number of values that are staged at a time.
const STAGED_AT_ONCE: usize = 16;

/// Errors of putting values in place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlacementError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name of a value is not a valid key below the prefix.
    #[error(transparent)]
    Name(#[from] KeyError),
}

/// The hidden prefix, without what an interrupted import has left there.
pub(crate) async fn hidden(store: &LocalStore) -> Result<Prefix, PlacementError> {
    let hidden = Prefix::parse(HIDDEN)?;
    store.erase_prefix(&hidden).await?;
    Ok(hidden)
}

/// Replaces everything below `target` by the values below `hidden`.
///
/// What was there is erased in the commit with the first values. Chunks come before documents, and these in one commit,
/// with which the values below `hidden` vanish: until then there is no node at the target.
pub(crate) async fn put_in_place(store: &LocalStore, hidden: &Prefix, target: &Prefix) -> Result<(), PlacementError> {
    let mut erase = vec![Change::ErasePrefix { prefix: target.clone() }];
    let mut documents = Vec::new();
    let mut batches = list_all(store, hidden).try_chunks(BATCH).map_err(|error| error.1).boxed();
    while let Some(batch) = batches.try_next().await? {
        let mut values = Vec::new();
        for entry in batch {
            let name = Key::parse(hidden.strip(&entry.key).unwrap_or_default())?;
            match upload_phase(&name) {
                UploadPhase::Data => values.push(name),
                UploadPhase::Metadata { .. } => documents.push(name),
            }
        }
        let mut changes = std::mem::take(&mut erase);
        changes.extend(staged(store, hidden, target, values).await?);
        store.commit(changes).await?;
    }
    let mut changes = erase;
    changes.extend(staged(store, hidden, target, documents).await?);
    changes.push(Change::ErasePrefix { prefix: hidden.clone() });
    store.commit(changes).await?;
    Ok(())
}

/// True if there is a key below a prefix.
pub(crate) async fn has_keys(store: &dyn ListableStore, prefix: &Prefix) -> Result<bool, StoreError> {
    Ok(!store.list_prefix(prefix, PageRequest::first(1)).await?.keys.is_empty())
}

/// Stages values of the hidden prefix for their keys at the target.
async fn staged(
    store: &LocalStore,
    hidden: &Prefix,
    target: &Prefix,
    names: Vec<Key>,
) -> Result<Vec<Change>, PlacementError> {
    let staged = stream::iter(names).map(|name| async move {
        let (from, to) = (hidden.join(name.as_str())?, target.join(name.as_str())?);
        let Some(value) = store.get(&from, None).await? else { return Ok(None) };
        let payload = value.into_payload();
        let staged = store.stage(&to, payload).await?;
        Ok::<_, PlacementError>(Some(Change::Set { staged, precondition: Precondition::none() }))
    });
    staged.buffered(STAGED_AT_ONCE).try_filter_map(|change| std::future::ready(Ok(change))).try_collect().await
}
