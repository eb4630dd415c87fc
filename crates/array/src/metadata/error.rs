//! Why a node is not told, created or changed.

use meta::{
    Dialect, NodePath,
    convert::{Inconvertible, Loss},
    documents::ChangeError,
    names::NameError,
    zom::Difference,
};
use store::{Key, StoreError, Version};

use crate::error::ArrayError;

/// Why a node is not told, created or changed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Finding or reading it failed.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// There are more nodes than are told at a time.
    #[error("there are more than {limit} nodes")]
    TooManyNodes {
        /// How many are told.
        limit: usize,
    },
    /// The node exists and differs from what is declared.
    #[error("there is another node at {path}")]
    Differs {
        /// The path.
        path: NodePath,
        /// How, at most [`MAX_VIOLATIONS`](meta::zom::MAX_VIOLATIONS) places.
        differences: Vec<Difference>,
    },
    /// There are keys at the place of a new array.
    #[error("there are keys where the array {path} would be, such as {key}")]
    StrayKeys {
        /// The path of the array.
        path: NodePath,
        /// One of the keys.
        key: Key,
    },
    /// A precondition does not hold of the node.
    #[error("the precondition does not hold of {path}")]
    PreconditionFailed {
        /// The path.
        path: NodePath,
        /// The version that the node has.
        current: Option<Version>,
    },
    /// An array never has nodes below it.
    #[error("{path} would be below the array {array}")]
    BelowArray {
        /// The node that is to be created.
        path: NodePath,
        /// The array.
        array: NodePath,
    },
    /// The name of a node is not allowed.
    #[error("{path}: {source}")]
    Name {
        /// The node that is to be created.
        path: NodePath,
        /// Why.
        #[source]
        source: NameError,
    },
    /// Nodes of another dialect are in the way: the root document of a draft hierarchy where v3 would have a node, or the reverse.
    #[error("{path} is where a hierarchy of {found} has its documents")]
    OtherDialect {
        /// Where.
        path: NodePath,
        /// The dialect that is there.
        found: Dialect,
    },
    /// The dialect cannot say all that the node is.
    #[error("{dialect} cannot say all of it")]
    Lossy {
        /// The dialect.
        dialect: Dialect,
        /// What would be lost, with the path of the node.
        losses: Vec<(NodePath, Loss)>,
    },
    /// The dialect has no such array at all.
    #[error("{path}: {source}")]
    Inconvertible {
        /// The node.
        path: NodePath,
        /// Why.
        #[source]
        source: Inconvertible,
    },
    /// A dialect shares no chunks with another, so that a hierarchy can only be converted to another place.
    #[error("a hierarchy of {from} is converted to {to} at another path")]
    NotInPlace {
        /// What it is.
        from: Dialect,
        /// What it is to be.
        to: Dialect,
    },
    /// The patch does not fit the node.
    #[error("the patch does not fit: {0}")]
    Change(#[from] ChangeError),
    /// One commit would have too many changes.
    #[error("it takes {changes} changes, and a commit has at most {limit}")]
    TooManyChanges {
        /// How many it takes.
        changes: u64,
        /// How many there may be.
        limit: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(crate) fn too_many_conflicts(path: &NodePath) -> NodeError {
    ArrayError::TooManyConflicts { path: path.clone() }.into()
}
