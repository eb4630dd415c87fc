//! Changes of an array's shape in a store that is written key by key.
//!
//! A document is the point at which the shape changes. Before an array grows, what is outside of its shape is removed, or
//! it would become elements. After it shrank, the chunks outside are erased; that can be repeated.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::TryStreamExt;
use zarrd_meta::{
    NodePath,
    documents::NodePatch,
    selection::{DimensionSelection, Region},
};
use zarrd_operations::NodeRejection;
use zarrd_store::{Batch, Change, Precondition, StoreError, list_all, until_unchanged};

use super::shrink::StoredChunks;
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        change_set::ChangeSet,
        error::{NodeError, too_many_conflicts},
        keyed_commit::{self, Documents},
    },
    node::resolved::{ResolvedArray, ResolvedNode},
    retry::MAX_ATTEMPTS,
    write::{
        encode::{StagedChunk, WriteContext},
        error::WriteError,
        layout::ChunkedRegion,
        merge::merge_partial_chunks,
        receive::receive,
        source::ElementSource,
    },
};

/// The age from which a chunk outside of the shape is of an append that was cut, not of one that is being made.
const SETTLED: Duration = Duration::from_secs(15 * 60);

/// The number of chunks that are erased in one batch.
const BATCH: usize = 1024;

/// Changes the shape of an array, among other things; `false` if a document changed meanwhile, and nothing else did.
pub(crate) async fn apply(
    context: &Arc<Context>,
    path: &NodePath,
    resolved: &Arc<ResolvedArray>,
    patch: &NodePatch,
    change_set: ChangeSet,
) -> Result<bool, NodeError> {
    let Some(shape) = &patch.shape else {
        return Ok(keyed_commit::apply_documents(context, change_set, Documents::One).await?.is_some());
    };
    keyed_commit::check_documents(&change_set)?;
    // Writes of elements wait, so that none of them is outside of the shape when it is done.
    let _fence = context.array_locks.lock_exclusive([path.relative().as_bytes()], []).await;
    let model = resolved.array.model();
    let grows = shape.iter().zip(model.view_shape()).any(|(after, before)| *after > before);
    if grows {
        let stored = shape.iter().zip(&model.view_offset).map(|(extent, origin)| extent.saturating_add(*origin));
        let stored: Vec<u64> = stored.collect();
        let prepared = async {
            erase_outside(context, path, resolved, SETTLED).await?;
            fill_edges(context, resolved, &stored).await
        };
        match prepared.await {
            Err(NodeError::Store(error)) if is_conflict(&error) => return Ok(false),
            prepared => prepared?,
        }
    }
    if change_set.changes_anything()
        && keyed_commit::apply_documents(context, change_set, Documents::One).await?.is_none()
    {
        return Ok(false);
    }
    if grows {
        return Ok(true);
    }
    for _ in 0..MAX_ATTEMPTS {
        let resolved = until_unchanged(|| context.resolve_node(path, Some(model.dialect))).await?;
        let Some(ResolvedNode::Array(resolved)) = resolved else { return Ok(true) };
        let resolved = resolved.for_change()?;
        match erase_outside(context, path, &resolved, Duration::ZERO).await {
            Err(NodeError::Store(error)) if is_conflict(&error) => {}
            erased => return erased.map(|()| true),
        }
    }
    Err(too_many_conflicts(path))
}

/// True for the error of a batch that was planned on what has changed meanwhile.
fn is_conflict(error: &StoreError) -> bool {
    match error {
        StoreError::PreconditionFailed { .. } => true,
        StoreError::PartlyApplied { source, .. } => is_conflict(source),
        _ => false,
    }
}

/// Erases the chunks outside of an array's shape. Fails if one is younger than this, before any is erased.
async fn erase_outside(
    context: &Context,
    path: &NodePath,
    resolved: &ResolvedArray,
    min_age: Duration,
) -> Result<(), NodeError> {
    let chunks = StoredChunks::new(path, resolved.array.model(), resolved.hierarchy.as_ref().map(|root| &root.prefix))?;
    let mut outside = Vec::new();
    let mut entries = std::pin::pin!(list_all(&*context.store, &chunks.prefix));
    while let Some(entry) = entries.try_next().await? {
        if !chunks.is_outside(&entry.key) {
            continue;
        }
        let age = SystemTime::now().duration_since(entry.meta.modified).unwrap_or_default();
        if age < min_age {
            return Err(NodeRejection::StrayKeys { path: path.clone(), key: entry.key }.into());
        }
        outside.push(Change::Erase { key: entry.key, precondition: Precondition::none() });
        if min_age == Duration::ZERO && outside.len() >= BATCH {
            erase(context, resolved, std::mem::take(&mut outside)).await?;
        }
    }
    while !outside.is_empty() {
        let rest = outside.split_off(outside.len().min(BATCH));
        erase(context, resolved, std::mem::replace(&mut outside, rest)).await?;
    }
    Ok(())
}

/// Erases chunks, as long as the array is as it was read.
async fn erase(context: &Context, resolved: &ResolvedArray, chunks: Vec<Change>) -> Result<(), StoreError> {
    let documents = resolved.read_set.preconditions();
    context.writes()?.apply(Batch { chunks, documents }).await.map(drop)
}

/// Sets the elements of edge chunks that are outside of an array's shape, and within a larger one, to the fill value.
async fn fill_edges(context: &Arc<Context>, resolved: &Arc<ResolvedArray>, after: &[u64]) -> Result<(), NodeError> {
    let model = resolved.array.model();
    let fill = model.fill_value.clone();
    let mut filled = model.shape.clone();
    for (axis, grid) in model.grid.dimensions().iter().enumerate() {
        let (Some(&before), Some(&wanted)) = (model.shape.get(axis), after.get(axis)) else { continue };
        let last = before.checked_sub(1).and_then(|last| grid.chunk_bounds(grid.chunk_index(last)?));
        let end = last.map_or(before, |bounds| bounds.end).min(wanted);
        if end <= before {
            continue;
        }
        let Some(extent) = filled.get_mut(axis) else { continue };
        *extent = end;
        let mut region = Region::full(&filled);
        if let Some(dimension) = region.dimensions.get_mut(axis) {
            *dimension = DimensionSelection::Range { start: before, step: 1, len: end.saturating_sub(before) };
        }
        let array = resolved.array.reshaped(filled.clone());
        let Some(layout) = ChunkedRegion::new(&region, array.model()) else { continue };
        let empty = resolved.empty_chunks(&context.options);
        let target = Arc::new(WriteContext::new(context.clone(), array, empty, layout)?);
        let written = write_strip(&target, resolved, ElementSource::Scalar(fill.clone())).await;
        written.map_err(|error| match error {
            WriteError::Array(error) => error.into(),
            WriteError::Node(error) => error,
            WriteError::Store(error) => error.into(),
            WriteError::Encode { key, source } => NodeError::Encode { key, source },
            _ => ArrayError::Misplaced { path: resolved.array.path().clone() }.into(),
        })?;
    }
    Ok(())
}

async fn write_strip(
    target: &Arc<WriteContext>,
    resolved: &ResolvedArray,
    elements: ElementSource,
) -> Result<(), WriteError> {
    let received = receive(target, target.context.account(), elements).await?;
    let merged = merge_partial_chunks(target, &received.pending, received.memory).await?;
    let chunks = received.chunks.iter().chain(&merged.chunks).flat_map(StagedChunk::changes).collect();
    let batch = Batch { chunks, documents: resolved.read_set.preconditions() };
    keyed_commit::apply(&target.context, batch, None).await?;
    Ok(())
}
