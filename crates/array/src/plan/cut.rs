//! All axes together.

use std::ops::Range;

use meta::{
    grid::ChunkGrid,
    selection::{DimensionSelection, Points, Region},
};

use super::axis::{AxisIndices, AxisPiece};

/// Elements of an array, a chunk or a part of one, each with its place in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picks {
    /// Every combination of indices of the axes; its place is the combination of their places.
    Product(Vec<AxisIndices>),
    /// Single elements.
    Points(Vec<PickedPoint>),
    /// The entries of a stack, at least one.
    Stack(Vec<Entry>),
}

/// One of several products that are stacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its indices along each axis, with their places within the entry.
    pub(crate) axes: Vec<AxisIndices>,
    /// The place of the entry itself, to which those of its elements are added.
    pub(crate) out: u64,
}

/// One element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PickedPoint {
    /// Where it is.
    pub(crate) at: Vec<u64>,
    /// Its place in the answer.
    pub(crate) out: u64,
}

/// The elements of one piece of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Which piece.
    pub(crate) position: Vec<u64>,
    /// Its shape.
    pub(crate) shape: Vec<u64>,
    /// Its elements, from its beginning.
    pub(crate) picks: Picks,
}

/// The pieces into which a grid cuts elements, roughly by their place in the answer.
#[derive(Debug)]
pub(crate) enum Cut {
    Product { axes: Vec<Vec<AxisPiece>>, next: Option<Vec<usize>> },
    Pieces(std::vec::IntoIter<Piece>),
}

impl PickedPoint {
    /// All the points, at the places of their order.
    pub(crate) fn all(points: &Points) -> Vec<Self> {
        Self::some(points, 0..points.len)
    }

    /// Some of the points, at the places of their order among those.
    pub(super) fn some(points: &Points, range: Range<usize>) -> Vec<Self> {
        let at = |point: usize| {
            let first = point.checked_mul(points.rank)?;
            points.coordinates.get(first..first.checked_add(points.rank)?).map(<[u64]>::to_vec)
        };
        range.zip(0..).filter_map(|(point, out)| Some(Self { at: at(point)?, out })).collect()
    }
}

impl Picks {
    /// The elements that a region has; `None` where it has none.
    pub(crate) fn of(region: &Region) -> Option<Self> {
        region.dimensions.iter().map(AxisIndices::of).collect::<Option<_>>().map(Self::Product)
    }

    /// The elements of a stack of regions, which all have as many; `None` where they have none. Where each has one, they are points.
    pub(crate) fn of_stack(regions: &[Region]) -> Option<Self> {
        let each = regions.first()?.elements().unwrap_or(u64::MAX);
        if each == 1 {
            let point = |(out, region): (u64, &Region)| {
                let at = region.dimensions.iter().map(DimensionSelection::first).collect::<Option<_>>()?;
                Some(PickedPoint { at, out })
            };
            return (0..).zip(regions).map(point).collect::<Option<_>>().map(Self::Points);
        }
        let entry = |(number, region): (u64, &Region)| match Self::of(region)? {
            Self::Product(axes) => Some(Entry { axes, out: number.saturating_mul(each) }),
            Self::Points(_) | Self::Stack(_) => None,
        };
        (0..).zip(regions).map(entry).collect::<Option<_>>().map(Self::Stack)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Product(axes) => len(axes),
            Self::Points(points) => points.len() as u64,
            Self::Stack(entries) => entries.iter().map(|entry| len(&entry.axes)).fold(0, u64::saturating_add),
        }
    }

    /// At most how many pieces of a grid they touch. Costs nothing.
    pub(crate) fn most_pieces(&self, grid: &ChunkGrid) -> u128 {
        match self {
            Self::Product(axes) => most_pieces(axes, grid),
            Self::Points(points) => points.len() as u128,
            Self::Stack(entries) => {
                entries.iter().map(|entry| most_pieces(&entry.axes, grid)).fold(0, u128::saturating_add)
            }
        }
    }

    /// Cuts them by a grid over something of this shape. Pieces that would end beyond the shape do where `Edge` says so.
    pub(crate) fn cut(&self, grid: &ChunkGrid, shape: Edge<'_>) -> Cut {
        match self {
            Self::Product(axes) => cut_product(axes, grid, shape),
            Self::Points(points) => Cut::Pieces(cut_points(points, grid, shape).into_iter()),
            Self::Stack(entries) => Cut::Pieces(cut_stack(entries, grid, shape).into_iter()),
        }
    }
}

fn len(axes: &[AxisIndices]) -> u64 {
    axes.iter().fold(1, |product, axis| product.saturating_mul(axis.len()))
}

fn most_pieces(axes: &[AxisIndices], grid: &ChunkGrid) -> u128 {
    let axes = axes.iter().zip(grid.dimensions());
    axes.fold(1, |product, (axis, grid)| product.saturating_mul(u128::from(axis.most_pieces(grid))))
}

fn cut_product(axes: &[AxisIndices], grid: &ChunkGrid, shape: Edge<'_>) -> Cut {
    let extents = (0..axes.len()).map(|axis| shape.extent(axis));
    let axes = axes.iter().zip(grid.dimensions()).zip(extents);
    let axes: Vec<_> = axes.map(|((axis, grid), extent)| axis.cut(grid, extent)).collect();
    let next = axes.iter().all(|pieces| !pieces.is_empty()).then(|| vec![0; axes.len()]);
    Cut::Product { axes, next }
}

/// How far the pieces at the upper edge go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edge<'a> {
    /// They are whole: chunks are stored with what lies beyond the array.
    Whole,
    /// They end with what is cut.
    Cut(&'a [u64]),
}

impl Edge<'_> {
    fn extent(self, axis: usize) -> u64 {
        match self {
            Self::Whole => u64::MAX,
            Self::Cut(shape) => shape.get(axis).copied().unwrap_or(u64::MAX),
        }
    }
}

impl Iterator for Cut {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let (axes, next) = match self {
            Self::Pieces(pieces) => return pieces.next(),
            Self::Product { axes, next } => (axes, next),
        };
        let current = next.take()?;
        let chosen: Vec<&AxisPiece> =
            axes.iter().zip(&current).map(|(pieces, &index)| pieces.get(index)).collect::<Option<_>>()?;
        let piece = Piece {
            position: chosen.iter().map(|axis| axis.piece).collect(),
            shape: chosen.iter().map(|axis| axis.extent).collect(),
            picks: Picks::Product(chosen.iter().map(|axis| axis.indices.clone()).collect()),
        };
        let mut following = current;
        for (index, pieces) in following.iter_mut().zip(axes.iter()).rev() {
            *index += 1;
            if *index < pieces.len() {
                *next = Some(following);
                break;
            }
            *index = 0;
        }
        Some(piece)
    }
}

fn cut_points(points: &[PickedPoint], grid: &ChunkGrid, shape: Edge<'_>) -> Vec<Piece> {
    let position = |point: &PickedPoint| -> Option<Vec<u64>> {
        grid.dimensions().iter().zip(&point.at).map(|(grid, &at)| grid.piece_of(at)).collect()
    };
    let mut placed: Vec<_> = points.iter().filter_map(|point| Some((position(point)?, point))).collect();
    placed.sort_by(|one, other| one.0.cmp(&other.0));
    let piece = |group: &[(Vec<u64>, &PickedPoint)]| -> Option<Piece> {
        let position = group.first()?.0.clone();
        let ranges: Vec<_> =
            grid.dimensions().iter().zip(&position).map(|(grid, &index)| grid.piece(index)).collect::<Option<_>>()?;
        let within = |point: &PickedPoint| PickedPoint {
            at: point.at.iter().zip(&ranges).map(|(at, range)| at - range.start).collect(),
            out: point.out,
        };
        let extent = |(axis, range): (usize, &std::ops::Range<u64>)| {
            range.end.min(shape.extent(axis).max(range.start)) - range.start
        };
        let shape = ranges.iter().enumerate().map(extent).collect();
        Some(Piece { position, shape, picks: Picks::Points(group.iter().map(|(_, point)| within(point)).collect()) })
    };
    placed.chunk_by(|one, other| one.0 == other.0).filter_map(piece).collect()
}

/// What all entries have of a piece is one piece, so that it is decoded once for all of them.
fn cut_stack(entries: &[Entry], grid: &ChunkGrid, shape: Edge<'_>) -> Vec<Piece> {
    let mut cut = Vec::new();
    for entry in entries {
        let pieces = cut_product(&entry.axes, grid, shape);
        cut.extend(pieces.filter_map(|piece| match piece.picks {
            Picks::Product(axes) => Some((piece.position, piece.shape, Entry { axes, out: entry.out })),
            Picks::Points(_) | Picks::Stack(_) => None,
        }));
    }
    // The order of the entries stays what it was within a piece.
    cut.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut pieces: Vec<(Vec<u64>, Vec<u64>, Vec<Entry>)> = Vec::new();
    for (position, shape, entry) in cut {
        match pieces.last_mut().filter(|(last, ..)| *last == position) {
            Some((_, _, entries)) => entries.push(entry),
            None => pieces.push((position, shape, vec![entry])),
        }
    }
    // What is first in the answer comes first.
    pieces.sort_by_key(|(_, _, entries)| entries.first().map(|entry| entry.out));
    let piece = |(position, shape, entries)| Piece { position, shape, picks: Picks::Stack(entries) };
    pieces.into_iter().map(piece).collect()
}
