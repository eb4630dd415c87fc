//! Selections of array elements, with the semantics of NumPy.
//!
//! A [`Selection`] is a request; resolved against a shape it becomes a [`Region`], which lies within the shape.
//! [`ReadRequest`] adds single points and stacks of selections. In Rust code, [`select!`](crate::select) creates a
//! selection.
//!
//! ```
//! use zarrd_meta::selection::Selection;
//!
//! let selection: Selection = "2:10, ::-1, (0,5,-1)".parse()?;
//! assert_eq!(selection.to_string(), "2:10,::-1,(0,5,-1)");
//!
//! let region = selection.resolve(&[6, 3, 100])?;
//! assert_eq!(region.shape(), [4, 3, 3]);
//! assert_eq!(region.to_selection().to_string(), "2:6,2::-1,(0,5,99)");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use crate::limits::MAX_RANK;

mod build;
mod json;
mod points;
mod region;
mod render;
mod request;
mod request_error;
mod resolve;
mod text;

#[cfg(test)]
mod tests;

pub use build::ToIndex;
pub use points::Points;
pub use request::{ReadRequest, ResolvedSelection};
pub use request_error::{RequestError, RequestErrorKind};
pub use resolve::SelectionError;
pub use text::{ItemError, ParseError, ParseErrorKind};

/// The maximum size of a selection's text in bytes.
pub const MAX_TEXT_SIZE: usize = 1 << 20;

/// The maximum number of items of a parsed selection: one per dimension, and an ellipsis.
pub const MAX_ITEMS: usize = MAX_RANK + 1;

/// The maximum number of indices in a list of a request's JSON, and in all lists of a selection.
pub const MAX_LIST_LEN: usize = 1 << 20;

/// The maximum number of points of a request.
pub const MAX_POINTS: usize = 1 << 20;

/// The maximum number of selections that a request stacks.
pub const MAX_STACKED_SELECTIONS: usize = 1 << 16;

/// The maximum number of items of all stacked selections, and of dimensions of their regions. It limits the memory of a
/// stack over an array of high rank to about 50 MiB.
pub const MAX_STACKED_ITEMS: usize = 1 << 19;

/// A selection of elements, not yet resolved against a shape: one item per dimension. Other dimensions are selected in
/// full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The items, in the order of the dimensions.
    pub items: Vec<Item>,
}

/// The selection along one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `5`, `-1`: one index; the dimension is dropped.
    Index(i64),
    /// `2:10`, `::4`, `10:0:-2`: a slice, clamped to the extent.
    Slice(Slice),
    /// `...`: all dimensions without an item; at most once.
    Ellipsis,
    /// `[1,5,9]` or `(1,5,9)`: these indices of one dimension, in this order and with repetitions (orthogonal
    /// indexing).
    List(Vec<i64>),
}

/// A Python slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The start; negative from the end.
    pub start: Option<i64>,
    /// The end, exclusive; negative from the end.
    pub stop: Option<i64>,
    /// The step, not 0; 1 by default.
    pub step: Option<i64>,
}

/// A selection that was resolved against a shape and lies within it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// One selection for each dimension of the array.
    pub dimensions: Vec<DimensionSelection>,
}

/// The selection of one dimension; all indices are within its extent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DimensionSelection {
    /// One index; the dimension is dropped from the result.
    Index(u64),
    /// The indices `start`, `start + step`, …, `len` of them. `step` is not 0, and 1 if `len` is less than 2, so that
    /// its magnitude is less than the extent; `start` is 0 if `len` is 0.
    Range {
        /// The first index.
        start: u64,
        /// The distance between consecutive indices.
        step: i64,
        /// The number of indices.
        len: u64,
    },
    /// These indices, in this order.
    List(Arc<[u64]>),
}

impl Region {
    /// All elements of an array of this shape.
    pub fn full(shape: &[u64]) -> Self {
        let range = |&len: &u64| DimensionSelection::Range { start: 0, step: 1, len };
        Self { dimensions: shape.iter().map(range).collect() }
    }

    /// The shape of the result, without dropped dimensions.
    pub fn shape(&self) -> Vec<u64> {
        self.dimensions.iter().filter_map(DimensionSelection::extent).collect()
    }

    /// The number of elements; `None` if it exceeds a `u64`.
    pub fn elements(&self) -> Option<u64> {
        let lens = || self.dimensions.iter().map(DimensionSelection::len);
        if lens().any(|len| len == 0) {
            return Some(0);
        }
        lens().try_fold(1_u64, u64::checked_mul)
    }
}

impl DimensionSelection {
    /// The first index; `None` if there is none.
    pub fn first(&self) -> Option<u64> {
        self.nth(0)
    }

    /// The last index; `None` if there is none.
    pub fn last(&self) -> Option<u64> {
        self.nth(self.len().checked_sub(1)?)
    }

    /// The index at a position of the selection; `None` beyond its end.
    pub fn nth(&self, at: u64) -> Option<u64> {
        match self {
            Self::Index(index) => (at == 0).then_some(*index),
            Self::Range { start, step, len } if at < *len => {
                let offset = i128::from(*step).checked_mul(i128::from(at))?;
                u64::try_from(i128::from(*start).checked_add(offset)?).ok()
            }
            Self::Range { .. } => None,
            Self::List(indices) => indices.get(usize::try_from(at).ok()?).copied(),
        }
    }

    /// The number of indices.
    pub fn len(&self) -> u64 {
        match self {
            Self::Index(_) => 1,
            Self::Range { len, .. } => *len,
            Self::List(indices) => indices.len() as u64,
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The extent of the result's dimension; `None` if it is dropped.
    pub fn extent(&self) -> Option<u64> {
        match self {
            Self::Index(_) => None,
            _ => Some(self.len()),
        }
    }
}
