//! Snapshots of everything below a prefix of a store in memory.

use std::fmt;

use async_trait::async_trait;

use crate::{
    ByteRange, DirPage, GetResult, Intent, Key, KeyPage, ListableStore, ListedValue, MAX_LISTED_VALUE_BYTES,
    PageRequest, Prefix, PrefixSnapshot, ReadableStore, StoreError, ValueMeta, ValuePage, Watermark,
};

/// A [`PrefixSnapshot`] of a [`MemoryStore`](crate::MemoryStore), which is a store of its own. That is a parameter, since
/// modules do not import those above them.
#[derive(Debug)]
pub(super) struct MemoryPrefixSnapshot<S> {
    pub(super) store: S,
    pub(super) prefix: Prefix,
    pub(super) watermark: Watermark,
    pub(super) len: u64,
    pub(super) intents: Vec<Intent>,
}

#[async_trait]
impl<S: ReadableStore + ListableStore + fmt::Debug> ReadableStore for MemoryPrefixSnapshot<S> {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.check_key(key)?;
        self.store.get(key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.check_key(key)?;
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

#[async_trait]
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
    async fn list_values(&self, prefix: &Prefix, page: PageRequest) -> Result<ValuePage, StoreError> {
        let KeyPage { keys: entries, cursor, .. } = self.store.list_prefix(prefix, page.with_values()).await?;
        let mut keys = Vec::with_capacity(entries.len());
        for entry in entries {
            let value = match entry.meta.size {
                ..=MAX_LISTED_VALUE_BYTES => self.store.get(&entry.key, None).await?,
                _ => None,
            };
            let value = match value {
                Some(value) => Some(value.bytes().await?),
                None => None,
            };
            keys.push(ListedValue { entry, value });
        }
        Ok(ValuePage { keys, cursor })
    }
}
