//! [`LocalStore`], and the traits on it.

mod core;
mod list;
mod prepare;
mod read;
mod snapshot;
mod stage;
mod start;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use store::{
    ByteRange, ByteStream, Change, ChangeOutcome, DirPage, GetResult, Intent, Key, KeyCount, KeyPage, ListableStore,
    MAX_INTENT_LEN, PageRequest, Payload, Precondition, Prefix, PutResult, ReadableStore, Snapshot, Staged, StoreError,
    TransactionalStore, ValueMeta, Watermark, WriteableStore, count_keys,
};
use tokio::sync::oneshot;

pub(crate) use self::core::Core;
use self::{prepare::prepare, snapshot::LocalSnapshot};
use crate::{
    Access, CheckReport, CompactError, CompactProgress, CompactReport, CorruptValue, OpenError, Options,
    blocking::run_blocking,
    check,
    checkpoint::{CompactRequest, Work},
    commit::{Action, PlainChange, Reply, Request, StagedValue, is_bulk},
    open,
};

/// A store in a directory of the local file system. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct LocalStore(Arc<Core>);

impl LocalStore {
    /// Opens the store in `dir`, making it if the directory is missing or empty and the store may be written.
    ///
    /// A store that refuses to open is as it was.
    pub async fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let dir = dir.to_owned();
        let opening = tokio::task::spawn_blocking(move || match options.access {
            Access::ReadWrite => {
                let opened = open::open(&dir, &options)?;
                Core::start(opened, &options).map_err(OpenError::io("start the threads of", dir))
            }
            Access::ReadOnly => {
                let opened = open::open_read_only(&dir, &options)?;
                Core::start_read_only(opened, &options).map_err(OpenError::io("start the threads of", dir))
            }
        });
        match opening.await {
            Ok(result) => Ok(Self(Arc::new(result?))),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(OpenError::io("open", "the store")(std::io::Error::other(error))),
            },
        }
    }

    /// Closes the store: finishes what was asked for, and marks it as closed cleanly, so that the next start is quick.
    /// Everything fails with [`StoreError::Closed`] afterwards. Closing twice does nothing.
    pub async fn close(&self) -> Result<(), StoreError> {
        let core = Arc::clone(&self.0);
        run_blocking(move || core.close()).await
    }

    /// Says that a store opened with [`Purpose::Fill`](crate::Purpose::Fill) has all that it is to have; durable when this
    /// returns, like everything that was set before. Any other store stays as it is.
    pub async fn complete(&self) -> Result<(), StoreError> {
        self.0.failure.check()?;
        let core = Arc::clone(&self.0);
        let failed = |error| StoreError::io("remove the mark of an incomplete store", error);
        run_blocking(move || open::complete(core.paths()).map_err(failed)).await
    }

    /// Reads every value and checks it against its checksums, from the first key to the last. `progress` gets what has been
    /// looked at so far, after each value.
    pub async fn check(
        &self,
        progress: impl FnMut(&CheckReport) + Send + 'static,
    ) -> Result<(CheckReport, Vec<CorruptValue>), StoreError> {
        let core = Arc::clone(&self.0);
        run_blocking(move || check::check(&core, progress)).await
    }

    /// Copies the index into a new one, which takes no more space than its entries need, and switches to it. The store is
    /// used meanwhile. `progress` gets how far it is, after each batch.
    pub async fn compact(
        &self,
        progress: impl FnMut(&CompactProgress) + Send + 'static,
    ) -> Result<CompactReport, CompactError> {
        let (reply, answer) = oneshot::channel();
        let request = CompactRequest { progress: Box::new(progress), reply };
        self.0.ask_checkpointer(Work::Compact(request))?;
        answer.await.unwrap_or(Err(CompactError::Store(StoreError::Closed)))
    }

    /// Sends a request to the committer and waits for its answer.
    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        self.0.failure.check()?;
        let (reply, answer) = oneshot::channel();
        self.0.send(request(reply))?;
        answer.await.unwrap_or_else(|_| Err(self.0.committer_is_gone()))
    }

    async fn change(&self, key: Key, action: Action, precondition: Precondition) -> Result<ChangeOutcome, StoreError> {
        let outcomes = self.commit_plain(vec![PlainChange::Key { key, precondition, action }]).await?;
        Ok(outcomes.into_iter().next().unwrap_or(ChangeOutcome::Checked))
    }

    async fn commit_plain(&self, changes: Vec<PlainChange>) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.0.failure.check()?;
        self.0.admit(&changes).await?;
        if changes.iter().any(|change| matches!(change, PlainChange::Intent { record: Some(_), .. })) {
            // What values need was checked when they were staged.
            let core = Arc::clone(&self.0);
            run_blocking(move || core.check_space(MAX_INTENT_LEN as u64)).await?;
        }
        if !is_bulk(&changes) {
            return self.ask(|reply| Request::Commit { changes, reply }).await;
        }
        let core = Arc::clone(&self.0);
        let bulk = run_blocking(move || prepare(&core, changes)).await?;
        self.ask(|reply| Request::Bulk { bulk: Box::new(bulk), reply }).await
    }
}

#[async_trait]
impl ReadableStore for LocalStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        read::get(&self.0, key, range).await
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.0.record(key)?.map(|record| record.meta(self.0.store_id())))
    }
}

#[async_trait]
impl WriteableStore for LocalStore {
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        if precondition != Precondition::none() {
            let current = self.head(key).await?.map(|meta| meta.version);
            if !precondition.is_met_by(current) {
                return Err(StoreError::PreconditionFailed { key: key.clone(), current });
            }
        }
        let value = stage::stage(&self.0, key, content).await?;
        match self.change(key.clone(), Action::Set(Arc::new(value)), precondition).await? {
            ChangeOutcome::Set(written) => Ok(written),
            // The committer answers a set with what it did.
            _ => Err(StoreError::Closed),
        }
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let outcome = self.change(key.clone(), Action::Erase, precondition).await?;
        Ok(outcome == ChangeOutcome::Erased { existed: true })
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let erased = count_keys(self, prefix).await?;
        // What is not there needs no record; a key that is set meanwhile comes after the erase.
        if erased.count > 0 {
            self.commit_plain(vec![PlainChange::ErasePrefix(prefix.clone())]).await?;
        }
        Ok(erased)
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.0.failure.check()?;
        self.0.check_open()?;
        let core = Arc::clone(&self.0);
        run_blocking(move || core.check_space(0)).await
    }
}

#[async_trait]
impl ListableStore for LocalStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let (core, prefix) = (Arc::clone(&self.0), prefix.clone());
        run_blocking(move || list::list_prefix(&core, &prefix, &page)).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let (core, prefix) = (Arc::clone(&self.0), prefix.clone());
        run_blocking(move || list::list_dir(&core, &prefix, &page)).await
    }
}

#[async_trait]
impl TransactionalStore for LocalStore {
    async fn stage(&self, key: &Key, content: Payload) -> Result<Staged, StoreError> {
        let value = stage::stage(&self.0, key, content).await?;
        let (size, store) = (value.size(), self.0.opening());
        Ok(Staged::new(key.clone(), size, LocalStaged { store, value: Arc::new(value) }))
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        let value = self.staged(staged)?;
        value.check()?;
        read::staged(&self.0, staged.key(), &value, range).await
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        Change::validate(&changes)?;
        let changes = changes.into_iter().map(|change| self.plain(change)).collect::<Result<_, _>>()?;
        self.commit_plain(changes).await
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        let core = Arc::clone(&self.0);
        run_blocking(move || {
            let (view, _gate) = core.views.stable()?;
            view.intents()
        })
        .await
    }

    async fn watermark(&self) -> Result<Watermark, StoreError> {
        // Whatever a reader saw was published before, and numbers go on where the store is opened again.
        Ok(Watermark::from_u64(self.0.views.now()?.at))
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let (core, keys) = (Arc::clone(&self.0), keys.to_vec());
        Ok(Box::new(run_blocking(move || LocalSnapshot::take(core, keys)).await?))
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
        let held = staged.data::<LocalStaged>()?;
        if held.store == self.0.opening() { Ok(held.value.clone()) } else { Err(StoreError::InvalidStaged) }
    }

    fn plain(&self, change: Change) -> Result<PlainChange, StoreError> {
        Ok(match change {
            Change::Set { staged, precondition } => {
                let value = self.staged(&staged)?;
                PlainChange::Key { key: staged.key().clone(), precondition, action: Action::Set(value) }
            }
            Change::Erase { key, precondition } => PlainChange::Key { key, precondition, action: Action::Erase },
            Change::Check { key, precondition } => PlainChange::Key { key, precondition, action: Action::Check },
            Change::ErasePrefix { prefix } => PlainChange::ErasePrefix(prefix),
            Change::CheckEmpty { prefix } => PlainChange::CheckEmpty(prefix),
            Change::AddIntent { id, record } => PlainChange::Intent { id, record: Some(record) },
            Change::RemoveIntent { id } => PlainChange::Intent { id, record: None },
        })
    }
}

impl std::fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalStore").field("dir", &self.0.dir()).finish()
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
        store.0.lose_committer();
        for _ in 0..2 {
            let result = store.set(&key, "new".into(), Precondition::none()).await;
            assert!(matches!(result, Err(StoreError::ReadOnly)), "{result:?}");
        }
        assert!(matches!(store.check_writable().await, Err(StoreError::ReadOnly)));
        assert_eq!(store.get(&key, None).await.unwrap().unwrap().bytes().await.unwrap(), "old");
    }
}
