//! The values of some keys as of one commit.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use store::{ByteRange, Corruption, Info, Key, Snapshot, StoreError, Value};

use crate::{
    pins::Pin,
    record::Record,
    store::{Core, value_of},
};

/// A [`Snapshot`] of a [`LocalStore`](crate::LocalStore): the records of its keys, and a pin on the files they name.
pub(crate) struct LocalSnapshot {
    core: Arc<Core>,
    records: HashMap<Key, Option<Record>>,
    pin: Pin,
}

impl LocalSnapshot {
    /// Looks the keys up. Blocks.
    pub(crate) fn take(core: Arc<Core>, keys: Vec<Key>) -> Result<Self, StoreError> {
        let pin = core.pins.pin();
        let bytes: Vec<&[u8]> = keys.iter().map(Key::as_bytes).collect();
        let found = core.with_index(|index| index.get_many(&bytes))?;
        let mut records = HashMap::with_capacity(keys.len());
        for (key, bytes) in keys.into_iter().zip(found) {
            let record = bytes.map(|bytes| core.decode(&key, bytes)).transpose()?;
            records.insert(key, record);
        }
        Ok(Self { core, records, pin })
    }

    fn record(&self, key: &Key) -> Result<Option<&Record>, StoreError> {
        self.records.get(key).map(Option::as_ref).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })
    }
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    fn head(&self, key: &Key) -> Result<Option<Info>, StoreError> {
        Ok(self.record(key)?.map(|record| record.info(self.core.store_id())))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<Value>, StoreError> {
        if !self.pin.touch() {
            return Err(StoreError::SnapshotExpired);
        }
        let Some(record) = self.record(key)? else { return Ok(None) };
        match value_of(&self.core, key, record, range).await {
            // The pin may have ended just now, and the file gone with it.
            Err(StoreError::Corrupt { cause: Corruption::MissingFile { .. }, .. }) if !self.pin.touch() => {
                Err(StoreError::SnapshotExpired)
            }
            result => result.map(Some),
        }
    }
}
