//! Errors of reading and changing nodes.

use std::fmt;

use zarrd_codec::CodecError;
use zarrd_meta::{
    Dialect, NodePath, convert::Unconvertible, documents::PatchError, limits::MAX_DOCUMENT_SIZE, names::NameError,
    zom::MAX_NODES,
};
use zarrd_operations::NodeRejection;
use zarrd_store::{Key, StoreError};

use crate::error::ArrayError;

/// The most arrays that an error names, with their reasons.
const MAX_NAMED: usize = 100;

/// More arrays that cannot be converted, each with the reason.
#[derive(Debug, Default)]
pub struct OtherArrays(pub(crate) Vec<(NodePath, Unconvertible)>);

impl fmt::Display for OtherArrays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, Unconvertible { pointer, reason, .. }) in self.0.iter().take(MAX_NAMED) {
            write!(f, "; {path}: {pointer} {reason}")?;
        }
        match self.0.len().saturating_sub(MAX_NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl NodeError {
    /// The error for arrays that cannot be converted; `None` without any.
    pub(crate) fn unconvertible(arrays: Vec<(NodePath, Unconvertible)>) -> Option<Self> {
        let mut arrays = arrays.into_iter();
        let (path, source) = arrays.next()?;
        Some(Self::Unconvertible { path, source, others: OtherArrays(arrays.collect()) })
    }
}

/// An error of describing, creating, updating, converting or erasing a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node cannot be resolved or read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The state of the hierarchy rules the operation out.
    #[error(transparent)]
    Rejected(#[from] NodeRejection),
    /// The dialect does not allow the name of a new node.
    #[error("{path}: {source}")]
    Name {
        /// The path of the new node.
        path: NodePath,
        /// The reason.
        #[source]
        source: NameError,
    },
    /// The dialect cannot represent the array at all.
    #[error("{path}: {source}{others}")]
    Unconvertible {
        /// The path of the array.
        path: NodePath,
        /// The reason.
        #[source]
        source: Unconvertible,
        /// The other arrays of the hierarchy.
        others: OtherArrays,
    },
    /// The two dialects share no chunks, so a hierarchy can only be converted to another path.
    #[error("a hierarchy of {from} can only be converted to {to} at another path: set `target`")]
    NotInPlace {
        /// The current dialect.
        from: Dialect,
        /// The requested dialect.
        to: Dialect,
    },
    /// A document would be larger than any that is read.
    #[error("{key} would have {size} bytes; documents have at most {MAX_DOCUMENT_SIZE}")]
    DocumentTooLarge {
        /// The key of the document.
        key: Key,
        /// The size in bytes that it would have.
        size: usize,
    },
    /// The patch is not valid for the node.
    #[error("invalid patch: {0}")]
    Change(#[from] PatchError),
    /// A chunk of a copy cannot be encoded.
    #[error("the chunk {key} cannot be encoded")]
    Encode {
        /// The chunk's key.
        key: Key,
        /// The error, with the codec that failed.
        #[source]
        source: CodecError,
    },
    /// An erase failed in the middle, in a store that is written key by key. It can be repeated.
    #[error("the erase of {path} failed in the middle{}", left.map_or_else(String::new, |left| format!(": {left} keys are left")))]
    PartlyErased {
        /// The path of the node.
        path: NodePath,
        /// The number of keys that are left, if it is known.
        left: Option<u64>,
        /// The error.
        #[source]
        source: StoreError,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The error of an operation on more nodes than one answer or commit has.
pub(crate) fn too_many_nodes() -> NodeError {
    NodeRejection::TooManyNodes { limit: MAX_NODES as u64 }.into()
}

pub(crate) fn too_many_conflicts(path: &NodePath) -> NodeError {
    ArrayError::TooManyConflicts { path: path.clone() }.into()
}
