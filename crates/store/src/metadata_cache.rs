//! Metadata of values that a store returns without a request.

use tokio::time::Instant;

use crate::{Key, ValueMeta};

/// The metadata of a store's values that it can return at once: without a request, and without waiting for a disk.
///
/// They are as current as the store's [`Guarantees::staleness`](crate::Guarantees::staleness) says. A read of that version
/// ([`ReadableStore::get_if_match`](crate::ReadableStore::get_if_match)) detects that a value has changed since; then the
/// cache no longer has its metadata.
pub trait MetadataCache: Send + Sync {
    /// Returns the cached metadata of the value of `key`.
    fn cached(&self, key: &Key) -> CachedMeta;

    /// Returns a reader of many keys, if it is faster than [`cached`](Self::cached) for keys that follow each other in a listing.
    /// Metadata that it does not have, [`ReadableStore::head`](crate::ReadableStore::head) may. None by default.
    fn reader(&self) -> Option<MetadataReader<'_>> {
        None
    }

    /// True if it caches what each request finds, so that two requests for a key, one after the other, become one.
    fn is_filled_by_requests(&self) -> bool;

    /// Caches that `key` has no value: a listing that was requested at `requested` did not contain it. Has no effect by
    /// default.
    fn insert_absent(&self, _key: &Key, _requested: Instant) {}
}

/// The metadata of a value, if they are cached or a snapshot has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedMeta {
    /// The metadata; `None` if the key had no value.
    Known(Option<ValueMeta>),
    /// They take a request.
    Unknown,
}

/// Returns the cached metadata of one key after another.
pub type MetadataReader<'c> = Box<dyn FnMut(&Key) -> CachedMeta + Send + 'c>;
