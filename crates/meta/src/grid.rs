//! Chunk grids: which elements each chunk has.

use std::{ops::Range, sync::Arc};

use crate::limits::MAX_EXTENT;

/// How an array is cut into chunks. One [`DimensionGrid`] per dimension; a 0-dimensional array has one chunk.
///
/// Chunks at the upper edge are stored whole, with elements beyond the array's shape that no selection shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    dimensions: Vec<DimensionGrid>,
}

/// How one dimension is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimensionGrid {
    /// Pieces of one length, at least 1
    /// (v3: [regular grids](https://zarr-specs.readthedocs.io/en/latest/v3/chunk-grids/regular-grid/index.html)).
    Regular {
        /// The length of a piece.
        length: u64,
    },
    /// Pieces of these lengths (zarr-extensions: `rectilinear`). `ends[i]` is where piece `i` ends; the ends increase.
    Rectilinear {
        /// Where each piece ends.
        ends: Arc<[u64]>,
    },
}

impl ChunkGrid {
    /// A grid of one cut per dimension.
    pub fn new(dimensions: Vec<DimensionGrid>) -> Self {
        Self { dimensions }
    }

    /// A regular grid. `None` where a length is 0 or larger than any array.
    pub fn regular(chunk_shape: &[u64]) -> Option<Self> {
        let length = |&length: &u64| (1..=MAX_EXTENT).contains(&length).then_some(DimensionGrid::Regular { length });
        Some(Self { dimensions: chunk_shape.iter().map(length).collect::<Option<_>>()? })
    }

    /// The cut of each dimension.
    pub fn dimensions(&self) -> &[DimensionGrid] {
        &self.dimensions
    }

    /// The shape of the chunk with these indices; `None` where there is no such chunk in the grid.
    pub fn chunk_shape(&self, chunk: &[u64]) -> Option<Vec<u64>> {
        if chunk.len() != self.dimensions.len() {
            return None;
        }
        let piece =
            |(dimension, &index): (&DimensionGrid, &u64)| dimension.piece(index).map(|range| range.end - range.start);
        self.dimensions.iter().zip(chunk).map(piece).collect()
    }
}

impl DimensionGrid {
    /// Which piece has the element at `position`; `None` beyond the last piece.
    pub fn piece_of(&self, position: u64) -> Option<u64> {
        match self {
            Self::Regular { length } => position.checked_div(*length),
            Self::Rectilinear { ends } => {
                let index = ends.partition_point(|&end| end <= position);
                (index < ends.len()).then_some(index as u64)
            }
        }
    }

    /// Where a piece lies; `None` where there is no such piece. The last regular one may end beyond the array's extent.
    pub fn piece(&self, index: u64) -> Option<Range<u64>> {
        match self {
            Self::Regular { length } => {
                let start = index.checked_mul(*length)?;
                Some(start..start.checked_add(*length)?)
            }
            Self::Rectilinear { ends } => {
                let index = usize::try_from(index).ok()?;
                let start = match index.checked_sub(1) {
                    Some(before) => *ends.get(before)?,
                    None => 0,
                };
                Some(start..*ends.get(index)?)
            }
        }
    }

    /// How many pieces cover an extent.
    pub fn pieces(&self, extent: u64) -> u64 {
        match self {
            Self::Regular { length } => extent.div_ceil((*length).max(1)),
            Self::Rectilinear { ends } => {
                if extent == 0 {
                    return 0;
                }
                let before = ends.partition_point(|&end| end < extent);
                before.saturating_add(1).min(ends.len()) as u64
            }
        }
    }
}
