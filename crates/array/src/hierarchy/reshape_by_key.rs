//! Changes of an array's shape in a store that is written key by key.
//!
//! A document is the point at which the shape changes. Before an array grows, what is outside of its shape is removed, or
//! it would become elements. After it shrank, the chunks outside are erased; that can be repeated.

use std::sync::Arc;

use futures::TryStreamExt;
use tokio::time::Instant;
use zarrd_meta::{
    NodePath,
    documents::NodePatch,
    selection::{DimensionSelection, Region},
};
use zarrd_operations::NodeRejection;
use zarrd_store::{Batch, Change, Precondition, StoreError, list_all, not_before, until_unchanged};

use super::shrink::StoredChunks;
use crate::{
    context::Context,
    error::ArrayError,
    growth::{
        claim::GrowthClaim,
        clock::{SETTLED, StoreClock},
    },
    metadata::{
        change_set::ChangeSet,
        error::{NodeError, too_many_conflicts},
        keyed_commit::{self, Documents},
    },
    node::resolved::{ResolvedArray, ResolvedNode},
    options::EmptyChunks,
    retry::MAX_ATTEMPTS,
    write::{
        commit::is_current,
        encode::{StagedChunk, WriteContext},
        error::WriteError,
        layout::ChunkedRegion,
        merge::merge_partial_chunks,
        receive::receive,
        source::ElementSource,
    },
};

/// The number of chunks that are erased in one batch.
const BATCH: usize = 1024;

/// The number while the claim is held: as many as are erased at a time.
const CLAIMED_BATCH: usize = 32;

/// A change of an array's shape, among other things.
struct Reshape {
    context: Arc<Context>,
    path: NodePath,
    resolved: Arc<ResolvedArray>,
    shape: Vec<u64>,
    /// The claim of the array, where other servers may append at the same time.
    claim: Option<GrowthClaim>,
}

/// Changes the shape of an array, among other things; `false` if a document changed meanwhile, and nothing else did.
///
/// Where other servers may append at the same time, the change is made to its end even if the caller leaves.
pub(crate) async fn apply(
    context: &Arc<Context>,
    path: &NodePath,
    resolved: &Arc<ResolvedArray>,
    patch: &NodePatch,
    (change_set, documents): (ChangeSet, Documents),
) -> Result<bool, NodeError> {
    let Some(shape) = &patch.shape else {
        return Ok(keyed_commit::apply_documents(context, change_set, documents).await?.is_some());
    };
    keyed_commit::check_documents(&change_set, &documents)?;
    let (context, path, resolved) = (context.clone(), path.clone(), resolved.clone());
    let mut reshape = Reshape { context, path, resolved, shape: shape.clone(), claim: None };
    if !reshape.context.needs_claim(&reshape.path) {
        return reshape.apply(change_set, documents).await;
    }
    let claimed = async move {
        reshape.claim = Some(GrowthClaim::acquire(&reshape.context, &reshape.resolved).await?);
        // While the claim was waited for, what was outside may have become elements.
        let now = Some(Instant::now());
        let done = match not_before(now, is_current(&reshape.context, &reshape.resolved)).await {
            Ok(true) => reshape.apply(change_set, documents).await,
            Ok(false) => Ok(false),
            Err(error) => Err(error.into()),
        };
        if let Some(claim) = reshape.claim {
            claim.settle(&done).await;
        }
        done
    };
    let done = tokio::spawn(not_before(Some(Instant::now()), claimed));
    done.await.unwrap_or_else(|_| Err(ArrayError::ShuttingDown.into()))
}

impl Reshape {
    async fn apply(&self, change_set: ChangeSet, documents: Documents) -> Result<bool, NodeError> {
        let Self { context, resolved, shape, .. } = self;
        // Writes of elements wait, so that none of them is outside of the shape when it is done.
        let _fence = context.array_locks.lock_exclusive([self.path.relative().as_bytes()], []).await;
        let model = resolved.array.model();
        let grows = shape.iter().zip(model.view_shape()).any(|(after, before)| *after > before);
        if grows {
            match self.prepare_growth().await {
                Err(NodeError::Store(error)) if is_conflict(&error) => return Ok(false),
                prepared => prepared?,
            }
        }
        if change_set.changes_anything() {
            self.verify(resolved).await?;
            if keyed_commit::apply_documents(context, change_set, documents).await?.is_none() {
                return Ok(false);
            }
        }
        if grows { Ok(true) } else { self.erase_after_shrinking().await }
    }

    /// Makes sure that what is outside of the shape is the fill value. Fails if a chunk there is young.
    async fn prepare_growth(&self) -> Result<(), NodeError> {
        let model = self.resolved.array.model();
        let stored = self.shape.iter().zip(&model.view_offset).map(|(extent, origin)| extent.saturating_add(*origin));
        let stored: Vec<u64> = stored.collect();
        if self.check_settled().await? {
            self.erase_outside(&self.resolved).await?;
        }
        self.fill_edges(&stored).await
    }

    async fn erase_after_shrinking(&self) -> Result<bool, NodeError> {
        let dialect = self.resolved.array.model().dialect;
        for _ in 0..MAX_ATTEMPTS {
            let resolved = until_unchanged(|| self.context.resolve_node(&self.path, Some(dialect))).await?;
            let Some(ResolvedNode::Array(resolved)) = resolved else { return Ok(true) };
            let resolved = resolved.for_change()?;
            match self.erase_outside(&resolved).await {
                Err(NodeError::Store(error)) if is_conflict(&error) => {}
                erased => return erased.map(|()| true),
            }
        }
        Err(too_many_conflicts(&self.path))
    }

    /// Returns whether there are chunks outside of the array's shape. Fails if one is young, by the clock of the store.
    async fn check_settled(&self) -> Result<bool, NodeError> {
        let chunks = stored_chunks(&self.path, &self.resolved)?;
        let mut clock = StoreClock::of_array(&self.context, &self.resolved)?;
        let mut is_any = false;
        let mut entries = std::pin::pin!(list_all(&*self.context.store, &chunks.prefix));
        while let Some(entry) = entries.try_next().await? {
            if !chunks.is_outside(&entry.key) {
                continue;
            }
            is_any = true;
            if clock.age(entry.meta.modified).await? < SETTLED {
                return Err(NodeRejection::StrayKeys { path: self.path.clone(), key: entry.key }.into());
            }
        }
        Ok(is_any)
    }

    /// Erases the chunks outside of an array's shape.
    async fn erase_outside(&self, resolved: &ResolvedArray) -> Result<(), NodeError> {
        let chunks = stored_chunks(&self.path, resolved)?;
        // Erases have no conditions where others append, so a batch is over soon after the claim was verified.
        let size = if self.claim.is_some() { CLAIMED_BATCH } else { BATCH };
        let mut outside = Vec::new();
        let mut entries = std::pin::pin!(list_all(&*self.context.store, &chunks.prefix));
        loop {
            let entry = entries.try_next().await?;
            let is_end = entry.is_none();
            if let Some(entry) = entry.filter(|entry| chunks.is_outside(&entry.key)) {
                outside.push(Change::Erase { key: entry.key, precondition: Precondition::none() });
            }
            if outside.len() >= size || (is_end && !outside.is_empty()) {
                self.verify(resolved).await?;
                let (chunks, documents) = (std::mem::take(&mut outside), resolved.read_set.preconditions());
                self.context.writes()?.apply(Batch { chunks, documents }).await?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    async fn verify(&self, start: &ResolvedArray) -> Result<(), NodeError> {
        match &self.claim {
            Some(claim) => Ok(claim.verify(start).await?),
            None => Ok(()),
        }
    }

    /// Sets the elements of edge chunks that are outside of an array's shape, and within a larger one, to the fill value.
    async fn fill_edges(&self, after: &[u64]) -> Result<(), NodeError> {
        let Self { context, resolved, .. } = self;
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
            let empty = match self.claim {
                // A former holder of the claim may still set a chunk that is missing.
                Some(_) => EmptyChunks::Store,
                None => resolved.empty_chunks(&context.options),
            };
            let target = Arc::new(WriteContext::new(context.clone(), array, empty, layout)?);
            let written = self.write_strip(&target, ElementSource::Scalar(fill.clone())).await;
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

    async fn write_strip(&self, target: &Arc<WriteContext>, elements: ElementSource) -> Result<(), WriteError> {
        let received = receive(target, target.context.account(), elements).await?;
        let merged = merge_partial_chunks(target, &received.pending, received.memory).await?;
        let chunks = received.chunks.iter().chain(&merged.chunks).flat_map(StagedChunk::changes).collect();
        let batch = Batch { chunks, documents: self.resolved.read_set.preconditions() };
        self.verify(&self.resolved).await?;
        keyed_commit::apply(&target.context, batch, None).await?;
        Ok(())
    }
}

/// The keys of an array's chunks.
fn stored_chunks(path: &NodePath, resolved: &ResolvedArray) -> Result<StoredChunks, NodeError> {
    StoredChunks::new(path, resolved.array.model(), resolved.hierarchy.as_ref().map(|root| &root.prefix))
}

/// True for the error of a batch that was planned on what has changed meanwhile.
fn is_conflict(error: &StoreError) -> bool {
    matches!(error.of_change(), StoreError::PreconditionFailed { .. })
}
