//! The written regions. Their borders differ from chunk borders, so that nearly every write changes parts of chunks
//! that other writers change too.

use std::ops::Range;

use rand::{RngExt, rngs::StdRng};

/// The number of rows of the array.
pub(crate) const ROWS: usize = 96;
/// The number of columns.
pub(crate) const COLUMNS: usize = 64;

/// Rows in which every writer has columns of its own.
const OWNED: Range<usize> = 0..30;
/// Rows that are always written completely.
const SHARED: Range<usize> = 30..60;
/// Rows in which every writer writes arbitrary rectangles.
const FREE: Range<usize> = 60..ROWS;

/// A region: a range of rows, and every `step`th column of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    rows: Range<usize>,
    columns: Range<usize>,
    step: usize,
}

impl Region {
    /// Chooses the next region of a writer.
    pub(crate) fn choose(random: &mut StdRng, writer: u64, writers: u64) -> Self {
        match random.random_range(0..10) {
            0..4 => {
                let (writer, writers) = (usize::try_from(writer), usize::try_from(writers));
                let (first, step) = (writer.expect("few writers"), writers.expect("few writers"));
                Self { rows: OWNED, columns: first..COLUMNS, step }
            }
            4..6 => Self { rows: SHARED, columns: 0..COLUMNS, step: 1 },
            _ => Self { rows: sub_range(random, FREE), columns: sub_range(random, 0..COLUMNS), step: 1 },
        }
    }

    /// The selection as a query parameter.
    pub(crate) fn selection(&self) -> String {
        let Self { rows, columns, step } = self;
        format!("{}:{},{}:{}:{step}", rows.start, rows.end, columns.start, columns.end)
    }

    /// The positions of its elements in the array.
    pub(crate) fn elements(&self) -> impl Iterator<Item = usize> + '_ {
        let row = |row: usize| self.columns.clone().step_by(self.step).map(move |column| row * COLUMNS + column);
        self.rows.clone().flat_map(row)
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        self.rows.len() * self.columns.len().div_ceil(self.step)
    }
}

fn sub_range(random: &mut StdRng, range: Range<usize>) -> Range<usize> {
    let start = random.random_range(range.clone());
    start..random.random_range(start..range.end) + 1
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn region_len_matches_its_elements() {
        let mut random = StdRng::seed_from_u64(1);
        for writer in 0..500 {
            let region = Region::choose(&mut random, writer % 16, 16);
            let elements: Vec<_> = region.elements().collect();
            assert_eq!(elements.len(), region.len(), "{region:?}");
            assert!(!elements.is_empty() && elements.iter().all(|at| *at < ROWS * COLUMNS), "{region:?}");
        }
    }

    #[test]
    fn owned_regions_partition_the_rows() {
        let own_columns = |first| Region { rows: OWNED, columns: first..COLUMNS, step: 16 };
        let mut all: Vec<_> = (0..16).flat_map(|first| own_columns(first).elements().collect::<Vec<_>>()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..30 * COLUMNS).collect::<Vec<_>>());
    }
}
