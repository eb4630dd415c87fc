//! Points split by the chunks that they lie in.
//!
//! They are like a region of one dimension, each of whose pieces numbers a chunk, and has the indices of elements of
//! that chunk in C order.

use std::{cmp::Reverse, ops::Range};

use zarrd_meta::{ArrayModel, selection::Points};

use super::{Axis, ChunkedRegion, CoveredPiece};
use crate::{
    error::ArrayError,
    grid::{
        dimension::{ChunkDimProjection, DimIndexer},
        points::{PointsByChunk, number_within},
        projection::EdgePolicy,
    },
};

impl ChunkedRegion {
    /// Splits points; `None` if there is none. Of several points at one element, the last counts. Fails if they lie in
    /// more than `limit` chunks.
    pub(crate) fn of_points(
        points: &Points,
        model: &ArrayModel,
        edges: EdgePolicy<'_>,
        limit: u64,
    ) -> Result<Option<Self>, ArrayError> {
        let by_chunk = PointsByChunk::new((points.rank, points.len), &points.coordinates, &model.grid);
        let mut count = 0_u64;
        by_chunk.for_each_chunk(&mut |_| count = count.saturating_add(1));
        if count > limit {
            return Err(ArrayError::TooManyChunks { chunks: count.into(), limit });
        }
        let (mut chunks, mut pieces) = (Vec::new(), Vec::new());
        let mut next = 0_usize;
        while let Some((index, numbers)) = by_chunk.chunk_at(next) {
            next = next.saturating_add(numbers.len());
            let axes = model.grid.dimensions().iter().zip(index);
            let Some(bounds) = axes.map(|(grid, &index)| grid.chunk_bounds(index)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            pieces.push(piece(points, numbers, (&bounds, edges, &model.shape), chunks.len() as u64));
            chunks
                .push((index.to_vec(), bounds.iter().map(|bounds| bounds.end.saturating_sub(bounds.start)).collect()));
        }
        pieces.sort_by_key(|piece| piece.piece.indexer.out_start());
        let axis = (!pieces.is_empty()).then(|| Axis::of_pieces(points.len as u64, pieces));
        Ok(axis.map(|axis| Self { axes: vec![axis], points: Some(chunks) }))
    }
}

/// The points with these numbers, which lie in the chunk with these bounds.
fn piece(
    points: &Points,
    numbers: &[usize],
    (bounds, edges, shape): (&[Range<u64>], EdgePolicy<'_>, &[u64]),
    chunk: u64,
) -> CoveredPiece {
    let elements_within = |edges: EdgePolicy<'_>| {
        let within =
            |(axis, bounds): (usize, &Range<u64>)| bounds.end.min(edges.extent(axis)).saturating_sub(bounds.start);
        bounds.iter().enumerate().map(within).fold(1, u64::saturating_mul)
    };
    let extent = bounds.iter().map(|bounds| bounds.end.saturating_sub(bounds.start)).fold(1, u64::saturating_mul);
    let index = |number: usize| {
        let start = number.saturating_mul(points.rank);
        let at = points.coordinates.get(start..start.saturating_add(points.rank)).unwrap_or_default();
        number_within(at.iter().copied(), bounds)
    };
    let mut pairs: Vec<(u64, u64)> = numbers.iter().map(|&number| (index(number), number as u64)).collect();
    pairs.sort_unstable_by_key(|&(index, out)| (index, Reverse(out)));
    pairs.dedup_by_key(|pair| pair.0);
    pairs.sort_unstable_by_key(|pair| pair.1);
    let piece = ChunkDimProjection { chunk, extent, indexer: DimIndexer::Listed(pairs) };
    CoveredPiece { piece, within: elements_within(edges), in_array: elements_within(EdgePolicy::Clip(shape)) }
}
