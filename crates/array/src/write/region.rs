//! A region of an array that is ready to be written.

use std::{collections::HashSet, sync::Arc};

use meta::{
    ArrayModel,
    grid::DimensionGrid,
    selection::{DimensionSelection, Region, Selection},
};
use store::MAX_COMMIT_CHANGES;

use super::{
    commit::{self, WriteKind, WriteTarget},
    encode::WriteContext,
    error::WriteError,
    layout::ChunkedRegion,
    receive,
    report::WriteReport,
    source::ElementSource,
};
use crate::{
    context::Context,
    error::ArrayError,
    grid::dimension::DimIndexer,
    node::{array::Array, resolved::ResolvedArray},
};

/// The most chunks that one write concerns. They are one commit, with documents beside them.
const MAX_CHUNKS: u64 = 100_000;
const _: () = assert!(MAX_CHUNKS + 256 < MAX_COMMIT_CHANGES as u64, "there is room for documents");

/// A region that is about to be written. Nothing was read but metadata.
#[derive(Debug)]
pub struct RegionWrite {
    pub(crate) context: Arc<Context>,
    pub(crate) target: WriteTarget,
    pub(crate) resolved: Arc<ResolvedArray>,
    pub(crate) selection: Selection,
    /// By where it is stored.
    pub(crate) region: Region,
    pub(crate) shape: Vec<u64>,
}

impl RegionWrite {
    /// The array.
    pub fn model(&self) -> &ArrayModel {
        self.resolved.array.model()
    }

    /// The shape that the elements must have, without the dimensions of which one index is selected.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many bytes elements of a fixed size have in all.
    pub fn byte_len(&self) -> Option<u64> {
        let elements = self.region.elements().unwrap_or(u64::MAX);
        Some(elements.saturating_mul(self.model().data_type.fixed_size()? as u64))
    }

    /// Writes the elements: all of them become visible in one commit, or none. Memory does not grow with their number.
    pub async fn execute(self, elements: ElementSource) -> Result<WriteReport, WriteError> {
        let Some(layout) = ChunkedRegion::new(&self.region, self.model()) else {
            receive::expect_no_elements(elements).await?;
            return Ok(commit::empty_report(&self.resolved));
        };
        let target = Arc::new(WriteContext::new(self.context, self.resolved.array.clone(), layout)?);
        let received = receive::receive(&target, target.context.account(), elements).await?;
        let kind = WriteKind::Region(&self.selection, &self.region);
        commit::commit(&target, &self.target, self.resolved, &kind, received).await
    }
}

/// Fails where a list names an index twice.
pub(crate) fn check_lists(region: &Region) -> Result<(), WriteError> {
    for (dimension, selected) in region.dimensions.iter().enumerate() {
        let DimensionSelection::List(indices) = selected else { continue };
        let mut seen = HashSet::with_capacity(indices.len());
        if let Some(&index) = indices.iter().find(|&&index| !seen.insert(index)) {
            return Err(WriteError::RepeatedIndex { dimension, index });
        }
    }
    Ok(())
}

/// Fails where a region concerns more chunks than a commit has changes, or one whose key would be too long.
pub(crate) fn check_chunks(array: &Array, region: &Region) -> Result<(), WriteError> {
    let axes = || region.dimensions.iter().zip(array.grid().dimensions());
    let chunks = axes().fold(1, |product: u128, (dimension, grid)| product.saturating_mul(max_chunks(dimension, grid)));
    if chunks > u128::from(MAX_CHUNKS) {
        return Err(ArrayError::TooManyChunks { chunks, limit: MAX_CHUNKS }.into());
    }
    let furthest = |(dimension, grid): (&DimensionSelection, &DimensionGrid)| grid.piece_of(max_index(dimension)?);
    let Some(position) = axes().map(furthest).collect::<Option<Vec<_>>>() else { return Ok(()) };
    match array.chunk_keys(&position).next() {
        Some(_) => Ok(()),
        None => Err(WriteError::ChunkKey { path: array.path().clone() }),
    }
}

/// How many pieces of a grid a selection touches.
fn max_chunks(dimension: &DimensionSelection, grid: &DimensionGrid) -> u128 {
    match dimension {
        // Many of its indices may be in one piece.
        DimensionSelection::List(indices) => {
            indices.iter().filter_map(|&index| grid.piece_of(index)).collect::<HashSet<_>>().len() as u128
        }
        _ => DimIndexer::of(dimension).map_or(0, |indices| u128::from(indices.max_chunks(grid))),
    }
}

/// The largest index; `None` where there is none.
fn max_index(dimension: &DimensionSelection) -> Option<u64> {
    match dimension {
        DimensionSelection::Index(index) => Some(*index),
        DimensionSelection::Range { start, step, len } => {
            let last = len.checked_sub(1)?;
            if *step < 0 { Some(*start) } else { start.checked_add(step.unsigned_abs().checked_mul(last)?) }
        }
        DimensionSelection::List(indices) => indices.iter().max().copied(),
    }
}
