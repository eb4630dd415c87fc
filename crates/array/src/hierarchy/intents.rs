//! Operations of several commits, and how they are settled after an interruption.
//!
//! Such an operation starts with a commit that adds an intent, which records what it is about to do, and its last
//! commit settles the intent. An operation that fails, or whose client leaves, is settled at once; one whose process
//! ended is settled when the store is next opened. A copy is undone, in one commit that settles the intent as well; a
//! shrink is finished.
//!
//! Nothing here rests on the memory of a process: each commit of an operation checks that its intent still exists, and
//! each commit that must not happen meanwhile that there is no such intent ([`Excluded`]).
//!
//! [`Excluded`]: crate::metadata::intent_record::Excluded

use std::sync::Arc;

use zarrd_meta::Dialect;
use zarrd_store::{Change, Intent, IntentError, IntentId, Key, StoreError};

use super::shrink::{self, Finished};
use crate::{
    context::Context,
    error::ArrayError,
    locks::path::Scope,
    metadata::{
        change_set::ChangeSet,
        error::{NodeError, too_many_conflicts},
        intent_record::{CopyIntent, IntentRecord, Unsettled},
        keys::NAMES,
    },
    node::keys::{join_key, node_prefix},
    retry::MAX_ATTEMPTS,
};

/// The number of interrupted operations by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettledIntents {
    /// Undone.
    pub undone: u64,
    /// Finished.
    pub finished: u64,
    /// Left as they are, since there is a node at their target.
    pub left: u64,
    /// Not settled; the log says why.
    pub unsettled: u64,
}

/// The result of settling an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    /// Everything it had set was erased.
    Erased,
    /// A node exists at the target, so nothing was erased.
    Left,
    /// It was finished.
    Finished,
    /// Its intent was already settled.
    Before,
}

/// An operation in progress. Unless it finishes, it is settled by its owner or when it is dropped.
pub(crate) struct Unfinished {
    id: IntentId,
    /// `None` once it is settled.
    started: Option<Started>,
}

struct Started {
    id: IntentId,
    context: Arc<Context>,
    operation: Unsettled,
}

impl Unfinished {
    /// Starts an operation; returns the change that adds its intent, to be committed next. If this is dropped during
    /// that commit, the intent is settled nevertheless, since commits are applied in order.
    pub(crate) fn begin(context: &Arc<Context>, operation: Unsettled) -> Result<(Self, Change), NodeError> {
        let record = IntentRecord { run: Some(context.commits()?.run()?), operation: operation.clone() };
        // A record always serialises.
        let record = record.encode().map_err(|_| too_many_conflicts(operation.path()))?;
        let id = IntentId::random();
        let started = Started { id, context: Arc::clone(context), operation };
        Ok((Self { id, started: Some(started) }, Change::AddIntent { id, record: record.into() }))
    }

    pub(crate) fn id(&self) -> IntentId {
        self.id
    }

    /// Marks the operation as finished: its last commit settled the intent, or the intent was never added.
    pub(crate) fn settled(mut self) {
        self.started = None;
    }

    /// Settles the operation.
    pub(crate) async fn settle(mut self) {
        if let Some(started) = self.started.take() {
            started.settle().await;
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Without a runtime the process is about to end, and the next start settles the operation.
        if let (Some(started), Ok(runtime)) = (self.started.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(started.settle());
        }
    }
}

impl Started {
    async fn settle(self) {
        let Self { id, context, operation } = self;
        let path = operation.path();
        match settle(&context, id, &operation).await {
            Ok(Settled::Erased | Settled::Finished | Settled::Before) => {}
            Ok(Settled::Left) => {
                tracing::warn!(%path, "chunks of a conversion that failed are left behind, since there is another node now");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(%path, error, "chunks of an operation that failed are left behind until the next start");
            }
        }
    }
}

/// Undoes or finishes an operation.
async fn settle(context: &Context, id: IntentId, operation: &Unsettled) -> Result<Settled, NodeError> {
    match operation {
        Unsettled::Copy(copy) => undo_copy(context, id, copy).await,
        Unsettled::Shrink(shrink) => Ok(match shrink::finish(context, id, shrink).await? {
            Finished::Now => Settled::Finished,
            Finished::Before => Settled::Before,
        }),
    }
}

/// See [`Hierarchies::settle_intents`](super::hierarchies::Hierarchies::settle_intents).
pub(crate) async fn settle_all(context: &Context) -> Result<SettledIntents, StoreError> {
    let mut settled = SettledIntents::default();
    // A store that is served for reading only has none.
    let Ok(store) = context.commits() else { return Ok(settled) };
    for Intent { id, record } in store.intents().await? {
        let operation = match IntentRecord::parse(&record) {
            // Its owner, perhaps another engine over the same store, settles it.
            Ok(IntentRecord { run: Some(run), .. }) if store.is_running(run) => continue,
            Ok(IntentRecord { operation, .. }) => operation,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%id, error, "the record of an unfinished operation cannot be understood; it stays");
                settled.unsettled += 1;
                continue;
            }
        };
        let path = operation.path();
        match settle(context, id, &operation).await {
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
            }
        }
    }
    Ok(settled)
}

/// Erases the keys of a copy, unless a node exists at its target, and settles its intent.
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
        let store = context.commits()?;
        match store.commit(change_set.stage(&**store).await?).await {
            Ok(_) => return Ok(settled),
            Err(StoreError::PreconditionFailed { .. }) => {}
            Err(StoreError::Intent(IntentError::NotFound { .. })) => return Ok(Settled::Before),
            Err(error) => return Err(error.into()),
        }
    }
    Err(too_many_conflicts(&copy.target))
}

/// The documents that a node at the copy's target could have, if there are none: of a draft hierarchy, whose other
/// documents lie elsewhere, those at the path itself.
async fn absent_documents(context: &Context, copy: &CopyIntent) -> Result<Option<Vec<Key>>, NodeError> {
    let own = node_prefix(&copy.target)?;
    let keys: Vec<Key> = NAMES.iter().filter_map(|name| join_key(&own, name)).collect();
    let snapshot = context.store.snapshot(&keys).await?;
    for key in &keys {
        if snapshot.meta(key).await?.is_some() {
            return Ok(None);
        }
    }
    if copy.dialect != Dialect::Draft {
        return Ok(Some(keys));
    }
    match context.resolve_node(&copy.target, Some(Dialect::Draft)).await {
        Ok(None) => Ok(Some(keys)),
        // A node that cannot be opened exists.
        Ok(Some(_)) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
