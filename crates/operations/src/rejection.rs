//! Rejections: what the state of a hierarchy rules out.

use zarrd_meta::{Dialect, NodePath, convert::Loss, zom::Difference};
use zarrd_store::{Key, Version};

/// The reason why a change of a node conflicts with the state of the hierarchy, or exceeds a limit on nodes.
///
/// The engine returns it, the server sends it as a problem document, and the client returns the same value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NodeRejection {
    /// A different node exists.
    #[error("a different node exists at {path}")]
    NodeConflict {
        /// The path.
        path: NodePath,
        /// The differences, at most [`MAX_VIOLATIONS`](zarrd_meta::zom::MAX_VIOLATIONS).
        differences: Vec<Difference>,
    },
    /// Keys exist at the path of a new array.
    #[error("keys exist at the path of the new array {path}, such as {key}")]
    StrayKeys {
        /// The path of the array.
        path: NodePath,
        /// One of the keys.
        key: Key,
    },
    /// The precondition failed.
    #[error("the precondition on {path} failed{}", current.map_or_else(String::new, |version| format!(": its version is {version}")))]
    PreconditionFailed {
        /// The path.
        path: NodePath,
        /// The version of the node, if it exists.
        current: Option<Version>,
    },
    /// The parent is an array, which has no members.
    #[error("{path} cannot be created: {array} is an array")]
    ParentIsArray {
        /// The path of the new node.
        path: NodePath,
        /// The array.
        array: NodePath,
    },
    /// The path holds the metadata of another dialect: the entry point of a draft hierarchy where v3 would have a node,
    /// or the reverse.
    #[error("{path} is reserved: it holds the metadata of a {dialect} hierarchy")]
    DialectConflict {
        /// The path of the metadata.
        path: NodePath,
        /// The dialect of the metadata.
        dialect: Dialect,
    },
    /// The dialect cannot represent the whole node, and losses are not allowed.
    #[error("{dialect} cannot represent the whole node")]
    LossyConversion {
        /// The dialect.
        dialect: Dialect,
        /// The properties that would be lost, with the path of their node.
        losses: Vec<(NodePath, Loss)>,
    },
    /// The operation concerns more nodes than the limit.
    #[error("more than {limit} nodes")]
    TooManyNodes {
        /// The limit.
        limit: u64,
    },
    /// The operation takes more changes than one commit can have.
    #[error("the operation takes {changes} changes, but one commit has at most {limit}")]
    TooManyChanges {
        /// The number of changes.
        changes: u64,
        /// The limit.
        limit: u64,
    },
}
