//! The values of some keys as of one commit.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use store::{ByteRange, GetResult, Key, Snapshot, StoreError, ValueMeta};
use tokio::sync::OwnedSemaphorePermit;

use super::{core::Core, read::value_of};
use crate::{
    error::is_missing_file,
    gc::Pin,
    record::{Location, Record},
};

/// A [`Snapshot`] of a [`LocalStore`](crate::LocalStore): the records of its keys, and a pin on the files they name.
pub(crate) struct LocalSnapshot {
    core: Arc<Core>,
    entries: HashMap<Key, Option<Entry>>,
    pin: Pin,
    /// The right to hold the small values in memory.
    _permits: Vec<OwnedSemaphorePermit>,
}

/// The value of a key in a snapshot.
enum Entry {
    Record(Record),
    /// A small value for which there was no memory: it is looked up again, and gone if the key was changed.
    NotHeld(ValueMeta),
}

/// The bytes of small values that are accounted at a time.
const PERMITS: u32 = 64 << 10;

impl LocalSnapshot {
    /// Looks the keys up. Blocks.
    pub(crate) fn take(core: Arc<Core>, keys: Vec<Key>) -> Result<Self, StoreError> {
        let pin = core.pin();
        let mut entries = HashMap::with_capacity(keys.len());
        let (mut files, mut permits, mut held) = (Vec::new(), Vec::new(), 0_u64);
        {
            let (view, _gate) = core.views.stable()?;
            for key in keys {
                let record = view.record(&key)?;
                let entry = record.map(|record| match &record.location {
                    Location::File(file) => {
                        files.push(file.id);
                        Entry::Record(record)
                    }
                    Location::Inline(bytes) => {
                        if held < bytes.len() as u64
                            && let Ok(permit) = Arc::clone(&core.snapshots).try_acquire_many_owned(PERMITS)
                        {
                            permits.push(permit);
                            held = held.saturating_add(PERMITS.into());
                        }
                        match held.checked_sub(bytes.len() as u64) {
                            Some(rest) => {
                                held = rest;
                                Entry::Record(record)
                            }
                            None => Entry::NotHeld(record.meta(core.store_id())),
                        }
                    }
                });
                entries.insert(key, entry);
            }
        }
        pin.resolve(files);
        Ok(Self { core, entries, pin, _permits: permits })
    }

    fn entry(&self, key: &Key) -> Result<Option<&Entry>, StoreError> {
        self.entries.get(key).map(Option::as_ref).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })
    }
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.entry(key)?.map(|entry| match entry {
            Entry::Record(record) => record.meta(self.core.store_id()),
            Entry::NotHeld(meta) => *meta,
        }))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        if !self.pin.touch() {
            return Err(StoreError::SnapshotExpired);
        }
        let record = match self.entry(key)? {
            None => return Ok(None),
            Some(Entry::Record(record)) => record.clone(),
            Some(Entry::NotHeld(meta)) => {
                let current = self.core.record(key)?;
                let same = current.filter(|record| record.meta(self.core.store_id()).version == meta.version);
                same.ok_or(StoreError::SnapshotExpired)?
            }
        };
        match value_of(&self.core, key, &record, range).await {
            // The pin may have ended just now, and the file gone with it.
            Err(error) if is_missing_file(&error) && !self.pin.touch() => Err(StoreError::SnapshotExpired),
            result => result.map(Some),
        }
    }
}
