//! Shrinking an array: erasing the chunks outside a smaller shape.
//!
//! The first commit changes the shape and adds an intent. From then on no write reaches a chunk outside, since every
//! write checks the documents that it was planned on. Then the chunks outside are listed and erased, and the last
//! commit settles the intent. The array must not grow before that, or those chunks would become elements again. An
//! interrupted shrink is finished: at once, or when the store is next opened for writing. Every commit that changes the
//! shape of an array checks that no such intent exists.

use std::sync::Arc;

use futures::TryStreamExt;
use zarrd_meta::{ArrayModel, Dialect, NodePath, chunk_keys::ChunkKeyDecoder, documents::NodePatch};
use zarrd_store::{Change, IntentError, IntentId, Key, Prefix, StoreError};

use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        error::{NodeError, too_many_conflicts},
        intent_record::ShrinkIntent,
        keys,
    },
    node::resolved::{ResolvedArray, ResolvedNode},
};

/// The number of chunks erased in one commit.
const BATCH: usize = 4096;

/// The number of attempts, each of which starts again because the array's documents changed.
const ATTEMPTS: usize = 64;

/// The result of finishing a shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// This call settled the intent.
    Now,
    /// It was settled before, or never added.
    Before,
}

/// True if changes make an array smaller along a dimension.
pub(crate) fn shrinks(model: &ArrayModel, changes: &NodePatch) -> bool {
    let is_smaller = |shape: &Vec<u64>| shape.iter().zip(model.view_shape()).any(|(after, before)| *after < before);
    changes.shape.as_ref().is_some_and(is_smaller)
}

/// Erases the chunks outside of an array's shape, and settles the intent.
pub(crate) async fn finish(context: &Context, id: IntentId, shrink: &ShrinkIntent) -> Result<Finished, NodeError> {
    for _ in 0..ATTEMPTS {
        let resolved = match context.resolve_node(&shrink.path, Some(shrink.dialect)).await {
            // Chunks within the larger of two shapes stay.
            Ok(Some(ResolvedNode::Array(resolved))) => resolved.for_change()?,
            // The array is gone, and its chunks with it.
            Ok(Some(ResolvedNode::Group(_)) | None) | Err(ArrayError::NoSuchNode { .. }) => {
                return settle(context, vec![Change::RemoveIntent { id }])
                    .await
                    .map(|done| done.unwrap_or(Finished::Before));
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(finished) = attempt(context, id, shrink, &resolved).await? {
            return Ok(finished);
        }
    }
    Err(too_many_conflicts(&shrink.path))
}

/// One attempt; `None` if the documents changed meanwhile.
async fn attempt(
    context: &Context,
    id: IntentId,
    shrink: &ShrinkIntent,
    resolved: &Arc<ResolvedArray>,
) -> Result<Option<Finished>, NodeError> {
    let mut changes = resolved.read_set.preconditions();
    let checks = changes.len();
    let chunks =
        StoredChunks::new(&shrink.path, resolved.array.model(), resolved.hierarchy.as_ref().map(|root| &root.prefix))?;
    let mut entries = std::pin::pin!(zarrd_store::list_all(&*context.store, &chunks.prefix));
    while let Some(entry) = entries.try_next().await? {
        if !chunks.is_outside(&entry.key) {
            continue;
        }
        changes.push(Change::Erase { key: entry.key, precondition: zarrd_store::Precondition::none() });
        if changes.len() >= BATCH + checks {
            changes.push(Change::CheckIntent { id });
            let batch = std::mem::replace(&mut changes, resolved.read_set.preconditions());
            if settle(context, batch).await?.is_none() {
                return Ok(None);
            }
        }
    }
    changes.push(Change::RemoveIntent { id });
    settle(context, changes).await
}

/// Commits; `None` if a precondition failed.
async fn settle(context: &Context, changes: Vec<Change>) -> Result<Option<Finished>, NodeError> {
    match context.commits()?.commit(changes).await {
        Ok(_) => Ok(Some(Finished::Now)),
        Err(StoreError::PreconditionFailed { .. }) => Ok(None),
        Err(StoreError::Intent(IntentError::NotFound { .. })) => Ok(Some(Finished::Before)),
        Err(error) => Err(error.into()),
    }
}

/// The keys of an array's chunks.
pub(crate) struct StoredChunks {
    chunks: ChunkKeyDecoder,
    /// The prefix of all of them.
    pub(crate) prefix: Prefix,
}

impl StoredChunks {
    /// The chunk keys of the array at a path; `hierarchy` is the prefix of its draft hierarchy.
    pub(crate) fn new(path: &NodePath, model: &ArrayModel, hierarchy: Option<&Prefix>) -> Result<Self, NodeError> {
        let text = match (model.dialect, hierarchy) {
            (Dialect::Draft, Some(hierarchy)) => format!("{}{}", hierarchy.as_str(), model.chunk_prefix),
            _ => format!("{}{}", path.key_prefix(), model.chunk_prefix),
        };
        let prefix = Prefix::parse(&text).map_err(|_| keys::too_long(model.dialect, path))?;
        Ok(Self { chunks: model.chunk_key_decoder(), prefix })
    }

    /// The chunk's index in the grid; `None` for a key of no chunk within the grid.
    pub(crate) fn position(&self, key: &Key) -> Option<Vec<u64>> {
        let position = self.chunks.decode(self.prefix.strip(key)?)?;
        self.chunks.is_within_array(&position).then_some(position)
    }

    /// True for the key of a chunk that is outside of the array's shape.
    pub(crate) fn is_outside(&self, key: &Key) -> bool {
        let position = self.prefix.strip(key).and_then(|name| self.chunks.decode(name));
        position.is_some_and(|position| !self.chunks.is_within_array(&position))
    }
}
