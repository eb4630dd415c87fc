//! The state that all clones of a store share.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use store::{CursorSigner, Key, StoreError};
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};

use crate::{
    checkpoint::{Checkpointer, Work},
    clean_shutdown,
    commit::{Action, PlainChange, RecentChanges, Request, is_bulk},
    gc::{GarbageCollector, Pin, Pins},
    index::{self, Index},
    keys::LogKey,
    log::LogFiles,
    open::{Identity, Lock},
    paths::Paths,
    read_only_flag::ReadOnlyFlag,
    record::{FileId, Record},
    space::{Ballast, Reserve},
    spill::Spill,
    values::{Buffers, Directory},
    view::{View, Views},
};

/// See the module's page.
pub(crate) struct Core {
    pub(super) paths: Paths,
    pub(super) identity: Identity,
    pub(crate) views: Arc<Views>,
    pub(crate) recent: Arc<RecentChanges>,
    pub(crate) log_files: Arc<LogFiles>,
    pub(crate) log_key: LogKey,
    pub(crate) directory: Directory,
    pub(crate) buffers: Buffers,
    pub(super) pins: Arc<Pins>,
    pub(super) collector: GarbageCollector,
    pub(super) failure: Arc<ReadOnlyFlag>,
    pub(super) reserve: Reserve,
    pub(super) ballast: Arc<Ballast>,
    pub(super) cursors: CursorSigner,
    pub(super) next_file: AtomicU64,
    /// The number before the first change of this epoch, for the trailers of value files.
    pub(super) epoch_start: u64,
    pub(super) epoch: u64,
    /// What is read ahead of an answer, in KiB, over all readers.
    pub(super) ahead: Arc<Semaphore>,
    /// The bytes of small staged values that may be in memory.
    pub(super) inline: Arc<Semaphore>,
    /// The bytes of small values that snapshots may hold in memory.
    pub(crate) snapshots: Arc<Semaphore>,
    pub(super) spill: Spill,
    /// The most memory of changes that the index does not have yet, in bytes.
    pub(super) commit_buffer: u64,
    /// Notified whenever the index has caught up.
    pub(super) applied: Arc<Notify>,
    pub(super) threads: Mutex<Option<Threads>>,
    pub(super) requests: Mutex<Option<mpsc::Sender<Request>>>,
    pub(super) work: Mutex<Option<mpsc::Sender<Work>>>,
}

/// The threads and handles that end when the store is closed.
pub(super) enum Threads {
    Writing {
        committer: JoinHandle<()>,
        checkpointer: JoinHandle<(Checkpointer, Result<(), StoreError>)>,
        collector: JoinHandle<()>,
        lock: Lock,
    },
    ReadOnly {
        index: Arc<dyn Index>,
        copy: TempDir,
        collector: JoinHandle<()>,
        lock: Lock,
    },
}

/// The longest that a commit waits while the index falls behind the log.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// The bytes of log that may wait for the index, for each byte of the commit buffer: large commits carry values that are not
/// in memory.
const LOG_PER_BUFFER: u64 = 16;
/// The longest that readers may take to leave the index when the store is closed.
const LONGEST_READ: Duration = Duration::from_secs(30);

impl Core {
    pub(crate) fn store_id(&self) -> u64 {
        self.identity.id
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn dir(&self) -> &Path {
        &self.paths.dir
    }

    /// Which store this is, and which opening of it: a staged value is good for no other.
    pub(super) fn opening(&self) -> (u64, u64) {
        (self.identity.id, self.epoch_start)
    }

    pub(crate) fn next_file_id(&self) -> FileId {
        FileId(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// The record of a key. Done on the calling thread: the index is small and cached.
    pub(crate) fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        loop {
            let view = self.views.now()?;
            let record = view.record(key)?;
            if !view.relies_on_deleting(key) || self.has_sweeps_of(&view)? {
                return Ok(record);
            }
        }
    }

    fn has_sweeps_of(&self, view: &View) -> Result<bool, StoreError> {
        Ok(Arc::ptr_eq(&self.views.parts()?.sweeps, &view.parts.sweeps))
    }

    /// Retains the files of everything that is visible now, until the pin is resolved.
    pub(crate) fn pin(&self) -> Pin {
        Pin::new(&self.pins, || self.views.visible(), self.collector.clone())
    }

    /// Fails with [`StoreError::OutOfSpace`] if `bytes` more would cut into the reserve. Blocks when space is short: what was
    /// replaced or erased may not have been removed yet.
    pub(crate) fn check_space(&self, bytes: u64) -> Result<(), StoreError> {
        self.has_space(bytes).or_else(|_| {
            self.collector.drain();
            self.has_space(bytes)
        })
    }

    /// The same without waiting for anything.
    pub(super) fn has_space(&self, bytes: u64) -> Result<(), StoreError> {
        let space = self.directory.space().map_err(|error| StoreError::io("ask for the free space", error))?;
        self.reserve.check(space, self.ballast.held(), bytes)
    }

    /// Waits until there is room for changes that the index does not have yet. What only erases has twice the room, so that
    /// space can be made when there is none; large commits have half of it, so that small ones do not wait for them.
    pub(super) async fn admit(&self, changes: &[PlainChange]) -> Result<(), StoreError> {
        let adds = |change: &PlainChange| match change {
            PlainChange::Key { action, .. } => matches!(action, Action::Set(_)),
            PlainChange::Intent { record, .. } => record.is_some(),
            PlainChange::ErasePrefix(_) | PlainChange::CheckEmpty(_) => false,
        };
        let sets = changes.iter().any(adds);
        let limit = match (sets, is_bulk(changes)) {
            (false, _) => self.commit_buffer.saturating_mul(2),
            (true, false) => self.commit_buffer,
            (true, true) => self.commit_buffer / 2,
        };
        let deadline = tokio::time::Instant::now() + LONGEST_WAIT;
        loop {
            let applied = self.applied.notified();
            tokio::pin!(applied);
            applied.as_mut().enable();
            let parts = self.views.parts()?;
            let frozen = parts.frozen.as_ref().map_or(0, |frozen| frozen.bytes());
            let used = parts.active.bytes().saturating_add(frozen);
            drop(parts);
            if used < limit && self.log_files.unapplied_bytes() < limit.saturating_mul(LOG_PER_BUFFER) {
                return Ok(());
            }
            if tokio::time::timeout_at(deadline, applied).await.is_err() {
                self.failure.check()?;
                // An index that has no space does not catch up.
                self.has_space(0)?;
                return Err(StoreError::Busy { retry_after: Some(Duration::from_secs(1)) });
            }
        }
    }

    pub(super) fn send(&self, request: Request) -> Result<(), StoreError> {
        let sent = self.requests.lock().as_ref().ok_or(StoreError::Closed)?.send(request);
        // The lock is released here, since finding out why the committer is gone takes it again.
        sent.map_err(|_| self.committer_is_gone())
    }

    pub(super) fn ask_checkpointer(&self, work: Work) -> Result<(), StoreError> {
        self.failure.check()?;
        let sent = self.work.lock().as_ref().ok_or(StoreError::Closed)?.send(work);
        sent.map_err(|_| StoreError::Closed)
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        if self.requests.lock().is_some() { Ok(()) } else { Err(StoreError::Closed) }
    }

    /// The committer ends when the store is closed, and otherwise only by a panic, after which nothing is certain.
    pub(super) fn committer_is_gone(&self) -> StoreError {
        if self.requests.lock().is_none() {
            return StoreError::Closed;
        }
        self.failure.set(&StoreError::Closed);
        StoreError::ReadOnly
    }

    /// Leaves the store as if the committer had panicked.
    #[cfg(test)]
    pub(super) fn lose_committer(&self) {
        let (sender, receiver) = mpsc::channel();
        drop(receiver);
        *self.requests.lock() = Some(sender);
    }

    pub(super) fn close(&self) -> Result<(), StoreError> {
        let Some(threads) = self.threads.lock().take() else { return Ok(()) };
        match threads {
            Threads::Writing { committer, checkpointer, collector, lock } => {
                self.close_writing(committer, checkpointer, collector, lock)
            }
            Threads::ReadOnly { index, copy, collector, lock } => {
                drop(self.views.close());
                self.collector.stop();
                let _ = collector.join();
                close_index(index)?;
                drop(copy);
                drop(lock);
                Ok(())
            }
        }
    }

    fn close_writing(
        &self,
        committer: JoinHandle<()>,
        checkpointer: JoinHandle<(Checkpointer, Result<(), StoreError>)>,
        collector: JoinHandle<()>,
        lock: Lock,
    ) -> Result<(), StoreError> {
        if let Some(requests) = self.requests.lock().take() {
            // A committer that is gone has nothing left to do.
            let _ = requests.send(Request::Stop);
        }
        let committed = committer.join();
        if let Some(work) = self.work.lock().take() {
            let _ = work.send(Work::Stop);
        }
        let (checkpointer, applied) = checkpointer.join().map_err(|_| StoreError::ReadOnly)?;
        self.collector.stop();
        // The collector has nothing left that must not be lost, so how it ended does not matter.
        let _ = collector.join();
        drop(self.views.close());
        let (index, generations, meta) = checkpointer.into_parts();
        close_index(index)?;
        committed.map_err(|_| StoreError::ReadOnly)?;
        self.failure.check()?;
        let marked = applied.and_then(|()| {
            let marked = clean_shutdown::write(&self.paths, &generations.dir(), self.epoch, meta.applied);
            marked.map_err(|error| StoreError::io("mark the store as closed", error))
        });
        self.ballast.restore_opening();
        drop(lock);
        match marked {
            // The log has everything, so all that is lost is that the next start is quick.
            Err(StoreError::OutOfSpace | StoreError::Busy { .. }) => {
                tracing::warn!("the disk is full: the store is closed, and the next start does what is left to do");
                Ok(())
            }
            marked => marked,
        }
    }
}

/// Waits until no reader is in the index, and closes it. It may panic on damage.
fn close_index(index: Arc<dyn Index>) -> Result<(), StoreError> {
    let began = Instant::now();
    while Arc::strong_count(&index) > 1 && began.elapsed() < LONGEST_READ {
        std::thread::sleep(Duration::from_millis(1));
    }
    let closed = index::catch(|| {
        drop(index);
        Ok(())
    });
    closed.map_err(crate::view::store_error)
}

impl Drop for Core {
    /// Ends the threads of a store that was not closed, which leaves it as a crash would.
    fn drop(&mut self) {
        if self.threads.get_mut().is_none() {
            return;
        }
        drop(self.views.close());
        if let Some(requests) = self.requests.get_mut().take() {
            let _ = requests.send(Request::Stop);
        }
        if let Some(work) = self.work.get_mut().take() {
            let _ = work.send(Work::Stop);
        }
    }
}
