//! Operations of several commits, and undoing those that were interrupted.
//!
//! One begins with a commit of an intent, which says what it is about to do, and its last commit settles the intent. One that
//! fails, or whose caller goes away, is undone at once; one whose process ends is undone at the next start. Undoing is one
//! commit that settles the intent too, so it is done once, whoever does it.

use std::sync::Arc;

use meta::{Dialect, NodePath};
use serde::{Deserialize, Serialize};
use store::{Change, Intent, IntentError, IntentId, Key, Prefix, StoreError};

use super::{NodeError, Scope, edits::Edits, unsettled, walk::NAMES};
use crate::{
    ATTEMPTS, ArrayError,
    find::{key_below, prefix},
    shared::Shared,
};

/// The version of the records that this program writes and understands.
const VERSION: u32 = 1;

/// What became of the operations that were found unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledIntents {
    /// Those of which everything was erased.
    pub undone: u64,
    /// Those of which everything stays, since somebody has made a node at their place.
    pub left: u64,
    /// Those that are unfinished still, as the log says.
    pub unsettled: u64,
}

/// What a record says, which is stored as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    operation: Operation,
}

/// An operation as a record has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Operation {
    /// A copy of a hierarchy to `target`, whose chunks are set below `extent` before its documents are.
    Copy { target: String, dialect: String, extent: Vec<String> },
}

/// A record that cannot be understood.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error("it is of version {0}, and this program knows version {VERSION} only")]
    Version(u64),
    #[error("it cannot be read")]
    Json(#[from] serde_json::Error),
    #[error("its path, dialect or prefixes are none")]
    Content,
}

/// An operation that may have to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Undoable {
    Copy(CopyIntent),
}

/// A copy of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyIntent {
    pub(super) target: NodePath,
    pub(super) dialect: Dialect,
    /// The prefixes below which its chunks are.
    pub(super) extent: Vec<Prefix>,
}

/// What undoing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Undone {
    /// What the operation had set was erased.
    Erased,
    /// There is a node now, so nothing was erased.
    Left,
    /// Somebody else had settled the intent.
    Settled,
}

/// Keeps others from creating nodes where a hierarchy is being copied to.
pub(super) struct Reservation {
    shared: Arc<Shared>,
    target: NodePath,
}

/// An operation that has begun. Unless it is settled it is undone, by its owner or when it is dropped.
pub(super) struct Unfinished {
    id: IntentId,
    /// `None` once it is settled.
    begun: Option<Begun>,
}

struct Begun {
    id: IntentId,
    copy: CopyIntent,
    reservation: Reservation,
}

impl Reservation {
    pub(super) fn new(shared: &Arc<Shared>, target: &NodePath) -> Self {
        shared.copied_to.lock().push(target.clone());
        Self { shared: Arc::clone(shared), target: target.clone() }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = self.shared.copied_to.lock();
        if let Some(at) = reserved.iter().position(|target| *target == self.target) {
            reserved.swap_remove(at);
        }
    }
}

impl Unfinished {
    /// Begins a copy: its intent is durable when this returns.
    pub(super) async fn begin(reservation: Reservation, copy: CopyIntent) -> Result<Self, NodeError> {
        let shared = Arc::clone(&reservation.shared);
        let (id, record) = (IntentId::random(), Record::of_copy(&copy)?);
        // If this is dropped while the commit is made, the intent is settled all the same.
        let begun = Self { id, begun: Some(Begun { id, copy, reservation }) };
        shared.store.commit(vec![Change::Intend { id, record: record.into() }]).await?;
        Ok(begun)
    }

    pub(super) fn id(&self) -> IntentId {
        self.id
    }

    /// The operation is done, and its last commit settled the intent.
    pub(super) fn settled(mut self) {
        self.begun = None;
    }

    /// Undoes the operation.
    pub(super) async fn undo(mut self) {
        if let Some(begun) = self.begun.take() {
            begun.undo().await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Without a runtime the process is about to end, and the next start does it.
        if let (Some(begun), Ok(runtime)) = (self.begun.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(begun.undo());
        }
    }
}

impl Begun {
    async fn undo(self) {
        let Self { id, copy, reservation } = self;
        let target = &copy.target;
        match undo_copy(&reservation.shared, id, &copy).await {
            Ok(Undone::Erased | Undone::Settled) => {}
            Ok(Undone::Left) => {
                tracing::warn!(%target, "chunks of a conversion that failed are left behind, since there is another node now");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%target, error, "chunks of a conversion that failed are left behind until the next start");
            }
        }
    }
}

impl Record {
    fn of_copy(copy: &CopyIntent) -> Result<Vec<u8>, NodeError> {
        let operation = Operation::Copy {
            target: copy.target.to_string(),
            dialect: copy.dialect.to_string(),
            extent: copy.extent.iter().map(ToString::to_string).collect(),
        };
        // Nothing of it can fail to be JSON.
        serde_json::to_vec(&Self { version: VERSION, operation }).map_err(|_| unsettled(&copy.target))
    }

    fn parse(record: &[u8]) -> Result<Undoable, RecordError> {
        let json: serde_json::Value = serde_json::from_slice(record)?;
        match json.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(VERSION) => return Err(RecordError::Version(version)),
            _ => {}
        }
        let Self { operation, .. } = serde_json::from_value(json)?;
        match operation {
            Operation::Copy { target, dialect, extent } => {
                let extent = extent.iter().map(|prefix| Prefix::parse(prefix).map_err(|_| RecordError::Content));
                Ok(Undoable::Copy(CopyIntent {
                    target: NodePath::parse(&target).map_err(|_| RecordError::Content)?,
                    dialect: dialect.parse().map_err(|_| RecordError::Content)?,
                    extent: extent.collect::<Result<_, _>>()?,
                }))
            }
        }
    }
}

/// See [`Hierarchies::settle_intents`](super::Hierarchies::settle_intents).
pub(super) async fn settle_all(shared: &Shared) -> Result<SettledIntents, StoreError> {
    let mut settled = SettledIntents::default();
    for Intent { id, record } in shared.store.intents().await? {
        let undoable = match Record::parse(&record) {
            Ok(undoable) => undoable,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%id, error, "the record of an unfinished operation cannot be understood; it stays");
                settled.unsettled += 1;
                continue;
            }
        };
        let Undoable::Copy(copy) = undoable;
        let target = &copy.target;
        match undo_copy(shared, id, &copy).await {
            Ok(Undone::Settled) => {}
            Ok(Undone::Erased) => {
                tracing::info!(%target, "undid a conversion that was interrupted");
                settled.undone += 1;
            }
            Ok(Undone::Left) => {
                tracing::warn!(%target, "a conversion was interrupted, and there is a node at its target now: nothing is erased");
                settled.left += 1;
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%target, error, "a conversion that was interrupted cannot be undone; the next start tries again");
                settled.unsettled += 1;
            }
        }
    }
    Ok(settled)
}

/// Erases what a copy has set, unless there is a node by now, and settles its intent.
async fn undo_copy(shared: &Shared, id: IntentId, copy: &CopyIntent) -> Result<Undone, NodeError> {
    let _lock = shared.lock_path(&copy.target, Scope::Subtree).await?;
    for _ in 0..ATTEMPTS {
        let mut edits = Edits::default();
        edits.settle(id);
        let absent = absent_documents(shared, copy).await?;
        let undone = if absent.is_some() { Undone::Erased } else { Undone::Left };
        if let Some(documents) = absent {
            documents.iter().for_each(|key| edits.saw(key, None));
            copy.extent.iter().for_each(|prefix| edits.erase_prefix(prefix.clone()));
        }
        match shared.store.commit(edits.stage(&*shared.store).await?).await {
            Ok(_) => return Ok(undone),
            Err(StoreError::PreconditionFailed { .. }) => {}
            Err(StoreError::Intent(IntentError::Missing { .. })) => return Ok(Undone::Settled),
            Err(error) => return Err(error.into()),
        }
    }
    Err(unsettled(&copy.target))
}

/// The documents that a node at a copy's target could have, if it has none. Of a hierarchy of the draft, whose other documents
/// are elsewhere, those at the path itself.
async fn absent_documents(shared: &Shared, copy: &CopyIntent) -> Result<Option<Vec<Key>>, NodeError> {
    let own = prefix(&copy.target)?;
    let keys: Vec<Key> = NAMES.iter().filter_map(|name| key_below(&own, name)).collect();
    let snapshot = shared.store.snapshot(&keys).await?;
    for key in &keys {
        if snapshot.head(key)?.is_some() {
            return Ok(None);
        }
    }
    if copy.dialect != Dialect::Draft {
        return Ok(Some(keys));
    }
    match shared.see(&copy.target, Some(Dialect::Draft)).await {
        Ok(None) => Ok(Some(keys)),
        // What cannot be opened is there.
        Ok(Some(_)) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
