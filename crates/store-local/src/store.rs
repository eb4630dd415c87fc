//! [`LocalStore`], and the store traits for it.

mod format;
mod inner;
mod list;
mod prefix_snapshot;
mod prepare;
mod read;
mod record_file;
mod snapshot;
mod stage;
mod start;

use std::{path::Path, sync::Arc, time::Instant};

use async_trait::async_trait;
use tokio::sync::oneshot;
use zarrd_executor::{Cost, Work};
use zarrd_store::{
    Attributes, Batch, BatchStore, ByteRange, ByteStream, Change, ChangeOutcome, DirPage, DiskSpace, GetResult,
    Guarantees, Intent, Key, KeyCount, KeyPage, KeySource, ListableStore, MAX_INTENT_LEN, PageRequest, Payload,
    Precondition, Prefix, PrefixSnapshot, PutResult, ReadableStore, RunId, Scan, ScanPage, ScrubStatus, Snapshot,
    SnapshotStore, Staged, StoreError, TransactionalStore, ValueMeta, Version, WaitTimes, Watermark, WriteableStore,
    count_keys, stage_copy_of_parts, stage_put,
};

pub(crate) use self::inner::StoreInner;
use self::{inner::Queues, prefix_snapshot::LocalPrefixSnapshot, prepare::prepare, snapshot::LocalSnapshot};
use crate::{
    Access, CheckReport, Checked, CompactError, CompactProgress, CompactReport, OpenError, Options, StoreState,
    blocking::run_blocking,
    check,
    checkpoint::{CheckpointTask, CompactRequest},
    commit::{Action, MAX_CHANGES, PlainChange, Reply, Request, StagedValue, is_bulk},
    open,
    record::MAX_INLINE_BYTES,
    view::{INDEX_POLL_INTERVAL, MAX_INDEX_WAIT},
};

/// A store in a directory of the local file system. Clones are cheap and share one store.
#[derive(Clone)]
pub struct LocalStore(Arc<StoreInner>);

impl LocalStore {
    /// Opens the store in `dir`. Creates it if the directory is missing or empty and the access mode is read-write.
    ///
    /// If this fails, an existing store is unchanged.
    pub async fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let dir = dir.to_owned();
        let opening = zarrd_executor::run_blocking(move || match options.access {
            Access::ReadWrite => {
                let (lock, opened) = open::open(&dir, &options)?;
                StoreInner::start(lock, opened, &options).map_err(OpenError::io("start the threads of", dir))
            }
            Access::ReadOnly => {
                let opened = open::open_read_only(&dir, &options)?;
                StoreInner::start_read_only(opened, &options).map_err(OpenError::io("start the threads of", dir))
            }
        });
        let failed = |error| OpenError::io("open", "the store")(std::io::Error::other(error));
        opening.await.map_err(failed)?.map(|inner| Self(Arc::new(inner)))
    }

    /// Closes the store: completes all requests and marks a clean shutdown, so that the next start is fast. All later
    /// operations fail with [`StoreError::Closed`]. Closing twice has no effect.
    pub async fn close(&self) -> Result<(), StoreError> {
        let inner = Arc::clone(&self.0);
        run_blocking(move || inner.close()).await
    }

    /// The state after the last commit, as the source of a store that is [filled](crate::Purpose::Fill).
    pub fn state(&self) -> Result<StoreState, StoreError> {
        Ok(StoreState { store_id: self.0.store_id(), commit: self.0.views.now()?.at })
    }

    /// Marks a store opened with [`Purpose::Fill`](crate::Purpose::Fill) as complete, durably, including everything set
    /// before. Has no effect on other stores.
    pub async fn complete(&self) -> Result<(), StoreError> {
        self.0.read_only.check()?;
        let inner = Arc::clone(&self.0);
        let failed = |error| StoreError::io("remove the marker of an incomplete store", error);
        run_blocking(move || open::complete(inner.paths()).map_err(failed)).await
    }

    /// Reads every value in the order of the keys and verifies its checksums. `progress` is called after each value.
    pub async fn check(&self, progress: impl FnMut(&CheckReport) + Send + 'static) -> Result<Checked, StoreError> {
        let inner = Arc::clone(&self.0);
        run_blocking(move || check::check(&inner, progress)).await
    }

    /// Copies the index into a new, compact one and switches to it, while the store is used. `progress` is called after
    /// each batch.
    pub async fn compact(
        &self,
        progress: impl FnMut(&CompactProgress) + Send + 'static,
    ) -> Result<CompactReport, CompactError> {
        let (reply, result) = oneshot::channel();
        let request = CompactRequest { progress: Box::new(progress), reply };
        self.0.send_task(CheckpointTask::Compact(request))?;
        result.await.unwrap_or(Err(CompactError::Store(StoreError::Closed)))
    }

    /// Sends a request to the committer and waits for the reply.
    async fn request<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        self.0.read_only.check()?;
        let (reply, result) = oneshot::channel();
        self.0.send(request(reply))?;
        result.await.unwrap_or_else(|_| Err(self.0.committer_error()))
    }

    async fn change(&self, key: Key, action: Action, precondition: Precondition) -> Result<ChangeOutcome, StoreError> {
        let outcomes =
            self.commit_plain(vec![PlainChange::Key { key, condition: precondition.into(), action }]).await?;
        Ok(outcomes.into_iter().next().unwrap_or(ChangeOutcome::Checked))
    }

    async fn commit_plain(&self, changes: Vec<PlainChange>) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.0.read_only.check()?;
        self.0.wait_for_buffer_space(&changes).await?;
        if changes.iter().any(|change| matches!(change, PlainChange::Intent { record: Some(_), .. })) {
            // The space for values was checked when they were staged.
            let inner = Arc::clone(&self.0);
            run_blocking(move || inner.check_space(MAX_INTENT_LEN as u64)).await?;
        }
        if let Some(format) = self.0.format.lacking(&changes) {
            let inner = Arc::clone(&self.0);
            run_blocking(move || inner.raise_format(format)).await?;
        }
        if !is_bulk(&changes) {
            return self
                .request(|reply| Request::Commit { changes, reply, wait: self.0.waits.committer.start() })
                .await;
        }
        let inner = Arc::clone(&self.0);
        let bulk = run_blocking(move || prepare(&inner, changes)).await?;
        self.request(|reply| Request::Bulk { bulk: Box::new(bulk), reply, wait: self.0.waits.committer.start() }).await
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
            precondition.check(key, self.head(key).await?.map(|meta| meta.version))?;
        }
        let attributes = content.attributes.clone();
        let value = stage::stage(&self.0, key, content).await?;
        match self.change(key.clone(), Action::Set(Arc::new(value), attributes), precondition).await? {
            ChangeOutcome::Set(written) => Ok(written),
            // The committer replies to a set with its result.
            _ => Err(StoreError::Closed),
        }
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let outcome = self.change(key.clone(), Action::Erase, precondition).await?;
        Ok(outcome == ChangeOutcome::Erased { existed: true })
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let deadline = Instant::now() + MAX_INDEX_WAIT;
        // Erasing frees the space that an index which is opened again may wait for.
        let erased = loop {
            match count_keys(self, prefix).await {
                Err(StoreError::Busy { .. }) if Instant::now() < deadline => {
                    tokio::time::sleep(INDEX_POLL_INTERVAL).await
                }
                // It is not known how many keys there are, and erasing them is what ends that.
                Err(StoreError::Corrupt { .. }) => break KeyCount { count: 0, exact: false },
                counted => break counted?,
            }
        };
        // An empty prefix needs no record. A key that is set in the meantime is ordered after the erase.
        if erased.count > 0 || !erased.exact {
            self.commit_plain(vec![PlainChange::ErasePrefix(prefix.clone())]).await?;
        }
        Ok(erased)
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.0.read_only.check()?;
        self.0.check_open()?;
        let inner = Arc::clone(&self.0);
        run_blocking(move || inner.check_space(0)).await
    }
}

#[async_trait]
impl ListableStore for LocalStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.0), prefix.clone());
        run_blocking(move || list::list_prefix(&inner, &prefix, &page)).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.0), prefix.clone());
        run_blocking(move || list::list_dir(&inner, &prefix, &page)).await
    }

    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        let (inner, scan) = (Arc::clone(&self.0), scan.clone());
        run_blocking(move || list::scan(&inner, &scan)).await
    }
}

#[async_trait]
impl BatchStore for LocalStore {
    async fn stage(&self, key: &Key, content: Payload) -> Result<Staged, StoreError> {
        let attributes = content.attributes.clone();
        let value = stage::stage(&self.0, key, content).await?;
        Ok(self.staged_value(key, attributes, value))
    }

    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError> {
        match stage::stage_joined(&self.0, key, parts).await? {
            Some(value) => Ok(self.staged_value(key, Attributes::NONE, value)),
            None => stage_copy_of_parts(self, key, parts).await,
        }
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        let value = self.staged(staged)?;
        value.check()?;
        read::staged(&self.0, staged.key(), &value, range).await
    }

    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.commit(batch.into_changes()).await
    }
}

#[async_trait]
impl TransactionalStore for LocalStore {
    async fn commit(&self, mut changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        Change::validate(&changes)?;
        // The small values of a large commit go from memory to its file.
        let max_unstaged = if changes.len() > MAX_CHANGES { Some(MAX_INLINE_BYTES) } else { None };
        for change in &mut changes {
            if matches!(change, Change::Put { value, .. } if max_unstaged.is_none_or(|max| value.len() > max)) {
                stage_put(self, change).await?;
            }
        }
        let changes = changes.into_iter().map(|change| self.to_plain(change)).collect::<Result<_, _>>()?;
        self.commit_plain(changes).await
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        let inner = Arc::clone(&self.0);
        run_blocking(move || {
            let (view, _gate) = inner.views.stable()?;
            view.intents()
        })
        .await
    }

    fn run(&self) -> Result<RunId, StoreError> {
        self.0.read_only.check()?;
        Ok(self.0.run)
    }
}

#[async_trait]
impl SnapshotStore for LocalStore {
    fn guarantees(&self) -> Guarantees {
        Guarantees::COMMITS
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        // Numbers are published before readers see a change, and continue when the store is opened again.
        Ok(Some(Watermark::from_u64(self.0.views.now()?.at)))
    }

    fn disk_space(&self) -> Option<DiskSpace> {
        let free_bytes = self.0.directory.space().ok()?.free;
        Some(DiskSpace { free_bytes, orphan_bytes: self.0.orphans.bytes() })
    }

    fn scrub(&self) -> Option<ScrubStatus> {
        self.0.scrub_status()
    }

    fn queues(&self) -> Vec<(&'static str, Arc<WaitTimes>)> {
        let Queues { committer, commit_buffer } = &self.0.waits;
        vec![("committer", Arc::clone(committer)), ("commit_buffer", Arc::clone(commit_buffer))]
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let inner = Arc::clone(&self.0);
        if self.looks_up_at_once(Some(keys.len())) {
            return Ok(Box::new(LocalSnapshot::of_keys(inner, keys)?));
        }
        let keys = keys.to_vec();
        Ok(Box::new(run_blocking(move || LocalSnapshot::of_keys(inner, &keys)).await?))
    }

    async fn snapshot_of(&self, keys: Arc<dyn KeySource>) -> Result<Box<dyn Snapshot>, StoreError> {
        let inner = Arc::clone(&self.0);
        if self.looks_up_at_once(keys.max_len()) {
            return Ok(Box::new(LocalSnapshot::new(inner, &*keys)?));
        }
        Ok(Box::new(run_blocking(move || LocalSnapshot::new(inner, &*keys)).await?))
    }

    async fn snapshot_below(&self, prefix: &Prefix) -> Result<Arc<dyn PrefixSnapshot>, StoreError> {
        let (inner, prefix) = (Arc::clone(&self.0), prefix.clone());
        Ok(Arc::new(run_blocking(move || LocalPrefixSnapshot::new(&inner, &prefix)).await?))
    }
}

/// The data of a [`Staged`] of this store.
struct LocalStaged {
    open_id: (u64, u64),
    value: Arc<StagedValue>,
}

impl LocalStore {
    /// True if a snapshot of so many keys looks them up on the caller's thread.
    fn looks_up_at_once(&self, keys: Option<usize>) -> bool {
        keys.is_some_and(|keys| Cost::of(Work::Lookups, keys as u64).is_at_once()) && !self.0.views.is_changing()
    }

    fn staged_value(&self, key: &Key, attributes: Attributes, value: StagedValue) -> Staged {
        let (size, open_id) = (value.size(), self.0.open_id());
        Staged::new(key.clone(), size, attributes, LocalStaged { open_id, value: Arc::new(value) })
    }

    /// The value that this instance of the store staged.
    fn staged(&self, staged: &Staged) -> Result<Arc<StagedValue>, StoreError> {
        let data = staged.data::<LocalStaged>()?;
        if data.open_id == self.0.open_id() { Ok(data.value.clone()) } else { Err(StoreError::InvalidStaged) }
    }

    fn to_plain(&self, change: Change) -> Result<PlainChange, StoreError> {
        Ok(match change {
            Change::Set { staged, precondition } => {
                let value = self.staged(&staged)?;
                PlainChange::Key {
                    key: staged.key().clone(),
                    condition: precondition.into(),
                    action: Action::Set(value, staged.attributes().clone()),
                }
            }
            Change::Put { key, value, precondition } => {
                PlainChange::Key { key, condition: precondition.into(), action: Action::Put(value) }
            }
            Change::Erase { key, precondition } => {
                PlainChange::Key { key, condition: precondition.into(), action: Action::Erase }
            }
            Change::Check { key, precondition } => {
                PlainChange::Key { key, condition: precondition.into(), action: Action::Check }
            }
            Change::ErasePrefix { prefix } => PlainChange::ErasePrefix(prefix),
            Change::CheckEmpty { prefix } => PlainChange::CheckEmpty(prefix),
            Change::AddIntent { id, record } => PlainChange::Intent { id, record: Some(record) },
            Change::RemoveIntent { id } => PlainChange::Intent { id, record: None },
            Change::CheckIntent { id } => PlainChange::CheckIntent(id),
            Change::CheckNoIntent { filter } => PlainChange::CheckNoIntent(filter),
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
        // As after a panic of the committer thread: no receiver is left.
        store.0.disconnect_committer();
        for _ in 0..2 {
            let result = store.set(&key, "new".into(), Precondition::none()).await;
            assert!(matches!(result, Err(StoreError::ReadOnly)), "{result:?}");
        }
        assert!(matches!(store.check_writable().await, Err(StoreError::ReadOnly)));
        assert_eq!(store.get(&key, None).await.unwrap().unwrap().bytes().await.unwrap(), "old");
    }
}
