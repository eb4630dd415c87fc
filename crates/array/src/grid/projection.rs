//! Projections of a selection onto the chunks of a grid.

use std::{ops::Range, sync::Arc};

use zarrd_meta::{
    grid::ChunkGrid,
    selection::{DimensionSelection, Region},
};

use super::{
    dimension::{ChunkDimProjection, DimIndexer},
    points::{IndexedPoints, PointsByChunk},
};

/// Elements of an array, or of a chunk, each with its position in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElementSelection {
    /// Every combination of the indices of all dimensions; its position combines their positions.
    Orthogonal(Vec<DimIndexer>),
    /// Single elements.
    Points(Arc<IndexedPoints>),
    /// The entries of a stack, at least one.
    Stacked(Vec<StackEntry>),
}

/// One entry of a stack: an orthogonal selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackEntry {
    /// The indices of each dimension, with their positions within the entry.
    pub(crate) axes: Vec<DimIndexer>,
    /// The position of the entry itself, to which those of its elements are added.
    pub(crate) out: u64,
}

/// The elements of one chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkProjection {
    /// The chunk's index in the grid.
    pub(crate) index: Vec<u64>,
    /// The chunk's shape.
    pub(crate) shape: Vec<u64>,
    /// Its elements, relative to the chunk's start.
    pub(crate) selection: ElementSelection,
}

/// The chunks that a selection touches, roughly in the order of their positions in the output.
#[derive(Debug)]
pub(crate) enum ChunkProjections {
    /// All combinations of the projections of each axis, from one on, around the last one, and up to the one before it.
    Orthogonal {
        axes: Vec<Vec<ChunkDimProjection>>,
        first: Vec<usize>,
        next: Option<Vec<usize>>,
    },
    Points(PointProjections),
    Collected(std::vec::IntoIter<ChunkProjection>),
}

/// The projections of points onto a grid.
#[derive(Debug)]
pub(crate) struct PointProjections {
    points: Arc<IndexedPoints>,
    by_chunk: PointsByChunk,
    grid: ChunkGrid,
    /// The shape at which edge chunks end, unless they are full.
    clip: Option<Vec<u64>>,
    /// The position of the next chunk's first point in the order.
    next: usize,
}

impl ElementSelection {
    /// The elements of a region; `None` if it is empty.
    pub(crate) fn of(region: &Region) -> Option<Self> {
        region.dimensions.iter().map(DimIndexer::of).collect::<Option<_>>().map(Self::Orthogonal)
    }

    /// The elements of a stack of regions with equal numbers of elements; `None` if these are empty. A stack of single
    /// elements becomes points.
    pub(crate) fn of_stack(regions: &[Region]) -> Option<Self> {
        let each = regions.first()?.elements().unwrap_or(u64::MAX);
        if each == 1 {
            let rank = regions.first()?.dimensions.len();
            let points = regions.iter().map(|region| region.dimensions.iter().map(DimensionSelection::first).collect());
            return IndexedPoints::collect(rank, points).map(|points| Self::Points(Arc::new(points)));
        }
        let entry = |(number, region): (u64, &Region)| match Self::of(region)? {
            Self::Orthogonal(axes) => Some(StackEntry { axes, out: number.saturating_mul(each) }),
            Self::Points(_) | Self::Stacked(_) => None,
        };
        (0..).zip(regions).map(entry).collect::<Option<_>>().map(Self::Stacked)
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Orthogonal(axes) => len(axes),
            Self::Points(points) => points.len() as u64,
            Self::Stacked(entries) => entries.iter().map(|entry| len(&entry.axes)).fold(0, u64::saturating_add),
        }
    }

    /// The number of chunks touched, at most; computed in constant time.
    pub(crate) fn max_chunks(&self, grid: &ChunkGrid) -> u128 {
        match self {
            Self::Orthogonal(axes) => max_chunks(axes, grid),
            Self::Points(points) => points.len() as u128,
            Self::Stacked(entries) => {
                entries.iter().map(|entry| max_chunks(&entry.axes, grid)).fold(0, u128::saturating_add)
            }
        }
    }

    /// Projects the selection onto the chunks of a grid; `shape` says whether edge chunks are clipped.
    pub(crate) fn project(&self, grid: &ChunkGrid, shape: EdgePolicy<'_>) -> ChunkProjections {
        match self {
            Self::Orthogonal(axes) => project_orthogonal(axes, grid, shape),
            Self::Points(points) => ChunkProjections::Points(PointProjections::new(points.clone(), grid, shape)),
            Self::Stacked(entries) => ChunkProjections::Collected(project_stack(entries, grid, shape).into_iter()),
        }
    }
}

fn len(axes: &[DimIndexer]) -> u64 {
    axes.iter().fold(1, |product, axis| product.saturating_mul(axis.len()))
}

fn max_chunks(axes: &[DimIndexer], grid: &ChunkGrid) -> u128 {
    let axes = axes.iter().zip(grid.dimensions());
    axes.fold(1, |product, (axis, grid)| product.saturating_mul(u128::from(axis.max_chunks(grid))))
}

fn project_orthogonal(axes: &[DimIndexer], grid: &ChunkGrid, shape: EdgePolicy<'_>) -> ChunkProjections {
    let extents = (0..axes.len()).map(|axis| shape.extent(axis));
    let axes = axes.iter().zip(grid.dimensions()).zip(extents);
    let axes: Vec<_> = axes.map(|((axis, grid), extent)| axis.project(grid, extent)).collect();
    let first = vec![0; axes.len()];
    let next = axes.iter().all(|pieces| !pieces.is_empty()).then(|| first.clone());
    ChunkProjections::Orthogonal { axes, first, next }
}

/// The extent of chunks at the upper edge.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EdgePolicy<'a> {
    /// Edge chunks are full: chunks are stored with elements beyond the array's shape.
    Full,
    /// Edge chunks end at this shape.
    Clip(&'a [u64]),
}

/// The order in which the chunks of a selection are visited if any will do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VisitOrder {
    /// The index of the chunk that comes first, or the chunk after it in C order of the selection; the first one if it
    /// is `None`. Those before it come last.
    pub(crate) from: Option<Vec<u64>>,
    /// True for the opposite of that order.
    pub(crate) reversed: bool,
}

impl ChunkProjections {
    /// The same projections in another order. Single points and stacks keep theirs.
    pub(crate) fn in_order(self, order: &VisitOrder) -> Self {
        let Self::Orthogonal { mut axes, mut first, next: Some(_) } = self else { return self };
        if let Some(from) = &order.from {
            for ((at, pieces), &chunk) in first.iter_mut().zip(&axes).zip(from) {
                let exact = pieces.iter().position(|piece| piece.chunk == chunk);
                let found = exact.or_else(|| pieces.iter().position(|piece| piece.chunk > chunk));
                *at = found.unwrap_or(0);
                // What comes after a chunk that is not selected begins with the first ones of the inner dimensions.
                if exact.is_none() {
                    break;
                }
            }
        }
        if order.reversed {
            for (at, pieces) in first.iter_mut().zip(&axes).rev() {
                if let Some(before) = at.checked_sub(1) {
                    *at = before;
                    break;
                }
                *at = pieces.len().saturating_sub(1);
            }
            for (at, pieces) in first.iter_mut().zip(&mut axes) {
                *at = pieces.len().saturating_sub(1).saturating_sub(*at);
                pieces.reverse();
            }
        }
        Self::Orthogonal { axes, next: Some(first.clone()), first }
    }

    /// The number of chunks, if it is known without visiting them.
    pub(crate) fn known_len(&self) -> Option<u64> {
        let Self::Orthogonal { axes, .. } = self else { return None };
        Some(axes.iter().fold(1, |all, pieces| all.saturating_mul(pieces.len() as u64)))
    }
}

impl EdgePolicy<'_> {
    /// The extent of an axis at which its last chunk ends at the latest.
    pub(crate) fn extent(self, axis: usize) -> u64 {
        match self {
            Self::Full => u64::MAX,
            Self::Clip(shape) => shape.get(axis).copied().unwrap_or(u64::MAX),
        }
    }
}

impl Iterator for ChunkProjections {
    type Item = ChunkProjection;

    fn next(&mut self) -> Option<ChunkProjection> {
        let (axes, first, next) = match self {
            Self::Points(points) => return points.next(),
            Self::Collected(pieces) => return pieces.next(),
            Self::Orthogonal { axes, first, next } => (axes, first, next),
        };
        let current = next.take()?;
        let chosen: Vec<&ChunkDimProjection> =
            axes.iter().zip(&current).map(|(pieces, &index)| pieces.get(index)).collect::<Option<_>>()?;
        let piece = ChunkProjection {
            index: chosen.iter().map(|axis| axis.chunk).collect(),
            shape: chosen.iter().map(|axis| axis.extent).collect(),
            selection: ElementSelection::Orthogonal(chosen.iter().map(|axis| axis.indexer.clone()).collect()),
        };
        let mut following = current;
        for (index, pieces) in following.iter_mut().zip(axes.iter()).rev() {
            *index += 1;
            if *index < pieces.len() {
                break;
            }
            *index = 0;
        }
        *next = Some(following).filter(|following| following != first);
        Some(piece)
    }
}

impl PointProjections {
    fn new(points: Arc<IndexedPoints>, grid: &ChunkGrid, edges: EdgePolicy<'_>) -> Self {
        let by_chunk = points.by_chunk(grid);
        let clip = match edges {
            EdgePolicy::Full => None,
            EdgePolicy::Clip(shape) => Some(shape.to_vec()),
        };
        Self { points, by_chunk, grid: grid.clone(), clip, next: 0 }
    }

    fn edges(&self) -> EdgePolicy<'_> {
        self.clip.as_deref().map_or(EdgePolicy::Full, EdgePolicy::Clip)
    }

    /// The projection onto a chunk of points that lie in it.
    fn project(&self, chunk: &[u64], points: &[usize]) -> Option<ChunkProjection> {
        let axes = self.grid.dimensions().iter().zip(chunk);
        let bounds: Vec<_> = axes.map(|(grid, &index)| grid.chunk_bounds(index)).collect::<Option<_>>()?;
        let extent = |(axis, bounds): (usize, &Range<u64>)| {
            bounds.end.min(self.edges().extent(axis).max(bounds.start)) - bounds.start
        };
        Some(ChunkProjection {
            index: chunk.to_vec(),
            shape: bounds.iter().enumerate().map(extent).collect(),
            selection: ElementSelection::Points(Arc::new(self.points.within(&bounds, points))),
        })
    }
}

impl Iterator for PointProjections {
    type Item = ChunkProjection;

    fn next(&mut self) -> Option<ChunkProjection> {
        let (chunk, points) = self.by_chunk.chunk_at(self.next)?;
        let projection = self.project(chunk, points);
        let count = points.len();
        self.next = self.next.saturating_add(count);
        projection
    }
}

/// Projects a stack. The elements that all entries have of a chunk are one projection, so that the chunk is decoded
/// once for all of them.
fn project_stack(entries: &[StackEntry], grid: &ChunkGrid, shape: EdgePolicy<'_>) -> Vec<ChunkProjection> {
    let mut cut = Vec::new();
    for entry in entries {
        let pieces = project_orthogonal(&entry.axes, grid, shape);
        cut.extend(pieces.filter_map(|piece| match piece.selection {
            ElementSelection::Orthogonal(axes) => Some((piece.index, piece.shape, StackEntry { axes, out: entry.out })),
            ElementSelection::Points(_) | ElementSelection::Stacked(_) => None,
        }));
    }
    // A stable sort keeps the order of the entries within a chunk.
    cut.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut pieces: Vec<(Vec<u64>, Vec<u64>, Vec<StackEntry>)> = Vec::new();
    for (position, shape, entry) in cut {
        match pieces.last_mut().filter(|(last, ..)| *last == position) {
            Some((_, _, entries)) => entries.push(entry),
            None => pieces.push((position, shape, vec![entry])),
        }
    }
    // Chunks come in the order of the output.
    pieces.sort_by_key(|(_, _, entries)| entries.first().map(|entry| entry.out));
    let piece = |(position, shape, entries)| ChunkProjection {
        index: position,
        shape,
        selection: ElementSelection::Stacked(entries),
    };
    pieces.into_iter().map(piece).collect()
}
