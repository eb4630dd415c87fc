//! A store in memory.

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
    space::Space,
    state::{Child, State, Stored},
};
use crate::{
    ByteRange, ByteStream, Change, ChangeOutcome, CursorSigner, DirPage, Entry, GetResult, Intent, IntentError,
    IntentId, Key, KeyCount, KeyPage, ListableStore, ListingKind, MAX_INTENTS, PageRequest, Payload, Precondition,
    Prefix, PutResult, ReadableStore, Snapshot, Staged, StoreError, TransactionalStore, ValueMeta, Watermark,
    WriteableStore, random::random,
};

/// A store in memory: for tests, and for data that can be made again.
///
/// It keeps the whole contract of the traits but one point: nothing in it survives the process, however long ago its
/// set returned. Clones are the same store.
///
/// A value counts towards [`MemoryLimits::total`] for as long as it occupies memory: from its arrival, also while it is
/// only staged, until it is erased or replaced and the last reader or snapshot of it is done.
#[derive(Clone)]
pub struct MemoryStore(Arc<Shared>);

impl MemoryStore {
    /// A new, empty store with the default limits.
    pub fn new() -> Self {
        Self::with_limits(MemoryLimits::default())
    }

    /// A new, empty store.
    pub fn with_limits(limits: MemoryLimits) -> Self {
        Self(Arc::new(Shared {
            id: random(),
            seal: CursorSigner::new(random()),
            space: Space::new(limits),
            state: RwLock::default(),
        }))
    }

    /// What this store staged.
    fn staged(&self, staged: &Staged) -> Result<Arc<MemoryStaged>, StoreError> {
        let held = staged.data::<MemoryStaged>()?;
        if held.store == self.0.id { Ok(held) } else { Err(StoreError::InvalidStaged) }
    }

    /// Takes out of a change what this store staged for it.
    fn prepare(&self, change: Change) -> Result<Prepared, StoreError> {
        Ok(match change {
            Change::Set { staged, precondition } => {
                let held = self.staged(&staged)?;
                Prepared::Key { key: staged.key().clone(), precondition, action: Action::Set(held) }
            }
            Change::Erase { key, precondition } => Prepared::Key { key, precondition, action: Action::Erase },
            Change::Check { key, precondition } => Prepared::Key { key, precondition, action: Action::Check },
            Change::ErasePrefix { prefix } => Prepared::ErasePrefix(prefix),
            Change::CheckEmpty { prefix } => Prepared::CheckEmpty(prefix),
            Change::AddIntent { id, record } => Prepared::Intend(id, record),
            Change::RemoveIntent { id } => Prepared::Settle(id),
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
        Ok(self.0.state.read().values.get(key).map(|stored| stored.meta))
    }
}

#[async_trait]
impl WriteableStore for MemoryStore {
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.0.state.read().judge(key, &precondition)?;
        let bytes = self.0.space.receive(key, content).await?;
        let mut state = self.0.state.write();
        state.judge(key, &precondition)?;
        state.commits += 1;
        Ok(state.set(self.0.id, key.clone(), bytes, now()))
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let mut state = self.0.state.write();
        state.judge(key, &precondition)?;
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
        let last = self.0.last_of_page_before(ListingKind::Keys, prefix, &page)?;
        let from = last.as_deref().map_or(Bound::Included(prefix.as_str()), Bound::Excluded);
        let state = self.0.state.read();
        let mut found = state.below(prefix, from).map(|(key, stored)| Entry { key: key.clone(), meta: stored.meta });
        let keys: Vec<Entry> = found.by_ref().take(page.limit()).collect();
        let more = found.next().and_then(|_| keys.last());
        let cursor = more.map(|last| self.0.seal.sign(ListingKind::Keys, prefix, last.key.as_str()));
        Ok(KeyPage { keys, cursor })
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let mut last = self.0.last_of_page_before(ListingKind::Dir, prefix, &page)?;
        let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
        let state = self.0.state.read();
        while let Some(child) = state.next_child(prefix, last.as_deref()) {
            if keys.len() + prefixes.len() == page.limit() {
                let cursor = last.map(|last| self.0.seal.sign(ListingKind::Dir, prefix, &last));
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
}

#[async_trait]
impl TransactionalStore for MemoryStore {
    async fn stage(&self, key: &Key, content: Payload) -> Result<Staged, StoreError> {
        let bytes = self.0.space.receive(key, content).await?;
        let staged = MemoryStaged { store: self.0.id, bytes, committed: AtomicBool::new(false) };
        Ok(Staged::new(key.clone(), staged.bytes.len() as u64, staged))
    }

    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError> {
        let held = self.staged(staged)?;
        held.check()?;
        let range = range.map_or(Some(0..staged.size()), |range| range.resolve(staged.size()));
        // The range lies within what is in memory, so its ends fit.
        let bytes = range.map(|range| held.bytes.slice(range.start as usize..range.end as usize));
        Ok(stream::iter(bytes.filter(|bytes| !bytes.is_empty()).map(Ok)).boxed())
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        Change::validate(&changes)?;
        let changes = changes.into_iter().map(|change| self.prepare(change)).collect::<Result<Vec<_>, _>>()?;
        let mut state = self.0.state.write();
        let existed = changes.iter().map(|change| change.judge(&state)).collect::<Result<Vec<_>, _>>()?;
        check_intents(&changes, &state)?;
        state.commits += 1;
        for change in &changes {
            if let Prepared::ErasePrefix(prefix) = change {
                state.erase_prefix(prefix);
            }
        }
        let modified = now();
        let outcomes = changes.into_iter().zip(existed).map(|(change, existed)| match change {
            Prepared::Key { key, action: Action::Set(staged), .. } => {
                staged.committed.store(true, Ordering::Relaxed);
                let written = state.set(self.0.id, key, staged.bytes.clone(), modified);
                ChangeOutcome::Set(PutResult { replaced: existed, ..written })
            }
            Prepared::Key { key, action: Action::Erase, .. } => {
                state.values.remove(&key);
                ChangeOutcome::Erased { existed }
            }
            Prepared::Key { action: Action::Check, .. } | Prepared::CheckEmpty(_) => ChangeOutcome::Checked,
            Prepared::ErasePrefix(_) => ChangeOutcome::PrefixErased,
            Prepared::Intend(id, record) => {
                state.intents.insert(id, record);
                ChangeOutcome::IntentAdded
            }
            Prepared::Settle(id) => {
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

    async fn watermark(&self) -> Result<Watermark, StoreError> {
        Ok(Watermark::from_u64(self.0.state.read().commits))
    }

    async fn snapshot(&self, keys: &[Key]) -> Result<Box<dyn Snapshot>, StoreError> {
        let state = self.0.state.read();
        let values = keys.iter().map(|key| (key.clone(), state.values.get(key).cloned())).collect();
        Ok(Box::new(MemorySnapshot { values }))
    }
}

struct Shared {
    /// What tells this store's versions and staged values from another's.
    id: u64,
    seal: CursorSigner,
    space: Space,
    state: RwLock<State>,
}

struct MemoryStaged {
    store: u64,
    bytes: Bytes,
    /// Only looked at and set while the state is locked for writing, but by readers, whom either answer serves.
    committed: AtomicBool,
}

struct MemorySnapshot {
    values: HashMap<Key, Option<Stored>>,
}

/// A change whose staged value is known to be this store's.
enum Prepared {
    Key { key: Key, precondition: Precondition, action: Action },
    ErasePrefix(Prefix),
    CheckEmpty(Prefix),
    Intend(IntentId, Bytes),
    Settle(IntentId),
}

enum Action {
    Set(Arc<MemoryStaged>),
    Erase,
    Check,
}

impl Shared {
    fn last_of_page_before(
        &self,
        listing: ListingKind,
        prefix: &Prefix,
        page: &PageRequest,
    ) -> Result<Option<String>, StoreError> {
        page.cursor.as_ref().map(|cursor| self.seal.verify(listing, prefix, cursor)).transpose()
    }
}

impl Prepared {
    /// Fails where the change cannot be made; otherwise whether its key has a value.
    fn judge(&self, state: &State) -> Result<bool, StoreError> {
        match self {
            Self::Key { key, precondition, action } => {
                if let Action::Set(staged) = action {
                    staged.check()?;
                }
                state.judge(key, precondition)
            }
            Self::ErasePrefix(_) => Ok(false),
            Self::CheckEmpty(prefix) => state.check_empty(prefix).map(|()| false),
            Self::Intend(id, _) if state.intents.contains_key(id) => Err(IntentError::AlreadyExists { id: *id }.into()),
            Self::Settle(id) if !state.intents.contains_key(id) => Err(IntentError::NotFound { id: *id }.into()),
            Self::Intend(..) | Self::Settle(_) => Ok(false),
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
    fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        Ok(self.stored(key)?.map(|stored| stored.meta))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        self.stored(key)?.cloned().map(|stored| stored.read(range)).transpose()
    }
}

/// Fails where more intents would be there than may be.
fn check_intents(changes: &[Prepared], state: &State) -> Result<(), StoreError> {
    let added = changes.iter().filter(|change| matches!(change, Prepared::Intend(..))).count();
    let settled = changes.iter().filter(|change| matches!(change, Prepared::Settle(_))).count();
    if added > 0 && state.intents.len() + added > MAX_INTENTS + settled {
        return Err(IntentError::TooMany { limit: MAX_INTENTS }.into());
    }
    Ok(())
}

/// The time, cut to the millisecond.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(since.as_millis() as u64)
}
