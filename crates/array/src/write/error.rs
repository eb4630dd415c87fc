//! Why elements are not written.

use codec::CodecError;
use meta::NodePath;
use store::{Key, StoreError, Version};

use crate::{error::ArrayError, metadata::error::NodeError};

/// Why elements are not written. Nothing of the array was changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Finding the array, applying the selection, or reading a chunk that is written in part failed.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The document of the array cannot be changed so, or those above it.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// The elements are more or fewer than the selection has.
    #[error("the selection has {expected} bytes, and {found} came")]
    Length {
        /// How many bytes the selection has.
        expected: u64,
        /// How many came, or were about to.
        found: u64,
    },
    /// The number of elements of variable length is not that of the selection.
    #[error("the selection has {expected} elements, and {found} came")]
    Count {
        /// How many it has.
        expected: u64,
        /// How many came.
        found: u64,
    },
    /// What is appended is no whole number of steps along the dimension.
    #[error("{found} bytes came, and one step along dimension {dimension} has {step}")]
    AppendLength {
        /// The dimension.
        dimension: usize,
        /// How many bytes one step has.
        step: u64,
        /// How many came.
        found: u64,
    },
    /// The array has no such dimension.
    #[error("there is no dimension {dimension} in an array of {rank}")]
    Dimension {
        /// What was asked for.
        dimension: i64,
        /// How many there are.
        rank: usize,
    },
    /// A list of the selection names an index twice.
    #[error("the list for dimension {dimension} names {index} twice")]
    RepeatedIndex {
        /// The dimension.
        dimension: usize,
        /// The index.
        index: u64,
    },
    /// The elements do not fit the array any more, since its shape changed while they came.
    #[error("the shape of {path} changed while the elements came")]
    ShapeChanged {
        /// The array's path.
        path: NodePath,
    },
    /// A precondition does not hold of the node.
    #[error("the precondition does not hold of {path}")]
    PreconditionFailed {
        /// The array's path.
        path: NodePath,
        /// The version that the node has.
        current: Option<Version>,
    },
    /// A chunk cannot be encoded.
    #[error("the chunk {key} cannot be encoded")]
    Encode {
        /// The chunk's key.
        key: Key,
        /// What is wrong, and with which codec.
        #[source]
        source: CodecError,
    },
    /// The key of a chunk would be too long.
    #[error("a chunk of {path} has no key: it would be too long")]
    ChunkKey {
        /// The array's path.
        path: NodePath,
    },
    /// The store failed, or the elements did not arrive.
    #[error(transparent)]
    Store(#[from] StoreError),
}
