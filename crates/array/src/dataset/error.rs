//! Errors of appends to datasets.

use zarrd_meta::NodePath;
use zarrd_store::StoreError;

use crate::{error::ArrayError, metadata::error::NodeError, write::error::WriteError};

/// An error of an append to a dataset. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The node is an array.
    #[error("the node at {path} is an array, not a group")]
    NotAGroup {
        /// Its path.
        path: NodePath,
    },
    /// No array directly in the group is over the dimension.
    #[error("no array directly in {path} has a dimension {name:?}")]
    UnknownDimension {
        /// The path of the group.
        path: NodePath,
        /// The name of the request, truncated.
        name: String,
        /// The dimensions that there are, at most 64.
        known: Vec<String>,
    },
    /// An array has the dimension twice, so that it cannot grow along one.
    #[error("{array:?} in {path} has the dimension {name:?} twice")]
    RepeatedDimension {
        /// The path of the group.
        path: NodePath,
        /// The dimension.
        name: String,
        /// The name of the array.
        array: String,
    },
    /// The arrays already have different extents along the dimension.
    #[error("along {name:?} in {path}, {array:?} has {extent} elements and {other:?} has {other_extent}")]
    UnequalExtents {
        /// The path of the group.
        path: NodePath,
        /// The dimension.
        name: String,
        /// An array.
        array: String,
        /// Its extent.
        extent: u64,
        /// Another array.
        other: String,
        /// Its extent.
        other_extent: u64,
    },
    /// The body has what is no array over the dimension.
    #[error("the body has {array:?}, which is no array over {name:?} directly in {path}")]
    Unexpected {
        /// The path of the group.
        path: NodePath,
        /// The dimension.
        name: String,
        /// The name in the body, truncated.
        array: String,
    },
    /// The body lacks arrays over the dimension.
    #[error("the body lacks {} of the arrays over {name:?} in {path}", quoted(.arrays))]
    Missing {
        /// The path of the group.
        path: NodePath,
        /// The dimension.
        name: String,
        /// The names of the arrays.
        arrays: Vec<String>,
    },
    /// The elements of two arrays have different lengths along the dimension.
    #[error("along {name:?}, the body has {count} steps of {array:?} and {other_count} of {other:?}")]
    UnequalCounts {
        /// The path of the group.
        path: NodePath,
        /// The dimension.
        name: String,
        /// An array.
        array: String,
        /// Its number of new steps.
        count: u64,
        /// Another array.
        other: String,
        /// Its number of new steps.
        other_count: u64,
    },
    /// The labels of the coordinate do not continue.
    #[error(transparent)]
    Discontinuous(Box<DiscontinuousLabel>),
    /// An array cannot be written.
    #[error("{array}: {source}")]
    Array {
        /// The name of the array.
        array: String,
        /// The error.
        #[source]
        source: Box<WriteError>,
    },
    /// The group or its arrays cannot be read, or changed.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A new label of a coordinate that does not continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the coordinate {name:?} of {path} does not continue: {reason}")]
pub struct DiscontinuousLabel {
    /// The path of the group.
    pub path: NodePath,
    /// The dimension.
    pub name: String,
    /// The reason.
    pub reason: String,
    /// The number of the new label.
    pub index: u64,
    /// The new label, as a text.
    pub label: String,
    /// The label before it, as a text.
    pub last: Option<String>,
}

impl From<ArrayError> for DatasetError {
    fn from(error: ArrayError) -> Self {
        Self::Node(error.into())
    }
}

impl From<StoreError> for DatasetError {
    fn from(error: StoreError) -> Self {
        Self::Node(error.into())
    }
}

/// Names, as a message lists them.
fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
