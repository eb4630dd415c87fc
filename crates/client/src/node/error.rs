//! Errors of the node client.

use std::time::Duration;

use meta::{
    Dialect, NodePath,
    convert::Loss,
    zom::{Difference, Violation},
};
use store::Version;

use crate::error::{RequestError, TransportError};

/// Errors of reading, creating or changing a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// No node exists at the path, or none of the requested dialect.
    #[error("no node exists at {path}")]
    NoSuchNode {
        /// The path.
        path: NodePath,
    },
    /// The node is a group, and the operation requires an array.
    #[error("the node at {path} is not an array")]
    NotAnArray {
        /// The path.
        path: NodePath,
    },
    /// The hierarchy exceeds the server's limit for one request or response.
    #[error("the hierarchy has more than {limit} nodes, the limit of a request or response")]
    TooManyNodes {
        /// The limit.
        limit: u64,
    },
    /// The ZOM violates its schema, or contains an invalid document.
    #[error("invalid ZOM: {detail}")]
    InvalidZom {
        /// Reason.
        detail: String,
        /// The violations.
        violations: Vec<Violation>,
    },
    /// The name of a node is not valid in its dialect.
    #[error("{detail}")]
    InvalidName {
        /// Path of the node.
        path: NodePath,
        /// Reason.
        detail: String,
    },
    /// The patch does not fit the node.
    #[error("invalid patch: {detail}")]
    InvalidPatch {
        /// Reason.
        detail: String,
        /// Position of the error in the patch, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
    },
    /// A different node exists.
    #[error("a different node exists at {path}")]
    Differs {
        /// The path.
        path: NodePath,
        /// The differences, as far as the server returned them.
        differences: Vec<Difference>,
    },
    /// The path of a new array has keys that are not part of a node.
    #[error("keys exist below the path of the new array {path}")]
    StrayKeys {
        /// Path of the array.
        path: NodePath,
        /// One of the keys.
        key: Option<String>,
    },
    /// The precondition is false.
    #[error("precondition failed for {path}{}", current.map(|version| format!(": its version is {version}")).unwrap_or_default())]
    PreconditionFailed {
        /// The path.
        path: NodePath,
        /// Current version of the node, if it exists.
        current: Option<Version>,
    },
    /// The new node would lie below an array.
    #[error("{path} lies below an array")]
    BelowArray {
        /// Path of the new node.
        path: NodePath,
        /// The array.
        array: Option<NodePath>,
    },
    /// The path is reserved by a hierarchy of another dialect.
    #[error("{path} is reserved: it holds the metadata of a hierarchy of another dialect")]
    OtherDialect {
        /// The path.
        path: NodePath,
        /// Dialect of that hierarchy.
        dialect: Option<Dialect>,
    },
    /// The dialect cannot represent the node without loss, and the request does not allow losses.
    #[error("the dialect cannot represent the node without loss")]
    Lossy {
        /// The losses, with the path of their node.
        losses: Vec<(NodePath, Loss)>,
    },
    /// The dialects share no chunk keys, so that the conversion needs a [target path](crate::ConvertOptions::target).
    #[error("{detail}")]
    NotInPlace {
        /// Reason.
        detail: String,
    },
    /// The array cannot be represented in the dialect.
    #[error("{detail}")]
    Inconvertible {
        /// Path of the array.
        path: NodePath,
        /// Position in its document, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
        /// Reason.
        detail: String,
    },
    /// The operation exceeds the server's limit for the changes of one commit.
    #[error("the operation needs {changes} changes; the limit of a commit is {limit}")]
    TooManyChanges {
        /// Number of changes.
        changes: u64,
        /// The limit.
        limit: u64,
    },
    /// The request exceeds the server's limit.
    #[error("the request is longer than {limit} bytes")]
    RequestTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The node uses a feature that the server does not support.
    #[error("the server does not support the node at {path}: {needs}")]
    Unsupported {
        /// Path of the node.
        path: NodePath,
        /// The codec, extension, data type or other feature.
        needs: String,
    },
    /// The stored metadata of the node is invalid.
    #[error(
        "the stored metadata of {path}{} is invalid: {detail}",
        .key.as_ref().map_or_else(String::new, |key| format!(" in {key}"))
    )]
    Metadata {
        /// Path of the node.
        path: NodePath,
        /// Key of the document, if known.
        key: Option<String>,
        /// Reason.
        detail: String,
    },
    /// A stored value does not match its checksum.
    #[error("the stored value of {key} is damaged (request {request})")]
    Damaged {
        /// Key of the value.
        key: String,
        /// The request ID, by which the request is found in the server's log.
        request: String,
    },
    /// The store is read-only until the server is restarted.
    #[error("the store is read-only until the server is restarted")]
    ReadOnly,
    /// The server has no space left.
    #[error("the server has no space left")]
    OutOfSpace,
    /// The server requires a token.
    #[error("the server requires a token")]
    Unauthorized,
    /// The client is not permitted to do this.
    #[error("the server does not permit this: {detail}")]
    Forbidden {
        /// Reason.
        detail: String,
    },
    /// The server is busy or stopping; the request can be retried.
    #[error("the server is busy")]
    Busy {
        /// The delay that the server asks for.
        retry_after: Option<Duration>,
    },
    /// The server failed, or its response is not one to the requests of this client.
    #[error("the server failed (status {status}, request {request}): {detail}")]
    Remote {
        /// The HTTP status.
        status: u16,
        /// The request ID, by which the request is found in the server's log.
        request: String,
        /// The server's explanation; empty if there is none.
        detail: String,
    },
    /// The response violates the HTTP API of zarrd.
    #[error("the response is not that of a zarrd server: {detail}")]
    Protocol {
        /// The violation.
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
