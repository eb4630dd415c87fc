//! The committer: one thread that makes waiting commits durable together (group commit).
//!
//! The steps of a group are: sync the directories of its value files → sync the log → insert into the memtable → make
//! visible → acknowledge → remove replaced files.

use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Instant,
};

use zarrd_store::{ChangeOutcome, StoreError};

use super::{
    PlainChange, RecentChanges, Reply, Request, answer,
    backlog::Backlog,
    bulk::{Bulk, VisibleState},
    group::CommitGroup,
    needs_own_group,
};
use crate::{
    checkpoint::CheckpointTask,
    gc::GarbageCollector,
    log::{AppendError, Log, LogFiles},
    read_only_flag::ReadOnlyFlag,
    values::{Directory, StagedFile},
    view::{INDEX_POLL_INTERVAL, MAX_INDEX_WAIT, Memtable, Views, index_unavailable},
};

/// The maximum number of commits in one group. It bounds the latency of the first of them.
const MAX_GROUP_COMMITS: usize = 1024;
/// The size of keys and small values, in bytes, at which a group accepts no more commits.
const MAX_GROUP_BYTES: usize = 256 << 10;

/// The state of the committer thread.
pub(crate) struct Committer {
    pub(crate) log: Log,
    pub(crate) directory: Directory,
    pub(crate) read_only: Arc<ReadOnlyFlag>,
    pub(crate) recent: Arc<RecentChanges>,
    pub(crate) publisher: Publisher,
    /// The number of the last change.
    pub(crate) number: u64,
    pub(crate) store_id: u64,
    /// The time since which the index could not be read, because it is opened again.
    pub(crate) unreadable_since: Option<Instant>,
}

/// Makes durable changes visible, and passes memtables on to the checkpointer.
pub(crate) struct Publisher {
    pub(crate) views: Arc<Views>,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) collector: GarbageCollector,
    pub(crate) checkpointer: mpsc::Sender<CheckpointTask>,
    /// The size of a memtable at which it is frozen, in bytes.
    pub(crate) freeze_bytes: u64,
    /// The size of the log of a memtable at which it is frozen, in bytes.
    pub(crate) freeze_log_bytes: u64,
}

impl Committer {
    /// Starts the thread, which runs until [`Request::Stop`].
    pub(crate) fn start(self, requests: mpsc::Receiver<Request>) -> std::io::Result<JoinHandle<()>> {
        thread::Builder::new().name("zarrd-committer".into()).spawn(move || self.run(&requests))
    }

    fn run(mut self, requests: &mpsc::Receiver<Request>) {
        let mut backlog = Backlog::default();
        while backlog.wait(requests) {
            let mut group = self.new_group();
            while group.commits() < MAX_GROUP_COMMITS
                && group.bytes < MAX_GROUP_BYTES
                && let Some(request) = backlog.next_shared(requests)
            {
                group = self.handle(group, request);
            }
            self.finish(group);
            self.publisher.freeze_if_large();
            if let Some(request) = backlog.next_exclusive() {
                let group = self.new_group();
                let group = self.handle(group, request);
                self.finish(group);
                self.publisher.freeze_if_large();
            }
        }
        while let Ok(request) = requests.try_recv() {
            request.reject(StoreError::Closed);
        }
    }

    fn new_group(&self) -> CommitGroup {
        CommitGroup::new(self.number, self.store_id)
    }

    fn handle(&mut self, group: CommitGroup, request: Request) -> CommitGroup {
        if let Err(error) = self.read_only.check() {
            request.reject(error);
            return group;
        }
        match request {
            Request::Commit { changes, reply, wait } => {
                drop(wait);
                self.add_commit(group, changes, reply)
            }
            Request::Bulk { bulk, reply, wait } => {
                drop(wait);
                self.add_bulk(group, *bulk, reply)
            }
            Request::Freeze => {
                self.finish(group);
                self.publisher.freeze();
                self.new_group()
            }
            Request::Stop => group,
        }
    }

    fn add_commit(
        &mut self,
        mut group: CommitGroup,
        changes: Vec<PlainChange>,
        reply: Reply<Vec<ChangeOutcome>>,
    ) -> CommitGroup {
        // Changes of prefixes and intents are checked against the visible state only, so such a commit is a group by
        // itself.
        let exclusive = needs_own_group(&changes);
        if exclusive && group.has_changes() {
            self.finish(group);
            group = self.new_group();
        }
        let mut commit = (changes, reply);
        loop {
            let added = match self.publisher.views.stable() {
                Ok((view, _gate)) => group.add(&view, commit),
                Err(error) => break answer(commit.1, Err(error)),
            };
            let Err(waiting) = added else {
                self.unreadable_since = None;
                break;
            };
            // All commits wait for the same time, not one after the other.
            if self.unreadable_since.get_or_insert_with(Instant::now).elapsed() >= MAX_INDEX_WAIT {
                break answer(waiting.1, Err(index_unavailable()));
            }
            // The index is opened again after it ran out of space, for which nothing that was checked has to wait.
            self.finish(group);
            group = self.new_group();
            thread::sleep(INDEX_POLL_INTERVAL);
            commit = waiting;
        }
        if exclusive {
            self.finish(group);
            group = self.new_group();
        }
        group
    }

    fn add_bulk(&mut self, group: CommitGroup, mut bulk: Bulk, reply: Reply<Vec<ChangeOutcome>>) -> CommitGroup {
        self.finish(group);
        let mut group = self.new_group();
        let groups = self.recent.since(&bulk.watcher);
        let view = self.publisher.views.stable();
        let checked = view.and_then(|(view, _gate)| bulk.recheck(&groups, &VisibleState(&view), self.store_id));
        match checked {
            Ok(()) => group.add_bulk(bulk, reply),
            Err(error) => answer(reply, Err(error)),
        }
        self.finish(group);
        self.new_group()
    }

    /// Makes a group durable and visible, and acknowledges its commits.
    fn finish(&mut self, mut group: CommitGroup) {
        if group.is_empty() {
            return;
        }
        if !group.has_changes() {
            return group.answer(|| Ok(()));
        }
        // Numbers are never reused, even if the group fails.
        self.number = group.number;
        match self.make_durable(&group) {
            Ok(()) => {
                self.publisher.publish(&group, self.log.next_group().saturating_sub(1));
                self.recent.record(group.number, || group.changed());
                group.answer(|| Ok(()));
                self.publisher.collector.remove_replaced(group.number, std::mem::take(&mut group.replaced));
            }
            Err(NotDurable::OutOfSpace) => group.answer(|| Err(StoreError::OutOfSpace)),
            Err(NotDurable::Unknown(error)) => {
                // Retain the files: the log on disk may refer to them.
                group.staged.iter().filter_map(|staged| staged.file()).for_each(StagedFile::retain);
                self.read_only.set(&error);
                group.answer(|| Err(StoreError::ReadOnly));
            }
        }
    }

    fn make_durable(&mut self, group: &CommitGroup) -> Result<(), NotDurable> {
        let payload = group.encode();
        self.log.reserve(payload.len() as u64).map_err(NotDurable::before_log)?;
        let files = group.staged.iter().filter_map(|staged| staged.file());
        let directories: BTreeSet<u8> = files.clone().map(|staged| staged.file.id.directory()).collect();
        for directory in directories {
            self.directory.sync(directory).map_err(NotDurable::before_log)?;
        }
        if let Some(bulk) = group.bulk() {
            bulk.retain();
        }
        let number = self.log.append(&payload).inspect_err(|error| {
            if let (AppendError::OutOfSpace, Some(bulk)) = (error, group.bulk())
                && let Err(error) = bulk.remove()
            {
                tracing::debug!(%error, "could not remove the file of a large commit; the next start removes it");
            }
        })?;
        files.for_each(StagedFile::retain);
        self.publisher.files.record_group(number, payload.len() as u64, group.bulk().cloned());
        Ok(())
    }
}

/// Errors of making a group durable.
enum NotDurable {
    /// No space is left, and the log contains nothing of the group.
    OutOfSpace,
    /// The state of the disk is unknown.
    Unknown(std::io::Error),
}

impl From<AppendError> for NotDurable {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::OutOfSpace => Self::OutOfSpace,
            AppendError::Unknown(error) => Self::Unknown(error),
        }
    }
}

impl NotDurable {
    fn before_log(error: std::io::Error) -> Self {
        if crate::index::is_out_of_space(&error) { Self::OutOfSpace } else { Self::Unknown(error) }
    }
}

impl Publisher {
    fn publish(&self, group: &CommitGroup, log_group: u64) {
        // Only this thread freezes memtables, so this one is still active.
        let Ok(parts) = self.views.parts() else { return };
        group.insert_into(&parts.active);
        parts.active.finish_group(log_group);
        self.views.publish(group.number);
    }

    /// True if writers would soon have to wait for the memtable to be applied.
    fn is_under_pressure(&self, active: &Memtable) -> bool {
        active.bytes() >= self.freeze_bytes.saturating_mul(2)
            || self.files.unapplied_bytes() >= self.freeze_log_bytes.saturating_mul(4)
    }

    fn freeze_if_large(&self) {
        let Ok(parts) = self.views.parts() else { return };
        let large = parts.active.bytes() >= self.freeze_bytes || self.files.unapplied_bytes() >= self.freeze_log_bytes;
        if large && !parts.active.is_empty() {
            self.freeze();
        }
    }

    /// Freezes the active memtable, unless a frozen one exists, a reader is looking up several keys or a pass holds it off;
    /// the checkpointer requests it again then.
    fn freeze(&self) {
        let Ok(parts) = self.views.parts() else { return };
        if parts.frozen.is_some() || parts.active.is_empty() {
            return;
        }
        if self.views.holds_freezing() && !self.is_under_pressure(&parts.active) {
            return;
        }
        let frozen = self.views.try_replace_when_stable(|parts| {
            parts.frozen = Some(std::mem::replace(&mut parts.active, Arc::new(Memtable::default())));
        });
        if frozen {
            // The checkpointer stops only after the store was closed.
            let _ = self.checkpointer.send(CheckpointTask::Apply);
        }
    }
}
