//! Ranges of a region's elements, counted in its C order.

use std::ops::Range;

use zarrd_meta::selection::Region;

use super::slab::slice_dimension;

/// The elements of a row up to which it is read in full if a range begins or ends within it.
const SHORT_ROW: u64 = 16 << 10;

/// Consecutive regions, in the C order of a larger one, that contain a range of its elements.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cover {
    /// The regions. They contain the range, and at each end at most a short row more.
    pub(crate) parts: Vec<Region>,
    /// The index of their first element in the larger region.
    pub(crate) first: u64,
}

/// Covers a range of the elements of `region`; `None` if it does not have that range.
pub(crate) fn cover(region: &Region, range: Range<u64>) -> Option<Cover> {
    if range.start >= range.end || range.end > region.elements()? {
        return None;
    }
    let mut cover = Cover { parts: Vec::new(), first: range.start };
    let before = add(region.clone(), 0, range.clone(), &mut cover.parts)?;
    cover.first = range.start.checked_sub(before)?;
    Some(cover)
}

/// Adds the regions that cover a range of the elements of `region`, whose dimensions before `axis` have one index.
/// Returns the number of elements that come before the range.
fn add(region: Region, axis: usize, range: Range<u64>, parts: &mut Vec<Region>) -> Option<u64> {
    let Some(rows) = region.dimensions.get(axis).map(|dimension| dimension.len()) else {
        parts.push(region);
        return Some(0);
    };
    let row = region.dimensions.iter().skip(axis + 1).try_fold(1_u64, |row, rest| row.checked_mul(rest.len()))?;
    let (first, last) = (range.start.checked_div(row)?, range.end.checked_sub(1)?.checked_div(row)?);
    let within = |index: u64, at: u64| at.checked_sub(index.checked_mul(row)?);
    let only = |index: u64| part(&region, axis, index..index.checked_add(1)?);
    if rows > 1 && first == last && row > 1 {
        return add(only(first)?, axis + 1, within(first, range.start)?..within(first, range.end)?, parts);
    }
    if rows == 1 {
        return add(region, axis + 1, range, parts);
    }
    if row <= SHORT_ROW {
        parts.push(part(&region, axis, first..last.checked_add(1)?)?);
        return within(first, range.start);
    }
    let (start, end) = (within(first, range.start)?, within(last, range.end)?);
    let mut middle = first..last.checked_add(1)?;
    let mut before = 0;
    if start > 0 {
        before = add(only(first)?, axis + 1, start..row, parts)?;
        middle.start = middle.start.checked_add(1)?;
    }
    if end < row {
        middle.end = last;
    }
    if !middle.is_empty() {
        parts.push(part(&region, axis, middle)?);
    }
    if end < row {
        add(only(last)?, axis + 1, 0..end, parts)?;
    }
    Some(before)
}

/// The region with a range of the indices of one of its dimensions.
fn part(region: &Region, axis: usize, range: Range<u64>) -> Option<Region> {
    let mut part = region.clone();
    let dimension = part.dimensions.get_mut(axis)?;
    *dimension = slice_dimension(dimension, range)?;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zarrd_meta::selection::DimensionSelection::{self, Index, List};

    fn range(start: u64, step: i64, len: u64) -> DimensionSelection {
        DimensionSelection::Range { start, step, len }
    }

    /// The indices of all elements in C order.
    fn indices(region: &Region) -> Vec<Vec<u64>> {
        region.dimensions.iter().fold(vec![Vec::new()], |rows, dimension| {
            let of_dimension: Vec<u64> = match dimension {
                Index(index) => vec![*index],
                DimensionSelection::Range { start, step, len } => {
                    (0..*len).map(|at| start.wrapping_add_signed(step * at as i64)).collect()
                }
                List(indices) => indices.to_vec(),
            };
            let longer = |row: &Vec<u64>, index: u64| row.iter().copied().chain([index]).collect::<Vec<u64>>();
            rows.iter().flat_map(|row| of_dimension.iter().map(move |&index| longer(row, index))).collect()
        })
    }

    fn check(region: &Region, wanted: Range<u64>) -> Cover {
        let cover = cover(region, wanted.clone()).unwrap();
        let all = indices(region);
        let found: Vec<_> = cover.parts.iter().flat_map(indices).collect();
        let start = cover.first as usize;
        assert_eq!(found, all[start..start + found.len()], "{region:?} {wanted:?}");
        assert!(cover.first <= wanted.start && wanted.end <= cover.first + found.len() as u64, "{region:?} {wanted:?}");
        cover
    }

    #[test]
    fn short_rows_are_read_in_full() {
        let region = Region { dimensions: vec![range(8, -2, 5), Index(3), range(0, 1, 4)] };
        assert_eq!(
            check(&region, 5..10),
            Cover { parts: vec![Region { dimensions: vec![range(6, -2, 2), Index(3), range(0, 1, 4)] }], first: 4 }
        );
        assert_eq!(
            check(&region, 5..7),
            Cover { parts: vec![Region { dimensions: vec![range(6, 1, 1), Index(3), range(1, 1, 2)] }], first: 5 }
        );
        assert_eq!(cover(&region, 5..5), None);
        assert_eq!(cover(&region, 5..21), None);
        assert_eq!(check(&Region { dimensions: vec![] }, 0..1).parts.len(), 1);
    }

    #[test]
    fn long_rows_are_read_only_at_both_ends() {
        let region = Region::full(&[4, 3, SHORT_ROW]);
        let row = SHORT_ROW;
        let cover = cover(&region, row - 1..row * 10 + 2).unwrap();
        let sizes: Vec<_> = cover.parts.iter().map(|part| part.elements().unwrap()).collect();
        assert_eq!((cover.first, sizes), (0, vec![row * 3, row * 6, row * 2]));
        let region = Region::full(&[3, SHORT_ROW + 1]);
        let cover = super::cover(&region, row..row * 2 + 4).unwrap();
        let sizes: Vec<_> = cover.parts.iter().map(|part| part.elements().unwrap()).collect();
        assert_eq!((cover.first, sizes), (row, vec![1, row + 1, 2]));
    }

    proptest! {
        #[test]
        fn cover_contains_the_range(
            shape in proptest::collection::vec(1_u64..5, 0..4),
            list: bool,
            (start, len) in (0_u64..300, 1_u64..300),
        ) {
            let mut region = Region::full(&shape);
            if let Some(last) = region.dimensions.last_mut().filter(|_| list) {
                *last = List((0..last.len()).rev().collect());
            }
            let elements = region.elements().unwrap();
            let start = start % elements;
            check(&region, start..(start + len).min(elements));
        }
    }
}
