//! Copies and moves of everything below a prefix, in one commit.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use zarrd_array::Permit;
use zarrd_store::{
    Change, ChangeOutcome, Entry, KeyError, ListableStore, MAX_COMMIT_CHANGES, Precondition, Prefix, PrefixSnapshot,
    ReadError, ReadableStore, SnapshotStore, StoreError, list_all,
};

use super::{
    resource::version_of,
    transfer::{ATTEMPTS, Destination, Kind, Transfer},
};
use crate::{app::App, error::ApiError};

/// The changes of a commit that concern the destination as a whole.
const OTHER_CHANGES: usize = 4;
/// The number of values that are copied at a time.
const CONCURRENT_VALUES: usize = 8;
/// The largest value, in bytes, that a commit has in memory.
const INLINE_VALUE_LIMIT: u64 = 4 << 10;
/// The memory of a key and its changes, in bytes, without the texts of the two keys and without a value.
const CHANGES_BYTES: u64 = 512;
/// The memory that is taken first, in bytes, and the number of keys after which more is taken.
const FIRST_BYTES: u64 = 128 << 10;
const KEYS_AT_ONCE: usize = 64;

/// The source of a copy or move: as of one commit, or key by key if its store has no commits.
enum Source {
    Snapshot(Arc<dyn PrefixSnapshot>),
    Store(Arc<dyn SnapshotStore>),
}

impl Source {
    async fn new(transfer: &Transfer, prefix: &Prefix) -> Result<Self, StoreError> {
        match transfer.app.store().snapshot_below(prefix).await {
            Ok(snapshot) => Ok(Self::Snapshot(snapshot)),
            Err(StoreError::Unsupported { .. }) => Ok(Self::Store(Arc::clone(transfer.app.store()))),
            Err(error) => Err(error),
        }
    }

    fn listing(&self) -> &dyn ListableStore {
        match self {
            Self::Snapshot(snapshot) => &**snapshot,
            Self::Store(store) => &**store,
        }
    }

    fn values(&self) -> &dyn ReadableStore {
        match self {
            Self::Snapshot(snapshot) => &**snapshot,
            Self::Store(store) => &**store,
        }
    }
}

/// Copies or moves everything below a prefix, or, if `alone`, the collection without its members. Returns whether
/// something was replaced.
pub(super) async fn transfer(
    transfer: &Transfer,
    prefix: &Prefix,
    destination: &Destination,
    alone: bool,
) -> Result<bool, ApiError> {
    let Some(target) = &destination.prefix else {
        let detail = "no key can be below the destination, which is too long";
        return Err(ApiError::invalid_header("Destination", detail));
    };
    for _ in 0..ATTEMPTS {
        let source = Source::new(transfer, prefix).await?;
        let mut memory = transfer.claim.take(FIRST_BYTES).await?;
        let entries = entries(transfer, &source, (prefix, destination), &mut memory).await?;
        let current = match &destination.key {
            Some(key) => version_of(&**transfer.app.store(), key).await?,
            None => None,
        };
        let existing = transfer.existing(destination, current).await?;
        let (mut changes, precondition) = (existing.changes, existing.precondition);
        // The destination's own key goes with what is below it.
        changes.extend(destination.key.clone().map(|key| Change::Erase { key, precondition }));
        if !alone {
            let (app, from, to) = (transfer.app.clone(), prefix.clone(), target.clone());
            match Arc::new(Copier { app, source, from, to }).sets(entries.clone()).await {
                Ok(sets) => changes.extend(sets),
                Err(error) if error.is_changed() => continue,
                Err(error) => return Err(error),
            }
        }
        if transfer.kind == Kind::Move {
            changes.extend(entries.into_iter().map(|Entry { key, meta, .. }| {
                let precondition = Precondition::at(meta.version);
                Change::Erase { key, precondition }
            }));
        }
        let committed = transfer.commit(changes).await;
        drop(memory);
        match committed {
            Ok(outcomes) => {
                // The erase of the destination's own key is the first.
                let erased = outcomes.iter().find(|outcome| matches!(outcome, ChangeOutcome::Erased { .. }));
                let had_key = destination.key.is_some() && erased == Some(&ChangeOutcome::Erased { existed: true });
                return Ok(existing.has_keys_below || had_key);
            }
            Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ApiError::too_many_conflicts())
}

/// The keys that are copied, without those that the destination has: it is replaced before. Fails if there are none, or
/// too many for one commit.
async fn entries(
    transfer: &Transfer,
    source: &Source,
    (prefix, destination): (&Prefix, &Destination),
    memory: &mut Permit,
) -> Result<Vec<Entry>, ApiError> {
    let changes_of_key = if transfer.kind == Kind::Move { 2 } else { 1 };
    let limit = MAX_COMMIT_CHANGES.saturating_sub(OTHER_CHANGES) / changes_of_key;
    let (mut entries, mut found, mut bytes) = (Vec::new(), false, 0_u64);
    let mut listed = Box::pin(list_all(source.listing(), prefix));
    while let Some(entry) = listed.try_next().await? {
        found = true;
        let is_replaced = destination.key.as_ref() == Some(&entry.key)
            || destination.prefix.as_ref().is_some_and(|target| target.contains(&entry.key));
        if is_replaced {
            continue;
        }
        if entries.len() >= limit {
            let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
            let changes = count(entries.len()).saturating_add(1).saturating_mul(count(changes_of_key));
            return Err(ApiError::too_many_changes(changes, count(MAX_COMMIT_CHANGES)));
        }
        bytes = bytes.saturating_add(memory_of(&entry, destination));
        if entries.len() % KEYS_AT_ONCE == 0 && bytes > memory.bytes() {
            memory.grow_to(bytes.saturating_mul(2))?;
        }
        entries.push(entry);
    }
    memory.grow_to(bytes.max(memory.bytes()))?;
    if !found {
        return Err(ApiError::no_such_prefix(prefix));
    }
    Ok(entries)
}

/// The memory that a key, its copy and their changes take, in bytes.
fn memory_of(entry: &Entry, destination: &Destination) -> u64 {
    let len = |text: &[u8]| u64::try_from(text.len()).unwrap_or(u64::MAX);
    let target = destination.prefix.as_ref().map_or(0, |prefix| len(prefix.as_bytes()));
    let keys = len(entry.key.as_bytes()).saturating_mul(2).saturating_add(target);
    let value = Some(entry.meta.size).filter(|size| *size <= INLINE_VALUE_LIMIT).unwrap_or_default();
    CHANGES_BYTES.saturating_add(keys).saturating_add(value)
}

/// A maker of the copies of values.
struct Copier {
    app: App,
    source: Source,
    /// The prefix of the source.
    from: Prefix,
    /// The prefix of the copies.
    to: Prefix,
}

impl Copier {
    /// The changes that set the copies of values.
    async fn sets(self: Arc<Self>, entries: Vec<Entry>) -> Result<Vec<Change>, ApiError> {
        let copies = stream::iter(entries).map(move |entry| Arc::clone(&self).set(entry));
        copies.buffer_unordered(CONCURRENT_VALUES).try_collect().await
    }

    /// The change that sets the copy of a value.
    async fn set(self: Arc<Self>, entry: Entry) -> Result<Change, ApiError> {
        let rest = self.from.strip(&entry.key).unwrap_or_else(|| entry.key.name());
        let invalid = |error: KeyError| ApiError::invalid_header("Destination", error.to_string());
        let key = self.to.join(rest).map_err(invalid)?;
        let changed = || StoreError::Changed { key: entry.key.clone() };
        let value = self.source.values().get(&entry.key, None).await?.ok_or_else(changed)?;
        if value.meta.version != entry.meta.version {
            return Err(changed().into());
        }
        let precondition = Precondition::none();
        if value.meta.size <= INLINE_VALUE_LIMIT {
            return Ok(Change::Put { key, value: value.bytes().await?, precondition });
        }
        let payload = value.into_payload();
        let staged = self.app.commits()?.stage(&key, payload).await?;
        Ok(Change::Set { staged, precondition })
    }
}
