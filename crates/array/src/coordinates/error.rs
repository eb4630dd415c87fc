//! Errors of coordinates.

use zarrd_cf::LabelError;

use crate::error::ArrayError;

/// A selection by name or label cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CoordinateError {
    /// The array has no dimension of a name or number, and no array of the name is over one of its dimensions.
    #[error("the array has no dimension {name:?}")]
    UnknownDimension {
        /// The name or number.
        name: String,
        /// The names of its dimensions; numbers for those without one.
        known: Vec<String>,
    },
    /// A dimension is selected twice, perhaps by different names.
    #[error("the dimension {dimension:?} is selected twice")]
    DimensionRepeated {
        /// Its name, or number.
        dimension: String,
    },
    /// A dimension has no coordinate that the request may read.
    #[error(
        "the dimension {dimension:?} has no coordinate: a one-dimensional array of its name and length beside the array or above"
    )]
    NoCoordinate {
        /// Its name, or number.
        dimension: String,
    },
    /// A label is invalid or not found.
    #[error("{source} (dimension {dimension:?})")]
    Label {
        /// The name of the dimension or the coordinate.
        dimension: String,
        /// The error.
        #[source]
        source: LabelError,
    },
    /// The labels of a result have more bytes than the limit.
    #[error("the labels have {size} bytes, which exceeds the limit of {limit} (`--max-text-selection`)")]
    LabelsTooLarge {
        /// Their size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The array or a coordinate failed.
    #[error(transparent)]
    Array(#[from] ArrayError),
}
