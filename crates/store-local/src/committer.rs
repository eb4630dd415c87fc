//! The committer: one thread that takes a queue of commits and makes them durable together.
//!
//! A round is all the commits that wait when it begins. Each is judged against the state that those before it leave,
//! so writes of one key are ordered here. The round's order of writes is: directories of its value files → index
//! (durable) → progress → visible to new pins → acknowledged → replaced files removed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use store::{Corruption, Key, Outcome, Precondition, Prefix, StoreError, Written};
use tokio::sync::oneshot;

use crate::{
    failure::Failure,
    index::{Batch, Index, IndexError, Meta, Step, catch, fingerprint},
    open::Lock,
    pins::Pins,
    progress::Progress,
    record::{FileId, Place, Record, now_millis},
    values::{Directory, StagedFile},
};

/// The most commits in one round, which bounds how long the first of them waits.
const MAX_ROUND: usize = 1024;
/// The most bytes of inline values and keys in one round, but for the last commit in it.
const MAX_ROUND_BYTES: usize = 1 << 20;

/// One change, with its staged value taken out of its wrapping.
pub(crate) struct PlainChange {
    pub(crate) key: Key,
    pub(crate) precondition: Precondition,
    pub(crate) action: Action,
}

pub(crate) enum Action {
    Set(Arc<StagedValue>),
    Erase,
    Check,
}

/// A value that is to be committed, once.
pub(crate) struct StagedValue {
    pub(crate) content: StagedContent,
    /// Set by the committer alone, when the value goes into a round.
    committed: AtomicBool,
}

/// Where a staged value is.
pub(crate) enum StagedContent {
    Inline(Bytes),
    File(StagedFile),
}

pub(crate) enum Request {
    Commit { changes: Vec<PlainChange>, reply: Reply<Vec<Outcome>> },
    ErasePrefix { prefix: Prefix, limit: usize, reply: Reply<u64> },
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Answers a commit with what became of its round.
type Acknowledge = Box<dyn FnOnce(Result<(), StoreError>)>;

/// What the committer works on.
pub(crate) struct Committer {
    pub(crate) store_id: u64,
    pub(crate) index: Arc<dyn Index>,
    pub(crate) directory: Directory,
    pub(crate) pins: Arc<Pins>,
    pub(crate) progress: Progress,
    pub(crate) failure: Arc<Failure>,
    /// What the index says of itself now; its commit is the last one given out.
    pub(crate) meta: Meta,
    /// Nobody else may open the store before the last round is done.
    pub(crate) lock: Lock,
}

/// The changes of a round, on top of what the index has.
struct Round {
    changes: BTreeMap<Key, Option<Vec<u8>>>,
    meta: Meta,
    replaced: Vec<FileId>,
    staged: Vec<Arc<StagedValue>>,
    bytes: usize,
    acknowledge: Vec<Acknowledge>,
}

impl Committer {
    /// Starts the thread. It ends when the last sender is gone, and gives back the progress for a last sync.
    pub(crate) fn start(self) -> std::io::Result<(mpsc::Sender<Request>, JoinHandle<Self>)> {
        let (sender, requests) = mpsc::channel();
        let thread = thread::Builder::new().name("zarrd-committer".into()).spawn(move || self.work(&requests))?;
        Ok((sender, thread))
    }

    fn work(mut self, requests: &mpsc::Receiver<Request>) -> Self {
        while let Ok(first) = requests.recv() {
            let mut round = Round::new(self.meta);
            self.take(&mut round, first);
            while round.acknowledge.len() < MAX_ROUND && round.bytes < MAX_ROUND_BYTES {
                let Ok(next) = requests.try_recv() else { break };
                self.take(&mut round, next);
            }
            self.finish(round);
        }
        self
    }

    /// Judges a request and adds its changes to the round; one that fails is answered at once.
    fn take(&self, round: &mut Round, request: Request) {
        if let Err(error) = self.failure.check() {
            return request.refuse(error);
        }
        match request {
            Request::Commit { changes, reply } => match self.apply(round, changes) {
                Ok(outcomes) => round.acknowledge(reply, outcomes),
                Err(error) => answer(reply, Err(error)),
            },
            Request::ErasePrefix { prefix, limit, reply } => match self.erase_prefix(round, &prefix, limit) {
                Ok(count) => round.acknowledge(reply, count),
                Err(error) => answer(reply, Err(error)),
            },
        }
    }

    fn apply(&self, round: &mut Round, changes: Vec<PlainChange>) -> Result<Vec<Outcome>, StoreError> {
        let mut current = Vec::with_capacity(changes.len());
        for change in &changes {
            if let Action::Set(value) = &change.action {
                value.check()?;
            }
            let found = self.current(round, &change.key)?;
            let version = found.as_ref().map(|(_, record)| record.version(self.store_id));
            if !change.precondition.holds(version) {
                return Err(StoreError::PreconditionFailed { key: change.key.clone(), current: version });
            }
            current.push(found);
        }
        // Nothing can fail from here on, so the commit is in the round as a whole or not at all.
        let modified = now_millis();
        let outcome = |(change, found): (PlainChange, Option<(Bytes, Record)>)| {
            // Every change has a number of its own, so that no two sets give the same version.
            round.meta.commit = round.meta.commit.saturating_add(1);
            let replaced = found.is_some();
            match change.action {
                Action::Check => Outcome::Checked,
                Action::Erase => {
                    round.erase(change.key, found);
                    Outcome::Erased { existed: replaced }
                }
                Action::Set(value) => {
                    let record = Record { commit: round.meta.commit, modified, place: value.place() };
                    let version = record.version(self.store_id);
                    let bytes = record.encode(&change.key, self.store_id);
                    value.committed.store(true, Ordering::Relaxed);
                    round.set(change.key, bytes, found, value);
                    Outcome::Set(Written { version, replaced })
                }
            }
        };
        Ok(changes.into_iter().zip(current).map(outcome).collect())
    }

    fn erase_prefix(&self, round: &mut Round, prefix: &Prefix, limit: usize) -> Result<u64, StoreError> {
        let mut keys = BTreeSet::new();
        // Keys that this round set or erased are seen in the round, the others in the index.
        let scan = self.index.scan(prefix.as_bytes(), &mut |key, _| match Key::from_bytes(key) {
            Ok(key) if prefix.contains(&key) && keys.len() < limit => {
                if !matches!(round.changes.get(&key), Some(None)) {
                    keys.insert(key);
                }
                Step::Next
            }
            _ => Step::Stop,
        });
        scan.map_err(store_error)?;
        let set = round.changes.iter().filter(|(key, record)| record.is_some() && prefix.contains(key));
        keys.extend(set.map(|(key, _)| key.clone()));
        let mut current = Vec::with_capacity(keys.len());
        for key in keys.into_iter().take(limit) {
            let found = self.current(round, &key)?;
            current.push((key, found));
        }
        round.meta.commit = round.meta.commit.saturating_add(1);
        let count = current.len() as u64;
        for (key, found) in current {
            round.erase(key, found);
        }
        Ok(count)
    }

    /// The record of a key as the round has it so far.
    fn current(&self, round: &Round, key: &Key) -> Result<Option<(Bytes, Record)>, StoreError> {
        let bytes = match round.changes.get(key) {
            Some(record) => record.clone().map(Bytes::from),
            None => self.index.get(key.as_bytes()).map_err(store_error)?,
        };
        let Some(bytes) = bytes else { return Ok(None) };
        match Record::decode(key.as_bytes(), bytes.clone(), self.store_id) {
            Some(record) => Ok(Some((bytes, record))),
            None => Err(StoreError::Corrupt { key: key.clone(), cause: Corruption::Record }),
        }
    }

    fn finish(&mut self, round: Round) {
        if round.acknowledge.is_empty() {
            return;
        }
        let batch = Batch { changes: round.changes, meta: round.meta };
        let result = if batch.changes.is_empty() { Ok(()) } else { self.make_durable(&batch, &round.staged) };
        // The files stay also where the commit failed: it is unknown whether the index on disk names them.
        round.staged.iter().filter_map(|staged| staged.file()).for_each(StagedFile::keep);
        if let Err(error) = &result {
            self.failure.set(error);
        } else {
            self.meta = batch.meta;
            self.pins.publish(batch.meta.commit, Vec::new());
        }
        for acknowledge in round.acknowledge {
            acknowledge(if result.is_ok() { Ok(()) } else { Err(StoreError::ReadOnly) });
        }
        if result.is_ok() {
            self.pins.publish(batch.meta.commit, round.replaced);
        }
    }

    fn make_durable(&mut self, batch: &Batch, staged: &[Arc<StagedValue>]) -> Result<(), IndexError> {
        let files = staged.iter().filter_map(|staged| staged.file());
        let directories: BTreeSet<u8> = files.map(|staged| staged.file.id.directory()).collect();
        for directory in directories {
            self.directory.sync(directory).map_err(IndexError::Sync)?;
        }
        catch(|| self.index.commit(batch))?;
        self.progress.commit(batch.meta.commit).map_err(IndexError::Sync)
    }
}

impl Round {
    fn new(meta: Meta) -> Self {
        Self {
            changes: BTreeMap::new(),
            meta,
            replaced: Vec::new(),
            staged: Vec::new(),
            bytes: 0,
            acknowledge: Vec::new(),
        }
    }

    fn set(&mut self, key: Key, record: Vec<u8>, found: Option<(Bytes, Record)>, value: Arc<StagedValue>) {
        self.forget(&key, found);
        self.meta.keys = self.meta.keys.saturating_add(1);
        self.meta.digest ^= fingerprint(key.as_bytes(), &record);
        self.bytes = self.bytes.saturating_add(key.as_bytes().len()).saturating_add(record.len());
        if value.file().is_some() {
            self.staged.push(value);
        }
        self.changes.insert(key, Some(record));
    }

    fn erase(&mut self, key: Key, found: Option<(Bytes, Record)>) {
        if found.is_some() {
            self.forget(&key, found);
            self.changes.insert(key, None);
        }
    }

    fn forget(&mut self, key: &Key, found: Option<(Bytes, Record)>) {
        if let Some((bytes, record)) = found {
            self.meta.keys = self.meta.keys.saturating_sub(1);
            self.meta.digest ^= fingerprint(key.as_bytes(), &bytes);
            self.replaced.extend(record.file().map(|file| file.id));
        }
    }

    fn acknowledge<T: 'static>(&mut self, reply: Reply<T>, outcome: T) {
        self.acknowledge.push(Box::new(move |result| answer(reply, result.map(|()| outcome))));
    }
}

impl Request {
    /// Answers a request that is not taken.
    pub(crate) fn refuse(self, error: StoreError) {
        match self {
            Self::Commit { reply, .. } => answer(reply, Err(error)),
            Self::ErasePrefix { reply, .. } => answer(reply, Err(error)),
        }
    }
}

impl StagedValue {
    pub(crate) fn new(content: StagedContent) -> Self {
        Self { content, committed: AtomicBool::new(false) }
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.content {
            StagedContent::Inline(bytes) => bytes.len() as u64,
            StagedContent::File(staged) => staged.file.size,
        }
    }

    /// Fails where it was committed before.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.committed.load(Ordering::Relaxed) { Err(StoreError::ForeignStaged) } else { Ok(()) }
    }

    fn place(&self) -> Place {
        match &self.content {
            StagedContent::Inline(bytes) => Place::Inline(bytes.clone()),
            StagedContent::File(staged) => Place::File(staged.file),
        }
    }

    fn file(&self) -> Option<&StagedFile> {
        match &self.content {
            StagedContent::Inline(_) => None,
            StagedContent::File(staged) => Some(staged),
        }
    }
}

fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>) {
    // Whoever asked may have gone; the commit stands all the same.
    let _ = reply.send(result);
}

pub(crate) fn store_error(error: IndexError) -> StoreError {
    StoreError::Index(Box::new(error))
}
