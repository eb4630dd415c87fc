//! Snapshots of everything below a prefix.

use std::fmt;

use async_trait::async_trait;

use crate::{
    ByteRange, DirPage, GetResult, Intent, Key, KeyPage, ListableStore, PageRequest, Prefix, ReadableStore, StoreError,
    ValueMeta, Watermark,
};

/// Everything below a prefix as of one commit: a store that can be read and listed, and does not change.
///
/// - Keys and listings are those of the store that it was taken of, with the same versions. A listing of a prefix that
///   contains more than the snapshot shows what the snapshot has of it.
/// - Reading a key outside of the prefix fails with [`StoreError::NotInSnapshot`].
/// - Values stay readable until the snapshot is dropped. If its store needs their space, the snapshot ends: then reading
///   values fails with [`StoreError::SnapshotExpired`].
pub trait PrefixSnapshot: ReadableStore + ListableStore + fmt::Debug {
    /// The prefix.
    fn prefix(&self) -> &Prefix;

    /// The watermark of the store after that commit.
    fn watermark(&self) -> Watermark;

    /// The number of keys.
    fn len(&self) -> u64;

    /// True if there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The intents of the store as of that commit, whichever keys they concern.
    fn intents(&self) -> &[Intent];

    /// False if the snapshot has ended, so that values cannot be read from it any more.
    fn is_valid(&self) -> bool;
}

/// A [`PrefixSnapshot`] of a [`MemoryStore`](crate::MemoryStore), which is a store of its own.
#[derive(Debug)]
pub(crate) struct MemoryPrefixSnapshot<S> {
    pub(crate) store: S,
    pub(crate) prefix: Prefix,
    pub(crate) watermark: Watermark,
    pub(crate) len: u64,
    pub(crate) intents: Vec<Intent>,
}

impl<S> MemoryPrefixSnapshot<S> {
    fn check(&self, key: &Key) -> Result<(), StoreError> {
        match self.prefix.contains(key) {
            true => Ok(()),
            false => Err(StoreError::NotInSnapshot { key: key.clone() }),
        }
    }
}

#[async_trait]
impl<S: ReadableStore> ReadableStore for MemoryPrefixSnapshot<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.check(key)?;
        self.store.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.check(key)?;
        self.store.head(key).await
    }
}

#[async_trait]
impl<S: ListableStore> ListableStore for MemoryPrefixSnapshot<S> {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.store.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.store.list_dir(prefix, page).await
    }
}

impl<S: ReadableStore + ListableStore + fmt::Debug> PrefixSnapshot for MemoryPrefixSnapshot<S> {
    fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    fn watermark(&self) -> Watermark {
        self.watermark
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn intents(&self) -> &[Intent] {
        &self.intents
    }

    fn is_valid(&self) -> bool {
        true
    }
}
