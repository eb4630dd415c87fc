//! The chunks that a selection touches along one dimension, however many there are.

use zarrd_meta::{grid::DimensionGrid, selection::DimensionSelection};

/// Indices of chunks, in ascending order. Each has a rank: its place among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TouchedChunks {
    /// All from the first one on.
    Range { first: u64, len: u64 },
    /// These.
    List(Vec<u64>),
    /// Those of the elements `start`, `start + step`, …, each of which is in a chunk of its own: `length` is at most
    /// `step`.
    Strided { start: u64, step: u64, len: u64, length: u64 },
}

impl TouchedChunks {
    /// The chunks of a dimension that a selection touches.
    pub(super) fn of(selection: &DimensionSelection, grid: &DimensionGrid) -> Self {
        let range = |first: Option<u64>, last: Option<u64>| match (first, last) {
            (Some(first), Some(last)) => Self::Range { first, len: last.saturating_sub(first).saturating_add(1) },
            _ => Self::Range { first: 0, len: 0 },
        };
        match selection {
            DimensionSelection::Index(index) => range(grid.chunk_index(*index), grid.chunk_index(*index)),
            DimensionSelection::List(indices) => {
                let mut chunks: Vec<_> = indices.iter().filter_map(|&index| grid.chunk_index(index)).collect();
                chunks.sort_unstable();
                chunks.dedup();
                Self::List(chunks)
            }
            DimensionSelection::Range { len: 0, .. } => Self::Range { first: 0, len: 0 },
            &DimensionSelection::Range { start, step, len } => {
                let distance = step.unsigned_abs();
                let span = distance.saturating_mul(len.saturating_sub(1));
                let least = if step < 0 { start.saturating_sub(span) } else { start };
                let (first, last) = (grid.chunk_index(least), grid.chunk_index(least.saturating_add(span)));
                match grid {
                    DimensionGrid::Regular { length } if distance > *length => {
                        Self::Strided { start: least, step: distance, len, length: *length }
                    }
                    DimensionGrid::Rectilinear { .. } if distance > 1 => {
                        let is_touched = |chunk: &u64| {
                            let bounds = grid.chunk_bounds(*chunk).unwrap_or_default();
                            next_element(least, distance, bounds.start) < bounds.end
                        };
                        let chunks = first.unwrap_or(0)..last.map_or(0, |last| last.saturating_add(1));
                        Self::List(chunks.filter(is_touched).collect())
                    }
                    _ => range(first, last),
                }
            }
        }
    }

    /// The number of chunks.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Range { len, .. } | Self::Strided { len, .. } => *len,
            Self::List(chunks) => chunks.len() as u64,
        }
    }

    /// The chunk with a rank, which is below the number of chunks.
    pub(super) fn at(&self, rank: u64) -> u64 {
        match self {
            Self::Range { first, .. } => first.saturating_add(rank),
            Self::List(chunks) => {
                usize::try_from(rank).ok().and_then(|rank| chunks.get(rank)).copied().unwrap_or_default()
            }
            Self::Strided { start, step, length, .. } => {
                start.saturating_add(step.saturating_mul(rank)).checked_div(*length).unwrap_or_default()
            }
        }
    }

    /// The rank of a chunk; `None` if it is not touched.
    pub(super) fn rank(&self, chunk: u64) -> Option<u64> {
        match self {
            Self::Range { first, len } => chunk.checked_sub(*first).filter(|rank| rank < len),
            Self::List(chunks) => chunks.binary_search(&chunk).ok().map(|rank| rank as u64),
            Self::Strided { start, step, len, length } => {
                let begin = chunk.checked_mul(*length)?;
                let element = next_element(*start, *step, begin);
                let rank = element.checked_sub(*start)?.checked_div(*step)?;
                (rank < *len && element < begin.saturating_add(*length)).then_some(rank)
            }
        }
    }
}

/// The first of the elements `start`, `start + step`, … that is not before an index.
fn next_element(start: u64, step: u64, index: u64) -> u64 {
    let steps = index.saturating_sub(start).div_ceil(step.max(1));
    start.saturating_add(steps.saturating_mul(step))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selections(extent: u64) -> impl Strategy<Value = DimensionSelection> {
        let most = i64::try_from(extent).unwrap();
        let range = (0..extent, 1..most, any::<bool>(), 0..extent).prop_map(move |(start, step, forward, count)| {
            let (step, room) = if forward { (step, extent - 1 - start) } else { (-step, start) };
            let len = (room / step.unsigned_abs() + 1).min(count);
            match len {
                0 => DimensionSelection::Range { start: 0, step: 1, len },
                1 => DimensionSelection::Range { start, step: 1, len },
                _ => DimensionSelection::Range { start, step, len },
            }
        });
        let list = prop::collection::vec(0..extent, 0..8).prop_map(|list| DimensionSelection::List(list.into()));
        prop_oneof![(0..extent).prop_map(DimensionSelection::Index), range, list]
    }

    fn grids() -> impl Strategy<Value = DimensionGrid> {
        let regular = (1..20_u64).prop_map(|length| DimensionGrid::Regular { length });
        let rectilinear = prop::collection::vec(1..9_u64, 40).prop_map(|lengths| {
            let ends = lengths.iter().scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            DimensionGrid::Rectilinear { ends: ends.collect() }
        });
        prop_oneof![regular, rectilinear]
    }

    proptest! {
        #[test]
        fn touched_chunks_are_those_of_the_elements(selection in selections(40), grid in grids()) {
            let elements: Vec<u64> = match &selection {
                DimensionSelection::Index(index) => vec![*index],
                DimensionSelection::List(list) => list.to_vec(),
                &DimensionSelection::Range { start, step, len } => {
                    (0..len).map(|at| start.checked_add_signed(step * i64::try_from(at).unwrap()).unwrap()).collect()
                }
            };
            let mut expected: Vec<_> = elements.iter().map(|&element| grid.chunk_index(element).unwrap()).collect();
            expected.sort_unstable();
            expected.dedup();
            let touched = TouchedChunks::of(&selection, &grid);
            prop_assert_eq!((0..touched.len()).map(|rank| touched.at(rank)).collect::<Vec<_>>(), expected.clone());
            for chunk in 0..60 {
                let rank = expected.iter().position(|&other| other == chunk).map(|rank| rank as u64);
                prop_assert_eq!(touched.rank(chunk), rank, "{} of {:?}", chunk, &touched);
            }
        }
    }

    #[test]
    fn a_trillion_chunks_take_no_memory() {
        let all = DimensionSelection::Range { start: 0, step: 1, len: 1 << 60 };
        let touched = TouchedChunks::of(&all, &DimensionGrid::Regular { length: 1 << 20 });
        assert_eq!(touched, TouchedChunks::Range { first: 0, len: 1 << 40 });
        let sparse = DimensionSelection::Range { start: 5, step: 1 << 21, len: 1 << 39 };
        let touched = TouchedChunks::of(&sparse, &DimensionGrid::Regular { length: 1 << 20 });
        assert_eq!((touched.len(), touched.at(3), touched.rank(6), touched.rank(7)), (1 << 39, 6, Some(3), None));
    }
}
