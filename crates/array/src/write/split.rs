//! From a selection to its layout.

use std::sync::Arc;

use zarrd_meta::selection::ResolvedSelection;
use zarrd_store::MAX_COMMIT_CHANGES;

use super::layout::ChunkedRegion;
use crate::{context::Context, error::ArrayError, node::array::Array, work::STEPS_PER_INNER_CHUNK};

/// The most chunks that one write touches. They are committed together, with documents.
pub(crate) const MAX_CHUNKS: u64 = 100_000;
const _: () = assert!(MAX_CHUNKS + 256 < MAX_COMMIT_CHANGES as u64, "there is room for documents");

/// The number of points up to which they are sorted on the runtime's own thread.
const INLINE_POINTS: usize = 1024;

/// Splits a selection of an array; `None` if it is empty.
pub(crate) async fn layout(
    context: &Context,
    array: &Array,
    selection: &Arc<ResolvedSelection>,
) -> Result<Option<ChunkedRegion>, ArrayError> {
    match &**selection {
        ResolvedSelection::Region(region) => Ok(ChunkedRegion::new(region, array.model())),
        ResolvedSelection::Stack(_) => Err(ArrayError::Misplaced { path: array.path().clone() }),
        ResolvedSelection::Points(points) if points.len <= INLINE_POINTS => {
            ChunkedRegion::of_points(points, array.model(), MAX_CHUNKS)
        }
        ResolvedSelection::Points(points) => {
            let steps = (points.len as u64).saturating_mul(STEPS_PER_INNER_CHUNK);
            let (array, selection) = (array.clone(), selection.clone());
            let split = move || match &*selection {
                ResolvedSelection::Points(points) => ChunkedRegion::of_points(points, array.model(), MAX_CHUNKS),
                ResolvedSelection::Region(_) | ResolvedSelection::Stack(_) => Ok(None),
            };
            context.run_blocking(steps, split).await
        }
    }
}
