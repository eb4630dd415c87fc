//! A store in memory.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    hash::{BuildHasher, RandomState},
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::RwLock;

use crate::{
    ByteRange, Change, Content, CursorSeal, DirPage, Entry, Info, Key, KeyPage, ListableStore, Listing,
    MAX_COMMIT_CHANGES, Outcome, Page, Precondition, Prefix, ReadableStore, Snapshot, Staged, StoreError,
    TransactionalStore, UploadError, Value, Version, WriteableStore, Written,
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

/// How much a [`MemoryStore`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The most bytes that one value has; a larger one fails with [`UploadError::TooLarge`].
    pub value: u64,
    /// The most bytes that all values and their keys have together; beyond them a set fails with
    /// [`StoreError::OutOfSpace`].
    pub total: u64,
}

impl Default for MemoryLimits {
    /// 1 GiB a value, 4 GiB in all.
    fn default() -> Self {
        Self { value: 1 << 30, total: 4 << 30 }
    }
}

impl MemoryStore {
    /// A new, empty store with the default limits.
    pub fn new() -> Self {
        Self::with_limits(MemoryLimits::default())
    }

    /// A new, empty store.
    pub fn with_limits(limits: MemoryLimits) -> Self {
        Self(Arc::new(Shared {
            id: random(),
            seal: CursorSeal::new(random()),
            limits,
            used: Arc::new(AtomicU64::new(0)),
            state: RwLock::default(),
        }))
    }

    /// Reads the whole content into memory, which counts as used from here on.
    async fn receive(&self, key: &Key, content: Content) -> Result<Bytes, StoreError> {
        let Content { size: announced, mut stream } = content;
        let limit = self.0.limits.value;
        if announced.is_some_and(|size| size > limit) {
            return Err(UploadError::TooLarge { limit }.into());
        }
        let mut held = Held { bytes: Vec::new(), space: Space { used: self.0.used.clone(), taken: 0 } };
        held.space.take(key.as_bytes().len() as u64, self.0.limits.total)?;
        let mut received = 0_u64;
        while let Some(piece) = stream.try_next().await? {
            received = received.saturating_add(piece.len() as u64);
            if let Some(announced) = announced.filter(|announced| received > *announced) {
                return Err(UploadError::Length { announced, received }.into());
            }
            if received > limit {
                return Err(UploadError::TooLarge { limit }.into());
            }
            held.space.take(piece.len() as u64, self.0.limits.total)?;
            held.bytes.extend_from_slice(&piece);
        }
        if let Some(announced) = announced.filter(|announced| received < *announced) {
            return Err(UploadError::Length { announced, received }.into());
        }
        held.bytes.shrink_to_fit();
        Ok(Bytes::from_owner(held))
    }

    /// Takes out of a change what this store staged for it.
    fn prepare(&self, change: Change) -> Result<Prepared, StoreError> {
        Ok(match change {
            Change::Set { staged, precondition } => {
                let (key, held) = staged.into_held::<MemoryStaged>()?;
                if held.store != self.0.id {
                    return Err(StoreError::ForeignStaged);
                }
                Prepared { key, precondition, action: Action::Set(held.bytes) }
            }
            Change::Erase { key, precondition } => Prepared { key, precondition, action: Action::Erase },
            Change::Check { key, precondition } => Prepared { key, precondition, action: Action::Check },
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
        f.debug_struct("MemoryStore").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

#[async_trait]
impl ReadableStore for MemoryStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<Value>, StoreError> {
        let stored = self.0.state.read().values.get(key).cloned();
        stored.map(|stored| stored.read(range)).transpose()
    }

    async fn head(&self, key: &Key) -> Result<Option<Info>, StoreError> {
        Ok(self.0.state.read().values.get(key).map(|stored| stored.info))
    }
}

#[async_trait]
impl WriteableStore for MemoryStore {
    async fn set(&self, key: &Key, content: Content, precondition: Precondition) -> Result<Written, StoreError> {
        self.0.state.read().judge(key, &precondition)?;
        let bytes = self.receive(key, content).await?;
        let mut state = self.0.state.write();
        state.judge(key, &precondition)?;
        Ok(state.set(self.0.id, key.clone(), bytes, now()))
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let mut state = self.0.state.write();
        state.judge(key, &precondition)?;
        Ok(state.values.remove(key).is_some())
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<u64, StoreError> {
        let mut erased = 0;
        loop {
            let mut state = self.0.state.write();
            let found = state.below(prefix, Bound::Included(prefix.as_str()));
            let keys: Vec<Key> = found.take(MAX_COMMIT_CHANGES).map(|(key, _)| key.clone()).collect();
            for key in &keys {
                state.values.remove(key);
            }
            erased += keys.len() as u64;
            if keys.len() < MAX_COMMIT_CHANGES {
                return Ok(erased);
            }
        }
    }

    async fn writable(&self) -> Result<(), StoreError> {
        if self.0.used.load(Ordering::Relaxed) < self.0.limits.total { Ok(()) } else { Err(StoreError::OutOfSpace) }
    }
}

#[async_trait]
impl ListableStore for MemoryStore {
    async fn list_prefix(&self, prefix: &Prefix, page: Page) -> Result<KeyPage, StoreError> {
        let last = self.0.last_of_page_before(Listing::Keys, prefix, &page)?;
        let from = last.as_deref().map_or(Bound::Included(prefix.as_str()), Bound::Excluded);
        let state = self.0.state.read();
        let mut found = state.below(prefix, from).map(|(key, stored)| Entry { key: key.clone(), info: stored.info });
        let keys: Vec<Entry> = found.by_ref().take(page.limit()).collect();
        let more = found.next().and_then(|_| keys.last());
        let cursor = more.map(|last| self.0.seal.issue(Listing::Keys, prefix, last.key.as_str()));
        Ok(KeyPage { keys, cursor })
    }

    async fn list_dir(&self, prefix: &Prefix, page: Page) -> Result<DirPage, StoreError> {
        let mut last = self.0.last_of_page_before(Listing::Dir, prefix, &page)?;
        let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
        let state = self.0.state.read();
        while let Some(child) = state.next_child(prefix, last.as_deref()) {
            if keys.len() + prefixes.len() == page.limit() {
                let cursor = last.map(|last| self.0.seal.issue(Listing::Dir, prefix, &last));
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
    async fn stage(&self, key: &Key, content: Content) -> Result<Staged, StoreError> {
        let bytes = self.receive(key, content).await?;
        Ok(Staged::new(key.clone(), bytes.len() as u64, MemoryStaged { store: self.0.id, bytes }))
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<Outcome>, StoreError> {
        check_form(&changes)?;
        let changes = changes.into_iter().map(|change| self.prepare(change)).collect::<Result<Vec<_>, _>>()?;
        let mut state = self.0.state.write();
        for change in &changes {
            state.judge(&change.key, &change.precondition)?;
        }
        let modified = now();
        let outcomes = changes.into_iter().map(|Prepared { key, action, .. }| match action {
            Action::Set(bytes) => Outcome::Set(state.set(self.0.id, key, bytes, modified)),
            Action::Erase => Outcome::Erased { existed: state.values.remove(&key).is_some() },
            Action::Check => Outcome::Checked,
        });
        Ok(outcomes.collect())
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
    seal: CursorSeal,
    limits: MemoryLimits,
    /// How many bytes are taken out of `limits.total`.
    used: Arc<AtomicU64>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    values: BTreeMap<Key, Stored>,
    /// How many values were ever set: the part of a version that tells a store's values apart.
    sets: u64,
}

/// A visible value.
#[derive(Clone)]
struct Stored {
    info: Info,
    bytes: Bytes,
}

struct MemoryStaged {
    store: u64,
    bytes: Bytes,
}

struct MemorySnapshot {
    values: HashMap<Key, Option<Stored>>,
}

/// A change whose staged value is known to be this store's.
struct Prepared {
    key: Key,
    precondition: Precondition,
    action: Action,
}

enum Action {
    Set(Bytes),
    Erase,
    Check,
}

enum Child {
    Key(Entry),
    Prefix(Prefix),
}

/// The memory behind the `Bytes` of a value: when the last of them goes, its space is given back.
struct Held {
    bytes: Vec<u8>,
    space: Space,
}

/// Some bytes of a store's total.
struct Space {
    used: Arc<AtomicU64>,
    taken: u64,
}

impl Shared {
    fn last_of_page_before(
        &self,
        listing: Listing,
        prefix: &Prefix,
        page: &Page,
    ) -> Result<Option<String>, StoreError> {
        page.cursor.as_ref().map(|cursor| self.seal.open(listing, prefix, cursor)).transpose()
    }
}

impl State {
    fn judge(&self, key: &Key, precondition: &Precondition) -> Result<(), StoreError> {
        let current = self.values.get(key).map(|stored| stored.info.version);
        if precondition.holds(current) {
            return Ok(());
        }
        Err(StoreError::PreconditionFailed { key: key.clone(), current })
    }

    fn set(&mut self, store: u64, key: Key, bytes: Bytes, modified: SystemTime) -> Written {
        self.sets += 1;
        let version = Version::from_u128(u128::from(store) << 64 | u128::from(self.sets));
        let info = Info { size: bytes.len() as u64, version, modified };
        let replaced = self.values.insert(key, Stored { info, bytes }).is_some();
        Written { version, replaced }
    }

    /// The keys below `prefix`, in order, from one of them on.
    fn below<'s>(&'s self, prefix: &'s Prefix, from: Bound<&str>) -> impl Iterator<Item = (&'s Key, &'s Stored)> {
        self.values.range::<str, _>((from, Bound::Unbounded)).take_while(|(key, _)| prefix.contains(key))
    }

    /// The first child of `prefix` after `last`, a child of it, wherever that has gone meanwhile.
    fn next_child(&self, prefix: &Prefix, last: Option<&str>) -> Option<Child> {
        let past_last = last.and_then(|last| Prefix::parse(last).ok()).and_then(|last| last.end());
        let from = match (&past_last, last) {
            (Some(past), _) => Bound::Included(past.as_str()),
            (None, Some(key)) => Bound::Excluded(key),
            (None, None) => Bound::Included(prefix.as_str()),
        };
        let (key, stored) = self.below(prefix, from).next()?;
        let deeper = prefix.strip(key).and_then(|rest| rest.split_once('/'));
        let Some((name, _)) = deeper else {
            return Some(Child::Key(Entry { key: key.clone(), info: stored.info }));
        };
        Prefix::parse(&format!("{prefix}{name}/")).ok().map(Child::Prefix)
    }
}

impl Stored {
    fn read(self, range: Option<ByteRange>) -> Result<Value, StoreError> {
        let Self { info, bytes } = self;
        let range = match range {
            Some(range) => range.resolve(info.size).ok_or(StoreError::RangeNotSatisfiable { info })?,
            None => 0..info.size,
        };
        // The range lies within what is in memory, so its ends fit.
        let bytes = bytes.slice(range.start as usize..range.end as usize);
        let piece = (!bytes.is_empty()).then_some(Ok(bytes));
        Ok(Value { info, range, stream: stream::iter(piece).boxed() })
    }
}

impl MemorySnapshot {
    fn stored(&self, key: &Key) -> Result<Option<&Stored>, StoreError> {
        self.values.get(key).map(Option::as_ref).ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })
    }
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    fn head(&self, key: &Key) -> Result<Option<Info>, StoreError> {
        Ok(self.stored(key)?.map(|stored| stored.info))
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<Value>, StoreError> {
        self.stored(key)?.cloned().map(|stored| stored.read(range)).transpose()
    }
}

impl Space {
    fn take(&mut self, bytes: u64, total: u64) -> Result<(), StoreError> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= total);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| StoreError::OutOfSpace)?;
        self.taken += bytes;
        Ok(())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        self.used.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Fails where the changes do not make a commit, whatever the store holds.
fn check_form(changes: &[Change]) -> Result<(), StoreError> {
    if changes.len() > MAX_COMMIT_CHANGES {
        return Err(StoreError::TooManyChanges { changes: changes.len(), limit: MAX_COMMIT_CHANGES });
    }
    let mut named = HashSet::with_capacity(changes.len());
    match changes.iter().map(Change::key).find(|key| !named.insert(*key)) {
        Some(key) => Err(StoreError::RepeatedKey { key: key.clone() }),
        None => Ok(()),
    }
}

/// A number that nobody can guess: the standard library seeds its hashers from the system.
fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// The time, cut to the millisecond.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(since.as_millis() as u64)
}
