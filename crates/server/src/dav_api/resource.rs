//! Resources: the value or the collection at a path.

use std::time::SystemTime;

use zarrd_store::{Key, ListableStore, Listing, PageRequest, Prefix, ReadableStore, StoreError, ValueMeta};
use zarrd_wire::routes::StoreTarget;

use crate::{app::App, error::ApiError, snapshot_api::ReadSource};

/// The number of keys, the first ones below a collection, whose newest time the collection has.
pub(super) const SAMPLED_KEYS: usize = 16;

/// A resource that exists.
#[derive(Debug)]
pub(super) enum Found {
    /// A key with a value.
    Value(Key, ValueMeta),
    /// A prefix with keys below it, or the root, and its time.
    Collection(Prefix, SystemTime),
}

/// The resource at a path: the value of a key, or else the collection of its name. Fails if there is none.
pub(super) async fn find(
    app: &App,
    source: &ReadSource,
    target: StoreTarget,
    requested: SystemTime,
) -> Result<Found, ApiError> {
    let (prefix, missing) = match target {
        StoreTarget::Prefix(prefix) => {
            let missing = ApiError::no_such_prefix(&prefix);
            (prefix, missing)
        }
        StoreTarget::Key(key) => {
            if let Some(meta) = source.values(&key)?.head(&key).await? {
                return Ok(Found::Value(key, meta));
            }
            let missing = ApiError::no_such_key(&key);
            let Some(prefix) = Prefix::from_key(&key) else { return Err(missing) };
            // Without listings nobody knows which prefixes exist.
            if !source.is_snapshot() && app.store().guarantees_below(&prefix).listing == Listing::None {
                return Err(missing);
            }
            (prefix, missing)
        }
    };
    let modified = newest_below(app, &*source.listings(&prefix)?, &prefix).await?;
    match modified.or(prefix.is_root().then_some(requested)) {
        Some(modified) => Ok(Found::Collection(prefix, modified)),
        None => Err(missing),
    }
}

/// The newest time among the first keys below a prefix; `None` if there is no key.
pub(super) async fn newest_below(
    app: &App,
    store: &dyn ListableStore,
    prefix: &Prefix,
) -> Result<Option<SystemTime>, StoreError> {
    let permit = app.listing_permit(prefix).await;
    let page = store.list_prefix(prefix, PageRequest::first(SAMPLED_KEYS)).await?;
    drop(permit);
    Ok(page.keys.iter().map(|entry| entry.meta.modified).max())
}

/// The version of a key, if it has a value.
pub(super) async fn version_of(
    store: &(impl ReadableStore + ?Sized),
    key: &Key,
) -> Result<Option<zarrd_store::Version>, StoreError> {
    Ok(store.head(key).await?.map(|meta| meta.version))
}
