//! From a selection to its layout.

use std::sync::Arc;

use zarrd_executor::{Cost, Work};
use zarrd_meta::selection::ResolvedSelection;
use zarrd_store::MAX_COMMIT_CHANGES;

use super::layout::ChunkedRegion;
use crate::{context::Context, error::ArrayError, node::array::Array};

/// The most chunks that one write touches. They are committed together, with documents.
pub(crate) const MAX_CHUNKS: u64 = 100_000;
const _: () = assert!(MAX_CHUNKS + 256 < MAX_COMMIT_CHANGES as u64, "there is room for documents");

/// Splits a selection of an array; `None` if it is empty.
pub(crate) async fn layout(
    context: &Context,
    array: &Array,
    selection: &Arc<ResolvedSelection>,
) -> Result<Option<ChunkedRegion>, ArrayError> {
    match &**selection {
        ResolvedSelection::Region(region) => Ok(ChunkedRegion::new(region, array.model())),
        ResolvedSelection::Stack(_) => Err(ArrayError::Misplaced { path: array.path().clone() }),
        ResolvedSelection::Points(points) => {
            let cost = Cost::of(Work::Plan, points.len as u64);
            let (array, selection) = (array.clone(), selection.clone());
            let split = move || match &*selection {
                ResolvedSelection::Points(points) => ChunkedRegion::of_points(points, array.model(), MAX_CHUNKS),
                ResolvedSelection::Region(_) | ResolvedSelection::Stack(_) => Ok(None),
            };
            context.run(cost, split).await?
        }
    }
}
