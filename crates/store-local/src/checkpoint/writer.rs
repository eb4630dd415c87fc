//! Writing to the index in batches that update its metadata entry.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{
    index::{Index, IndexError},
    keyspace::{META_KEY, Meta, is_internal},
};

/// Changes by physical key: the new value, or `None` to remove it.
pub(crate) type Changes = BTreeMap<Bytes, Option<Bytes>>;

/// The only writer of the index.
pub(crate) struct IndexWriter {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) meta: Meta,
    /// The maximum number of changes in the next batch, adapted so that it takes a few milliseconds.
    limit: usize,
}

/// An observer of the writer's batches: a verification or a copy of the entries up to some key.
pub(crate) trait Follower {
    /// Reports that an entry was added, replaced or removed.
    fn changed(&mut self, key: &Bytes, old: Option<&Bytes>, new: Option<&Bytes>) -> Result<(), IndexError>;
}

/// The target duration of a batch: readers of sled wait for it.
const MAX_BATCH_DURATION: Duration = Duration::from_millis(3);
const MIN_BATCH: usize = 16;
const MAX_BATCH: usize = 1024;
/// The maximum size of the values in a batch, in bytes.
pub(crate) const MAX_BATCH_BYTES: usize = 256 << 10;

impl IndexWriter {
    pub(crate) fn new(index: Arc<dyn Index>, meta: Meta) -> Self {
        Self { index, meta, limit: 128 }
    }

    /// The maximum number of changes in the next batch.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Applies changes atomically.
    pub(crate) fn apply(&mut self, changes: Changes, followers: &mut [&mut dyn Follower]) -> Result<(), IndexError> {
        for (key, new) in changes.iter().filter(|(key, _)| !is_internal(key)) {
            let old = self.index.get(key)?;
            self.meta.replace(key, old.as_ref(), new.as_ref());
            for follower in followers.iter_mut() {
                follower.changed(key, old.as_ref(), new.as_ref())?;
            }
        }
        let count = changes.len();
        let mut batch: Vec<_> = changes.into_iter().collect();
        batch.push((Bytes::from_static(META_KEY), Some(self.meta.encode())));
        let started = Instant::now();
        self.index.apply(batch)?;
        let took = started.elapsed();
        self.limit = if took > MAX_BATCH_DURATION {
            (self.limit / 2).max(MIN_BATCH)
        } else if count >= self.limit && took < MAX_BATCH_DURATION / 3 {
            self.limit.saturating_mul(2).min(MAX_BATCH)
        } else {
            self.limit
        };
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), IndexError> {
        self.index.sync()
    }
}
