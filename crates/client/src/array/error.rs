//! What can go wrong with the arrays of a server.

use std::time::Duration;

use meta::{NodePath, selection::Selection};
use store::{StoreError, Version};

use crate::{
    failure::{Fault, TransportError},
    upload::Unsent,
};

/// Why elements could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// There is no node at the path; or, where a dialect was asked for, none of it.
    #[error("there is no node at {path}")]
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
    /// The array needs what the server does not have.
    #[error("the server does not have what the array at {path} needs: {needs}")]
    Unsupported {
        /// The path of the array.
        path: NodePath,
        /// The codec, extension, data type or whatever it is: `the codec x`.
        needs: String,
    },
    /// The stored metadata of the array is not what its dialect says.
    #[error("the stored metadata of {path} is not understood: {detail}")]
    Metadata {
        /// The path of the array.
        path: NodePath,
        /// The key of the document, where the server names it.
        key: Option<String>,
        /// What is wrong with it.
        detail: String,
    },
    /// The selection or the request is not understood, as when a list is too long.
    #[error("the selection is not understood: {detail}")]
    InvalidSelection {
        /// What is wrong with it.
        detail: String,
        /// Where in the selection's text, in bytes from its beginning.
        position: Option<u64>,
        /// Where in the request's JSON, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
    },
    /// The selection does not fit the array: it has more items than there are dimensions, or stacks different shapes.
    #[error("the selection does not fit the array: {detail}")]
    UnfitSelection {
        /// What is wrong with it.
        detail: String,
        /// The dimension concerned, from 0, where it is one.
        dimension: Option<u64>,
    },
    /// An index does not lie within its dimension.
    #[error("index {index} is out of bounds for dimension {dimension}, whose extent is {extent}")]
    OutOfBounds {
        /// The dimension, from 0.
        dimension: u64,
        /// The index that was asked for.
        index: i64,
        /// The dimension's extent. Its indices are `-extent..extent`.
        extent: u64,
    },
    /// What is selected is more than the server gives in one answer.
    #[error("the selection is too large{}", Size { size: *size, limit: *limit, smaller: smaller.as_ref() })]
    SelectionTooLarge {
        /// How many bytes it has, as far as the server knows.
        size: Option<u64>,
        /// How many it may have.
        limit: Option<u64>,
        /// The beginning of what was selected, as much of it as fits.
        smaller: Option<Selection>,
    },
    /// What is selected lies in more chunks than the server reads for one answer.
    #[error("the selection concerns {chunks} chunks, and the limit is {limit}")]
    TooManyChunks {
        /// How many.
        chunks: u64,
        /// How many there may be.
        limit: u64,
    },
    /// The chunks of the array are larger than what the server decodes.
    #[error("the chunks of the array at {path} are too large to be decoded: {detail}")]
    ChunkTooLarge {
        /// The path of the array.
        path: NodePath,
        /// How large they are and may be.
        detail: String,
    },
    /// The request is longer than what the server takes.
    #[error("the request is longer than {limit} bytes")]
    RequestTooLarge {
        /// How many bytes it may have.
        limit: u64,
    },
    /// The elements cannot be given as bytes.
    #[error("the elements cannot be given as bytes: {detail}")]
    CannotHold {
        /// Why not.
        detail: String,
    },
    /// A stored chunk does not decode.
    #[error("the chunk at {key} cannot be decoded by {codec}: {detail} (request {request})")]
    UndecodableChunk {
        /// The chunk's key.
        key: String,
        /// The codec that failed.
        codec: String,
        /// How.
        detail: String,
        /// The request's id, to be found in the server's log.
        request: String,
    },
    /// What is stored for a key is not what was written.
    #[error("the stored value of {key} is damaged (request {request})")]
    Damaged {
        /// The key.
        key: String,
        /// The request's id, to be found in the server's log.
        request: String,
    },
    /// The array has elements of another data type than those asked for.
    #[error("the elements are not {expected} but {}", found.as_deref().unwrap_or("of a type with a long name"))]
    DataType {
        /// The name of the data type that was asked for.
        expected: &'static str,
        /// The name of the array's, if it is not too long for a header.
        found: Option<String>,
    },
    /// There are not as many elements as were selected, or what is appended is no whole number of steps along the dimension.
    #[error("the elements do not fit what was selected: {detail}")]
    UnfitElements {
        /// What is wrong with them.
        detail: String,
        /// How much there has to be, in bytes or else in elements.
        expected: Option<u64>,
        /// How much there was.
        found: Option<u64>,
    },
    /// The data type has no such value.
    #[error("the element at {element:?} cannot be written: {detail}")]
    InvalidElement {
        /// Which one, by its indices in what was to be written.
        element: Vec<u64>,
        /// Why not.
        detail: String,
    },
    /// What was to be written is not understood: lists of different lengths, or a `.npy` file of another data type or shape.
    #[error("the elements are not understood: {detail}")]
    InvalidElements {
        /// What is wrong with them.
        detail: String,
        /// Where in JSON, as a JSON Pointer (RFC 6901).
        pointer: Option<String>,
        /// Where in bytes from the beginning.
        position: Option<u64>,
    },
    /// The condition does not hold of the array.
    #[error("the precondition does not hold of {path}")]
    PreconditionFailed {
        /// The path of the array.
        path: NodePath,
        /// The version that it has.
        current: Option<Version>,
    },
    /// The shape of the array changed while the elements were on their way, so that they do not fit any more. Nothing was written.
    #[error("the shape of {path} changed meanwhile")]
    ShapeChanged {
        /// The path of the array.
        path: NodePath,
    },
    /// The array cannot grow so.
    #[error("the array at {path} cannot be changed so: {detail}")]
    Unchangeable {
        /// The path of the array.
        path: NodePath,
        /// Why not.
        detail: String,
    },
    /// The codecs of the array do not take the elements.
    #[error("the chunk at {key} cannot be encoded by {codec}: {detail}")]
    UnencodableChunk {
        /// The chunk's key.
        key: String,
        /// The codec that failed.
        codec: String,
        /// How.
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
    /// The elements that were to be written did not come, or not to the server.
    #[error("the elements did not reach the server whole")]
    Content(#[source] StoreError),
    /// The store takes no changes until the server is started again.
    #[error("the store is read-only until the server is started again")]
    ReadOnly,
    /// There is no space left.
    #[error("the server has no space left")]
    OutOfSpace,
    /// The elements do not fit the memory of this machine.
    #[error("there is no memory for {size} bytes of elements")]
    Memory {
        /// How many bytes they have, at least.
        size: u64,
    },
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
    /// The elements stopped coming. A server that finds a chunk undecodable in the middle of an answer can tell it in no other way.
    #[error("the elements broke off after {received} bytes{}", expected.map(|all| format!(" of {all}")).unwrap_or_default())]
    Broken {
        /// How many bytes came.
        received: u64,
        /// How many there are, where that is known.
        expected: Option<u64>,
        /// How the connection failed.
        #[source]
        source: TransportError,
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

impl From<Fault> for ArrayError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Transport(error) => Self::Transport(error),
            Fault::Protocol { detail } => Self::Protocol { detail },
        }
    }
}

impl From<Unsent> for ArrayError {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Content(error) => Self::Content(error),
            Unsent::Fault(fault) => fault.into(),
        }
    }
}

/// What an error's text says of a selection that is too large.
struct Size<'a> {
    size: Option<u64>,
    limit: Option<u64>,
    smaller: Option<&'a Selection>,
}

impl std::fmt::Display for Size<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
