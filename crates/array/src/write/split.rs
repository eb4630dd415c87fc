//! From a selection to its layout.

use std::sync::Arc;

use zarrd_executor::{Cost, Work};
use zarrd_meta::{ArrayModel, selection::ResolvedSelection};
use zarrd_store::MAX_COMMIT_CHANGES;

use super::layout::ChunkedRegion;
use crate::{context::Context, error::ArrayError, grid::projection::EdgePolicy, node::array::Array};

/// The most chunks that one write touches. They are committed together, with documents.
pub(crate) const MAX_CHUNKS: u64 = 100_000;
const _: () = assert!(MAX_CHUNKS + 256 < MAX_COMMIT_CHANGES as u64, "there is room for documents");

/// The edge chunks of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EdgeChunks {
    /// Their elements outside of the array are of nothing.
    Alone,
    /// Their elements outside of the array may be of an append that is being made.
    Shared,
}

/// Splits a selection of an array; `None` if it is empty.
///
/// If another server may append at the same time, key by key, its append owns the elements of edge chunks outside of the
/// array. So an edge chunk is never covered by a selection: it is merged with what is stored, by compare-and-swap, and
/// the elements outside stay.
pub(crate) async fn layout(
    context: &Context,
    array: &Array,
    selection: &Arc<ResolvedSelection>,
) -> Result<Option<ChunkedRegion>, ArrayError> {
    let edges = EdgeChunks::at(context, array);
    match &**selection {
        ResolvedSelection::Region(region) => {
            let model = array.model();
            Ok(ChunkedRegion::with_edges(region, model, edges.policy(model)))
        }
        ResolvedSelection::Stack(_) => Err(ArrayError::Misplaced { path: array.path().clone() }),
        ResolvedSelection::Points(points) => {
            let cost = Cost::of(Work::Plan, points.len as u64);
            let (array, selection) = (array.clone(), selection.clone());
            let split = move || match &*selection {
                ResolvedSelection::Points(points) => {
                    let model = array.model();
                    ChunkedRegion::of_points(points, model, edges.policy(model), MAX_CHUNKS)
                }
                ResolvedSelection::Region(_) | ResolvedSelection::Stack(_) => Ok(None),
            };
            context.run(cost, split).await?
        }
    }
}

impl EdgeChunks {
    fn at(context: &Context, array: &Array) -> Self {
        if context.needs_claim(array.path()) { Self::Shared } else { Self::Alone }
    }

    fn policy(self, model: &ArrayModel) -> EdgePolicy<'_> {
        match self {
            Self::Alone => EdgePolicy::Clip(&model.shape),
            Self::Shared => EdgePolicy::Full,
        }
    }
}
