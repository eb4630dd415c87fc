//! A planned write of a region.

use std::{collections::HashSet, sync::Arc};

use zarrd_meta::{
    ArrayModel,
    grid::DimensionGrid,
    selection::{DimensionSelection, ReadRequest, Region, ResolvedSelection},
};
use zarrd_operations::WriteReport;

use super::{
    commit::{self, WriteKind, WriteTarget},
    encode::WriteContext,
    error::WriteError,
    receive,
    source::ElementSource,
    split::{self, MAX_CHUNKS},
};
use crate::{
    context::Context,
    coordinates::{read::CoordinateVersion, select::are_current},
    error::ArrayError,
    grid::dimension::DimIndexer,
    node::{array::Array, resolved::ResolvedArray},
};

/// A planned write of a region, or of points. Only metadata was read.
#[derive(Debug)]
pub struct RegionWrite {
    pub(crate) context: Arc<Context>,
    pub(crate) target: WriteTarget,
    pub(crate) resolved: Arc<ResolvedArray>,
    pub(crate) request: ReadRequest,
    /// In stored coordinates.
    pub(crate) selection: Arc<ResolvedSelection>,
    pub(crate) shape: Vec<u64>,
    /// The coordinates by whose labels was selected.
    pub(crate) coordinates: Vec<CoordinateVersion>,
}

impl RegionWrite {
    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.resolved.array.model()
    }

    /// The shape of the elements, without dimensions that are selected by an index.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The size of all elements in bytes; `None` for variable length.
    pub fn byte_len(&self) -> Option<u64> {
        let elements = self.selection.elements().unwrap_or(u64::MAX);
        Some(elements.saturating_mul(self.model().data_type.fixed_size()? as u64))
    }

    /// The same write on condition that the coordinates by whose labels was selected are still these when the elements
    /// have arrived; otherwise it fails with [`ArrayError::TooManyConflicts`].
    #[must_use]
    pub fn with_coordinates(self, coordinates: Vec<CoordinateVersion>) -> Self {
        Self { coordinates, ..self }
    }

    /// Writes the elements, which all become visible in one commit, or not at all. Memory does not grow with their
    /// number.
    pub async fn execute(self, elements: ElementSource) -> Result<WriteReport, WriteError> {
        let layout = split::layout(&self.context, &self.resolved.array, &self.selection).await?;
        let Some(layout) = layout else {
            receive::expect_no_elements(elements).await?;
            return Ok(commit::empty_report(&self.resolved));
        };
        let empty = self.resolved.empty_chunks(&self.context.options);
        let target = Arc::new(WriteContext::new(self.context, self.resolved.array.clone(), empty, layout)?);
        let received = receive::receive(&target, target.context.account(), elements).await?;
        if !are_current(&target.context, &self.coordinates).await.unwrap_or(false) {
            return Err(ArrayError::TooManyConflicts { path: self.target.path }.into());
        }
        let kind = WriteKind::Region(&self.request, &self.selection);
        commit::commit(&target, &self.target, self.resolved, &kind, received).await
    }
}

/// Fails if a list repeats an index.
pub(crate) fn check_lists(region: &Region) -> Result<(), WriteError> {
    for (dimension, selected) in region.dimensions.iter().enumerate() {
        let DimensionSelection::List(indices) = selected else { continue };
        let mut distinct = HashSet::with_capacity(indices.len());
        if let Some(&index) = indices.iter().find(|&&index| !distinct.insert(index)) {
            return Err(WriteError::RepeatedIndex { dimension, index });
        }
    }
    Ok(())
}

/// Fails if a region touches more chunks than a commit can change, or one whose key would be too long.
pub(crate) fn check_chunks(array: &Array, region: &Region) -> Result<(), WriteError> {
    let axes = || region.dimensions.iter().zip(array.grid().dimensions());
    let chunks = axes().fold(1, |product: u128, (dimension, grid)| product.saturating_mul(max_chunks(dimension, grid)));
    if chunks > u128::from(MAX_CHUNKS) {
        return Err(ArrayError::TooManyChunks { chunks, limit: MAX_CHUNKS }.into());
    }
    Ok(array.check_keys(region)?)
}

/// The number of chunks that a selection touches along a dimension.
fn max_chunks(dimension: &DimensionSelection, grid: &DimensionGrid) -> u128 {
    match dimension {
        // Several indices may be in one chunk.
        DimensionSelection::List(indices) => {
            indices.iter().filter_map(|&index| grid.chunk_index(index)).collect::<HashSet<_>>().len() as u128
        }
        _ => DimIndexer::of(dimension).map_or(0, |indices| u128::from(indices.max_chunks(grid))),
    }
}
