//! Changing the index: batches that keep its entry about itself true.

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

/// The one writer of the index.
pub(crate) struct IndexWriter {
    pub(crate) index: Arc<dyn Index>,
    pub(crate) meta: Meta,
    /// The most changes of the next batch, so that it takes a few milliseconds.
    limit: usize,
}

/// A follower of the writer's batches: a check or a copy of the entries up to some key.
pub(crate) trait Follower {
    /// An entry was replaced or removed, or is new.
    fn changed(&mut self, key: &Bytes, old: Option<&Bytes>, new: Option<&Bytes>) -> Result<(), IndexError>;
}

/// The longest that a batch should take: readers of sled wait for it.
const MAX_BATCH_DURATION: Duration = Duration::from_millis(3);
const MIN_BATCH: usize = 16;
const MAX_BATCH: usize = 1024;
/// The most bytes of values in a batch.
pub(crate) const MAX_BATCH_BYTES: usize = 256 << 10;

impl IndexWriter {
    pub(crate) fn new(index: Arc<dyn Index>, meta: Meta) -> Self {
        Self { index, meta, limit: 128 }
    }

    /// The number of changes that make a batch now.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Makes changes visible together.
    pub(crate) fn apply(&mut self, changes: Changes, followers: &mut [&mut dyn Follower]) -> Result<(), IndexError> {
        for (key, new) in changes.iter().filter(|(key, _)| !is_internal(key)) {
            let old = self.index.get(key)?;
            if let Some(old) = &old {
                self.meta.remove(key, old);
            }
            if let Some(new) = new {
                self.meta.add(key, new);
            }
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
