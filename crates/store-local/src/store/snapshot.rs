//! Snapshots of the values of some keys.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use store::{ByteRange, GetResult, Key, Snapshot, StoreError, ValueMeta};
use tokio::sync::OwnedSemaphorePermit;

use super::{inner::StoreInner, read::open_value};
use crate::{
    error::is_missing_file,
    gc::Pin,
    record::{Location, Record},
};

/// A [`Snapshot`] of a [`LocalStore`](crate::LocalStore): the records of its keys, and a pin of their files.
pub(crate) struct LocalSnapshot {
    inner: Arc<StoreInner>,
    entries: HashMap<Key, Option<Entry>>,
    pin: Pin,
    /// The share of the memory limit for small values.
    _permits: Vec<OwnedSemaphorePermit>,
}

/// The value of a key in a snapshot.
enum Entry {
    Record(Record),
    /// A small value beyond the memory limit: it is looked up again, and expired if the key was changed.
    NotBuffered(ValueMeta),
}

/// The unit in which the memory of small values is accounted, in bytes.
const PERMIT_BYTES: u32 = 64 << 10;

impl LocalSnapshot {
    /// Looks up the keys. Blocks.
    pub(crate) fn new(inner: Arc<StoreInner>, keys: Vec<Key>) -> Result<Self, StoreError> {
        let pin = inner.pin();
        let mut entries = HashMap::with_capacity(keys.len());
        let (mut files, mut permits, mut buffered) = (Vec::new(), Vec::new(), 0_u64);
        {
            let (view, _gate) = inner.views.stable()?;
            for key in keys {
                let record = view.record(&key)?;
                let entry = record.map(|record| match &record.location {
                    Location::File(file) => {
                        files.push(file.id);
                        Entry::Record(record)
                    }
                    Location::Inline(bytes) => {
                        if buffered < bytes.len() as u64
                            && let Ok(permit) = Arc::clone(&inner.snapshots).try_acquire_many_owned(PERMIT_BYTES)
                        {
                            permits.push(permit);
                            buffered = buffered.saturating_add(PERMIT_BYTES.into());
                        }
                        match buffered.checked_sub(bytes.len() as u64) {
                            Some(rest) => {
                                buffered = rest;
                                Entry::Record(record)
                            }
                            None => Entry::NotBuffered(record.meta(inner.store_id())),
                        }
                    }
                });
                entries.insert(key, entry);
            }
        }
        pin.resolve(files);
        Ok(Self { inner, entries, pin, _permits: permits })
    }

    fn entry(&self, key: &Key) -> Result<Option<&Entry>, StoreError> {
        self.entries.get(key).map(Option::as_ref).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })
    }
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.entry(key)?.map(|entry| match entry {
            Entry::Record(record) => record.meta(self.inner.store_id()),
            Entry::NotBuffered(meta) => *meta,
        }))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        if !self.pin.touch() {
            return Err(StoreError::SnapshotExpired);
        }
        let record = match self.entry(key)? {
            None => return Ok(None),
            Some(Entry::Record(record)) => record.clone(),
            Some(Entry::NotBuffered(meta)) => {
                let current = self.inner.record(key)?;
                let same = current.filter(|record| record.meta(self.inner.store_id()).version == meta.version);
                same.ok_or(StoreError::SnapshotExpired)?
            }
        };
        match open_value(&self.inner, key, &record, range).await {
            // The pin may have expired just now, and the file was removed.
            Err(error) if is_missing_file(&error) && !self.pin.touch() => Err(StoreError::SnapshotExpired),
            result => result.map(Some),
        }
    }
}
