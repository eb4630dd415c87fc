//! The traits of a store, and their contract.
//!
//! All operations share these guarantees:
//!
//! - A read returns one complete value: never a mixture of two, never a part, never bytes that fail their checksum.
//! - A read sees every change that was acknowledged before it began. One of data that other programs change may miss
//!   their changes of the last [`Guarantees::staleness`].
//! - Every method may be called concurrently. A future that is dropped leaves either no change or the complete one.

mod batches;
mod snapshots;

use async_trait::async_trait;

pub use batches::{BatchStore, TransactionalStore};
pub use snapshots::{DiskSpace, KeySource, Prefetch, PrefixSnapshot, Snapshot, SnapshotStore, StatMany};

use crate::{
    ByteRange, DirPage, GetResult, Key, KeyCount, KeyPage, MAX_PAGE_ENTRIES, MetadataCache, PageRequest, Payload,
    Precondition, Prefix, PutResult, ReceivingStore, Scan, ScanPage, Scanned, StoreError, ValueMeta, Version,
};

/// Reads values.
#[async_trait]
pub trait ReadableStore: Send + Sync {
    /// Returns the value of `key`, or a byte range of it; `None` if the key has no value, even if it is a prefix of
    /// others.
    ///
    /// - The size and version of the result belong to the value that its stream yields, whatever is set meanwhile.
    ///   Where another program can change the value in its place, the stream fails with [`StoreError::Changed`] instead
    ///   of yielding bytes of two values.
    /// - Memory does not grow with the size of the value.
    ///
    /// # Errors
    ///
    /// - [`StoreError::RangeNotSatisfiable`] if the range contains no byte of the value (see [`ByteRange::resolve`]).
    /// - [`StoreError::Corrupt`] if the stored value is damaged. The stream can fail with it as well: bytes are checked
    ///   before they are yielded.
    /// - [`StoreError::Changed`] if another program changes the value again and again while it is opened.
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError>;

    /// Returns the metadata of the value of `key`, or `None` if it has no value.
    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError>;

    /// Returns the value of `key` like [`get`](Self::get), for a caller that can only use it at this version.
    ///
    /// If the value has another version, the store may fail with [`StoreError::Changed`], which saves reading it. It
    /// may as well return the value: callers compare the version. By default it is that of `get`.
    async fn get_if_match(
        &self,
        key: &Key,
        range: Option<ByteRange>,
        _version: Version,
    ) -> Result<Option<GetResult>, StoreError> {
        self.get(key, range).await
    }

    /// Returns the metadata that the store can return at once. None by default.
    fn metadata_cache(&self) -> Option<&dyn MetadataCache> {
        None
    }
}

/// Sets and erases values.
#[async_trait]
pub trait WriteableStore: Send + Sync {
    /// Sets the value of `key`, replacing an existing one.
    ///
    /// - The value is durable on return: it survives a loss of power (except in a store in memory).
    /// - The precondition is checked atomically with the write, after the payload has arrived. It may be checked before
    ///   as well, to fail early.
    /// - Concurrent sets of one key are serialized.
    /// - Memory does not grow with the size of the value.
    ///
    /// # Errors
    ///
    /// The key keeps its value if this fails.
    ///
    /// - [`StoreError::PreconditionFailed`] if the precondition does not hold.
    /// - [`StoreError::Upload`], or any error that the payload's stream yields, if the payload does not arrive
    ///   completely.
    /// - [`StoreError::OutOfSpace`] if the value does not fit.
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError>;

    /// Erases the value of `key` and returns true if it had one. Erasing a key without a value succeeds if the
    /// precondition holds. Durable on return.
    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError>;

    /// Erases all keys below `prefix` in one commit, however many exist, and returns their number as [`KeyCount`]
    /// defines it. Durable on return.
    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError>;

    /// The means to receive values that are set later. None by default.
    fn receiving(&self) -> Option<&dyn ReceivingStore> {
        None
    }

    /// Succeeds if the store accepts sets at the moment. Fails with [`StoreError::ReadOnly`],
    /// [`StoreError::OutOfSpace`], [`StoreError::Closed`], or the error of reaching a remote store.
    async fn check_writable(&self) -> Result<(), StoreError>;
}

/// Lists keys.
///
/// Listings are sorted by bytes and returned in pages. A key that exists unchanged from the first page to the last is
/// listed exactly once, whatever other writers do; one that is set or erased meanwhile is listed at most once. A prefix
/// without keys has an empty listing.
///
/// Every method fails with [`StoreError::InvalidCursor`] if the cursor was not issued by this store for the same
/// listing, and with [`StoreError::Unsupported`] if the store has no listings
/// ([`Listing::None`](crate::Listing::None)).
#[async_trait]
pub trait ListableStore: Send + Sync {
    /// Lists the keys below `prefix`, at any depth.
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError>;

    /// Lists the keys and prefixes directly below `prefix`. The cost depends on what is returned, not on what is below.
    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError>;

    /// Lists the keys that begin with a text, after another one, with those that have a `/` after it folded if
    /// [asked](crate::Fold).
    ///
    /// Pages are as consistent as those of the other listings. They begin at any text, so that none has a cursor. By
    /// default all keys below the parent prefix of the text are listed up to the end of the page; a store that can seek
    /// does so.
    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        scan_by_pages(self, scan).await
    }

    /// Lists all keys.
    async fn list(&self, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.list_prefix(&Prefix::root(), page).await
    }
}

/// A page of a scan from the listing of all keys below its parent prefix, of those before the page too.
pub(crate) async fn scan_by_pages<S: ListableStore + ?Sized>(store: &S, scan: &Scan) -> Result<ScanPage, StoreError> {
    let (mut page, mut from) = (ScanPage::default(), scan.start());
    let Some(parent) = scan.parent() else { return Ok(page) };
    let mut request = PageRequest::first(MAX_PAGE_ENTRIES);
    loop {
        let KeyPage { keys, cursor, .. } = store.list_prefix(&parent, request).await?;
        for entry in keys {
            if entry.key.as_str() < from.as_str() {
                continue;
            }
            if !scan.contains(&entry.key) {
                return Ok(page);
            }
            if page.entries.len() == scan.limit() {
                page.more = true;
                return Ok(page);
            }
            match scan.folded(entry.key.as_str()) {
                Some(prefix) => {
                    from = prefix.upper_bound().unwrap_or_default();
                    page.entries.push(Scanned::Prefix(prefix));
                }
                None => page.entries.push(Scanned::Key(entry)),
            }
        }
        let Some(cursor) = cursor else { return Ok(page) };
        request = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
    }
}
