//! Operations of several commits, and settling those that were interrupted.
//!
//! One begins with a commit of an intent, which says what it is about to do, and its last commit settles the intent. One that
//! fails, or whose caller goes away, is settled at once; one whose process ends is settled at the next start. A copy is undone, in one
//! commit that settles the intent too; a shrink is carried on. So it is done once, whoever does it.

use std::sync::Arc;

use meta::{Dialect, NodePath};
use serde::{Deserialize, Serialize};
use store::{Change, Intent, IntentError, IntentId, Key, Prefix, StoreError};

use super::shrink::{self, Finished, ShrinkIntent};
use crate::{
    context::Context,
    error::ArrayError,
    locks::{path::Scope, reserved_paths::Reservation},
    metadata::{
        change_set::ChangeSet,
        error::{NodeError, too_many_conflicts},
        keys::NAMES,
    },
    node::keys::{join_key, node_prefix},
    retry::MAX_ATTEMPTS,
};

/// The version of the records that this program writes and understands.
const VERSION: u32 = 1;

/// What became of the operations that were found unfinished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledIntents {
    /// Those of which everything was erased.
    pub undone: u64,
    /// Those that were carried on to their end.
    pub finished: u64,
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
    /// A smaller shape of the array at `path`, whose chunks outside are erased after its documents are changed.
    Shrink { path: String, dialect: String },
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

/// An operation that may have to be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unsettled {
    Copy(CopyIntent),
    Shrink(ShrinkIntent),
}

/// A copy of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyIntent {
    pub(crate) target: NodePath,
    pub(crate) dialect: Dialect,
    /// The prefixes below which its chunks are.
    pub(crate) extent: Vec<Prefix>,
}

/// The result of settling an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// All that it had set was erased.
    Erased,
    /// There is a node now, so nothing was erased.
    Left,
    /// It was carried on to its end.
    Finished,
    /// Somebody else had settled its intent.
    Before,
}

/// An operation that has begun. Unless it comes to its end it is settled, by its owner or when it is dropped.
pub(crate) struct Unfinished {
    id: IntentId,
    /// `None` once it is settled.
    begun: Option<Begun>,
}

struct Begun {
    id: IntentId,
    context: Arc<Context>,
    operation: Unsettled,
    /// Of the path, until it is settled.
    reservation: Reservation,
}

impl Unfinished {
    /// An operation, and the change that adds its intent, which is to be committed next. If this is dropped while that commit is made, the intent is settled all the same, since
    /// commits are made in the order in which they are asked for.
    pub(crate) fn begin(context: &Arc<Context>, operation: Unsettled) -> Result<(Self, Change), NodeError> {
        // Nothing of it can fail to be JSON.
        let record = Record::of(&operation).map_err(|_| too_many_conflicts(operation.path()))?;
        let reservation = match &operation {
            Unsettled::Copy(copy) => context.copy_targets.reserve(&copy.target),
            Unsettled::Shrink(shrink) => context.shrinking.reserve(&shrink.path),
        };
        let id = IntentId::random();
        let begun = Begun { id, context: Arc::clone(context), operation, reservation };
        Ok((Self { id, begun: Some(begun) }, Change::Intend { id, record: record.into() }))
    }

    pub(crate) fn id(&self) -> IntentId {
        self.id
    }

    /// The operation came to its end, and its last commit settled the intent; or its intent was never added.
    pub(crate) fn settled(mut self) {
        self.begun = None;
    }

    /// Settles the operation.
    pub(crate) async fn settle(mut self) {
        if let Some(begun) = self.begun.take() {
            begun.settle().await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Without a runtime the process is about to end, and the next start does it.
        if let (Some(begun), Ok(runtime)) = (self.begun.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(begun.settle());
        }
    }
}

impl Begun {
    async fn settle(self) {
        let Self { id, context, operation, reservation } = self;
        let path = operation.path();
        match operation.settle(&context, id).await {
            Ok(Settled::Erased | Settled::Finished | Settled::Before) => {}
            Ok(Settled::Left) => {
                tracing::warn!(%path, "chunks of a conversion that failed are left behind, since there is another node now");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%path, error, "chunks of an operation that failed are left behind until the next start");
                if let Unsettled::Shrink(_) = &operation {
                    // Until then the array must not grow.
                    std::mem::forget(reservation);
                }
            }
        }
    }
}

impl Unsettled {
    fn path(&self) -> &NodePath {
        match self {
            Self::Copy(copy) => &copy.target,
            Self::Shrink(shrink) => &shrink.path,
        }
    }

    /// Undoes it, or carries it on.
    async fn settle(&self, context: &Context, id: IntentId) -> Result<Settled, NodeError> {
        match self {
            Self::Copy(copy) => undo_copy(context, id, copy).await,
            Self::Shrink(shrink) => Ok(match shrink::finish(context, id, shrink).await? {
                Finished::Now => Settled::Finished,
                Finished::Before => Settled::Before,
            }),
        }
    }
}

impl Record {
    fn of(operation: &Unsettled) -> Result<Vec<u8>, serde_json::Error> {
        let operation = match operation {
            Unsettled::Copy(copy) => Operation::Copy {
                target: copy.target.to_string(),
                dialect: copy.dialect.to_string(),
                extent: copy.extent.iter().map(ToString::to_string).collect(),
            },
            Unsettled::Shrink(shrink) => {
                Operation::Shrink { path: shrink.path.to_string(), dialect: shrink.dialect.to_string() }
            }
        };
        serde_json::to_vec(&Self { version: VERSION, operation })
    }

    fn parse(record: &[u8]) -> Result<Unsettled, RecordError> {
        let json: serde_json::Value = serde_json::from_slice(record)?;
        match json.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version != u64::from(VERSION) => return Err(RecordError::Version(version)),
            _ => {}
        }
        let path = |text: &str| NodePath::parse(text).map_err(|_| RecordError::Content);
        let dialect = |text: &str| text.parse::<Dialect>().map_err(|_| RecordError::Content);
        let Self { operation, .. } = serde_json::from_value(json)?;
        Ok(match operation {
            Operation::Copy { target, dialect: of, extent } => {
                let extent = extent.iter().map(|prefix| Prefix::parse(prefix).map_err(|_| RecordError::Content));
                let extent = extent.collect::<Result<_, _>>()?;
                Unsettled::Copy(CopyIntent { target: path(&target)?, dialect: dialect(&of)?, extent })
            }
            Operation::Shrink { path: at, dialect: of } => {
                Unsettled::Shrink(ShrinkIntent { path: path(&at)?, dialect: dialect(&of)? })
            }
        })
    }
}

/// See [`Hierarchies::settle_intents`](super::Hierarchies::settle_intents).
pub(crate) async fn settle_all(context: &Context) -> Result<SettledIntents, StoreError> {
    let mut settled = SettledIntents::default();
    for Intent { id, record } in context.store.intents().await? {
        let operation = match Record::parse(&record) {
            Ok(operation) => operation,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%id, error, "the record of an unfinished operation cannot be understood; it stays");
                settled.unsettled += 1;
                continue;
            }
        };
        let path = operation.path();
        match operation.settle(context, id).await {
            Ok(Settled::Before) => {}
            Ok(Settled::Erased) => {
                tracing::info!(%path, "undid a conversion that was interrupted");
                settled.undone += 1;
            }
            Ok(Settled::Finished) => {
                tracing::info!(%path, "erased the chunks outside of an array whose shrinking was interrupted");
                settled.finished += 1;
            }
            Ok(Settled::Left) => {
                tracing::warn!(%path, "a conversion was interrupted, and there is a node at its target now: nothing is erased");
                settled.left += 1;
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%path, error, "an operation that was interrupted cannot be settled; the next start tries again");
                settled.unsettled += 1;
                if let Unsettled::Shrink(_) = &operation {
                    // Until then the array must not grow.
                    std::mem::forget(context.shrinking.reserve(path));
                }
            }
        }
    }
    Ok(settled)
}

/// Erases what a copy has set, unless there is a node by now, and settles its intent.
async fn undo_copy(context: &Context, id: IntentId, copy: &CopyIntent) -> Result<Settled, NodeError> {
    let _lock = context.lock_path(&copy.target, Scope::Subtree).await?;
    for _ in 0..MAX_ATTEMPTS {
        let mut change_set = ChangeSet::default();
        change_set.settle(id);
        let absent = absent_documents(context, copy).await?;
        let settled = if absent.is_some() { Settled::Erased } else { Settled::Left };
        if let Some(documents) = absent {
            documents.iter().for_each(|key| change_set.record_read(key, None));
            copy.extent.iter().for_each(|prefix| change_set.erase_prefix(prefix.clone()));
        }
        match context.store.commit(change_set.stage(&*context.store).await?).await {
            Ok(_) => return Ok(settled),
            Err(StoreError::PreconditionFailed { .. }) => {}
            Err(StoreError::Intent(IntentError::Missing { .. })) => return Ok(Settled::Before),
            Err(error) => return Err(error.into()),
        }
    }
    Err(too_many_conflicts(&copy.target))
}

/// The documents that a node at a copy's target could have, if it has none. Of a hierarchy of the draft, whose other documents
/// are elsewhere, those at the path itself.
async fn absent_documents(context: &Context, copy: &CopyIntent) -> Result<Option<Vec<Key>>, NodeError> {
    let own = node_prefix(&copy.target)?;
    let keys: Vec<Key> = NAMES.iter().filter_map(|name| join_key(&own, name)).collect();
    let snapshot = context.store.snapshot(&keys).await?;
    for key in &keys {
        if snapshot.head(key)?.is_some() {
            return Ok(None);
        }
    }
    if copy.dialect != Dialect::Draft {
        return Ok(Some(keys));
    }
    match context.resolve_node(&copy.target, Some(Dialect::Draft)).await {
        Ok(None) => Ok(Some(keys)),
        // What cannot be opened is there.
        Ok(Some(_)) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
