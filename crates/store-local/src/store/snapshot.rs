//! Snapshots of the values of some keys.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::{
    ByteRange, CachedMeta, GetResult, Key, KeyMap, KeySource, Prefetch, Snapshot, StoreError, ValueMeta,
};

use super::{inner::StoreInner, read::open_value};
use crate::{
    error::is_missing_file,
    gc::{Pin, PinKind},
    record::{FileId, Location, Record},
};

/// A [`Snapshot`] of a [`LocalStore`](crate::LocalStore): the records of its keys, and a pin of their files.
pub(crate) struct LocalSnapshot {
    inner: Arc<StoreInner>,
    entries: KeyMap<Option<Box<Entry>>>,
    pin: Arc<Pin>,
    /// The share of the memory limit for small values.
    _permits: Vec<OwnedSemaphorePermit>,
}

/// The value of a key in a snapshot.
enum Entry {
    Record(Record),
    /// A small value beyond the memory limit: it is looked up again, and expired if the key was changed.
    NotBuffered(ValueMeta),
}

/// The lookup of the records of a snapshot, and what they need.
#[derive(Default)]
struct Lookup {
    files: Vec<FileId>,
    permits: Vec<OwnedSemaphorePermit>,
    /// The bytes of the permits that no small value uses.
    buffered: u64,
}

/// The unit in which the memory of small values is accounted, in bytes.
const PERMIT_BYTES: u32 = 64 << 10;

impl LocalSnapshot {
    /// Looks up keys. Blocks.
    pub(crate) fn of_keys(inner: Arc<StoreInner>, keys: &[Key]) -> Result<Self, StoreError> {
        Self::look_up(inner, "", keys.len(), |visit| keys.iter().try_for_each(|key| visit(key.clone())))
    }

    /// Looks up the keys of a source. Blocks.
    pub(crate) fn new(inner: Arc<StoreInner>, keys: &dyn KeySource) -> Result<Self, StoreError> {
        Self::look_up(inner, keys.common_prefix(), 0, |visit| {
            let mut result = Ok(());
            keys.for_each(&mut |key| {
                if result.is_ok() {
                    result = visit(key);
                }
            });
            result
        })
    }

    fn look_up(
        inner: Arc<StoreInner>,
        prefix: &str,
        others: usize,
        for_each: impl FnOnce(&mut dyn FnMut(Key) -> Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let pin = inner.pin(PinKind::Reader);
        let mut entries = KeyMap::new(prefix, others);
        let mut lookup = Lookup::default();
        {
            let (view, _gate) = inner.views.stable()?;
            for_each(&mut |key| {
                let entry = view.record(&key)?.map(|record| Box::new(lookup.entry(&inner, record)));
                entries.insert(key, entry);
                Ok(())
            })?;
        }
        pin.resolve(lookup.files);
        Ok(Self { inner, entries, pin: Arc::new(pin), _permits: lookup.permits })
    }

    fn entry(&self, key: &Key) -> Result<Option<&Entry>, StoreError> {
        self.entries.get(key).map(Option::as_deref).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })
    }

    fn meta(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.entry(key)?.map(|entry| match entry {
            Entry::Record(record) => record.meta(self.inner.store_id()),
            Entry::NotBuffered(meta) => meta.clone(),
        }))
    }
}

impl Lookup {
    /// The entry of a record, with its bytes if there is memory for them.
    fn entry(&mut self, inner: &StoreInner, record: Record) -> Entry {
        let bytes = match &record.location {
            Location::File(file) => {
                self.files.push(file.id);
                return Entry::Record(record);
            }
            Location::Inline(bytes) => bytes.len() as u64,
        };
        if self.buffered < bytes
            && let Ok(permit) = Arc::clone(&inner.snapshots).try_acquire_many_owned(PERMIT_BYTES)
        {
            self.permits.push(permit);
            self.buffered = self.buffered.saturating_add(PERMIT_BYTES.into());
        }
        match self.buffered.checked_sub(bytes) {
            Some(rest) => {
                self.buffered = rest;
                Entry::Record(record)
            }
            None => Entry::NotBuffered(record.meta(inner.store_id())),
        }
    }
}

#[async_trait]
impl Snapshot for LocalSnapshot {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        Ok(CachedMeta::Known(self.meta(key)?))
    }

    async fn stat(&self, key: &Key, _prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        self.meta(key)
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
        match open_value(&self.inner, key, &record, range, Some(&self.pin)).await {
            // The pin may have expired just now, and the file was removed.
            Err(error) if is_missing_file(&error) && !self.pin.touch() => Err(StoreError::SnapshotExpired),
            result => result.map(Some),
        }
    }
}
