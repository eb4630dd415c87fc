//! The checkpointer: one thread that applies the log to the index and maintains the index.
//!
//! It is the only writer of the index. It applies a frozen memtable in batches of a few milliseconds, because sled
//! blocks readers while it applies one; then it syncs the index, drops the memtable, and retires the log's segments.
//! Between checkpoints it removes the entries below erased prefixes ([`sweep`]), compares the index's entries with its
//! metadata after a crash ([`verify`]), and copies the index into a new generation ([`compact`]).

mod apply;
mod compact;
mod generation;
mod housekeeping;
mod missing_values;
mod rebuild;
mod reopen;
mod sweep;
mod verify;
mod writer;

use std::{
    path::PathBuf,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::sync::Notify;
use zarrd_store::StoreError;

pub use self::compact::{CompactError, CompactProgress, CompactReport};
pub(crate) use self::{
    compact::CompactRequest,
    generation::{CHECKED_COPY, Generations},
    rebuild::{replace_generation, report_rebuilt, write_rebuilt},
    verify::Verification,
    writer::IndexWriter,
};
use crate::{
    clean_shutdown,
    commit::Request,
    gc::GarbageCollector,
    index::{Index, IndexError, IndexOptions, UnavailableIndex},
    keyspace::Meta,
    log::LogFiles,
    orphans::Orphans,
    paths::Paths,
    read_only_flag::ReadOnlyFlag,
    space::{Ballast, Reserve},
    values::Directory,
    view::Views,
};

/// A task for the checkpointer.
pub(crate) enum CheckpointTask {
    /// Applies the frozen memtable.
    Apply,
    Compact(CompactRequest),
    /// Applies everything, syncs, and stops the thread.
    Stop,
}

/// The interval at which the checkpointer polls for work.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The maximum time that changes stay in an active memtable that is not full.
const MAX_MEMTABLE_AGE: Duration = Duration::from_secs(2);
/// The interval between attempts to open an index that ran out of space.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The state of the checkpointer thread.
pub(crate) struct Checkpointer {
    pub(crate) paths: Paths,
    pub(crate) index_options: IndexOptions,
    pub(crate) store_id: u64,
    pub(crate) epoch: u64,
    pub(crate) views: Arc<Views>,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) directory: Directory,
    pub(crate) collector: GarbageCollector,
    pub(crate) ballast: Arc<Ballast>,
    pub(crate) orphans: Arc<Orphans>,
    pub(crate) reserve: Reserve,
    pub(crate) read_only: Arc<ReadOnlyFlag>,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) writer: IndexWriter,
    pub(crate) generations: Generations,
    /// Notified when a memtable has been applied.
    pub(crate) applied: Arc<Notify>,
    /// The verification of all entries, which starts when the replayed groups are applied.
    pub(crate) verify: VerifyState,
    pub(crate) compaction: Option<(compact::Compaction, CompactRequest)>,
    /// Old generations of the index that may have readers, with their directories.
    pub(crate) retired: Vec<(Arc<dyn Index>, PathBuf)>,
    /// The number of times that the index was found to be damaged.
    pub(crate) rebuilds: u32,
    /// The size of the log segment that is prepared in advance, in bytes.
    pub(crate) spare_bytes: u64,
    pub(crate) timers: Timers,
}

/// The state of the verification after a crash.
pub(crate) enum VerifyState {
    /// The store was closed cleanly, or the verification is complete.
    Done,
    /// The replayed groups are not applied yet.
    Waiting,
    Running(Verification),
}

/// The times of the last runs of periodic work.
pub(crate) struct Timers {
    frozen: Instant,
    housekeeping: Option<Instant>,
    prune: Option<Instant>,
    compact: Option<Instant>,
    /// The size of the index after the last compaction, and that of its entries then, in bytes.
    compacted_size: Option<(u64, u64)>,
    retry_at: Option<Instant>,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            frozen: Instant::now(),
            housekeeping: None,
            prune: None,
            compact: None,
            compacted_size: None,
            retry_at: None,
        }
    }
}

impl Checkpointer {
    /// Starts the thread. Joining it returns the checkpointer, and whether the index has everything.
    pub(crate) fn start(
        self,
        tasks: mpsc::Receiver<CheckpointTask>,
    ) -> std::io::Result<JoinHandle<(Self, Result<(), StoreError>)>> {
        thread::Builder::new().name("zarrd-checkpoint".into()).spawn(move || self.run(&tasks))
    }

    fn run(mut self, tasks: &mpsc::Receiver<CheckpointTask>) -> (Self, Result<(), StoreError>) {
        loop {
            let next =
                if self.has_background_work() { tasks.try_recv().ok() } else { tasks.recv_timeout(POLL_INTERVAL).ok() };
            match next {
                Some(CheckpointTask::Stop) => {
                    let result = self.finish();
                    return (self, result);
                }
                Some(CheckpointTask::Compact(request)) => self.start_compaction(request),
                Some(CheckpointTask::Apply) | None => {}
            }
            if self.read_only.check().is_err() {
                // After an unknown failure nothing is applied; readers still see the visible state.
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            self.apply_if_frozen();
            let started = Instant::now();
            let result = self.background_step();
            self.note(result);
            // Leave half of the time to readers.
            if self.has_background_work() {
                thread::sleep(started.elapsed().min(POLL_INTERVAL));
            }
            self.freeze_if_old();
            self.run_housekeeping();
        }
    }

    fn has_background_work(&self) -> bool {
        self.timers.retry_at.is_none()
            && (matches!(self.verify, VerifyState::Running(_)) || self.compaction.is_some() || self.has_sweeps())
    }

    fn background_step(&mut self) -> Result<(), IndexError> {
        if !self.has_background_work() {
            return Ok(());
        }
        self.ballast.free_space(self.batch_space());
        self.verify_step()?;
        self.sweep_step()?;
        self.compact_step()
    }

    fn apply_if_frozen(&mut self) {
        if self.timers.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let waited = self.timers.retry_at.take().is_some();
        if waited && let Err(error) = self.reopen() {
            self.timers.retry_at = Instant::now().checked_add(RETRY_INTERVAL);
            self.ballast.restore_open_reserve();
            tracing::warn!(error = &error as &dyn std::error::Error, "the index cannot be opened yet");
            return;
        }
        let result = self.apply_frozen();
        if waited {
            self.publish_index();
        }
        self.note(result);
    }

    /// Handles the result of a step. A full disk is retried; any other error makes the store read-only.
    fn note(&mut self, result: Result<(), IndexError>) {
        match result {
            Ok(()) => {}
            Err(error) if error.is_out_of_space() => {
                tracing::warn!("the index has no space; it continues when space is available");
                self.ballast.release_all();
                self.abort_compaction("no space is left for the new index");
                self.timers.retry_at = Instant::now().checked_add(RETRY_INTERVAL);
            }
            Err(error) if error.is_damage() => self.note_damage(&error),
            Err(error) => self.read_only.set(&error),
        }
    }

    /// Rebuilds a damaged index. If its damage has no bounds, the store is read-only, what the index does not have is an error,
    /// and the next start checks the index.
    fn note_damage(&mut self, damage: &IndexError) {
        match self.rebuild_after(damage) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the damaged index could not be rebuilt")
            }
        }
        if let Err(error) = clean_shutdown::mark_damaged(&self.paths) {
            tracing::warn!(error = &error as &dyn std::error::Error, "the damage could not be recorded");
        }
        self.read_only.set(damage);
        let doubtful = UnavailableIndex::damaged(Arc::clone(&self.writer.index), damage);
        self.views.replace(|parts| parts.index = Arc::new(doubtful));
    }

    /// The free space that a batch needs, in bytes: sled allocates whole segments.
    fn batch_space(&self) -> u64 {
        self.index_options.segment_bytes.saturating_mul(3)
    }

    fn freeze_if_old(&mut self) {
        let Ok(parts) = self.views.parts() else { return };
        if parts.active.is_empty() {
            self.timers.frozen = Instant::now();
        } else if parts.frozen.is_none() && self.timers.frozen.elapsed() > MAX_MEMTABLE_AGE {
            // The committer stops only after the store was closed.
            let _ = self.requests.send(Request::Freeze);
        }
    }

    /// Returns what is closed last: the index, its generations, and its metadata.
    pub(crate) fn into_parts(self) -> (Arc<dyn Index>, Generations, Meta) {
        (self.writer.index, self.generations, self.writer.meta)
    }

    /// Applies everything. The committer has stopped.
    fn finish(&mut self) -> Result<(), StoreError> {
        self.abort_compaction("the store was closed");
        self.read_only.check()?;
        for _ in 0..2 {
            if self.timers.retry_at.take().is_some() {
                self.reopen().map_err(crate::view::store_error)?;
            }
            self.apply_frozen().map_err(crate::view::store_error)?;
            self.views.replace(|parts| parts.index = Arc::clone(&self.writer.index));
            self.views.replace(|parts| {
                if parts.frozen.is_none() && !parts.active.is_empty() {
                    parts.frozen = Some(std::mem::take(&mut parts.active));
                }
            });
        }
        self.writer.sync().map_err(crate::view::store_error)
    }
}
