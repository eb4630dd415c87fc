//! The disk cache of a server.

use std::sync::Arc;

use zarrd_disk_cache::{DiskCache, Options};

use crate::{
    config::{Location, ServeConfig},
    error::Error,
};

/// The number of files that the disk cache has open.
pub(super) fn files(config: &ServeConfig) -> u64 {
    config.disk_cache.as_ref().map_or(0, |location| Options::new(location.size.as_u64()).blocks())
}

/// Opens the disk cache, if there is one, and logs which stores are not read through it.
pub(super) async fn open(config: &ServeConfig) -> Result<Option<Arc<DiskCache>>, Error> {
    let Some(location) = &config.disk_cache else { return Ok(None) };
    let opened = DiskCache::open(&location.directory, Options::new(location.size.as_u64())).await;
    let cache = opened.map_err(|source| Error::DiskCache { location: location.clone(), source })?;
    let mounted = config.mounts.iter().map(|mount| &mount.store);
    let stores: Vec<_> = mounted.chain([&config.store]).map(|store| (store, uncached_reason(store))).collect();
    for (store, reason) in &stores {
        match reason {
            Some(reason) => tracing::info!(%store, "the disk cache is not used for this store: {reason}"),
            None => tracing::info!(%store, disk_cache = %location, "the disk cache is used for this store"),
        }
    }
    if stores.iter().all(|(_, reason)| reason.is_some()) {
        tracing::warn!(disk_cache = %location, "the disk cache is not used for any store");
    }
    Ok(Some(Arc::new(cache)))
}

/// The reason why a store is not read through the cache, if it is not.
fn uncached_reason(store: &Location) -> Option<&'static str> {
    match store {
        Location::Foreign(url) => url.uncached_reason(),
        Location::Sled(_) | Location::Redb(_) | Location::Memory => Some("it is on this machine"),
    }
}
