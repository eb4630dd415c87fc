//! What can go wrong with the nodes of a server.

use std::time::Duration;

use meta::{
    Dialect, NodePath,
    convert::Loss,
    zom::{Difference, Violation},
};
use store::Version;

use crate::error::{RequestError, TransportError};

/// Why a node is not told, created or changed.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// There is no node at the path; or, where a dialect was asked for, none of it.
    #[error("there is no node at {path}")]
    NoSuchNode {
        /// The path.
        path: NodePath,
    },
    /// The node is a group, and what was asked is an array's.
    #[error("the node at {path} is not an array")]
    NotAnArray {
        /// The path.
        path: NodePath,
    },
    /// There are more nodes than the server tells, or takes, at a time.
    #[error("there are more than {limit} nodes")]
    TooManyNodes {
        /// How many it tells or takes.
        limit: u64,
    },
    /// The ZOM breaks its schema, or a document in it is not understood.
    #[error("this is not a ZOM: {detail}")]
    InvalidZom {
        /// What is wrong with it.
        detail: String,
        /// Where and how.
        violations: Vec<Violation>,
    },
    /// The dialect does not allow the name of a node.
    #[error("{detail}")]
    InvalidName {
        /// The path of the node.
        path: NodePath,
        /// Why not.
        detail: String,
    },
    /// The patch does not fit the node.
    #[error("the patch does not fit: {detail}")]
    InvalidPatch {
        /// What is wrong with it.
        detail: String,
        /// Where in it, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
    },
    /// The node is there and differs from what is declared.
    #[error("there is another node at {path}")]
    Differs {
        /// The path.
        path: NodePath,
        /// Where it differs, as far as the server tells.
        differences: Vec<Difference>,
    },
    /// There are keys at the place of a new array.
    #[error("there are keys where the array {path} would be")]
    StrayKeys {
        /// The path of the array.
        path: NodePath,
        /// One of the keys.
        key: Option<String>,
    },
    /// The condition does not hold of the node.
    #[error("the precondition does not hold of {path}")]
    PreconditionFailed {
        /// The path.
        path: NodePath,
        /// The version that the node has, if any.
        current: Option<Version>,
    },
    /// An array never has nodes below it.
    #[error("{path} would be below an array")]
    ParentIsArray {
        /// The node that is to be created.
        path: NodePath,
        /// The array.
        array: Option<NodePath>,
    },
    /// A hierarchy of another dialect is in the way.
    #[error("{path} is where a hierarchy of another dialect has its documents")]
    DialectConflict {
        /// Where.
        path: NodePath,
        /// The dialect that is there.
        dialect: Option<Dialect>,
    },
    /// The dialect cannot say all that is to be said, and it was not said that this is accepted.
    #[error("the dialect cannot say all of it")]
    Lossy {
        /// What would be lost, with the path of the node.
        losses: Vec<(NodePath, Loss)>,
    },
    /// The two dialects share no chunks, so that the hierarchy can only be converted to [another path](crate::Conversion::to).
    #[error("{detail}")]
    NotInPlace {
        /// Which dialects these are.
        detail: String,
    },
    /// The dialect has no such array at all.
    #[error("{detail}")]
    Inconvertible {
        /// The path.
        path: NodePath,
        /// Where in its document, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
        /// Why not.
        detail: String,
    },
    /// It would take more changes than one commit has.
    #[error("it takes {changes} changes, and one commit has at most {limit}")]
    TooManyChanges {
        /// How many it takes.
        changes: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The ZOM is longer than what the server takes.
    #[error("the request is longer than {limit} bytes")]
    RequestTooLarge {
        /// How many bytes it may have.
        limit: u64,
    },
    /// The node needs what the server does not have.
    #[error("the server does not have what the node at {path} needs: {needs}")]
    Unsupported {
        /// The path of the node.
        path: NodePath,
        /// The codec, extension, data type or whatever it is.
        needs: String,
    },
    /// The stored metadata of the node is not what its dialect says.
    #[error(
        "the stored metadata of {path}{} is not understood: {detail}",
        .key.as_ref().map_or_else(String::new, |key| format!(" in {key}"))
    )]
    Metadata {
        /// The path of the node.
        path: NodePath,
        /// The key of the document, where the server names it.
        key: Option<String>,
        /// What is wrong with it.
        detail: String,
    },
    /// What is stored for a key is not what was written.
    #[error("the stored value of {key} is damaged (request {request})")]
    Damaged {
        /// The key.
        key: String,
        /// The request's id, to be found in the server's log.
        request: String,
    },
    /// The store takes no changes until the server is started again.
    #[error("the store is read-only until the server is started again")]
    ReadOnly,
    /// There is no space left.
    #[error("the server has no space left")]
    OutOfSpace,
    /// The server wants to know who asks.
    #[error("the server asks for a token")]
    Unauthorized,
    /// The server does not allow this to whoever asks.
    #[error("the server does not allow this: {detail}")]
    Forbidden {
        /// What it said.
        detail: String,
    },
    /// The server is busy or stopping; the request can be made again.
    #[error("the server is busy")]
    Busy {
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The server failed, or refused what this client does not ask for.
    #[error("the server failed (status {status}, request {request}): {detail}")]
    Remote {
        /// The HTTP status.
        status: u16,
        /// The request's id, to be found in the server's log.
        request: String,
        /// What it said; empty where it said nothing.
        detail: String,
    },
    /// The server answered what its contract does not allow.
    #[error("the server gave an answer that cannot be understood: {detail}")]
    Protocol {
        /// What is wrong with it.
        detail: String,
    },
    /// The connection failed.
    #[error("the connection to the server failed")]
    Transport(#[source] TransportError),
}

impl From<RequestError> for NodeError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Transport(error) => Self::Transport(error),
            RequestError::Protocol { detail } => Self::Protocol { detail },
        }
    }
}
