//! Chunk grids.

use std::{ops::Range, sync::Arc};

use crate::limits::MAX_EXTENT;

/// The chunk grid of an array, with one [`DimensionGrid`] per dimension; a 0-dimensional array has one chunk.
///
/// Edge chunks are stored in full, with elements beyond the array's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    dimensions: Vec<DimensionGrid>,
}

/// The chunk boundaries along one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimensionGrid {
    /// Chunks of one length, at least 1 (v3: [regular
    /// grids](https://zarr-specs.readthedocs.io/en/latest/v3/chunk-grids/regular-grid/index.html)).
    Regular {
        /// The length of a chunk.
        length: u64,
    },
    /// Chunks of individual lengths (zarr-extensions: `rectilinear`).
    Rectilinear {
        /// The end of each chunk, in increasing order.
        ends: Arc<[u64]>,
    },
}

impl ChunkGrid {
    /// Creates a grid.
    pub fn new(dimensions: Vec<DimensionGrid>) -> Self {
        Self { dimensions }
    }

    /// Creates a regular grid; `None` if a length is 0 or exceeds the maximum extent.
    pub fn regular(chunk_shape: &[u64]) -> Option<Self> {
        let length = |&length: &u64| (1..=MAX_EXTENT).contains(&length).then_some(DimensionGrid::Regular { length });
        Some(Self { dimensions: chunk_shape.iter().map(length).collect::<Option<_>>()? })
    }

    /// The shape of all chunks; `None` if the grid is rectilinear.
    pub fn regular_shape(&self) -> Option<Vec<u64>> {
        let length = |dimension: &DimensionGrid| match dimension {
            DimensionGrid::Regular { length } => Some(*length),
            DimensionGrid::Rectilinear { .. } => None,
        };
        self.dimensions.iter().map(length).collect()
    }

    /// The grids of the dimensions.
    pub fn dimensions(&self) -> &[DimensionGrid] {
        &self.dimensions
    }

    /// The shape of the chunk with these indices; `None` if it does not exist in the grid.
    pub fn chunk_shape(&self, chunk: &[u64]) -> Option<Vec<u64>> {
        if chunk.len() != self.dimensions.len() {
            return None;
        }
        let len = |(dimension, &index): (&DimensionGrid, &u64)| {
            dimension.chunk_bounds(index).map(|range| range.end - range.start)
        };
        self.dimensions.iter().zip(chunk).map(len).collect()
    }
}

impl DimensionGrid {
    /// Chunks of these lengths; `None` if a length is 0, or their sum exceeds the maximum extent.
    pub fn rectilinear(lengths: impl IntoIterator<Item = u64>) -> Option<Self> {
        let ends = lengths.into_iter().scan(0_u64, |end, length| {
            let next = end.checked_add(length).filter(|&next| length > 0 && next <= MAX_EXTENT);
            *end = next.unwrap_or(*end);
            Some(next)
        });
        Some(Self::Rectilinear { ends: ends.collect::<Option<_>>()? })
    }

    /// True if the chunks cover an extent.
    pub fn covers(&self, extent: u64) -> bool {
        match self {
            Self::Regular { .. } => true,
            Self::Rectilinear { ends } => ends.last().copied().unwrap_or(0) >= extent,
        }
    }

    /// The index of the chunk with the element at `position`; `None` beyond the last chunk.
    pub fn chunk_index(&self, position: u64) -> Option<u64> {
        match self {
            Self::Regular { length } => position.checked_div(*length),
            Self::Rectilinear { ends } => {
                let index = ends.partition_point(|&end| end <= position);
                (index < ends.len()).then_some(index as u64)
            }
        }
    }

    /// The range of a chunk; `None` if it does not exist. The last regular chunk may end beyond the array's extent.
    pub fn chunk_bounds(&self, index: u64) -> Option<Range<u64>> {
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

    /// The longest extent of a chunk; `None` if there are no chunks.
    pub fn longest_chunk(&self) -> Option<u64> {
        match self {
            Self::Regular { length } => Some(*length),
            Self::Rectilinear { ends } => {
                let starts = [0].into_iter().chain(ends.iter().copied());
                ends.iter().zip(starts).map(|(end, start)| end.saturating_sub(start)).max()
            }
        }
    }

    /// The number of chunks that cover an extent.
    pub fn num_chunks(&self, extent: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The chunks of a dimension until `extent` is covered or there are no more, as a reference.
    fn naive(lengths: impl Iterator<Item = u64>, extent: u64) -> Vec<Range<u64>> {
        let mut chunks = Vec::new();
        let mut start = 0;
        for length in lengths {
            if start >= extent {
                break;
            }
            chunks.push(start..start + length);
            start += length;
        }
        chunks
    }

    fn check(grid: &DimensionGrid, chunks: &[Range<u64>], extent: u64) {
        assert_eq!(grid.num_chunks(extent), chunks.len() as u64);
        for (index, chunk) in chunks.iter().enumerate() {
            assert_eq!(grid.chunk_bounds(index as u64).as_ref(), Some(chunk));
        }
        for position in 0..extent {
            let expected = chunks.iter().position(|chunk| chunk.contains(&position)).map(|index| index as u64);
            assert_eq!(grid.chunk_index(position), expected);
        }
    }

    proptest! {
        #[test]
        fn regular_chunks_match_the_reference(length in 1_u64..20, extent in 0_u64..100) {
            let grid = DimensionGrid::Regular { length };
            check(&grid, &naive(std::iter::repeat(length), extent), extent);
            prop_assert!(grid.covers(extent));
        }

        #[test]
        fn rectilinear_chunks_match_the_reference(lengths in prop::collection::vec(1_u64..9, 0..12), extent in 0_u64..80) {
            let grid = DimensionGrid::rectilinear(lengths.iter().copied()).unwrap();
            check(&grid, &naive(lengths.iter().copied(), extent), extent);
            let total: u64 = lengths.iter().sum();
            prop_assert_eq!(grid.covers(extent), extent <= total);
            prop_assert_eq!(grid.chunk_bounds(lengths.len() as u64), None);
            prop_assert_eq!(grid.chunk_index(total), None);
        }
    }

    /// Worked examples of the specifications: "Regular grids" of v3 and the draft, "Rectilinear chunk grid" of
    /// zarr-extensions.
    #[test]
    fn examples_of_the_specifications_hold() {
        let grid = ChunkGrid::regular(&[5, 20, 400]).unwrap();
        let along = |f: &dyn Fn(&DimensionGrid, u64) -> u64, positions: [u64; 3]| -> Vec<u64> {
            grid.dimensions().iter().zip(positions).map(|(dimension, position)| f(dimension, position)).collect()
        };
        assert_eq!(along(&|dimension, extent| dimension.num_chunks(extent), [10, 200, 3000]), [2, 10, 8]);
        let chunk = along(&|dimension, position| dimension.chunk_index(position).unwrap(), [7, 150, 900]);
        assert_eq!(chunk, [1, 7, 2]);
        let within = along(
            &|dimension, position| {
                position - dimension.chunk_bounds(dimension.chunk_index(position).unwrap()).unwrap().start
            },
            [7, 150, 900],
        );
        assert_eq!(within, [2, 10, 100]);

        let uneven = [DimensionGrid::rectilinear([24, 14]).unwrap(), DimensionGrid::rectilinear([16, 10]).unwrap()];
        assert_eq!((uneven[0].chunk_index(36), uneven[1].chunk_index(15)), (Some(1), Some(0)));
        assert_eq!(ChunkGrid::new(uneven.to_vec()).chunk_shape(&[1, 0]), Some(vec![14, 16]));
    }

    #[test]
    fn chunk_shape_requires_indices_of_the_rank() {
        let grid = ChunkGrid::regular(&[2, 3]).unwrap();
        assert_eq!(grid.chunk_shape(&[u64::MAX / 4, 1]), Some(vec![2, 3]));
        assert_eq!(grid.chunk_shape(&[1]), None);
        assert_eq!(grid.chunk_shape(&[u64::MAX, 0]), None);
        assert_eq!(ChunkGrid::regular(&[]).unwrap().chunk_shape(&[]), Some(vec![]));
    }

    #[test]
    fn empty_and_oversized_chunks_are_rejected() {
        assert_eq!(ChunkGrid::regular(&[1, 0]), None);
        assert_eq!(ChunkGrid::regular(&[MAX_EXTENT + 1]), None);
        assert_eq!(DimensionGrid::rectilinear([1, 0]), None);
        assert_eq!(DimensionGrid::rectilinear([MAX_EXTENT, 1]), None);
        assert_eq!(DimensionGrid::rectilinear([u64::MAX, 1]), None);
    }

    #[test]
    fn largest_extent_does_not_overflow() {
        let grid = ChunkGrid::regular(&[MAX_EXTENT]).unwrap();
        assert_eq!(grid.dimensions()[0].num_chunks(MAX_EXTENT), 1);
        assert_eq!(grid.dimensions()[0].chunk_index(MAX_EXTENT - 1), Some(0));
        let single = DimensionGrid::Regular { length: 1 };
        assert_eq!(single.num_chunks(MAX_EXTENT), MAX_EXTENT);
        assert_eq!(single.chunk_bounds(u64::MAX), None);
    }
}
