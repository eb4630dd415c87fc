//! A region as parts of chunks, and as windows: the parts of it that come at a time.
//!
//! What a chunk has of a window is found from the two alone, however often it is asked for, so that nothing has to be remembered of parts that wait
//! for others.

use std::ops::Range;

use meta::{
    ArrayModel,
    grid::DimensionGrid,
    selection::{DimensionSelection, Region},
};

use crate::grid::dimension::{ChunkDimProjection, DimIndexer};

/// A region with at least one element, cut by the grid of its array.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChunkedRegion {
    axes: Vec<Axis>,
}

/// One axis.
#[derive(Debug, PartialEq, Eq)]
struct Axis {
    /// How many indices are selected.
    len: u64,
    /// By increasing place of their first index.
    pieces: Vec<CoveredPiece>,
    /// The places where one may be cut without cutting a piece; the last is the end.
    ends: Vec<u64>,
}

/// What is selected of one piece of the grid along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CoveredPiece {
    piece: ChunkDimProjection,
    /// How many of its indices lie within the array.
    within: u64,
}

/// A part of a region whose elements follow each other in C order: a range of places along each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamWindow(Vec<Range<u64>>);

/// What a region, or a window of it, has of one chunk.
#[derive(Clone, Debug)]
pub(crate) struct ChunkPart {
    /// Which chunk.
    pub(crate) position: Vec<u64>,
    /// Its shape, as it is stored.
    pub(crate) shape: Vec<u64>,
    /// The indices within it, with their places in the window.
    pub(crate) selection: Vec<DimIndexer>,
    /// What the region, with all its windows, has of the chunk.
    pub(crate) coverage: Coverage,
    /// How many elements the region has of the chunk.
    pub(crate) wanted: u64,
}

/// What a region has of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All that lies within the array, so that what is stored does not matter.
    Full,
    /// Some.
    Partial,
}

impl ChunkedRegion {
    /// Cuts a region of an array; `None` where it has no elements. Costs as much as the chunks that the region touches: where one axis has no indices, the others are not
    /// looked at, however long they are.
    pub(crate) fn new(region: &Region, model: &ArrayModel) -> Option<Self> {
        if region.elements() == Some(0) {
            return None;
        }
        let axes = region.dimensions.iter().zip(model.grid.dimensions()).zip(&model.shape);
        let axes = axes.map(|((dimension, grid), &extent)| Axis::new(dimension, grid, extent));
        Some(Self { axes: axes.collect::<Option<_>>()? })
    }

    /// How many elements there are.
    pub(crate) fn elements(&self) -> u64 {
        self.axes.iter().fold(1, |product, axis| product.saturating_mul(axis.len))
    }

    /// How many chunks there are.
    pub(crate) fn chunks(&self) -> u64 {
        self.axes.iter().fold(1, |product, axis| product.saturating_mul(axis.pieces.len() as u64))
    }

    /// How many chunks are covered in part.
    pub(crate) fn partial(&self) -> u64 {
        let covered = |axis: &Axis| axis.pieces.iter().filter(|piece| piece.is_covered()).count() as u64;
        let covered = self.axes.iter().fold(1_u64, |product, axis| product.saturating_mul(covered(axis)));
        self.chunks().saturating_sub(covered)
    }

    /// At most how many pieces of this shape the region touches.
    pub(crate) fn pieces_of(&self, shape: &[u64]) -> u64 {
        let pieces = |(axis, &length): (&Axis, &u64)| {
            let grid = DimensionGrid::Regular { length: length.max(1) };
            let within = axis.pieces.iter().map(|piece| piece.piece.indexer.max_chunks(&grid));
            within.fold(0, u64::saturating_add)
        };
        self.axes.iter().zip(shape).map(pieces).fold(1, u64::saturating_mul)
    }

    /// How many elements a window has at the least to be of whole chunks; the first of several numbers if these differ.
    pub(crate) fn row(&self) -> u64 {
        let Some(cut) = self.axes.iter().position(|axis| axis.len > 1) else { return 1 };
        let after = self.axes.iter().skip(cut + 1).fold(1_u64, |product, axis| product.saturating_mul(axis.len));
        let first = self.axes.get(cut).and_then(|axis| axis.ends.first()).copied().unwrap_or(1);
        first.saturating_mul(after)
    }

    /// All of it.
    pub(crate) fn whole(&self) -> StreamWindow {
        StreamWindow(self.axes.iter().map(|axis| 0..axis.len).collect())
    }

    /// Whether the other, of the same region after the array has changed, covers the same chunks.
    pub(crate) fn covers_as(&self, other: &Self) -> bool {
        self.axes.len() == other.axes.len()
            && self.axes.iter().zip(&other.axes).all(|(one, other)| {
                let same = |(one, other): (&CoveredPiece, &CoveredPiece)| {
                    one.piece == other.piece && one.is_covered() == other.is_covered()
                };
                one.pieces.len() == other.pieces.len() && one.pieces.iter().zip(&other.pieces).all(same)
            })
    }

    /// The windows, in C order. Each has at most `most` elements, and ends where chunks end if that is possible, the sooner the better once there are `least`.
    pub(crate) fn windows(&self, least: u64, most: u64) -> Windows<'_> {
        Windows { layout: self, left: vec![self.whole()], least: least.max(1), most: most.max(1) }
    }

    /// What a window has of each chunk, in C order of the chunks.
    pub(crate) fn parts(&self, window: &StreamWindow) -> Parts<'_> {
        let axes: Vec<_> = self.axes.iter().zip(&window.0).map(|(axis, places)| axis.within(places)).collect();
        let next = axes.iter().all(|pieces| !pieces.is_empty()).then(|| vec![0; axes.len()]);
        Parts { axes, next }
    }

    /// What a window has of one part of the [whole](Self::whole); `None` where it has nothing.
    pub(crate) fn clipped(part: &ChunkPart, window: &StreamWindow) -> Option<Vec<DimIndexer>> {
        part.selection.iter().zip(&window.0).map(|(indices, places)| clip(indices, places)).collect()
    }
}

impl Axis {
    fn new(dimension: &DimensionSelection, grid: &DimensionGrid, extent: u64) -> Option<Self> {
        let indices = DimIndexer::of(dimension)?;
        let within = |piece: ChunkDimProjection| {
            let range = grid.piece(piece.chunk)?;
            Some(CoveredPiece { within: range.end.min(extent).saturating_sub(range.start), piece })
        };
        let pieces: Vec<_> = indices.project(grid, u64::MAX).into_iter().map(within).collect::<Option<_>>()?;
        let mut ends = Vec::new();
        let mut reached = 0;
        for (piece, next) in pieces.iter().zip(pieces.iter().skip(1)) {
            reached = reached.max(piece.piece.indexer.out_end());
            if next.piece.indexer.out_start() >= reached {
                ends.push(reached);
            }
        }
        ends.push(indices.len());
        Some(Self { len: indices.len(), pieces, ends })
    }

    /// The pieces that have some of the places, with those alone, counted from the first.
    fn within(&self, places: &Range<u64>) -> Vec<(&CoveredPiece, DimIndexer)> {
        // Pieces that do not begin before the end have none. Those that end before the beginning have none either, and of slices they come first.
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
}

impl StreamWindow {
    /// How many elements it has along each axis.
    pub(crate) fn extents(&self) -> Vec<u64> {
        self.0.iter().map(|places| places.end - places.start).collect()
    }

    /// How many elements it has.
    pub(crate) fn elements(&self) -> u64 {
        self.0.iter().fold(1, |product, places| product.saturating_mul(places.end - places.start))
    }
}

impl ChunkPart {
    /// Whether a window has all that the region has of the chunk, and that is all that there is.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete_with(elements(&self.selection))
    }

    /// Whether so many elements are all that there is of the chunk.
    pub(crate) fn is_complete_with(&self, elements: u64) -> bool {
        self.coverage != Coverage::Partial && elements == self.wanted
    }
}

/// How many elements these are.
pub(crate) fn elements(selection: &[DimIndexer]) -> u64 {
    selection.iter().fold(1, |product, indices| product.saturating_mul(indices.len()))
}

/// The indices that have some places, counted from the first of those.
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

/// Cuts a region into windows.
#[derive(Debug)]
pub(crate) struct Windows<'a> {
    layout: &'a ChunkedRegion,
    /// What is left, the next last.
    left: Vec<StreamWindow>,
    least: u64,
    most: u64,
}

impl Windows<'_> {
    /// Takes the last window back, for which there is too little memory, and gives the part with which it begins, of at most `most` elements.
    pub(crate) fn shortened(&mut self, window: StreamWindow, most: u64) -> StreamWindow {
        let (whole, before) = (window.clone(), (self.least, self.most));
        (self.least, self.most) = (most.max(1), most.max(1));
        self.left.push(window);
        let first = self.next();
        (self.least, self.most) = before;
        first.unwrap_or(whole)
    }

    /// Cuts a window that has too many elements: along the first axis with more than one index, where chunks end if that is possible.
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

/// The parts of chunks.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    axes: Vec<Vec<(&'a CoveredPiece, DimIndexer)>>,
    next: Option<Vec<usize>>,
}

impl Iterator for Parts<'_> {
    type Item = ChunkPart;

    fn next(&mut self) -> Option<ChunkPart> {
        let current = self.next.take()?;
        let chosen: Vec<&(&CoveredPiece, DimIndexer)> =
            self.axes.iter().zip(&current).map(|(pieces, &index)| pieces.get(index)).collect::<Option<_>>()?;
        let covered = chosen.iter().all(|(piece, _)| piece.is_covered());
        let part = ChunkPart {
            position: chosen.iter().map(|(piece, _)| piece.piece.chunk).collect(),
            shape: chosen.iter().map(|(piece, _)| piece.piece.extent).collect(),
            selection: chosen.iter().map(|(_, selection)| selection.clone()).collect(),
            coverage: if covered { Coverage::Full } else { Coverage::Partial },
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
