//! Opening the index again after it ran out of space: sled and redb accept nothing after a failed write.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Checkpointer, Verification, VerifyState};
use crate::{
    damage::KnownDamage,
    index::{self, Index, IndexError, UnavailableIndex},
    keyspace::{Meta, Sweeps},
};

/// The maximum time to wait for readers to leave the index.
const MAX_READER_WAIT: Duration = Duration::from_secs(10);

impl Checkpointer {
    /// Opens the index again. Readers do not see it before [`publish_index`](Self::publish_index).
    pub(super) fn reopen(&mut self) -> Result<(), IndexError> {
        self.ballast.free_space(self.batch_space().saturating_mul(2));
        self.ballast.free_open_space();
        self.close_index();
        self.open_index()?;
        if !matches!(self.verify, VerifyState::Done) {
            self.verify = VerifyState::Running(Verification::default());
        }
        Ok(())
    }

    /// Closes the index. Readers have to wait.
    pub(super) fn close_index(&mut self) {
        let unavailable: Arc<dyn Index> = Arc::new(UnavailableIndex::reopening());
        self.views.replace(|parts| parts.index = Arc::clone(&unavailable));
        let old = std::mem::replace(&mut self.writer.index, unavailable);
        let started = Instant::now();
        while Arc::strong_count(&old) > 1 && started.elapsed() < MAX_READER_WAIT {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The index failed before, so errors of closing it are irrelevant.
        let _ = index::catch(|| {
            drop(old);
            Ok(())
        });
    }

    /// Opens the index that was closed.
    pub(super) fn open_index(&mut self) -> Result<(), IndexError> {
        let dir = self.generations.dir();
        let index = self.ballast.retry_opening(IndexError::is_out_of_space, || self.index_options.open(&dir))?;
        let index: Arc<dyn Index> = Arc::from(index);
        self.writer.meta = match Meta::read(&*index)? {
            Some(meta) => meta,
            // Nothing was ever applied; the writer's metadata describes changes that were lost.
            None => Meta::recount(&*index)?,
        };
        let sweeps = Arc::new(Sweeps::read(&*index)?);
        let damage = Arc::new(KnownDamage::read(&*index)?);
        self.writer.index = index;
        self.views.replace(|parts| {
            parts.sweeps = sweeps;
            parts.damage = damage;
        });
        Ok(())
    }

    /// Makes the index that was opened again visible to readers.
    ///
    /// Opening it uses the open reserve, which the next start depends on. The reserve is restored before any request is
    /// answered, so that a process killed afterwards leaves a store that opens on a full disk.
    pub(super) fn publish_index(&self) {
        self.ballast.restore_open_reserve();
        self.views.replace(|parts| parts.index = Arc::clone(&self.writer.index));
    }
}
