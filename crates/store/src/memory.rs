//! A store in memory.

mod prefix_snapshot;
mod space;
mod state;
#[cfg(test)]
mod tests;

pub use space::MemoryLimits;

use std::{
    collections::HashMap,
    fmt,
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use parking_lot::RwLock;

use self::{
    prefix_snapshot::MemoryPrefixSnapshot,
    space::Space,
    state::{Child, State, Stored, Value, first_below},
};
use crate::{
    Attributes, Batch, BatchStore, ByteRange, ByteStream, CachedMeta, Change, ChangeOutcome, CursorSigner, DirPage,
    Entry, GetResult, Guarantees, Intent, IntentError, IntentFilter, IntentId, Key, KeyCount, KeyPage, ListableStore,
    ListingKind, MAX_INTENTS, PageRequest, Payload, Precondition, Prefetch, Prefix, PrefixSnapshot, PutResult,
    ReadableStore, RunId, Scan, ScanPage, Snapshot, SnapshotStore, Staged, StoreError, TransactionalStore, ValueMeta,
    Version, Watermark, WriteableStore, random::random, stage_copy_of_parts,
};

/// A store in memory, for tests and for data that can be created again.
///
/// It fulfils the contract of the traits except durability: values do not survive the process. Clones share one store.
///
/// A value counts towards [`MemoryLimits::total_bytes`] as long as it occupies memory: from its arrival, even if it is
/// only staged, until it is erased or replaced and its last reader or snapshot is dropped.
#[derive(Clone)]
pub struct MemoryStore(Arc<MemoryInner>);

impl MemoryStore {
    /// A new, empty store with the default limits.
    pub fn new() -> Self {
        Self::with_limits(MemoryLimits::default())
    }

    /// A new, empty store.
    pub fn with_limits(limits: MemoryLimits) -> Self {
        Self(Arc::new(MemoryInner {
            id: random(),
            run: RunId::random(),
            signer: CursorSigner::new(random()),
            space: Space::new(limits),
            state: RwLock::default(),
        }))
    }

    /// Receives a value without making it visible.
    async fn receive(&self, key: &Key, payload: Payload) -> Result<MemoryStaged, StoreError> {
        let value = self.0.space.receive(key, payload).await?;
        Ok(MemoryStaged { store: self.0.id, value, committed: AtomicBool::new(false) })
    }

    /// The data of a value that this store staged.
    fn staged(&self, staged: &Staged) -> Result<Arc<MemoryStaged>, StoreError> {
        let data = staged.data::<MemoryStaged>()?;
        if data.store == self.0.id { Ok(data) } else { Err(StoreError::InvalidStaged) }
    }

    /// Resolves the staged value of a change, or stages it.
    async fn prepare(&self, change: Change) -> Result<PreparedChange, StoreError> {
        Ok(match change {
            Change::Set { staged, precondition } => {
                let data = self.staged(&staged)?;
                let action = Action::Set(data, staged.attributes().clone());
                PreparedChange::Key { key: staged.key().clone(), precondition, action }
            }
            Change::Put { key, value, precondition } => {
                let data = self.receive(&key, value.into()).await?;
                let action = Action::Set(Arc::new(data), Attributes::NONE);
                PreparedChange::Key { key, precondition, action }
            }
            Change::Erase { key, precondition } => PreparedChange::Key { key, precondition, action: Action::Erase },
            Change::Check { key, precondition } => PreparedChange::Key { key, precondition, action: Action::Check },
            Change::ErasePrefix { prefix } => PreparedChange::ErasePrefix(prefix),
            Change::CheckEmpty { prefix } => PreparedChange::CheckEmpty(prefix),
            Change::AddIntent { id, record } => PreparedChange::AddIntent(id, record),
            Change::RemoveIntent { id } => PreparedChange::RemoveIntent(id),
            Change::CheckIntent { id } => PreparedChange::CheckIntent(id),
            Change::CheckNoIntent { filter } => PreparedChange::CheckNoIntent(filter),
        })
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("limits", &self.0.space.limits).finish_non_exhaustive()
    }
}

#[async_trait]
impl ReadableStore for MemoryStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let stored = self.0.state.read().values.get(key).cloned();
        stored.map(|stored| stored.read(range)).transpose()
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.0.state.read().values.get(key).map(|stored| stored.meta.clone()))
    }
}

#[async_trait]
impl WriteableStore for MemoryStore {
    async fn set(&self, key: &Key, payload: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.0.state.read().check_precondition(key, &precondition)?;
        let value = self.0.space.receive(key, payload).await?;
        let mut state = self.0.state.write();
        state.check_precondition(key, &precondition)?;
        state.commits += 1;
        Ok(state.set(self.0.id, key.clone(), value, now()))
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let mut state = self.0.state.write();
        state.check_precondition(key, &precondition)?;
        state.commits += 1;
        Ok(state.values.remove(key).is_some())
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let mut state = self.0.state.write();
        let erased = state.count(prefix);
        state.commits += 1;
        state.erase_prefix(prefix);
        Ok(erased)
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        if self.0.space.used() < self.0.space.limits.total_bytes { Ok(()) } else { Err(StoreError::OutOfSpace) }
    }
}

#[async_trait]
impl ListableStore for MemoryStore {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let last = self.0.last_of_previous_page(ListingKind::Keys, prefix, &page)?;
        let from = last.as_deref().map_or_else(|| first_below(prefix), Bound::Excluded);
        let state = self.0.state.read();
        let mut found = state.below(prefix, from).map(|(key, stored)| Entry::new(key.clone(), stored.meta.clone()));
        let keys: Vec<Entry> = found.by_ref().take(page.limit()).collect();
        let more = found.next().and_then(|_| keys.last());
        let cursor = more.map(|last| self.0.signer.sign(ListingKind::Keys, prefix, last.key.as_str()));
        Ok(KeyPage::new(keys, cursor))
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let mut last = self.0.last_of_previous_page(ListingKind::Dir, prefix, &page)?;
        let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
        let state = self.0.state.read();
        while let Some(child) = state.next_child(prefix, last.as_deref()) {
            if keys.len() + prefixes.len() == page.limit() {
                let cursor = last.map(|last| self.0.signer.sign(ListingKind::Dir, prefix, &last));
                return Ok(DirPage { keys, prefixes, cursor });
            }
            match child {
                Child::Key(entry) => {
                    last = Some(entry.key.to_string());
                    keys.push(entry);
                }
                Child::Prefix(prefix) => {
                    last = Some(prefix.to_string());
                    prefixes.push(prefix);
                }
            }
        }
        Ok(DirPage { keys, prefixes, cursor: None })
    }

    async fn scan(&self, scan: &Scan) -> Result<ScanPage, StoreError> {
        Ok(self.0.state.read().scan(scan))
    }
}

#[async_trait]
impl BatchStore for MemoryStore {
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError> {
        let staged = self.receive(key, payload).await?;
        let (size, attributes) = (staged.value.bytes.len() as u64, staged.value.attributes.clone());
        Ok(Staged::new(key.clone(), size, attributes, staged))
    }

    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError> {
        stage_copy_of_parts(self, key, parts).await
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        let data = self.staged(staged)?;
        data.check()?;
        let range = range.map_or(Some(0..staged.size()), |range| range.resolve(staged.size()));
        // The range is within a value in memory, so its ends fit into `usize`.
        let bytes = range.map(|range| data.value.bytes.slice(range.start as usize..range.end as usize));
        Ok(stream::iter(bytes.filter(|bytes| !bytes.is_empty()).map(Ok)).boxed())
    }

    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError> {
        self.commit(batch.into_changes()).await
    }
}

#[async_trait]
impl TransactionalStore for MemoryStore {
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        Change::validate(&changes)?;
        let mut prepared = Vec::with_capacity(changes.len());
        for change in changes {
            prepared.push(self.prepare(change).await?);
        }
        let changes = prepared;
        let mut state = self.0.state.write();
        let existed = changes.iter().map(|change| change.check(&state)).collect::<Result<Vec<_>, _>>()?;
        check_intents(&changes, &state)?;
        state.commits += 1;
        for change in &changes {
            if let PreparedChange::ErasePrefix(prefix) = change {
                state.erase_prefix(prefix);
            }
        }
        let modified = now();
        let outcomes = changes.into_iter().zip(existed).map(|(change, existed)| match change {
            PreparedChange::Key { key, action: Action::Set(staged, attributes), .. } => {
                staged.committed.store(true, Ordering::Relaxed);
                let value = Value { attributes, ..staged.value.clone() };
                let written = state.set(self.0.id, key, value, modified);
                ChangeOutcome::Set(PutResult { replaced: existed, ..written })
            }
            PreparedChange::Key { key, action: Action::Erase, .. } => {
                state.values.remove(&key);
                ChangeOutcome::Erased { existed }
            }
            PreparedChange::Key { action: Action::Check, .. } | PreparedChange::CheckEmpty(_) => ChangeOutcome::Checked,
            PreparedChange::CheckIntent(_) | PreparedChange::CheckNoIntent(_) => ChangeOutcome::Checked,
            PreparedChange::ErasePrefix(_) => ChangeOutcome::PrefixErased,
            PreparedChange::AddIntent(id, record) => {
                state.intents.insert(id, record);
                ChangeOutcome::IntentAdded
            }
            PreparedChange::RemoveIntent(id) => {
                state.intents.remove(&id);
                ChangeOutcome::IntentRemoved
            }
        });
        Ok(outcomes.collect())
    }

    async fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        let state = self.0.state.read();
        Ok(state.intents.iter().map(|(id, record)| Intent { id: *id, record: record.clone() }).collect())
    }

    fn run(&self) -> Result<RunId, StoreError> {
        Ok(self.0.run)
    }
}

#[async_trait]
impl SnapshotStore for MemoryStore {
    fn guarantees(&self) -> Guarantees {
        // Values in memory need no checksum.
        Guarantees { checked: false, ..Guarantees::COMMITS }
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let state = self.0.state.read();
        let values = keys.iter().map(|key| (key.clone(), state.values.get(key).cloned())).collect();
        Ok(Box::new(MemorySnapshot { values }))
    }

    async fn snapshot_below(&self, prefix: &Prefix) -> Result<Arc<dyn PrefixSnapshot>, StoreError> {
        let state = self.0.state.read();
        let below = State::copy_below(&state, prefix);
        let intents = state.intents.iter().map(|(id, record)| Intent { id: *id, record: record.clone() }).collect();
        let (watermark, len) = (Watermark::from_u64(state.commits), below.values.len() as u64);
        drop(state);
        let store = Self(Arc::new(MemoryInner {
            id: random(),
            run: RunId::random(),
            signer: CursorSigner::new(random()),
            space: Space::new(MemoryLimits::default()),
            state: RwLock::new(below),
        }));
        Ok(Arc::new(MemoryPrefixSnapshot { store, prefix: prefix.clone(), watermark, len, intents }))
    }

    async fn watermark(&self) -> Result<Option<Watermark>, StoreError> {
        Ok(Some(Watermark::from_u64(self.0.state.read().commits)))
    }
}

struct MemoryInner {
    /// Distinguishes the versions and staged values of this store from those of others.
    id: u64,
    run: RunId,
    signer: CursorSigner,
    space: Space,
    state: RwLock<State>,
}

struct MemoryStaged {
    store: u64,
    value: Value,
    /// Written, and read by commits, only while the state is locked for writing. Readers may see either value.
    committed: AtomicBool,
}

struct MemorySnapshot {
    values: HashMap<Key, Option<Stored>>,
}

/// A change whose staged value belongs to this store.
enum PreparedChange {
    Key { key: Key, precondition: Precondition, action: Action },
    ErasePrefix(Prefix),
    CheckEmpty(Prefix),
    AddIntent(IntentId, Bytes),
    RemoveIntent(IntentId),
    CheckIntent(IntentId),
    CheckNoIntent(Arc<dyn IntentFilter>),
}

enum Action {
    Set(Arc<MemoryStaged>, Attributes),
    Erase,
    Check,
}

impl MemoryInner {
    fn last_of_previous_page(
        &self,
        listing: ListingKind,
        prefix: &Prefix,
        page: &PageRequest,
    ) -> Result<Option<String>, StoreError> {
        page.cursor.as_ref().map(|cursor| self.signer.verify(listing, prefix, cursor)).transpose()
    }
}

impl PreparedChange {
    /// Checks the conditions of the change. Returns true if its key has a value.
    fn check(&self, state: &State) -> Result<bool, StoreError> {
        match self {
            Self::Key { key, precondition, action } => {
                if let Action::Set(staged, _) = action {
                    staged.check()?;
                }
                state.check_precondition(key, precondition)
            }
            Self::ErasePrefix(_) => Ok(false),
            Self::CheckEmpty(prefix) => state.check_empty(prefix).map(|()| false),
            Self::AddIntent(id, _) if state.intents.contains_key(id) => {
                Err(IntentError::AlreadyExists { id: *id }.into())
            }
            Self::RemoveIntent(id) | Self::CheckIntent(id) if !state.intents.contains_key(id) => {
                Err(IntentError::NotFound { id: *id }.into())
            }
            Self::CheckNoIntent(filter) => match state.intents.iter().find(|(_, record)| filter.matches(record)) {
                Some((id, _)) => Err(IntentError::Excludes { id: *id }.into()),
                None => Ok(false),
            },
            Self::AddIntent(..) | Self::RemoveIntent(_) | Self::CheckIntent(_) => Ok(false),
        }
    }
}

impl MemoryStaged {
    fn check(&self) -> Result<(), StoreError> {
        if self.committed.load(Ordering::Relaxed) { Err(StoreError::InvalidStaged) } else { Ok(()) }
    }
}

impl MemorySnapshot {
    fn stored(&self, key: &Key) -> Result<Option<&Stored>, StoreError> {
        self.values.get(key).map(Option::as_ref).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })
    }
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        Ok(CachedMeta::Known(self.stored(key)?.map(|stored| stored.meta.clone())))
    }

    async fn stat(&self, key: &Key, _prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.stored(key)?.map(|stored| stored.meta.clone()))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.stored(key)?.cloned().map(|stored| stored.read(range)).transpose()
    }
}

/// Fails if the store would have more than [`MAX_INTENTS`] intents.
fn check_intents(changes: &[PreparedChange], state: &State) -> Result<(), StoreError> {
    let added = changes.iter().filter(|change| matches!(change, PreparedChange::AddIntent(..))).count();
    let removed = changes.iter().filter(|change| matches!(change, PreparedChange::RemoveIntent(_))).count();
    if added > 0 && state.intents.len() + added > MAX_INTENTS + removed {
        return Err(IntentError::TooMany { limit: MAX_INTENTS }.into());
    }
    Ok(())
}

/// The current time, truncated to milliseconds.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(since.as_millis() as u64)
}
