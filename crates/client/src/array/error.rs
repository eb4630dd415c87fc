//! Errors of the array client.

use std::fmt;

use serde_json::Value;
use zarrd_meta::{NodePath, selection::Selection};
use zarrd_store::{StoreError, Version};
use zarrd_wire::problem::ProblemType;

use crate::{
    error::{RequestError, TransportError},
    remote::RemoteError,
    upload::SendError,
};

/// Errors of reading or writing elements.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// No node exists at the path, or none of the requested dialect.
    #[error("no node exists at {path}")]
    NoSuchNode {
        /// The path.
        path: NodePath,
    },
    /// The node is a group.
    #[error("the node at {path} is not an array")]
    NotAnArray {
        /// The path.
        path: NodePath,
    },
    /// The array uses a feature that the server does not support.
    #[error("the server does not support the array at {path}: {needs}")]
    Unsupported {
        /// Path of the array.
        path: NodePath,
        /// The codec, extension, data type or other feature, such as `the codec x`.
        needs: String,
    },
    /// The stored metadata of the array is invalid.
    #[error("the stored metadata of {path} is invalid: {detail}")]
    Metadata {
        /// Path of the array.
        path: NodePath,
        /// Key of the metadata document, if known.
        key: Option<String>,
        /// Reason.
        detail: String,
    },
    /// The selection or the request is invalid, for example because a list is too long.
    #[error("invalid selection: {detail}")]
    InvalidSelection {
        /// Reason.
        detail: String,
        /// Position of the error in the text of the selection, in bytes.
        position: Option<u64>,
        /// Position of the error in the JSON of the request, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
    },
    /// The selection does not fit the array: it has more items than the array has dimensions, or stacks different
    /// shapes.
    #[error("the selection does not fit the array: {detail}")]
    SelectionMismatch {
        /// Reason.
        detail: String,
        /// The dimension, counted from 0, if the error concerns a single one.
        dimension: Option<u64>,
    },
    /// An index is out of bounds.
    #[error("index {index} is out of bounds for dimension {dimension}, whose extent is {extent}")]
    OutOfBounds {
        /// The dimension, counted from 0.
        dimension: u64,
        /// The index.
        index: i64,
        /// Extent of the dimension; valid indices are `-extent..extent`.
        extent: u64,
    },
    /// The selection exceeds the server's limit for one response.
    #[error("the selection is too large{}", SizeDetail { size: *size, limit: *limit, smaller: smaller.as_ref() })]
    SelectionTooLarge {
        /// Size of the selection in bytes, if known.
        size: Option<u64>,
        /// The limit in bytes.
        limit: Option<u64>,
        /// The longest initial part of the selection within the limit.
        smaller: Option<Selection>,
    },
    /// The selection needs more chunks than the server reads for one response.
    #[error("the selection needs {chunks} chunks; the limit is {limit}")]
    TooManyChunks {
        /// Number of chunks.
        chunks: u64,
        /// The limit.
        limit: u64,
    },
    /// The chunks of the array exceed the server's limit for decoding.
    #[error("the chunks of the array at {path} are too large to be decoded: {detail}")]
    ChunkTooLarge {
        /// Path of the array.
        path: NodePath,
        /// Their size, and the limit.
        detail: String,
    },
    /// The request exceeds the server's limit.
    #[error("the request is longer than {limit} bytes")]
    RequestTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The elements cannot be encoded as bytes.
    #[error("the elements cannot be encoded as bytes: {detail}")]
    UnsupportedFormat {
        /// Reason.
        detail: String,
    },
    /// A stored chunk cannot be decoded.
    #[error("the chunk at {key} cannot be decoded by {codec}: {detail} (request {request})")]
    UndecodableChunk {
        /// Key of the chunk.
        key: String,
        /// The codec that failed.
        codec: String,
        /// Reason.
        detail: String,
        /// The request ID, by which the request is found in the server's log.
        request: String,
    },
    /// A stored value does not match its checksum.
    #[error("the stored value of {key} is damaged (request {request})")]
    Damaged {
        /// Key of the value.
        key: String,
        /// The request ID, by which the request is found in the server's log.
        request: String,
    },
    /// The array does not have the expected data type.
    #[error("the data type is {}, not {expected}", actual.as_deref().unwrap_or("one whose name is too long for a header"))]
    DataType {
        /// Name of the expected data type.
        expected: &'static str,
        /// Name of the data type of the array, unless it is too long for a header.
        actual: Option<String>,
    },
    /// The number of elements does not match the selection, or appended elements do not fill whole steps along the
    /// dimension.
    #[error("the elements do not match the selection: {detail}")]
    ElementsMismatch {
        /// Reason.
        detail: String,
        /// The expected size: in bytes, or for JSON in elements.
        expected: Option<u64>,
        /// The size that the server received.
        actual: Option<u64>,
    },
    /// An element is not a value of the data type.
    #[error("the element at {element:?} cannot be written: {detail}")]
    InvalidElement {
        /// Indices of the element within the written elements.
        element: Vec<u64>,
        /// Reason.
        detail: String,
    },
    /// The elements are malformed: lists of different lengths, or a `.npy` file of another data type or shape.
    #[error("the elements are malformed: {detail}")]
    InvalidElements {
        /// Reason.
        detail: String,
        /// Position of the error in JSON, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
        /// Position of the error in bytes.
        position: Option<u64>,
    },
    /// A selection by names of dimensions or by labels cannot be made.
    #[error("invalid selection by name or label: {detail}")]
    InvalidLabels {
        /// The type of the problem.
        kind: ProblemType,
        /// The dimension, if it is about one.
        dimension: Option<String>,
        /// Reason.
        detail: String,
    },
    /// A coordinate does not have a label.
    #[error("label not found: {}", .0.detail)]
    LabelNotFound(Box<MissingLabel>),
    /// The precondition is false.
    #[error("precondition failed for {path}{}", current.map(|version| format!(": its version is {version}")).unwrap_or_default())]
    PreconditionFailed {
        /// Path of the array.
        path: NodePath,
        /// Current version of the array.
        current: Option<Version>,
    },
    /// The shape of the array changed during the upload, so that the elements no longer match. Nothing was written.
    #[error("the shape of {path} changed during the upload")]
    ShapeChanged {
        /// Path of the array.
        path: NodePath,
    },
    /// The array cannot be extended.
    #[error("the array at {path} cannot be extended: {detail}")]
    CannotExtend {
        /// Path of the array.
        path: NodePath,
        /// Reason.
        detail: String,
    },
    /// The array cannot be created: a node exists at the path, or above it is an array, or what is given of it is
    /// invalid or not enough.
    #[error("the array at {path} cannot be created: {detail}")]
    CannotCreate {
        /// Path of the array.
        path: NodePath,
        /// Type of the problem.
        kind: ProblemType,
        /// Reason.
        detail: String,
    },
    /// A codec of the array cannot encode the elements.
    #[error("the chunk at {key} cannot be encoded by {codec}: {detail}")]
    UnencodableChunk {
        /// Key of the chunk.
        key: String,
        /// The codec that failed.
        codec: String,
        /// Reason.
        detail: String,
    },
    /// The write exceeds the server's limit for the changes of one commit.
    #[error("the write needs {changes} changes; the limit of a commit is {limit}")]
    TooManyChanges {
        /// Number of changes.
        changes: u64,
        /// The limit.
        limit: u64,
    },
    /// The upload of the elements failed.
    #[error("the elements were not uploaded completely")]
    Content(#[source] StoreError),
    /// The elements do not fit into the memory of this machine.
    #[error("cannot allocate memory for {size} bytes of elements")]
    OutOfMemory {
        /// Size of the elements in bytes, at least.
        size: u64,
    },
    /// The response was cut off. This is also how a server reports a chunk that it could not decode after it had begun
    /// to respond.
    #[error("the response was cut off after {received} bytes{}", expected.map(|size| format!(" of {size}")).unwrap_or_default())]
    Interrupted {
        /// Number of bytes that were received.
        received: u64,
        /// Number of bytes that were expected, if known.
        expected: Option<u64>,
        /// The failure of the connection.
        #[source]
        source: TransportError,
    },
    /// The error does not depend on what was requested.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// A label that a coordinate does not have.
#[derive(Clone, Debug, PartialEq)]
pub struct MissingLabel {
    /// The dimension.
    pub dimension: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// The nearest label of the coordinate.
    pub nearest: Option<Value>,
    /// Its first label.
    pub first: Option<Value>,
    /// Its last label.
    pub last: Option<Value>,
    /// Reason.
    pub detail: String,
}

impl From<RequestError> for ArrayError {
    fn from(error: RequestError) -> Self {
        RemoteError::from(error).into()
    }
}

impl From<SendError> for ArrayError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Content(error) => Self::Content(error),
            SendError::Request(error) => error.into(),
        }
    }
}

/// The details in the message of [`ArrayError::SelectionTooLarge`].
struct SizeDetail<'a> {
    size: Option<u64>,
    limit: Option<u64>,
    smaller: Option<&'a Selection>,
}

impl fmt::Display for SizeDetail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(size) = self.size {
            write!(f, ": it has {size} bytes")?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", the limit is {limit}")?;
        }
        match self.smaller {
            Some(smaller) => write!(f, "; {smaller} fits"),
            None => Ok(()),
        }
    }
}
