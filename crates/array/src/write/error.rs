//! Errors of writing elements.

use zarrd_codec::CodecError;
use zarrd_meta::NodePath;
use zarrd_store::{Key, ReadError, StoreError, Version};

use crate::{error::ArrayError, growth::outcome::MayBeUnknown, metadata::error::NodeError};

/// An error of writing elements. Nothing was changed, except as [`PartlyWritten`](Self::PartlyWritten) says.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The array cannot be resolved, the selection is invalid, or a partially written chunk cannot be read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The array's document, or one of a group above it, cannot be changed.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The number of bytes does not match the selection.
    #[error("the body has {found} bytes, but the selection needs {expected}")]
    Length {
        /// The size of the selection in bytes.
        expected: u64,
        /// The number of bytes received or announced.
        found: u64,
    },
    /// The number of elements of variable length does not match the selection.
    #[error("the body has {found} elements, but the selection needs {expected}")]
    Count {
        /// The number of elements of the selection.
        expected: u64,
        /// The number received.
        found: u64,
    },
    /// The appended elements are not a whole number of indices along the dimension.
    #[error(
        "the body has {found} bytes, which is no multiple of the {step} bytes of one step along dimension {dimension}"
    )]
    AppendLength {
        /// The dimension.
        dimension: usize,
        /// The size of one index in bytes.
        step: u64,
        /// The number of bytes received.
        found: u64,
    },
    /// The array has no such dimension.
    #[error("no dimension {dimension} in an array of {rank} dimensions")]
    Dimension {
        /// The dimension of the request.
        dimension: i64,
        /// The number of dimensions.
        rank: usize,
    },
    /// The array has no dimension of this name.
    #[error("the array has no dimension {name:?}")]
    UnknownDimension {
        /// The name of the request, truncated.
        name: String,
        /// The names of its dimensions.
        known: Vec<String>,
    },
    /// A list of the selection repeats an index.
    #[error("duplicate index {index} in the list for dimension {dimension}")]
    RepeatedIndex {
        /// The dimension.
        dimension: usize,
        /// The index.
        index: u64,
    },
    /// The shape of the array changed while the elements were received, so that they do not fit.
    #[error("the shape of {path} changed while the body was received")]
    ShapeChanged {
        /// The array's path.
        path: NodePath,
    },
    /// The precondition failed.
    #[error("the precondition on {path} failed")]
    PreconditionFailed {
        /// The array's path.
        path: NodePath,
        /// The node's version.
        current: Option<Version>,
    },
    /// A chunk cannot be encoded.
    #[error("the chunk {key} cannot be encoded")]
    Encode {
        /// The chunk's key.
        key: Key,
        /// The error, with the codec that failed.
        #[source]
        source: CodecError,
    },
    /// Some keys were changed before the write failed, in a store that is written key by key. It can be repeated.
    #[error("{written} of {of} keys of {path} were changed before the write failed: {source}")]
    PartlyWritten {
        /// The array's path.
        path: NodePath,
        /// The number of keys that were changed.
        written: u64,
        /// The number of keys that the write changes.
        of: u64,
        /// The error.
        source: Box<WriteError>,
    },
    /// The store failed, or the elements did not arrive.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ReadError for WriteError {
    fn is_changed(&self) -> bool {
        match self {
            Self::Array(error) => error.is_changed(),
            Self::Node(error) => error.is_changed(),
            Self::Store(error) => error.is_changed(),
            _ => false,
        }
    }
}

impl MayBeUnknown for WriteError {
    fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Array(error) => error.is_outcome_unknown(),
            Self::Node(error) => error.is_outcome_unknown(),
            Self::Store(error) => error.is_outcome_unknown(),
            Self::PartlyWritten { source, .. } => source.is_outcome_unknown(),
            _ => false,
        }
    }
}

impl WriteError {
    /// True if the write failed because something was changed meanwhile, so that a repetition may succeed.
    pub fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::ShapeChanged { .. }
                | Self::PreconditionFailed { .. }
                | Self::Store(StoreError::PreconditionFailed { .. })
                | Self::Array(ArrayError::TooManyConflicts { .. })
        )
    }
}
