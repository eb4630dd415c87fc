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
    bulk::{Bulk, Visible},
    needs_own_round,
    round::Round,
};
use crate::{
    checkpoint::Work,
    gc::GarbageCollector,
    log::{Log, LogFiles},
    read_only_flag::ReadOnlyFlag,
    values::{Directory, StagedFile},
    view::{Memtable, Views},
};

/// The most commits in one round, which bounds how long the first of them waits.
const MAX_ROUND: usize = 1024;
/// The most bytes of small values and keys in one round, but for the last commit in it.
const MAX_ROUND_BYTES: usize = 256 << 10;

/// The committer's state.
pub(crate) struct Committer {
    pub(crate) log: Log,
    pub(crate) directory: Directory,
    pub(crate) failure: Arc<ReadOnlyFlag>,
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
    pub(crate) checkpointer: mpsc::Sender<Work>,
    /// The bytes at which a memtable is frozen.
    pub(crate) freeze_bytes: u64,
    /// The bytes of log at which a memtable is frozen.
    pub(crate) freeze_log_bytes: u64,
}

impl Committer {
    /// Starts the thread. It ends with [`Request::Stop`].
    pub(crate) fn start(self, requests: mpsc::Receiver<Request>) -> std::io::Result<JoinHandle<()>> {
        thread::Builder::new().name("zarrd-committer".into()).spawn(move || self.work(&requests))
    }

    fn work(mut self, requests: &mpsc::Receiver<Request>) {
        let mut backlog = Backlog::default();
        while backlog.wait(requests) {
            let mut round = self.round();
            while round.commits() < MAX_ROUND
                && round.bytes < MAX_ROUND_BYTES
                && let Some(request) = backlog.next_shared(requests)
            {
                round = self.take(round, request);
            }
            self.finish(round);
            self.publisher.freeze_if_large();
            if let Some(request) = backlog.next_alone() {
                let round = self.round();
                let round = self.take(round, request);
                self.finish(round);
                self.publisher.freeze_if_large();
            }
        }
        while let Ok(request) = requests.try_recv() {
            request.refuse(StoreError::Closed);
        }
    }

    fn round(&self) -> Round {
        Round::new(self.number, self.store_id)
    }

    fn take(&mut self, round: Round, request: Request) -> Round {
        if let Err(error) = self.failure.check() {
            request.refuse(error);
            return round;
        }
        match request {
            Request::Commit { changes, reply } => self.take_commit(round, changes, reply),
            Request::Bulk { bulk, reply } => self.take_bulk(round, *bulk, reply),
            Request::Freeze => {
                self.finish(round);
                self.publisher.freeze();
                self.round()
            }
            Request::Stop => round,
        }
    }

    fn take_commit(&mut self, mut round: Round, changes: Vec<PlainChange>, reply: Reply<Vec<ChangeOutcome>>) -> Round {
        // What it changes is judged against as visible, too.
        let alone = needs_own_round(&changes);
        if alone && round.has_changes() {
            self.finish(round);
            round = self.round();
        }
        match self.publisher.views.stable() {
            Ok((view, _gate)) => round.take(&view, changes, reply),
            Err(error) => answer(reply, Err(error)),
        }
        if alone {
            self.finish(round);
            round = self.round();
        }
        round
    }

    fn take_bulk(&mut self, round: Round, mut bulk: Bulk, reply: Reply<Vec<ChangeOutcome>>) -> Round {
        self.finish(round);
        let mut round = self.round();
        let rounds = self.recent.since(&bulk.watcher);
        let view = self.publisher.views.stable();
        let judged = view.and_then(|(view, _gate)| bulk.judge_again(&rounds, &Visible(&view), self.store_id));
        match judged {
            Ok(()) => round.take_bulk(bulk, reply),
            Err(error) => answer(reply, Err(error)),
        }
        self.finish(round);
        self.round()
    }

    /// Makes a round durable, visible and answered.
    fn finish(&mut self, mut round: Round) {
        if round.is_empty() {
            return;
        }
        if !round.has_changes() {
            return round.answer(|| Ok(()));
        }
        // Numbers are not given out again, whatever becomes of the round.
        self.number = round.number;
        match self.make_durable(&round) {
            Ok(()) => {
                self.publisher.show(&round, self.log.next_round().saturating_sub(1));
                self.recent.note(round.number, || round.changed());
                round.answer(|| Ok(()));
                self.publisher.collector.replaced(round.number, std::mem::take(&mut round.replaced));
            }
            Err(Undone::OutOfSpace) => round.answer(|| Err(StoreError::OutOfSpace)),
            Err(Undone::Unknown(error)) => {
                // The files stay: it is unknown whether the log on disk names them.
                round.staged.iter().filter_map(|staged| staged.file()).for_each(StagedFile::keep);
                self.failure.set(&error);
                round.answer(|| Err(StoreError::ReadOnly));
            }
        }
    }

    fn make_durable(&mut self, round: &Round) -> Result<(), Undone> {
        let payload = round.encode();
        self.log.make_room(payload.len() as u64).map_err(Undone::before_the_log)?;
        let files = round.staged.iter().filter_map(|staged| staged.file());
        let directories: BTreeSet<u8> = files.clone().map(|staged| staged.file.id.directory()).collect();
        for directory in directories {
            self.directory.sync(directory).map_err(Undone::before_the_log)?;
        }
        if let Some(bulk) = round.bulk() {
            bulk.retain();
        }
        let number = self.log.append(&payload).map_err(Undone::Unknown)?;
        files.for_each(StagedFile::keep);
        self.publisher.files.note_round(number, payload.len() as u64, round.bulk().cloned());
        Ok(())
    }
}

/// Errors of making a round durable.
enum Undone {
    /// There was no space, and nothing of it is in the log.
    OutOfSpace,
    /// It is unknown what the disk has.
    Unknown(std::io::Error),
}

impl Undone {
    fn before_the_log(error: std::io::Error) -> Self {
        if crate::index::is_out_of_space(&error) { Self::OutOfSpace } else { Self::Unknown(error) }
    }
}

impl Publisher {
    fn show(&self, round: &Round, log_round: u64) {
        // Memtables are frozen by this thread alone, so this one is still the active one.
        let Ok(parts) = self.views.parts() else { return };
        round.insert_into(&parts.active);
        parts.active.finish_round(log_round);
        self.views.publish(round.number);
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
            let _ = self.checkpointer.send(Work::Apply);
        }
    }
}
