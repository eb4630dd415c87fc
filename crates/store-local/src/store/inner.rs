//! The state that all clones of a store share.

use std::{
    fs::File,
    io,
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
use tokio::sync::{Notify, Semaphore};
use zarrd_store::{CursorSigner, Key, RunId, ScrubStatus, StoreError, WaitTimes};

use super::format::Format;
use crate::{
    checkpoint::{CheckpointTask, Checkpointer},
    clean_shutdown,
    commit::{Action, PlainChange, RecentChanges, Request, is_bulk},
    faults::SyncFault,
    gc::{GarbageCollector, Pin, PinKind, Pins},
    index::{self, Index},
    index_pages,
    lock::Lock,
    log::LogFiles,
    log_key::LogKey,
    open::{Identity, IndexCopy},
    orphans::Orphans,
    paths::Paths,
    read_only_flag::ReadOnlyFlag,
    record::{FileId, Record},
    scrub::Scrub,
    space::{Ballast, Reserve},
    spill::SpillFiles,
    values::{Buffers, Directory},
    view::{View, Views},
};

/// The shared state of a [`LocalStore`](crate::LocalStore).
pub(crate) struct StoreInner {
    pub(super) paths: Paths,
    pub(super) identity: Identity,
    pub(super) format: Format,
    pub(crate) views: Arc<Views>,
    pub(crate) recent: Arc<RecentChanges>,
    pub(crate) log_files: Arc<LogFiles>,
    pub(crate) log_key: LogKey,
    pub(crate) directory: Directory,
    pub(crate) buffers: Buffers,
    pub(super) pins: Arc<Pins>,
    pub(super) collector: GarbageCollector,
    pub(super) read_only: Arc<ReadOnlyFlag>,
    pub(super) reserve: Reserve,
    pub(super) ballast: Arc<Ballast>,
    pub(super) orphans: Arc<Orphans>,
    pub(super) cursors: CursorSigner,
    pub(super) next_file: AtomicU64,
    /// The number before the first change since the store was opened, also for the trailers of value files.
    pub(super) start: u64,
    pub(super) run: RunId,
    pub(super) epoch: u64,
    /// The limit of prefetched data, over all readers, in KiB.
    pub(super) prefetch: Arc<Semaphore>,
    /// The limit of small staged values in memory, in bytes.
    pub(super) inline: Arc<Semaphore>,
    /// The limit of small values that snapshots retain in memory, in bytes.
    pub(crate) snapshots: Arc<Semaphore>,
    pub(super) spill: SpillFiles,
    pub(super) fault: SyncFault,
    /// The maximum memory of changes that are not yet in the index, in bytes.
    pub(super) commit_buffer: u64,
    /// See [`Options::min_joined_bytes`](crate::Options::min_joined_bytes).
    pub(super) min_joined_bytes: u64,
    pub(super) waits: Queues,
    /// Notified when a memtable has been applied to the index.
    pub(super) applied: Arc<Notify>,
    /// `None` if the store is not scrubbed.
    pub(super) scrub: Mutex<Option<Scrub>>,
    pub(super) threads: Mutex<Option<Threads>>,
    pub(super) requests: Mutex<Option<mpsc::Sender<Request>>>,
    pub(super) tasks: Mutex<Option<mpsc::Sender<CheckpointTask>>>,
}

/// Where a file without a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scratch {
    /// In the store's directory, where it may not use the reserve.
    InStore,
    /// In the temporary directory.
    Elsewhere,
}

/// The times that changes waited in each queue.
#[derive(Debug, Default)]
pub(super) struct Queues {
    /// For the committer to begin with a commit.
    pub(super) committer: Arc<WaitTimes>,
    /// For memory of commits that are not yet in the index.
    pub(super) commit_buffer: Arc<WaitTimes>,
}

/// The threads and handles of an open store.
pub(super) enum Threads {
    Writing {
        committer: JoinHandle<()>,
        checkpointer: JoinHandle<(Checkpointer, Result<(), StoreError>)>,
        collector: JoinHandle<()>,
        lock: Lock,
    },
    ReadOnly {
        index: Arc<dyn Index>,
        copy: IndexCopy,
        collector: JoinHandle<()>,
        lock: Lock,
    },
}

/// The maximum time that a commit waits while the index is behind the log.
const MAX_COMMIT_WAIT: Duration = Duration::from_secs(20);
/// The bytes of log that may be unapplied, per byte of the commit buffer: large commits refer to values that are not in
/// memory.
const LOG_BYTES_PER_BUFFER_BYTE: u64 = 16;
/// The maximum time to wait for readers when the store is closed.
const MAX_READER_WAIT: Duration = Duration::from_secs(30);

impl StoreInner {
    pub(crate) fn store_id(&self) -> u64 {
        self.identity.id
    }

    pub(super) fn paths(&self) -> &Paths {
        &self.paths
    }

    pub(super) fn dir(&self) -> &Path {
        self.paths.given()
    }

    /// Makes a later format of the store durable. Blocks.
    pub(super) fn raise_format(&self, format: u32) -> Result<(), StoreError> {
        self.format.raise(format, &self.identity, &self.directory, &self.paths)
    }

    /// The identity of this store and of its opening, for which a staged value is valid.
    pub(super) fn open_id(&self) -> (u64, u64) {
        (self.identity.id, self.start)
    }

    pub(crate) fn next_file_id(&self) -> FileId {
        FileId(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    /// Looks up the record of a key on the calling thread: the index is small and cached.
    pub(crate) fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        loop {
            let view = self.views.now()?;
            let record = view.record(key)?;
            if !view.depends_on_deleting_phase(key) || self.has_sweeps_of(&view)? {
                return Ok(record);
            }
        }
    }

    fn has_sweeps_of(&self, view: &View) -> Result<bool, StoreError> {
        Ok(Arc::ptr_eq(&self.views.parts()?.sweeps, &view.parts.sweeps))
    }

    /// The state of the scrub, if there is one.
    pub(super) fn scrub_status(&self) -> Option<ScrubStatus> {
        self.scrub.lock().as_ref().map(Scrub::status)
    }

    /// Pins the visible state.
    pub(crate) fn pin(&self, kind: PinKind) -> Pin {
        Pin::new(kind, &self.pins, || self.views.visible(), self.collector.clone())
    }

    /// A new file without a name, so that nothing is left when the process ends: in the store's directory, or in the
    /// temporary one if the disk is full or the store is opened for reading only.
    pub(super) fn unnamed_file(&self, bytes: u64) -> io::Result<(File, Scratch)> {
        match self.read_only.check().and_then(|()| self.has_space(bytes)) {
            Ok(()) => Ok((tempfile::tempfile_in(&self.paths.dir)?, Scratch::InStore)),
            Err(_) => Ok((tempfile::tempfile()?, Scratch::Elsewhere)),
        }
    }

    /// Fails with [`StoreError::OutOfSpace`] if `bytes` more in an [unnamed file](Self::unnamed_file) would use the
    /// reserve. Frees nothing, since values are worth more.
    pub(super) fn check_scratch_space(&self, scratch: Scratch, bytes: u64) -> Result<(), StoreError> {
        match scratch {
            Scratch::InStore => self.has_space(bytes),
            Scratch::Elsewhere => Ok(()),
        }
    }

    /// Fails with [`StoreError::OutOfSpace`] if `bytes` more would use the reserve. Blocks if space is short, until
    /// replaced, erased and orphaned files are removed, also those that snapshots of prefixes retain.
    pub(crate) fn check_space(&self, bytes: u64) -> Result<(), StoreError> {
        let after_collection = |_| {
            self.collector.drain();
            self.has_space(bytes)
        };
        let without_snapshots = |error| {
            self.collector.end_snapshots(&self.pins);
            self.collector.drain();
            self.has_space(bytes).map_err(|_| error)
        };
        self.has_space(bytes).or_else(after_collection).or_else(without_snapshots).or_else(|error| {
            match self.orphans.give_back() {
                Ok(0) | Err(_) => Err(error),
                Ok(_) => self.has_space(bytes),
            }
        })
    }

    /// The same check without blocking.
    pub(super) fn has_space(&self, bytes: u64) -> Result<(), StoreError> {
        if self.ballast.is_exhausted() {
            return Err(StoreError::OutOfSpace);
        }
        let space = self.directory.space().map_err(|error| StoreError::io("query the free space", error))?;
        self.reserve.check(space, self.ballast.size(), bytes)
    }

    /// Waits for space in the buffer of unapplied changes. Commits that only erase may use twice the buffer, so that
    /// space can be freed on a full disk; large commits may use half of it, so that small ones do not wait for them.
    pub(super) async fn wait_for_buffer_space(&self, changes: &[PlainChange]) -> Result<(), StoreError> {
        let adds = |change: &PlainChange| match change {
            PlainChange::Key { action, .. } => matches!(action, Action::Set(..) | Action::Put(_)),
            PlainChange::Intent { record, .. } => record.is_some(),
            PlainChange::ErasePrefix(_) | PlainChange::CheckEmpty(_) => false,
            PlainChange::CheckIntent(_) | PlainChange::CheckNoIntent(_) => false,
        };
        let sets = changes.iter().any(adds);
        let limit = match (sets, is_bulk(changes)) {
            (false, _) => self.commit_buffer.saturating_mul(2),
            (true, false) => self.commit_buffer,
            (true, true) => self.commit_buffer / 2,
        };
        let deadline = tokio::time::Instant::now() + MAX_COMMIT_WAIT;
        let mut wait = None;
        loop {
            let applied = self.applied.notified();
            tokio::pin!(applied);
            applied.as_mut().enable();
            let parts = self.views.parts()?;
            let frozen = parts.frozen.as_ref().map_or(0, |frozen| frozen.bytes());
            let used = parts.active.bytes().saturating_add(frozen);
            drop(parts);
            if used < limit && self.log_files.unapplied_bytes() < limit.saturating_mul(LOG_BYTES_PER_BUFFER_BYTE) {
                return Ok(());
            }
            wait.get_or_insert_with(|| self.waits.commit_buffer.start());
            if tokio::time::timeout_at(deadline, applied).await.is_err() {
                self.read_only.check()?;
                // An index without space does not catch up.
                self.has_space(0)?;
                return Err(StoreError::Busy { retry_after: Some(Duration::from_secs(1)) });
            }
        }
    }

    pub(super) fn send(&self, request: Request) -> Result<(), StoreError> {
        let sent = self.requests.lock().as_ref().ok_or(StoreError::Closed)?.send(request);
        // The lock is released here, because `committer_error` takes it again.
        sent.map_err(|_| self.committer_error())
    }

    pub(super) fn send_task(&self, tasks: CheckpointTask) -> Result<(), StoreError> {
        self.read_only.check()?;
        let sent = self.tasks.lock().as_ref().ok_or(StoreError::Closed)?.send(tasks);
        sent.map_err(|_| StoreError::Closed)
    }

    pub(super) fn check_open(&self) -> Result<(), StoreError> {
        if self.requests.lock().is_some() { Ok(()) } else { Err(StoreError::Closed) }
    }

    /// The error of a stopped committer: the store was closed, or the committer panicked and the state is unknown.
    pub(super) fn committer_error(&self) -> StoreError {
        if self.requests.lock().is_none() {
            return StoreError::Closed;
        }
        self.read_only.set(&StoreError::Closed);
        StoreError::ReadOnly
    }

    /// Disconnects the committer, as if it had panicked.
    #[cfg(test)]
    pub(super) fn disconnect_committer(&self) {
        let (sender, receiver) = mpsc::channel();
        drop(receiver);
        *self.requests.lock() = Some(sender);
    }

    pub(super) fn close(&self) -> Result<(), StoreError> {
        let Some(threads) = self.threads.lock().take() else { return Ok(()) };
        if let Some(mut scrub) = self.scrub.lock().take() {
            scrub.stop();
        }
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
            // A stopped committer has nothing left to do.
            let _ = requests.send(Request::Stop);
        }
        let committed = committer.join();
        if let Some(tasks) = self.tasks.lock().take() {
            let _ = tasks.send(CheckpointTask::Stop);
        }
        let (checkpointer, applied) = checkpointer.join().map_err(|_| StoreError::ReadOnly)?;
        self.collector.stop();
        // The collector has no work that must not be lost, so its result is irrelevant.
        let _ = collector.join();
        drop(self.views.close());
        let (index, generations, meta) = checkpointer.into_parts();
        index_pages::save_positions_if_possible(&*index, &generations.dir());
        close_index(index)?;
        committed.map_err(|_| StoreError::ReadOnly)?;
        self.read_only.check()?;
        if let Err(error) = self.directory.check_place() {
            return Err(StoreError::io("close the store", io::Error::other(error)));
        }
        let marked = applied.and_then(|()| {
            let marked = clean_shutdown::write(&self.paths, &generations.dir(), self.epoch, meta.applied);
            marked.map_err(|error| StoreError::io("write the clean-shutdown marker", error))
        });
        self.ballast.restore_open_reserve();
        drop(lock);
        match marked {
            // The log is complete; only the next start is slower.
            Err(StoreError::OutOfSpace | StoreError::Busy { .. }) => {
                tracing::warn!("the disk is full: the store is closed; the next start applies the rest of the log");
                Ok(())
            }
            marked => marked,
        }
    }
}

/// Closes the index when it has no readers. It may panic on damage.
fn close_index(index: Arc<dyn Index>) -> Result<(), StoreError> {
    let started = Instant::now();
    while Arc::strong_count(&index) > 1 && started.elapsed() < MAX_READER_WAIT {
        std::thread::sleep(Duration::from_millis(1));
    }
    let closed = index::catch(|| {
        drop(index);
        Ok(())
    });
    closed.map_err(crate::view::store_error)
}

impl Drop for StoreInner {
    /// Stops the threads of a store that was not closed, which leaves it as after a crash.
    fn drop(&mut self) {
        if self.threads.get_mut().is_none() {
            return;
        }
        drop(self.views.close());
        if let Some(requests) = self.requests.get_mut().take() {
            let _ = requests.send(Request::Stop);
        }
        if let Some(tasks) = self.tasks.get_mut().take() {
            let _ = tasks.send(CheckpointTask::Stop);
        }
    }
}
