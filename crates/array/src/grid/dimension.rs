//! Indexers of one dimension.

use zarrd_meta::{grid::DimensionGrid, selection::DimensionSelection};

/// The selected indices of one dimension, each with its position in the same dimension of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DimIndexer {
    /// The indices `first`, `first + step`, … at the positions `out`, `out + 1`, …; `len` of them, at least one.
    Strided {
        /// The first index.
        first: u64,
        /// The distance to the next index; not 0.
        step: i64,
        /// The number of indices.
        len: u64,
        /// The position of the first.
        out: u64,
    },
    /// Pairs of an index and its position, at least one, by increasing position.
    Listed(Vec<(u64, u64)>),
}

/// The indices within one chunk of a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkDimProjection {
    /// The chunk's index along the dimension.
    pub(crate) chunk: u64,
    /// The chunk's extent, as stored.
    pub(crate) extent: u64,
    /// The indices, relative to the chunk's start.
    pub(crate) indexer: DimIndexer,
}

impl DimIndexer {
    /// The indices of a selection; `None` if it is empty.
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

    /// The number of indices.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Strided { len, .. } => *len,
            Self::Listed(pairs) => pairs.len() as u64,
        }
    }

    /// The position of the first.
    pub(crate) fn out_start(&self) -> u64 {
        match self {
            Self::Strided { out, .. } => *out,
            Self::Listed(pairs) => pairs.first().map_or(0, |pair| pair.1),
        }
    }

    /// The position after the last.
    pub(crate) fn out_end(&self) -> u64 {
        match self {
            Self::Strided { out, len, .. } => out.saturating_add(*len),
            Self::Listed(pairs) => pairs.last().map_or(0, |pair| pair.1.saturating_add(1)),
        }
    }

    /// The number of chunks touched, at most; computed in constant time, or for a list in one pass.
    pub(crate) fn max_chunks(&self, grid: &DimensionGrid) -> u64 {
        let (first, step, len) = match self {
            Self::Strided { first, step, len, .. } => (first, step, len),
            Self::Listed(pairs) => return max_listed_chunks(pairs, grid),
        };
        let last = step_by(*first, *step, len.saturating_sub(1));
        match (grid.chunk_index(*first), last.and_then(|last| grid.chunk_index(last))) {
            (Some(one), Some(other)) => one.abs_diff(other).saturating_add(1).min(*len),
            _ => *len,
        }
    }

    /// Projects the indices onto the chunks of a grid, whose last chunk is clipped to `extent`, ordered by the position
    /// of each chunk's first index. Indices outside the grid are dropped; a selection that was resolved against the
    /// array's shape has none.
    pub(crate) fn project(&self, grid: &DimensionGrid, extent: u64) -> Vec<ChunkDimProjection> {
        match self {
            Self::Strided { first, step, len, out } => project_strided([*first, *len, *out], *step, grid, extent),
            Self::Listed(pairs) => project_listed(pairs, grid, extent),
        }
    }
}

/// The number of chunks from the first to the last one that a list touches, or of its runs of indices in one chunk if
/// those are fewer.
fn max_listed_chunks(pairs: &[(u64, u64)], grid: &DimensionGrid) -> u64 {
    let (mut runs, mut before) = (0_u64, None);
    let (mut least, mut greatest) = (u64::MAX, 0);
    for chunk in pairs.iter().filter_map(|&(index, _)| grid.chunk_index(index)) {
        runs = runs.saturating_add(u64::from(before != Some(chunk)));
        before = Some(chunk);
        (least, greatest) = (least.min(chunk), greatest.max(chunk));
    }
    greatest.checked_sub(least).map_or(0, |span| runs.min(span.saturating_add(1)))
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
        let Some((piece, range)) =
            grid.chunk_index(position).and_then(|piece| Some((piece, grid.chunk_bounds(piece)?)))
        else {
            break;
        };
        let distance =
            if step < 0 { position - range.start } else { range.end.saturating_sub(1).saturating_sub(position) };
        let count = (distance / step.unsigned_abs().max(1)).saturating_add(1).min(len - done);
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
        pairs.iter().filter_map(|&(index, out)| Some((grid.chunk_index(index)?, out, index))).collect();
    placed.sort_unstable();
    let mut pieces: Vec<(u64, ChunkDimProjection)> = Vec::new();
    for group in placed.chunk_by(|one, other| one.0 == other.0) {
        let Some(&(piece, first_out, _)) = group.first() else { continue };
        let Some(range) = grid.chunk_bounds(piece) else { continue };
        let within = group.iter().map(|&(_, out, index)| (index - range.start, out)).collect();
        let extent = range.end.min(extent.max(range.start)) - range.start;
        pieces.push((first_out, ChunkDimProjection { chunk: piece, extent, indexer: DimIndexer::Listed(within) }));
    }
    pieces.sort_unstable_by_key(|(first_out, _)| *first_out);
    pieces.into_iter().map(|(_, piece)| piece).collect()
}
