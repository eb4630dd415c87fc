//! Errors of reading and changing nodes.

use meta::{
    Dialect, NodePath,
    convert::{Loss, Unconvertible},
    documents::PatchError,
    names::NameError,
    zom::Difference,
};
use store::{Key, StoreError, Version};

use crate::error::ArrayError;

/// An error of describing, creating, updating, converting or erasing a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The node cannot be resolved or read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// There are more nodes than the limit.
    #[error("more than {limit} nodes")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
    /// The node exists and differs.
    #[error("a different node exists at {path}")]
    Differs {
        /// The path.
        path: NodePath,
        /// The differences, at most [`MAX_VIOLATIONS`](meta::zom::MAX_VIOLATIONS).
        differences: Vec<Difference>,
    },
    /// Keys exist at the place of a new array.
    #[error("keys exist at the path of the new array {path}, such as {key}")]
    StrayKeys {
        /// The path of the array.
        path: NodePath,
        /// One of the keys.
        key: Key,
    },
    /// The precondition failed.
    #[error("the precondition on {path} failed")]
    PreconditionFailed {
        /// The path.
        path: NodePath,
        /// The node's version.
        current: Option<Version>,
    },
    /// The parent is an array, which has no members.
    #[error("{path} cannot be created: {array} is an array")]
    BelowArray {
        /// The path of the new node.
        path: NodePath,
        /// The array.
        array: NodePath,
    },
    /// The dialect does not allow the name of a new node.
    #[error("{path}: {source}")]
    Name {
        /// The path of the new node.
        path: NodePath,
        /// The reason.
        #[source]
        source: NameError,
    },
    /// Documents of another dialect are in the way: the entry point of a draft hierarchy where v3 would have a node, or
    /// the reverse.
    #[error("{path} is reserved: it holds the metadata of a {found} hierarchy")]
    OtherDialect {
        /// The path of the documents.
        path: NodePath,
        /// The dialect of the documents.
        found: Dialect,
    },
    /// The dialect cannot represent the whole node.
    #[error("{dialect} cannot represent the whole node")]
    Lossy {
        /// The dialect.
        dialect: Dialect,
        /// The properties that would be lost, with the path of their node.
        losses: Vec<(NodePath, Loss)>,
    },
    /// The dialect cannot represent the array at all.
    #[error("{path}: {source}")]
    Inconvertible {
        /// The path of the array.
        path: NodePath,
        /// The reason.
        #[source]
        source: Unconvertible,
    },
    /// The two dialects share no chunks, so a hierarchy can only be converted to another path.
    #[error("a hierarchy of {from} can only be converted to {to} at another path: set `target`")]
    NotInPlace {
        /// The current dialect.
        from: Dialect,
        /// The requested dialect.
        to: Dialect,
    },
    /// The patch is not valid for the node.
    #[error("invalid patch: {0}")]
    Change(#[from] PatchError),
    /// The operation takes more changes than one commit can have.
    #[error("the operation takes {changes} changes, but one commit has at most {limit}")]
    TooManyChanges {
        /// The number of changes.
        changes: u64,
        /// The limit.
        limit: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) fn too_many_conflicts(path: &NodePath) -> NodeError {
    ArrayError::TooManyConflicts { path: path.clone() }.into()
}
