//! The committer: one thread that makes the commits that wait durable together.
//!
//! A round's order of writes is: directories of its value files → log (durable) → memtable → visible → acknowledged → replaced
//! files removed.

use std::{
    collections::BTreeSet,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
};

use store::{ChangeOutcome, StoreError};

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
    log::{Log, LogFiles},
    read_only_flag::ReadOnlyFlag,
    values::{Directory, StagedFile},
    view::{Memtable, Views},
};

/// The most commits in one round, which bounds how long the first of them waits.
const MAX_GROUP_COMMITS: usize = 1024;
/// The most bytes of small values and keys in one round, but for the last commit in it.
const MAX_GROUP_BYTES: usize = 256 << 10;

/// The committer's state.
pub(crate) struct Committer {
    pub(crate) log: Log,
    pub(crate) directory: Directory,
    pub(crate) read_only: Arc<ReadOnlyFlag>,
    pub(crate) recent: Arc<RecentChanges>,
    pub(crate) publisher: Publisher,
    /// The number of the last change that was given out.
    pub(crate) number: u64,
    pub(crate) store_id: u64,
}

/// Shows what is durable, and passes memtables on to the checkpointer.
pub(crate) struct Publisher {
    pub(crate) views: Arc<Views>,
    pub(crate) files: Arc<LogFiles>,
    pub(crate) collector: GarbageCollector,
    pub(crate) checkpointer: mpsc::Sender<CheckpointTask>,
    /// The bytes at which a memtable is frozen.
    pub(crate) freeze_bytes: u64,
    /// The bytes of log at which a memtable is frozen.
    pub(crate) freeze_log_bytes: u64,
}

impl Committer {
    /// Starts the thread. It ends with [`Request::Stop`].
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
            Request::Commit { changes, reply } => self.add_commit(group, changes, reply),
            Request::Bulk { bulk, reply } => self.add_bulk(group, *bulk, reply),
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
        // It is validated against what is visible, and later commits must see its changes as visible.
        let exclusive = needs_own_group(&changes);
        if exclusive && group.has_changes() {
            self.finish(group);
            group = self.new_group();
        }
        match self.publisher.views.stable() {
            Ok((view, _gate)) => group.add(&view, changes, reply),
            Err(error) => answer(reply, Err(error)),
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

    /// Makes a round durable, visible and answered.
    fn finish(&mut self, mut group: CommitGroup) {
        if group.is_empty() {
            return;
        }
        if !group.has_changes() {
            return group.answer(|| Ok(()));
        }
        // Numbers are not given out again, whatever becomes of the round.
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
                // The files stay: it is unknown whether the log on disk names them.
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
        let number = self.log.append(&payload).map_err(NotDurable::Unknown)?;
        files.for_each(StagedFile::retain);
        self.publisher.files.record_group(number, payload.len() as u64, group.bulk().cloned());
        Ok(())
    }
}

/// Errors of making a round durable.
enum NotDurable {
    /// There was no space, and nothing of it is in the log.
    OutOfSpace,
    /// It is unknown what the disk has.
    Unknown(std::io::Error),
}

impl NotDurable {
    fn before_log(error: std::io::Error) -> Self {
        if crate::index::is_out_of_space(&error) { Self::OutOfSpace } else { Self::Unknown(error) }
    }
}

impl Publisher {
    fn publish(&self, group: &CommitGroup, log_group: u64) {
        // Memtables are frozen by this thread alone, so this one is still the active one.
        let Ok(parts) = self.views.parts() else { return };
        group.insert_into(&parts.active);
        parts.active.finish_group(log_group);
        self.views.publish(group.number);
    }

    fn freeze_if_large(&self) {
        let Ok(parts) = self.views.parts() else { return };
        let large = parts.active.bytes() >= self.freeze_bytes || self.files.unapplied_bytes() >= self.freeze_log_bytes;
        if large && !parts.active.is_empty() {
            self.freeze();
        }
    }

    /// Freezes the active memtable, unless there is a frozen one already or a reader is looking keys up: then the checkpointer
    /// asks again.
    fn freeze(&self) {
        let Ok(parts) = self.views.parts() else { return };
        if parts.frozen.is_some() || parts.active.is_empty() {
            return;
        }
        let frozen = self.views.try_replace_when_stable(|parts| {
            parts.frozen = Some(std::mem::replace(&mut parts.active, Arc::new(Memtable::default())));
        });
        if frozen {
            // The checkpointer is gone only after the store was closed.
            let _ = self.checkpointer.send(CheckpointTask::Apply);
        }
    }
}
