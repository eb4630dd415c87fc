//! Erasing the chunks that a smaller shape leaves outside of an array.
//!
//! A shrink is two steps. Its first commit changes the shape and adds an intent; from then on no write reaches a chunk outside, since every write checks the documents that it was planned on.
//! Then the chunks outside are listed and erased, and the last commit settles the intent. An array does not grow before that: those chunks would become elements again.
//! If the shrink is interrupted, it is carried on: at once, or when the store is next opened to be written to.

use std::sync::Arc;

use futures::TryStreamExt;
use meta::{ArrayModel, Dialect, NodePath, documents::Changes};
use store::{Change, IntentError, IntentId, Key, Prefix, StoreError};

use super::{
    NodeError,
    found::{Model, model_of},
    keys,
    walk::{Branch, Form},
};
use crate::{
    ArrayError,
    find::{Sight, Sighting},
    shared::Shared,
};

/// The chunks that are erased in one commit.
const BATCH: usize = 4096;

/// How often it is begun anew because the array's documents changed.
const ATTEMPTS: usize = 64;

/// A shrink that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShrinkIntent {
    pub(super) path: NodePath,
    pub(super) dialect: Dialect,
}

/// The result of carrying a shrink on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    /// This call settled the intent.
    Now,
    /// It was settled before, or never added.
    Before,
}

/// True if some changes make an array smaller along a dimension.
pub(super) fn shrinks(path: &NodePath, sighting: &Sighting, changes: &Changes) -> Result<bool, NodeError> {
    let before = sighting.array.model();
    if changes.shape.is_none() {
        return Ok(false);
    }
    let Model::Array(after) = changed(path, sighting, changes)? else { return Ok(false) };
    Ok(after.shape.iter().zip(&before.shape).any(|(after, before)| after < before))
}

/// Erases the chunks outside of an array's shape, and settles the intent.
pub(super) async fn finish(shared: &Shared, id: IntentId, shrink: &ShrinkIntent) -> Result<Finished, NodeError> {
    for _ in 0..ATTEMPTS {
        let sighting = match shared.see(&shrink.path, Some(shrink.dialect)).await {
            Ok(Some(Sight::Array(sighting))) => sighting,
            // The array is gone, and its chunks with it.
            Ok(Some(Sight::Group(_)) | None) | Err(ArrayError::NoSuchNode { .. }) => {
                return settle(shared, vec![Change::Settle { id }]).await.map(|done| done.unwrap_or(Finished::Before));
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(finished) = attempt(shared, id, shrink, &sighting).await? {
            return Ok(finished);
        }
    }
    Err(super::unsettled(&shrink.path))
}

/// One attempt; `None` if the documents changed.
async fn attempt(
    shared: &Shared,
    id: IntentId,
    shrink: &ShrinkIntent,
    sighting: &Arc<Sighting>,
) -> Result<Option<Finished>, NodeError> {
    let mut changes = sighting.checks();
    let checks = changes.len();
    let chunks =
        StoredChunks::new(&shrink.path, sighting.array.model(), sighting.root.as_ref().map(|root| &root.prefix))?;
    let mut entries = std::pin::pin!(store::walk(&*shared.store, &chunks.prefix));
    while let Some(entry) = entries.try_next().await? {
        if !chunks.is_outside(&entry.key) {
            continue;
        }
        changes.push(Change::Erase { key: entry.key, precondition: store::Precondition::none() });
        if changes.len() >= BATCH + checks {
            let batch = std::mem::replace(&mut changes, sighting.checks());
            if settle(shared, batch).await?.is_none() {
                return Ok(None);
            }
        }
    }
    changes.push(Change::Settle { id });
    settle(shared, changes).await
}

/// Makes a commit; `None` if a precondition does not hold.
async fn settle(shared: &Shared, changes: Vec<Change>) -> Result<Option<Finished>, NodeError> {
    match shared.store.commit(changes).await {
        Ok(_) => Ok(Some(Finished::Now)),
        Err(StoreError::PreconditionFailed { .. }) => Ok(None),
        Err(StoreError::Intent(IntentError::Missing { .. })) => Ok(Some(Finished::Before)),
        Err(error) => Err(error.into()),
    }
}

/// The keys of an array's chunks.
pub(super) struct StoredChunks<'a> {
    model: &'a ArrayModel,
    /// The text that all of them begin with.
    pub(super) prefix: Prefix,
    /// The number of chunks along each dimension.
    counts: Vec<u64>,
}

impl<'a> StoredChunks<'a> {
    /// Those of an array at a path; `hierarchy` is the prefix of its hierarchy of the draft.
    pub(super) fn new(path: &NodePath, model: &'a ArrayModel, hierarchy: Option<&Prefix>) -> Result<Self, NodeError> {
        let text = match (model.dialect, hierarchy) {
            (Dialect::Draft, Some(hierarchy)) => format!("{}{}", hierarchy.as_str(), model.chunk_prefix),
            _ => format!("{}{}", path.key_prefix(), model.chunk_prefix),
        };
        let prefix = Prefix::parse(&text).map_err(|_| keys::too_long(model.dialect, path))?;
        let dimensions = model.grid.dimensions().iter().zip(&model.shape);
        Ok(Self { model, prefix, counts: dimensions.map(|(grid, extent)| grid.pieces(*extent)).collect() })
    }

    /// The coordinates of a chunk; `None` for a key that is not a chunk's.
    pub(super) fn position(&self, key: &Key) -> Option<Vec<u64>> {
        self.model.chunk_keys.parse(self.prefix.strip(key)?, self.model.shape.len())
    }

    /// True if the coordinates are those of a chunk with elements of the array.
    pub(super) fn contains(&self, position: &[u64]) -> bool {
        position.iter().zip(&self.counts).all(|(index, count)| index < count)
    }

    fn is_outside(&self, key: &Key) -> bool {
        self.position(key).is_some_and(|position| !self.contains(&position))
    }
}

/// The model that the array has afterwards.
fn changed(path: &NodePath, sighting: &Sighting, changes: &Changes) -> Result<Model, NodeError> {
    let model = sighting.array.model();
    let stored = changes.of_array(model)?;
    model_of(&Branch {
        path: path.clone(),
        dialect: model.dialect,
        form: Form::Array,
        stored,
        own: sighting.own.clone(),
        root: sighting.root.clone().filter(|_| model.dialect == Dialect::Draft),
        members: None,
        broken: None,
    })
}
