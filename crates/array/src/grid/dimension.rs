//! One axis.

use meta::{grid::DimensionGrid, selection::DimensionSelection};

/// Indices along one axis, each with its place along the same axis of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DimIndexer {
    /// `first`, `first + step`, … at the places `out`, `out + 1`, … `len` of them, at least one.
    Strided {
        /// The first index.
        first: u64,
        /// The distance to the next, not 0.
        step: i64,
        /// How many there are.
        len: u64,
        /// The place of the first.
        out: u64,
    },
    /// Pairs of an index and its place, at least one, by increasing place.
    Listed(Vec<(u64, u64)>),
}

/// The indices within one piece of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkDimProjection {
    /// Which piece.
    pub(crate) chunk: u64,
    /// How long it is, as it is stored.
    pub(crate) extent: u64,
    /// The indices, from the beginning of the piece.
    pub(crate) indexer: DimIndexer,
}

impl DimIndexer {
    /// The indices that a selection has; `None` where it has none.
    pub(crate) fn of(selection: &DimensionSelection) -> Option<Self> {
        match selection {
            DimensionSelection::Index(index) => Some(Self::Strided { first: *index, step: 1, len: 1, out: 0 }),
            DimensionSelection::Range { len: 0, .. } => None,
            DimensionSelection::Range { start, step, len } => {
                Some(Self::Strided { first: *start, step: *step, len: *len, out: 0 })
            }
            DimensionSelection::List(indices) if indices.is_empty() => None,
            DimensionSelection::List(indices) => Some(Self::Listed(indices.iter().copied().zip(0..).collect())),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Strided { len, .. } => *len,
            Self::Listed(pairs) => pairs.len() as u64,
        }
    }

    /// The place of the first.
    pub(crate) fn out_start(&self) -> u64 {
        match self {
            Self::Strided { out, .. } => *out,
            Self::Listed(pairs) => pairs.first().map_or(0, |pair| pair.1),
        }
    }

    /// The place after the last.
    pub(crate) fn out_end(&self) -> u64 {
        match self {
            Self::Strided { out, len, .. } => out.saturating_add(*len),
            Self::Listed(pairs) => pairs.last().map_or(0, |pair| pair.1.saturating_add(1)),
        }
    }

    /// At most how many pieces of a grid they touch. Costs nothing.
    pub(crate) fn max_chunks(&self, grid: &DimensionGrid) -> u64 {
        let Self::Strided { first, step, len, .. } = self else { return self.len() };
        let last = step_by(*first, *step, len.saturating_sub(1));
        match (grid.piece_of(*first), last.and_then(|last| grid.piece_of(last))) {
            (Some(one), Some(other)) => one.abs_diff(other).saturating_add(1).min(*len),
            _ => *len,
        }
    }

    /// Cuts them by a grid whose pieces end at the latest at `extent`, by increasing place of each piece's first. Indices beyond the grid are left
    /// out; a selection that was applied to the array's shape has none.
    pub(crate) fn project(&self, grid: &DimensionGrid, extent: u64) -> Vec<ChunkDimProjection> {
        match self {
            Self::Strided { first, step, len, out } => project_strided([*first, *len, *out], *step, grid, extent),
            Self::Listed(pairs) => project_listed(pairs, grid, extent),
        }
    }
}

/// `first` after `count` steps.
fn step_by(first: u64, step: i64, count: u64) -> Option<u64> {
    let distance = step.unsigned_abs().checked_mul(count)?;
    if step < 0 { first.checked_sub(distance) } else { first.checked_add(distance) }
}

fn project_strided(
    [first, len, out]: [u64; 3],
    step: i64,
    grid: &DimensionGrid,
    extent: u64,
) -> Vec<ChunkDimProjection> {
    let mut pieces = Vec::new();
    let mut done = 0;
    while done < len {
        let Some(position) = step_by(first, step, done) else { break };
        let Some((piece, range)) = grid.piece_of(position).and_then(|piece| Some((piece, grid.piece(piece)?))) else {
            break;
        };
        let room = if step < 0 { position - range.start } else { range.end.saturating_sub(1).saturating_sub(position) };
        let count = (room / step.unsigned_abs().max(1)).saturating_add(1).min(len - done);
        let indices = DimIndexer::Strided { first: position - range.start, step, len: count, out: out + done };
        pieces.push(ChunkDimProjection {
            chunk: piece,
            extent: range.end.min(extent.max(range.start)) - range.start,
            indexer: indices,
        });
        done += count;
    }
    pieces
}

fn project_listed(pairs: &[(u64, u64)], grid: &DimensionGrid, extent: u64) -> Vec<ChunkDimProjection> {
    let mut placed: Vec<(u64, u64, u64)> =
        pairs.iter().filter_map(|&(index, out)| Some((grid.piece_of(index)?, out, index))).collect();
    placed.sort_unstable();
    let mut pieces: Vec<(u64, ChunkDimProjection)> = Vec::new();
    for group in placed.chunk_by(|one, other| one.0 == other.0) {
        let Some(&(piece, first_out, _)) = group.first() else { continue };
        let Some(range) = grid.piece(piece) else { continue };
        let within = group.iter().map(|&(_, out, index)| (index - range.start, out)).collect();
        let extent = range.end.min(extent.max(range.start)) - range.start;
        pieces.push((first_out, ChunkDimProjection { chunk: piece, extent, indexer: DimIndexer::Listed(within) }));
    }
    pieces.sort_unstable_by_key(|(first_out, _)| *first_out);
    pieces.into_iter().map(|(_, piece)| piece).collect()
}
