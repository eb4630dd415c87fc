//! The checkpointer: one thread that brings the index up to the log, and does what the index needs besides.
//!
//! It is the only one that changes the index. A frozen memtable is applied in batches of a few milliseconds, since sled lets
//! nobody look anything up while it applies one; then the index is synced, the memtable dropped, and the log's segments
//! retired. Between checkpoints it removes what lies below erased prefixes ([`sweep`]), compares the index's entries with what
//! it says of itself after a crash ([`verify`]), and copies the index into a new generation ([`compact`]).

mod apply;
mod compact;
mod generation;
mod housekeeping;
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

use store::StoreError;
use tokio::sync::Notify;

pub use self::compact::{CompactError, CompactProgress, CompactReport};
pub(crate) use self::{
    compact::CompactRequest,
    generation::{CHECKED_COPY, Generations},
    verify::Verification,
    writer::IndexWriter,
};
use crate::{
    commit::Request,
    gc::GarbageCollector,
    index::{Index, IndexError, IndexOptions},
    keyspace::Meta,
    log::LogFiles,
    paths::Paths,
    read_only_flag::ReadOnlyFlag,
    space::{Ballast, Reserve},
    values::Directory,
    view::Views,
};

/// A request to the checkpointer.
pub(crate) enum Work {
    /// A memtable was frozen.
    Apply,
    Compact(CompactRequest),
    /// Applies everything, syncs, and ends the thread.
    Stop,
}

/// The interval at which the checkpointer looks for work.
const TICK: Duration = Duration::from_millis(200);
/// The longest that changes stay in the active memtable while it is not full.
const LONGEST_IN_MEMORY: Duration = Duration::from_secs(2);
/// The time between two tries to open an index that has no space.
const RETRY: Duration = Duration::from_millis(500);

/// See the module's page.
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
    pub(crate) reserve: Reserve,
    pub(crate) failure: Arc<ReadOnlyFlag>,
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) writer: IndexWriter,
    pub(crate) generations: Generations,
    /// Notified whenever a memtable has been dropped.
    pub(crate) applied: Arc<Notify>,
    /// A check of all entries, to begin once what was replayed is applied.
    pub(crate) verify: VerifyState,
    pub(crate) compaction: Option<(compact::Compaction, CompactRequest)>,
    /// Old generations of the index that readers may still be in, with their directories.
    pub(crate) retired: Vec<(Arc<dyn Index>, PathBuf)>,
    /// The size of the segment that is prepared for the log.
    pub(crate) spare_bytes: u64,
    pub(crate) clock: Clock,
}

/// The state of the check after a crash.
pub(crate) enum VerifyState {
    /// The store was closed cleanly, or the check is done.
    Done,
    /// The replayed rounds have to be applied first.
    Waiting,
    Running(Verification),
}

/// When things were done last.
pub(crate) struct Clock {
    frozen: Instant,
    housekept: Option<Instant>,
    pruned: Option<Instant>,
    compacted: Option<Instant>,
    /// The bytes that the last compaction left on the disk, and those of the entries then.
    left: Option<(u64, u64)>,
    retry_at: Option<Instant>,
}

impl Default for Clock {
    fn default() -> Self {
        Self { frozen: Instant::now(), housekept: None, pruned: None, compacted: None, left: None, retry_at: None }
    }
}

impl Checkpointer {
    /// Starts the thread. It gives itself back when it ends, with whether the index has everything.
    pub(crate) fn start(
        self,
        work: mpsc::Receiver<Work>,
    ) -> std::io::Result<JoinHandle<(Self, Result<(), StoreError>)>> {
        thread::Builder::new().name("zarrd-checkpoint".into()).spawn(move || self.run(&work))
    }

    fn run(mut self, work: &mpsc::Receiver<Work>) -> (Self, Result<(), StoreError>) {
        loop {
            let next = if self.has_background_work() { work.try_recv().ok() } else { work.recv_timeout(TICK).ok() };
            match next {
                Some(Work::Stop) => {
                    let result = self.finish();
                    return (self, result);
                }
                Some(Work::Compact(request)) => self.begin_compaction(request),
                Some(Work::Apply) | None => {}
            }
            if self.failure.check().is_err() {
                // Nothing is certain any more; what is visible stays so until the store is opened again.
                thread::sleep(TICK);
                continue;
            }
            self.apply_if_frozen();
            let began = Instant::now();
            let result = self.background_step();
            self.note(result);
            // Half of the time belongs to others.
            if self.has_background_work() {
                thread::sleep(began.elapsed().min(TICK));
            }
            self.freeze_if_old();
            self.keep_house();
        }
    }

    fn has_background_work(&self) -> bool {
        self.clock.retry_at.is_none()
            && (matches!(self.verify, VerifyState::Running(_)) || self.compaction.is_some() || self.has_sweeps())
    }

    fn background_step(&mut self) -> Result<(), IndexError> {
        if !self.has_background_work() {
            return Ok(());
        }
        self.ballast.make_room(self.room_for_a_batch());
        self.verify_step()?;
        self.sweep_step()?;
        self.compact_step()
    }

    fn apply_if_frozen(&mut self) {
        if self.clock.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let waited = self.clock.retry_at.take().is_some();
        if waited && let Err(error) = self.reopen() {
            self.clock.retry_at = Instant::now().checked_add(RETRY);
            self.ballast.restore_opening();
            tracing::warn!(error = &error as &dyn std::error::Error, "the index cannot be opened yet");
            return;
        }
        let result = self.apply_frozen();
        if waited {
            self.publish_index();
        }
        self.note(result);
    }

    /// Notes how something ended. A full disk is waited for; after anything else the store is read-only.
    fn note(&mut self, result: Result<(), IndexError>) {
        match result {
            Ok(()) => {}
            Err(error) if error.is_out_of_space() => {
                tracing::warn!("the index has no space; it goes on when there is some");
                self.ballast.make_room(u64::MAX / 2);
                self.abandon_compaction("there is no space for the new index");
                self.clock.retry_at = Instant::now().checked_add(RETRY);
            }
            Err(error) => self.failure.set(&error),
        }
    }

    /// What has to be free for a batch, in bytes: sled takes a segment at a time.
    fn room_for_a_batch(&self) -> u64 {
        self.index_options.segment_bytes.saturating_mul(3)
    }

    fn freeze_if_old(&mut self) {
        let Ok(parts) = self.views.parts() else { return };
        if parts.active.is_empty() {
            self.clock.frozen = Instant::now();
        } else if parts.frozen.is_none() && self.clock.frozen.elapsed() > LONGEST_IN_MEMORY {
            // The committer is gone only after the store was closed.
            let _ = self.requests.send(Request::Freeze);
        }
    }

    /// Takes out what has to be closed last: the index, where it is, and what it holds.
    pub(crate) fn into_parts(self) -> (Arc<dyn Index>, Generations, Meta) {
        (self.writer.index, self.generations, self.writer.meta)
    }

    /// Applies all there is. The committer has ended.
    fn finish(&mut self) -> Result<(), StoreError> {
        self.abandon_compaction("the store was closed");
        self.failure.check()?;
        for _ in 0..2 {
            if self.clock.retry_at.take().is_some() {
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
