//! Resolution of selections against a shape.

use std::{fmt, iter};

use super::{DimensionSelection, Item, MAX_LIST_LEN, MAX_STACKED_ITEMS, Region, Selection, Slice};

/// A selection, a point or a stack is invalid for an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// The selection has more items than the array has dimensions.
    #[error("selection has {found} items, but the array has {rank} dimensions")]
    TooManyItems {
        /// The number of items, without the ellipsis.
        found: usize,
        /// The number of dimensions.
        rank: usize,
    },
    /// The lists of the selection have too many indices in total.
    #[error("the lists of a selection have at most {MAX_LIST_LEN} indices in total, these have {found}")]
    TooManyIndices {
        /// The number of indices.
        found: usize,
    },
    /// The selection has more than one ellipsis.
    #[error("a selection has at most one `...`")]
    SecondEllipsis,
    /// The step of a slice is 0.
    #[error("the step of the slice of dimension {dimension} is 0")]
    ZeroStep {
        /// The dimension, counted from 0.
        dimension: usize,
    },
    /// An index is outside of its dimension.
    #[error("index {} is out of bounds for dimension {dimension}, {}", Index(*index), Bounds(*extent))]
    OutOfBounds {
        /// The dimension, counted from 0.
        dimension: usize,
        /// The given index; larger magnitudes are clamped to the `i64` range.
        index: i64,
        /// The dimension's extent. Its indices are `-extent..extent`.
        extent: u64,
    },
    /// The number of coordinates of a point differs from the rank.
    #[error("{found} coordinates for an array of {rank} dimensions")]
    PointRank {
        /// The number of the point's coordinates.
        found: usize,
        /// The number of dimensions.
        rank: usize,
    },
    /// A point is invalid.
    #[error("point {point}: {source}")]
    Point {
        /// The index of the point.
        point: usize,
        /// The error.
        source: Box<Self>,
    },
    /// A stack has no selections.
    #[error("a stack has at least one selection")]
    EmptyStack,
    /// The regions of a stack have too many dimensions in total.
    #[error("the selections of a stack have at most {MAX_STACKED_ITEMS} dimensions in total, these have {found}")]
    StackTooLarge {
        /// The number of dimensions of the results.
        found: usize,
    },
    /// A stacked selection is invalid.
    #[error("selection {selection} of the stack: {source}")]
    Stacked {
        /// The index of the selection.
        selection: usize,
        /// The error.
        source: Box<Self>,
    },
    /// A stacked selection has another shape than the first one.
    #[error("selection {selection} of the stack has the shape {found:?}, but the first one has {first:?}")]
    ShapesDiffer {
        /// The index of the first such selection.
        selection: usize,
        /// Its shape.
        found: Vec<u64>,
        /// The shape of the first selection.
        first: Vec<u64>,
    },
}

impl Selection {
    /// Resolves the selection against a shape, whose extents are at most [`MAX_EXTENT`](crate::limits::MAX_EXTENT).
    pub fn resolve(&self, shape: &[u64]) -> Result<Region, SelectionError> {
        let mut ellipses = self.items.iter().enumerate().filter(|(_, item)| **item == Item::Ellipsis).map(|(n, _)| n);
        let ellipsis = ellipses.next();
        if ellipses.next().is_some() {
            return Err(SelectionError::SecondEllipsis);
        }
        let listed = self.items.iter().map(|item| if let Item::List(indices) = item { indices.len() } else { 0 });
        let found = listed.fold(0, usize::saturating_add);
        if found > MAX_LIST_LEN {
            return Err(SelectionError::TooManyIndices { found });
        }
        let (found, rank) = (self.items.len() - usize::from(ellipsis.is_some()), shape.len());
        let missing = rank.checked_sub(found).ok_or(SelectionError::TooManyItems { found, rank })?;
        // Without an ellipsis, the remaining dimensions are at the end.
        let before = self.items.iter().take(ellipsis.unwrap_or(found));
        let after = self.items.iter().skip(ellipsis.map_or(found, |at| at + 1));
        let items = before.map(Some).chain(iter::repeat_n(None, missing)).chain(after.map(Some));
        let dimensions = items.zip(shape).enumerate().map(|(dimension, (item, &extent))| match item {
            None | Some(Item::Ellipsis) => Ok(DimensionSelection::Range { start: 0, step: 1, len: extent }),
            Some(Item::Index(index)) => resolve_index(*index, dimension, extent).map(DimensionSelection::Index),
            Some(Item::Slice(slice)) => slice.clamp(extent).ok_or(SelectionError::ZeroStep { dimension }),
            Some(Item::List(indices)) => {
                let indices = indices.iter().map(|&index| resolve_index(index, dimension, extent));
                indices.collect::<Result<_, _>>().map(DimensionSelection::List)
            }
        });
        Ok(Region { dimensions: dimensions.collect::<Result<_, _>>()? })
    }
}

impl Slice {
    /// The indices of a slice: always a [`DimensionSelection::Range`]. `None` if the step is 0.
    fn clamp(self, extent: u64) -> Option<DimensionSelection> {
        let (step, extent) = (i128::from(self.step.unwrap_or(1)), i128::from(extent));
        // An ascending slice is clamped to `0..=extent`, a descending one to `-1..=extent - 1`.
        let (low, high) = match step {
            0 => return None,
            1.. => (0, extent),
            _ => (-1, extent - 1),
        };
        let clamp = |bound: i64| {
            let bound = i128::from(bound);
            if bound < 0 { (bound + extent).max(low) } else { bound.min(high) }
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let start = self.start.map_or(first, clamp);
        let stop = self.stop.map_or(last, clamp);
        let distance = if step > 0 { stop - start } else { start - stop };
        // At most the extent, because the distance is.
        let len = if distance > 0 { (distance - 1) / step.abs() + 1 } else { 0 };
        let (start, step) = match len {
            0 => (0, 1),
            1 => (start, 1),
            _ => (start, step),
        };
        let (start, step, len) = (u64::try_from(start).ok()?, i64::try_from(step).ok()?, u64::try_from(len).ok()?);
        Some(DimensionSelection::Range { start, step, len })
    }
}

/// Resolves an index that may count from the end.
pub(super) fn resolve_index(index: i64, dimension: usize, extent: u64) -> Result<u64, SelectionError> {
    let from_start = if index < 0 { extent.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) };
    let found = from_start.filter(|&found| found < extent);
    found.ok_or(SelectionError::OutOfBounds { dimension, index, extent })
}

/// An index in an error message; `i64` limits also denote clamped numbers.
struct Index(i64);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            i64::MIN => write!(f, "{} (or less)", i64::MIN),
            i64::MAX => write!(f, "{} (or more)", i64::MAX),
            index => write!(f, "{index}"),
        }
    }
}

/// The bounds of a dimension in an error message.
struct Bounds(u64);

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("which is empty"),
            extent => write!(f, "whose bounds are -{extent}..{extent}"),
        }
    }
}
