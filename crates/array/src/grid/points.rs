//! Single elements, and the chunks that they lie in.
//!
//! A request may have many points of many dimensions, so the coordinates of all are in one vector, and the points of a
//! chunk are put together only when it is their turn.

use std::ops::Range;

use zarrd_meta::{grid::ChunkGrid, selection::Points};

/// Single elements, each with its position in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexedPoints {
    /// The number of coordinates of each.
    rank: usize,
    /// The coordinates, point by point: `rank * out.len()` of them.
    at: Vec<u64>,
    /// The position of each in the output.
    out: Vec<u64>,
}

/// The number in C order of an element among those within bounds, given its coordinates.
pub(crate) fn number_within(at: impl IntoIterator<Item = u64>, bounds: &[Range<u64>]) -> u64 {
    at.into_iter().zip(bounds).fold(0, |number, (at, bounds)| {
        let length = bounds.end.saturating_sub(bounds.start);
        number.saturating_mul(length).saturating_add(at.saturating_sub(bounds.start))
    })
}

/// Points in the order of the chunks that they lie in.
#[derive(Debug)]
pub(crate) struct PointsByChunk {
    rank: usize,
    /// The index in the grid of the chunk of each point, in the order of the points.
    chunks: Vec<u64>,
    /// The numbers of the points.
    order: Vec<usize>,
}

impl IndexedPoints {
    /// A range of the points, at the positions of their order within the range.
    pub(crate) fn in_range(points: &Points, range: Range<usize>) -> Self {
        let bound = |point: usize| point.saturating_mul(points.rank);
        let at = points.coordinates.get(bound(range.start)..bound(range.end)).unwrap_or_default().to_vec();
        Self { rank: points.rank, at, out: (0..range.len() as u64).collect() }
    }

    /// Points of `rank` coordinates each, at the positions of their order; `None` if one of them is none.
    pub(crate) fn collect(rank: usize, points: impl Iterator<Item = Option<Vec<u64>>>) -> Option<Self> {
        let mut all = Self { rank, at: Vec::new(), out: Vec::new() };
        for (point, out) in points.zip(0..) {
            all.at.extend(point.filter(|point| point.len() == rank)?);
            all.out.push(out);
        }
        Some(all)
    }

    /// The points of these numbers, relative to the start of a chunk that they lie in.
    pub(super) fn within(&self, bounds: &[Range<u64>], points: &[usize]) -> Self {
        let mut within = Self { rank: self.rank, at: Vec::new(), out: Vec::with_capacity(points.len()) };
        within.at.reserve_exact(points.len().saturating_mul(self.rank));
        for &point in points {
            let at = nth(&self.at, self.rank, point).iter().zip(bounds);
            within.at.extend(at.map(|(at, bounds)| at.saturating_sub(bounds.start)));
            within.out.extend(self.out.get(point));
        }
        within
    }

    /// The points in the order of the chunks of a grid.
    pub(super) fn by_chunk(&self, grid: &ChunkGrid) -> PointsByChunk {
        PointsByChunk::new((self.rank, self.len()), &self.at, grid)
    }

    /// The number of points.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// The coordinates of each point, and its position in the output.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u64], u64)> {
        self.out.iter().enumerate().map(|(number, &out)| (nth(&self.at, self.rank, number), out))
    }

    /// The first position in the output; 0 if there is no point.
    pub(crate) fn first_position(&self) -> u64 {
        self.out.iter().copied().min().unwrap_or(0)
    }
}

impl PointsByChunk {
    /// Sorts `len` points with `rank` coordinates each; points outside of the grid are left out.
    pub(crate) fn new((rank, len): (usize, usize), coordinates: &[u64], grid: &ChunkGrid) -> Self {
        let mut chunks = Vec::with_capacity(coordinates.len());
        let mut order = Vec::with_capacity(len);
        for number in 0..len {
            let axes = grid.dimensions().iter().zip(nth(coordinates, rank, number));
            chunks.extend(axes.map_while(|(grid, &at)| grid.chunk_index(at)));
            let end = number.saturating_add(1).saturating_mul(rank);
            if chunks.len() == end {
                order.push(number);
            }
            chunks.resize(end, 0);
        }
        // A stable sort keeps the order of the points within a chunk.
        order.sort_by(|&one, &other| nth(&chunks, rank, one).cmp(nth(&chunks, rank, other)));
        Self { rank, chunks, order }
    }

    /// The chunk of the point at a position of the order, and those from there on that lie in it.
    pub(crate) fn chunk_at(&self, position: usize) -> Option<(&[u64], &[usize])> {
        let left = self.order.get(position..)?;
        let chunk = nth(&self.chunks, self.rank, *left.first()?);
        let after = left.iter().position(|&point| nth(&self.chunks, self.rank, point) != chunk);
        Some((chunk, left.get(..after.unwrap_or(left.len()))?))
    }

    /// Calls a function with the index of each chunk.
    pub(crate) fn for_each_chunk(&self, visit: &mut dyn FnMut(&[u64])) {
        let mut next = 0_usize;
        while let Some((chunk, points)) = self.chunk_at(next) {
            next = next.saturating_add(points.len());
            visit(chunk);
        }
    }
}

/// The coordinates of the point of this number.
fn nth(coordinates: &[u64], rank: usize, number: usize) -> &[u64] {
    let first = number.saturating_mul(rank);
    coordinates.get(first..first.saturating_add(rank)).unwrap_or_default()
}
