//! Opening the index again after it had no space: sled and redb take nothing more after a write that failed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{Checkpointer, Verification, VerifyState};
use crate::{
    index::{self, Index, IndexError, IndexIter},
    keyspace::{Meta, Sweeps},
};

/// The longest that readers may take to leave the index.
const MAX_READER_WAIT: Duration = Duration::from_secs(10);

/// Stands for an index while it is opened again.
struct Unavailable;

impl Index for Unavailable {
    fn get(&self, _: &[u8]) -> Result<Option<Bytes>, IndexError> {
        Err(IndexError::Reopening)
    }

    fn iter(&self, _: &[u8]) -> Result<IndexIter<'_>, IndexError> {
        Err(IndexError::Reopening)
    }

    fn apply(&self, _: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError> {
        Err(IndexError::Reopening)
    }

    fn sync(&self) -> Result<(), IndexError> {
        Err(IndexError::Reopening)
    }
}

impl Checkpointer {
    /// Opens the index again after it had no space. Readers do not have it before [`publish_index`](Self::publish_index).
    pub(super) fn reopen(&mut self) -> Result<(), IndexError> {
        self.ballast.free_space(self.batch_space().saturating_mul(2));
        self.ballast.free_open_space();
        let unavailable: Arc<dyn Index> = Arc::new(Unavailable);
        self.views.replace(|parts| parts.index = Arc::clone(&unavailable));
        let old = std::mem::replace(&mut self.writer.index, unavailable);
        let started = Instant::now();
        while Arc::strong_count(&old) > 1 && started.elapsed() < MAX_READER_WAIT {
            std::thread::sleep(Duration::from_millis(1));
        }
        // It failed before, so how it ends does not matter.
        let _ = index::catch(|| {
            drop(old);
            Ok(())
        });
        let index: Arc<dyn Index> = Arc::from(self.index_options.open(&self.generations.dir())?);
        self.writer.meta = match Meta::read(&*index)? {
            Some(meta) => meta,
            // Nothing was applied before; what the writer counted was never there.
            None => Meta::recount(&*index)?,
        };
        let sweeps = Arc::new(Sweeps::read(&*index)?);
        self.writer.index = index;
        self.views.replace(|parts| parts.sweeps = sweeps);
        if !matches!(self.verify, VerifyState::Done) {
            self.verify = VerifyState::Running(Verification::default());
        }
        Ok(())
    }

    /// Lets readers have the index that was opened again.
    ///
    /// Opening it gives back the piece of the ballast that the next start relies on. So that piece is taken again before anything
    /// is answered: a process that is killed on an answer leaves a store that opens on a full disk.
    pub(super) fn publish_index(&self) {
        self.ballast.restore_open_reserve();
        self.views.replace(|parts| parts.index = Arc::clone(&self.writer.index));
    }
}
