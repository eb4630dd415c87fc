//! [`LocalStore`], and the traits on it.

mod list;
mod read;
mod stage;

use std::{
    path::Path,
    sync::{Arc, atomic::AtomicU64, mpsc},
    thread::JoinHandle,
};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use store::{
    ByteRange, ByteStream, Change, Content, Corruption, CursorSeal, DirPage, Info, Key, KeyPage, ListableStore,
    MAX_COMMIT_CHANGES, Outcome, Page, Precondition, Prefix, ReadableStore, Snapshot, Staged, StoreError,
    TransactionalStore, Value, WriteableStore, Written,
};
use tokio::sync::{Semaphore, oneshot};

pub(crate) use self::read::value_of;
use crate::{
    CheckReport, Damaged, OpenError, Options, blocking, check,
    committer::{Action, Committer, PlainChange, Reply, Request, StagedValue, store_error},
    failure::Failure,
    index::Index,
    janitor::Janitor,
    open::{self, Identity, Opened, Paths},
    pins::Pins,
    record::{FileId, Record},
    snapshot::LocalSnapshot,
    space::Reserve,
    values::{Buffers, Directory},
};

/// A store in a directory of the local file system. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct LocalStore(Arc<Core>);

/// What all clones of a store share.
pub(crate) struct Core {
    paths: Paths,
    identity: Identity,
    /// `None` after the store was closed.
    index: RwLock<Option<Arc<dyn Index>>>,
    pub(crate) directory: Directory,
    pub(crate) buffers: Buffers,
    pub(crate) pins: Arc<Pins>,
    janitor: Janitor,
    failure: Arc<Failure>,
    reserve: Reserve,
    cursors: CursorSeal,
    next_file: AtomicU64,
    /// The last commit at the start of this epoch, for the trailers of value files.
    begin: u64,
    /// What is read ahead of an answer, in KiB, over all readers.
    ahead: Arc<Semaphore>,
    requests: Mutex<Option<mpsc::Sender<Request>>>,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    committer: JoinHandle<Committer>,
    janitor: JoinHandle<()>,
}

/// How much may be read ahead of answers, over all readers, in KiB.
const AHEAD_KIB: usize = 32 << 10;

impl LocalStore {
    /// Opens the store in `dir`, making it where the directory is missing or empty.
    ///
    /// Where it refuses, nothing in the directory has been changed, but for what an index that was not closed does to its
    /// own files when it is opened.
    pub async fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let dir = dir.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let opened = open::open(&dir, &options)?;
            Self::start(opened, &options).map_err(OpenError::io("start the threads of", dir))
        });
        match opening.await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(OpenError::io("open", "the store")(std::io::Error::other(error))),
            },
        }
    }

    /// Closes the store: finishes what was asked for, and seals it, so that the next start is quick and knows of any
    /// change of its files. Everything fails with [`StoreError::Closed`] afterwards. Closing twice does nothing.
    pub async fn close(&self) -> Result<(), StoreError> {
        let core = Arc::clone(&self.0);
        blocking(move || core.close()).await
    }

    /// Reads every value and checks it against its checksums, from the first key to the last. `progress` is told what
    /// has been looked at so far, after each value.
    pub async fn check(
        &self,
        progress: impl FnMut(&CheckReport) + Send + 'static,
    ) -> Result<(CheckReport, Vec<Damaged>), StoreError> {
        let core = Arc::clone(&self.0);
        blocking(move || check::check(&core, progress)).await
    }

    fn start(mut opened: Opened, options: &Options) -> std::io::Result<Self> {
        open::collect_in_background(&mut opened);
        let Opened { lock, paths, identity, index, meta, progress, epoch, directory, .. } = opened;
        let (janitor, janitor_thread) = Janitor::start(directory.clone())?;
        let pins = Pins::new(meta.commit, options.pin_timeout, janitor.clone());
        janitor.watch(&pins);
        let failure = Arc::new(Failure::default());
        let committer = Committer {
            lock,
            store_id: identity.id,
            index: Arc::clone(&index),
            directory: directory.clone(),
            pins: Arc::clone(&pins),
            progress,
            failure: Arc::clone(&failure),
            meta,
        };
        let (requests, committer_thread) = committer.start()?;
        let threads = Threads { committer: committer_thread, janitor: janitor_thread };
        Ok(Self(Arc::new(Core {
            cursors: CursorSeal::new(identity.secret),
            paths,
            identity,
            index: RwLock::new(Some(index)),
            directory,
            buffers: Buffers::default(),
            pins,
            janitor,
            failure,
            reserve: Reserve::new(options.reserve_bytes),
            next_file: AtomicU64::new(FileId::first_of(epoch)),
            begin: meta.commit,
            ahead: Arc::new(Semaphore::new(AHEAD_KIB)),
            requests: Mutex::new(Some(requests)),
            threads: Mutex::new(Some(threads)),
        })))
    }

    /// Sends a request to the committer and waits for its answer.
    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        self.0.failure.check()?;
        let (reply, answer) = oneshot::channel();
        let sent = self.0.requests.lock().as_ref().ok_or(StoreError::Closed)?.send(request(reply));
        // The lock is given back here, since finding out why the committer is gone takes it again.
        if sent.is_err() {
            return Err(self.0.committer_is_gone());
        }
        answer.await.unwrap_or_else(|_| Err(self.0.committer_is_gone()))
    }

    async fn change(&self, key: Key, action: Action, precondition: Precondition) -> Result<Outcome, StoreError> {
        let changes = vec![PlainChange { key, precondition, action }];
        let outcomes = self.ask(|reply| Request::Commit { changes, reply }).await?;
        Ok(outcomes.into_iter().next().unwrap_or(Outcome::Checked))
    }
}

impl Core {
    pub(crate) fn store_id(&self) -> u64 {
        self.identity.id
    }

    /// Which store this is, and which opening of it: a staged value is good for no other.
    fn opening(&self) -> (u64, u64) {
        (self.identity.id, self.begin)
    }

    /// Runs `work` on the index, which stays open meanwhile.
    pub(crate) fn with_index<T>(
        &self,
        work: impl FnOnce(&dyn Index) -> Result<T, crate::index::IndexError>,
    ) -> Result<T, StoreError> {
        let index = self.index.read();
        work(&**index.as_ref().ok_or(StoreError::Closed)?).map_err(store_error)
    }

    /// The record of a key. Done on the calling thread: the index is small and cached.
    pub(crate) fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let bytes = self.with_index(|index| index.get(key.as_bytes()))?;
        bytes.map(|bytes| self.decode(key, bytes)).transpose()
    }

    pub(crate) fn decode(&self, key: &Key, bytes: Bytes) -> Result<Record, StoreError> {
        let record = Record::decode(key.as_bytes(), bytes, self.identity.id);
        record.ok_or_else(|| StoreError::Corrupt { key: key.clone(), cause: Corruption::Record })
    }

    /// Fails with [`StoreError::OutOfSpace`] where `bytes` more would cut into the reserve. Blocks when space is short: what was
    /// replaced or erased may not have been removed yet.
    fn check_space(&self, bytes: u64) -> Result<(), StoreError> {
        self.reserve.check(&self.directory, bytes).or_else(|_| {
            self.janitor.drain();
            self.reserve.check(&self.directory, bytes)
        })
    }

    /// The committer ends when the store is closed, and otherwise only by a panic, after which nothing is certain.
    fn committer_is_gone(&self) -> StoreError {
        if self.requests.lock().is_none() {
            return StoreError::Closed;
        }
        self.failure.set(&StoreError::Closed);
        StoreError::ReadOnly
    }

    fn close(&self) -> Result<(), StoreError> {
        let Some(threads) = self.threads.lock().take() else { return Ok(()) };
        drop(self.requests.lock().take());
        let committer = threads.committer.join().map_err(|_| StoreError::ReadOnly)?;
        self.janitor.stop();
        // The janitor has nothing left that must not be lost, so how it ended does not matter.
        let _ = threads.janitor.join();
        let Committer { index, progress, meta, lock, .. } = committer;
        let synced = progress.sync();
        drop(index);
        // Dropping the last handle closes the index, which may panic on damage.
        let index = self.index.write().take();
        crate::index::catch(|| {
            drop(index);
            Ok(())
        })
        .map_err(store_error)?;
        self.failure.check()?;
        synced.map_err(|error| StoreError::io("sync the progress", error))?;
        open::seal(&self.paths, meta.commit).map_err(|error| StoreError::io("seal the store", error))?;
        drop(lock);
        Ok(())
    }
}

#[async_trait]
impl ReadableStore for LocalStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<Value>, StoreError> {
        read::get(&self.0, key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<Info>, StoreError> {
        Ok(self.0.record(key)?.map(|record| record.info(self.0.identity.id)))
    }
}

#[async_trait]
impl WriteableStore for LocalStore {
    async fn set(&self, key: &Key, content: Content, precondition: Precondition) -> Result<Written, StoreError> {
        if precondition != Precondition::none() {
            let current = self.head(key).await?.map(|info| info.version);
            if !precondition.holds(current) {
                return Err(StoreError::PreconditionFailed { key: key.clone(), current });
            }
        }
        let value = stage::stage(&self.0, key, content).await?;
        match self.change(key.clone(), Action::Set(Arc::new(value)), precondition).await? {
            Outcome::Set(written) => Ok(written),
            // The committer answers a set with what it did.
            Outcome::Erased { .. } | Outcome::Checked => Err(StoreError::Closed),
        }
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let outcome = self.change(key.clone(), Action::Erase, precondition).await?;
        Ok(outcome == Outcome::Erased { existed: true })
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<u64, StoreError> {
        let mut total = 0_u64;
        loop {
            let prefix = prefix.clone();
            let limit = MAX_COMMIT_CHANGES;
            let erased = self.ask(|reply| Request::ErasePrefix { prefix, limit, reply }).await?;
            total = total.saturating_add(erased);
            if erased < limit as u64 {
                return Ok(total);
            }
        }
    }

    async fn writable(&self) -> Result<(), StoreError> {
        self.0.failure.check()?;
        if self.0.requests.lock().is_none() {
            return Err(StoreError::Closed);
        }
        let core = Arc::clone(&self.0);
        blocking(move || core.check_space(0)).await
    }
}

#[async_trait]
impl ListableStore for LocalStore {
    async fn list_prefix(&self, prefix: &Prefix, page: Page) -> Result<KeyPage, StoreError> {
        let (core, prefix) = (Arc::clone(&self.0), prefix.clone());
        blocking(move || list::list_prefix(&core, &prefix, &page)).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: Page) -> Result<DirPage, StoreError> {
        let (core, prefix) = (Arc::clone(&self.0), prefix.clone());
        blocking(move || list::list_dir(&core, &prefix, &page)).await
    }
}

#[async_trait]
impl TransactionalStore for LocalStore {
    async fn stage(&self, key: &Key, content: Content) -> Result<Staged, StoreError> {
        let value = stage::stage(&self.0, key, content).await?;
        let (size, store) = (value.size(), self.0.opening());
        Ok(Staged::new(key.clone(), size, LocalStaged { store, value: Arc::new(value) }))
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        let value = self.staged(staged)?;
        value.check()?;
        read::staged(&self.0, staged.key(), &value, range).await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Outcome>, StoreError> {
        Change::check_form(&changes)?;
        let changes = changes.into_iter().map(|change| self.plain(change)).collect::<Result<_, _>>()?;
        self.ask(|reply| Request::Commit { changes, reply }).await
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let (core, keys) = (Arc::clone(&self.0), keys.to_vec());
        Ok(Box::new(blocking(move || LocalSnapshot::take(core, keys)).await?))
    }
}

/// What a [`Staged`] of this store holds.
struct LocalStaged {
    store: (u64, u64),
    value: Arc<StagedValue>,
}

impl LocalStore {
    /// What this opening of the store staged.
    fn staged(&self, staged: &Staged) -> Result<Arc<StagedValue>, StoreError> {
        let held = staged.held::<LocalStaged>()?;
        if held.store == self.0.opening() { Ok(held.value.clone()) } else { Err(StoreError::ForeignStaged) }
    }

    fn plain(&self, change: Change) -> Result<PlainChange, StoreError> {
        Ok(match change {
            Change::Set { staged, precondition } => {
                let value = self.staged(&staged)?;
                PlainChange { key: staged.key().clone(), precondition, action: Action::Set(value) }
            }
            Change::Erase { key, precondition } => PlainChange { key, precondition, action: Action::Erase },
            Change::Check { key, precondition } => PlainChange { key, precondition, action: Action::Check },
        })
    }
}

impl std::fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalStore").field("dir", &self.0.paths.dir).field("index", &self.0.identity.index).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_without_its_committer_is_read_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path(), Options::default()).await.unwrap();
        let key = Key::parse("a").unwrap();
        store.set(&key, "old".into(), Precondition::none()).await.unwrap();
        // As after a panic of the committer's thread: nobody receives.
        let (sender, receiver) = mpsc::channel();
        drop(receiver);
        *store.0.requests.lock() = Some(sender);
        for _ in 0..2 {
            let result = store.set(&key, "new".into(), Precondition::none()).await;
            assert!(matches!(result, Err(StoreError::ReadOnly)), "{result:?}");
        }
        assert!(matches!(store.writable().await, Err(StoreError::ReadOnly)));
        assert_eq!(store.get(&key, None).await.unwrap().unwrap().bytes().await.unwrap(), "old");
    }
}
