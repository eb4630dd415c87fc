//! Errors of the node client.

use zarrd_meta::{NodePath, zom::Violation};
use zarrd_operations::NodeRejection;
use zarrd_store::StoreError;

use crate::{error::RequestError, remote::RemoteError, upload::SendError};

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
    /// The node is an array, and the operation requires a group.
    #[error("the node at {path} is not a group")]
    NotAGroup {
        /// The path.
        path: NodePath,
    },
    /// The body does not have the arrays of the group over the dimension, or their extents disagree.
    #[error("{detail}")]
    DatasetMismatch {
        /// Path of the group.
        path: NodePath,
        /// The arrays that the body lacks.
        missing: Vec<String>,
        /// The names in the body that are no arrays over the dimension.
        unexpected: Vec<String>,
        /// Reason.
        detail: String,
    },
    /// The new labels of a coordinate do not continue those that it has: perhaps the body was appended already.
    #[error("{detail}")]
    Discontinuous {
        /// Path of the group.
        path: NodePath,
        /// The dimension.
        dimension: Option<String>,
        /// The first new label that does not continue.
        label: Option<String>,
        /// Reason.
        detail: String,
    },
    /// The elements to be appended are malformed, or cannot be written to their array.
    #[error("{detail}")]
    InvalidElements {
        /// The array, if it is known.
        array: Option<String>,
        /// Indices of the element within the elements of the array, if it is about one.
        element: Option<Vec<u64>>,
        /// Reason.
        detail: String,
    },
    /// The content failed, or it was not received completely.
    #[error("the content was not sent completely")]
    Content(#[source] StoreError),
    /// The state of the hierarchy rules the operation out.
    #[error(transparent)]
    Rejected(#[from] NodeRejection),
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
    /// The dialects share no chunk keys, so that the conversion needs a [target path](crate::ConvertOptions::target).
    #[error("{detail}")]
    NotInPlace {
        /// Reason.
        detail: String,
    },
    /// The array cannot be represented in the dialect.
    #[error("{detail}")]
    Unconvertible {
        /// Path of the array.
        path: NodePath,
        /// Position in its document, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
        /// Reason.
        detail: String,
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
    /// The error does not depend on what was requested.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

impl From<RequestError> for NodeError {
    fn from(error: RequestError) -> Self {
        RemoteError::from(error).into()
    }
}

impl From<SendError> for NodeError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Content(error) => Self::Content(error),
            SendError::Request(error) => error.into(),
        }
    }
}
