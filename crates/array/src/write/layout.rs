//! A region split into parts of chunks, and into windows: the parts of it that are received at a time.
//!
//! The part of a chunk that is in a window is computed from the two alone, as often as needed, so nothing is stored
//! of parts that are pending.

mod points;

use std::ops::Range;

use zarrd_meta::{
    ArrayModel,
    grid::DimensionGrid,
    selection::{DimensionSelection, Region},
};

use crate::grid::{
    dimension::{ChunkDimProjection, DimIndexer},
    projection::EdgePolicy,
};

/// A region with at least one element, split by the grid of its array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChunkedRegion {
    axes: Vec<Axis>,
    /// The chunks of points, in place of those that the pieces of one axis have by their numbers; `None` for a region.
    points: Option<Vec<TouchedChunk>>,
}

/// The index in the grid, and the shape, of a chunk with points.
type TouchedChunk = (Vec<u64>, Vec<u64>);

/// One dimension.
#[derive(Debug, PartialEq, Eq)]
struct Axis {
    /// The number of selected indices.
    len: u64,
    /// The chunks touched, by increasing position of their first index.
    pieces: Vec<CoveredPiece>,
    /// The positions at which a window can end without splitting a chunk; the last is the end.
    ends: Vec<u64>,
}

/// The selected indices of one chunk of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CoveredPiece {
    piece: ChunkDimProjection,
    /// The number of its indices that matter: those within the array, or all.
    within: u64,
    /// The number of its indices within the array.
    in_array: u64,
}

/// A window: a part of a region that is consecutive in C order, as a range of positions in each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamWindow(Vec<Range<u64>>);

/// The part of one chunk that is in a region, or in a window of it.
#[derive(Clone, Debug)]
pub(crate) struct ChunkPart {
    /// The chunk's index in the grid.
    pub(crate) position: Vec<u64>,
    /// The chunk's shape, as stored.
    pub(crate) shape: Vec<u64>,
    /// The indices within the chunk, with their positions in the window; for points, the indices of its elements in C order.
    pub(crate) selection: Vec<DimIndexer>,
    /// The coverage of the chunk by the whole region.
    pub(crate) coverage: Coverage,
    /// The number of the region's elements in the chunk.
    pub(crate) wanted: u64,
}

/// The coverage of a chunk by a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All elements that matter are covered, so the stored chunk is irrelevant.
    Full,
    /// All elements within the array are covered; those outside matter if the stored chunk has any.
    Array,
    /// Some elements are covered.
    Partial,
}

impl ChunkedRegion {
    /// Splits a region of an array; `None` if it is empty. The cost is proportional to the chunks touched; if one
    /// dimension is empty, the others are not visited, however long they are.
    pub(crate) fn new(region: &Region, model: &ArrayModel) -> Option<Self> {
        Self::with_edges(region, model, EdgePolicy::Clip(&model.shape))
    }

    /// Splits a region like [`new`](Self::new). Full edge chunks are never covered, since a region has none of their elements
    /// outside of the array.
    pub(crate) fn with_edges(region: &Region, model: &ArrayModel, edges: EdgePolicy<'_>) -> Option<Self> {
        if region.elements() == Some(0) {
            return None;
        }
        let axes = region.dimensions.iter().zip(model.grid.dimensions()).enumerate();
        let clipped = EdgePolicy::Clip(&model.shape);
        let extents = |axis| [edges.extent(axis), clipped.extent(axis)];
        let axes = axes.map(|(axis, (dimension, grid))| Axis::new(dimension, grid, extents(axis)));
        Some(Self { axes: axes.collect::<Option<_>>()?, points: None })
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> u64 {
        self.axes.iter().fold(1, |product, axis| product.saturating_mul(axis.len))
    }

    /// The number of chunks touched.
    pub(crate) fn chunks(&self) -> u64 {
        self.axes.iter().fold(1, |product, axis| product.saturating_mul(axis.pieces.len() as u64))
    }

    /// The number of chunks that are covered partially.
    pub(crate) fn partial(&self) -> u64 {
        let covered = |axis: &Axis| axis.pieces.iter().filter(|piece| piece.is_covered()).count() as u64;
        let covered = self.axes.iter().fold(1_u64, |product, axis| product.saturating_mul(covered(axis)));
        self.chunks().saturating_sub(covered)
    }

    /// The most chunks of this shape that the region touches.
    pub(crate) fn pieces_of(&self, shape: &[u64]) -> u64 {
        if self.points.is_some() {
            return self.elements();
        }
        let pieces = |(axis, &length): (&Axis, &u64)| {
            let grid = DimensionGrid::Regular { length: length.max(1) };
            let within = axis.pieces.iter().map(|piece| piece.piece.indexer.max_chunks(&grid));
            within.fold(0, u64::saturating_add)
        };
        self.axes.iter().zip(shape).map(pieces).fold(1, u64::saturating_mul)
    }

    /// The fewest elements of a window of whole chunks; the first of several numbers if they differ.
    pub(crate) fn row(&self) -> u64 {
        let Some(cut) = self.axes.iter().position(|axis| axis.len > 1) else { return 1 };
        let after = self.axes.iter().skip(cut + 1).fold(1_u64, |product, axis| product.saturating_mul(axis.len));
        let first = self.axes.get(cut).and_then(|axis| axis.ends.first()).copied().unwrap_or(1);
        first.saturating_mul(after)
    }

    /// The whole region as one window.
    pub(crate) fn full_window(&self) -> StreamWindow {
        StreamWindow(self.axes.iter().map(|axis| 0..axis.len).collect())
    }

    /// True if a region, the same one after the array has changed, covers the same chunks.
    pub(crate) fn covers_as(&self, other: &Self) -> bool {
        self.points == other.points
            && self.axes.len() == other.axes.len()
            && self.axes.iter().zip(&other.axes).all(|(one, other)| {
                let same = |(one, other): (&CoveredPiece, &CoveredPiece)| {
                    one.piece == other.piece && one.is_covered() == other.is_covered()
                };
                one.pieces.len() == other.pieces.len() && one.pieces.iter().zip(&other.pieces).all(same)
            })
    }

    /// The windows in C order. Each has at most `most` elements, and ends at a chunk boundary if possible: at the first
    /// one after `least` elements.
    pub(crate) fn windows(&self, least: u64, most: u64) -> Windows<'_> {
        Windows { layout: self, left: vec![self.full_window()], least: least.max(1), most: most.max(1) }
    }

    /// The part of each chunk that is in a window, in C order of the chunks.
    pub(crate) fn parts(&self, window: &StreamWindow) -> Parts<'_> {
        let axes: Vec<_> = self.axes.iter().zip(&window.0).map(|(axis, places)| axis.within(places)).collect();
        let next = axes.iter().all(|pieces| !pieces.is_empty()).then(|| vec![0; axes.len()]);
        Parts { axes, next, points: self.points.as_deref() }
    }

    /// The part of a chunk that is in a window, given its part of the [whole](Self::whole) region; `None` if there is
    /// none.
    pub(crate) fn clipped(part: &ChunkPart, window: &StreamWindow) -> Option<Vec<DimIndexer>> {
        part.selection.iter().zip(&window.0).map(|(indices, places)| clip(indices, places)).collect()
    }
}

impl Axis {
    fn new(dimension: &DimensionSelection, grid: &DimensionGrid, extents: [u64; 2]) -> Option<Self> {
        let indices = DimIndexer::of(dimension)?;
        let within = |piece: ChunkDimProjection| {
            let range = grid.chunk_bounds(piece.chunk)?;
            let [within, in_array] = extents.map(|extent| range.end.min(extent).saturating_sub(range.start));
            Some(CoveredPiece { piece, within, in_array })
        };
        let pieces = indices.project(grid, u64::MAX).into_iter().map(within).collect::<Option<_>>()?;
        Some(Self::of_pieces(indices.len(), pieces))
    }

    /// An axis of `len` indices in these chunks, of which at least one is touched.
    fn of_pieces(len: u64, pieces: Vec<CoveredPiece>) -> Self {
        let mut ends = Vec::new();
        let mut reached = 0;
        for (piece, next) in pieces.iter().zip(pieces.iter().skip(1)) {
            reached = reached.max(piece.piece.indexer.out_end());
            if next.piece.indexer.out_start() >= reached {
                ends.push(reached);
            }
        }
        ends.push(len);
        Self { len, pieces, ends }
    }

    /// The chunks with some of these positions, each with these indices alone, whose positions start at 0.
    fn within(&self, places: &Range<u64>) -> Vec<(&CoveredPiece, DimIndexer)> {
        // Chunks that begin after the end have none. Those that end before the start have none either, and come first
        // in slices.
        let until = self.pieces.partition_point(|piece| piece.piece.indexer.out_start() < places.end);
        let strided = |piece: &CoveredPiece| matches!(piece.piece.indexer, DimIndexer::Strided { .. });
        let from = match self.pieces.first().is_some_and(strided) {
            true => self.pieces.partition_point(|piece| piece.piece.indexer.out_end() <= places.start),
            false => 0,
        };
        let some = self.pieces.get(from..until).unwrap_or_default();
        some.iter().filter_map(|piece| Some((piece, clip(&piece.piece.indexer, places)?))).collect()
    }
}

impl CoveredPiece {
    fn is_covered(&self) -> bool {
        self.piece.indexer.len() >= self.within
    }

    fn is_covered_in_array(&self) -> bool {
        self.piece.indexer.len() >= self.in_array
    }
}

impl StreamWindow {
    /// The number of elements along each dimension.
    pub(crate) fn extents(&self) -> Vec<u64> {
        self.0.iter().map(|places| places.end - places.start).collect()
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> u64 {
        self.0.iter().fold(1, |product, places| product.saturating_mul(places.end - places.start))
    }
}

impl ChunkPart {
    /// True if the window has all of the chunk's elements.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete_with(elements(&self.selection))
    }

    /// True if so many elements are all of the chunk's.
    pub(crate) fn is_complete_with(&self, elements: u64) -> bool {
        self.coverage == Coverage::Full && elements == self.wanted
    }
}

/// The number of elements of a selection.
pub(crate) fn elements(selection: &[DimIndexer]) -> u64 {
    selection.iter().fold(1, |product, indices| product.saturating_mul(indices.len()))
}

/// The indices with these positions, which then start at 0.
fn clip(indices: &DimIndexer, places: &Range<u64>) -> Option<DimIndexer> {
    match indices {
        DimIndexer::Strided { first, step, len, out } => {
            let start = places.start.max(*out);
            let end = places.end.min(out.saturating_add(*len));
            let len = end.checked_sub(start).filter(|&len| len > 0)?;
            let distance = step.checked_mul(i64::try_from(start - out).ok()?)?;
            let first = first.checked_add_signed(distance)?;
            Some(DimIndexer::Strided { first, step: *step, len, out: start - places.start })
        }
        DimIndexer::Listed(pairs) => {
            let from = pairs.partition_point(|&(_, out)| out < places.start);
            let until = pairs.partition_point(|&(_, out)| out < places.end);
            let some = pairs.get(from..until).filter(|some| !some.is_empty())?;
            Some(DimIndexer::Listed(some.iter().map(|&(index, out)| (index, out - places.start)).collect()))
        }
    }
}

/// Splits a region into windows.
#[derive(Debug)]
pub(crate) struct Windows<'a> {
    layout: &'a ChunkedRegion,
    /// The remaining windows, the next last.
    left: Vec<StreamWindow>,
    least: u64,
    most: u64,
}

impl Windows<'_> {
    /// Puts back the last window, for which memory is short, and returns the first part of it, of at most `most`
    /// elements.
    pub(crate) fn shortened(&mut self, window: StreamWindow, most: u64) -> StreamWindow {
        let (full_window, before) = (window.clone(), (self.least, self.most));
        (self.least, self.most) = (most.max(1), most.max(1));
        self.left.push(window);
        let first = self.next();
        (self.least, self.most) = before;
        first.unwrap_or(full_window)
    }

    /// Splits a window that has too many elements: along the first dimension with more than one index, at a chunk
    /// boundary if possible.
    fn split(&self, window: &StreamWindow) -> Option<(StreamWindow, StreamWindow)> {
        let axis = window.0.iter().position(|places| places.end - places.start > 1)?;
        let after = window
            .0
            .iter()
            .skip(axis + 1)
            .fold(1_u64, |product, places| product.saturating_mul(places.end - places.start));
        let places = window.0.get(axis)?;
        let len = places.end - places.start;
        let most = places.start + (self.most / after.max(1)).clamp(1, len);
        let least = places.start + self.least.div_ceil(after.max(1)).clamp(1, len);
        let ends = &self.layout.axes.get(axis)?.ends;
        let soon = ends.get(ends.partition_point(|&end| end < least)).filter(|&&end| end <= most);
        let late = ends.partition_point(|&end| end <= most).checked_sub(1).and_then(|last| ends.get(last));
        let end = soon.or(late.filter(|&&end| end > places.start)).copied().unwrap_or(most);
        let (mut first, mut rest) = (window.clone(), window.clone());
        first.0.get_mut(axis)?.end = end;
        rest.0.get_mut(axis)?.start = end;
        Some((first, rest))
    }
}

impl Iterator for Windows<'_> {
    type Item = StreamWindow;

    fn next(&mut self) -> Option<StreamWindow> {
        loop {
            let window = self.left.pop()?;
            let elements = window.elements();
            if elements == 0 {
                continue;
            }
            if elements <= self.least || elements == 1 {
                return Some(window);
            }
            match self.split(&window) {
                Some((first, rest)) => {
                    self.left.push(rest);
                    if first.elements() <= self.most {
                        return Some(first);
                    }
                    self.left.push(first);
                }
                None => return Some(window),
            }
        }
    }
}

/// An iterator over parts of chunks.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    axes: Vec<Vec<(&'a CoveredPiece, DimIndexer)>>,
    next: Option<Vec<usize>>,
    /// The chunks that the pieces of points number.
    points: Option<&'a [TouchedChunk]>,
}

impl Iterator for Parts<'_> {
    type Item = ChunkPart;

    fn next(&mut self) -> Option<ChunkPart> {
        let current = self.next.take()?;
        let chosen: Vec<&(&CoveredPiece, DimIndexer)> =
            self.axes.iter().zip(&current).map(|(pieces, &index)| pieces.get(index)).collect::<Option<_>>()?;
        let coverage = match () {
            () if chosen.iter().all(|(piece, _)| piece.is_covered()) => Coverage::Full,
            () if chosen.iter().all(|(piece, _)| piece.is_covered_in_array()) => Coverage::Array,
            () => Coverage::Partial,
        };
        let (position, shape) = match self.points {
            None => chosen.iter().map(|(piece, _)| (piece.piece.chunk, piece.piece.extent)).unzip(),
            Some(chunks) => {
                let number = usize::try_from(chosen.first()?.0.piece.chunk).ok()?;
                chunks.get(number)?.clone()
            }
        };
        let part = ChunkPart {
            position,
            shape,
            selection: chosen.iter().map(|(_, selection)| selection.clone()).collect(),
            coverage,
            wanted: chosen.iter().fold(1, |product, (piece, _)| product.saturating_mul(piece.piece.indexer.len())),
        };
        let mut following = current;
        for (index, pieces) in following.iter_mut().zip(&self.axes).rev() {
            *index += 1;
            if *index < pieces.len() {
                self.next = Some(following);
                break;
            }
            *index = 0;
        }
        Some(part)
    }
}
