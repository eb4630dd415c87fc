//! All axes together.

use std::ops::Range;

use meta::{
    grid::ChunkGrid,
    selection::{Points, Region},
};

use super::axis::{AxisIndices, AxisPiece};

/// Elements of an array, a chunk or a part of one, each with its place in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picks {
    /// Every combination of indices of the axes; its place is the combination of their places.
    Product(Vec<AxisIndices>),
    /// Single elements.
    Points(Vec<PickedPoint>),
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
    Points(std::vec::IntoIter<Piece>),
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

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Product(axes) => axes.iter().fold(1, |product, axis| product.saturating_mul(axis.len())),
            Self::Points(points) => points.len() as u64,
        }
    }

    /// At most how many pieces of a grid they touch. Costs nothing.
    pub(crate) fn most_pieces(&self, grid: &ChunkGrid) -> u128 {
        match self {
            Self::Product(axes) => axes
                .iter()
                .zip(grid.dimensions())
                .fold(1, |product, (axis, grid)| product.saturating_mul(u128::from(axis.most_pieces(grid)))),
            Self::Points(points) => points.len() as u128,
        }
    }

    /// Cuts them by a grid over something of this shape. Pieces that would end beyond the shape do where `Edge` says so.
    pub(crate) fn cut(&self, grid: &ChunkGrid, shape: Edge<'_>) -> Cut {
        match self {
            Self::Product(axes) => {
                let extents = (0..axes.len()).map(|axis| shape.extent(axis));
                let axes: Vec<_> = axes
                    .iter()
                    .zip(grid.dimensions())
                    .zip(extents)
                    .map(|((axis, grid), extent)| axis.cut(grid, extent))
                    .collect();
                let next = axes.iter().all(|pieces| !pieces.is_empty()).then(|| vec![0; axes.len()]);
                Cut::Product { axes, next }
            }
            Self::Points(points) => Cut::Points(cut_points(points, grid, shape).into_iter()),
        }
    }
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
            Self::Points(pieces) => return pieces.next(),
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
