//! Errors of reading arrays.

use codec::{ChainError, CodecError};
use meta::{
    NodePath,
    documents::DocumentError,
    selection::{Selection, SelectionError},
};
use store::{Key, StoreError};

use crate::{memory::error::MemoryError, node::broken::Broken};

/// An error of finding, planning or reading an array.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// No node is at the path.
    #[error("there is no node at {path}")]
    NoSuchNode {
        /// The path.
        path: NodePath,
    },
    /// The node at the path is a group.
    #[error("the node at {path} is a group")]
    NotAnArray {
        /// The path.
        path: NodePath,
    },
    /// A metadata document is invalid, or asks for something that is not supported.
    #[error("the metadata in {key} is not understood")]
    Document {
        /// The document's key.
        key: Key,
        /// The error in the document.
        #[source]
        source: DocumentError,
    },
    /// A metadata document cannot be read.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A codec of the array is unknown or has an invalid configuration.
    #[error("the codecs of {path} are not understood")]
    Chain {
        /// The array's path.
        path: NodePath,
        /// The error of the codec chain.
        #[source]
        source: ChainError,
    },
    /// The selection does not fit the array.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The selection has more bytes than the limit.
    #[error("the selection has {size} bytes, and the limit is {limit}")]
    SelectionTooLarge {
        /// The size of its elements in bytes.
        size: u128,
        /// The limit in bytes.
        limit: u64,
        /// A leading part of the selection that fits, if there is one.
        smaller: Option<Selection>,
    },
    /// The selection touches more chunks than the limit.
    #[error("the selection concerns {chunks} chunks, and the limit is {limit}")]
    TooManyChunks {
        /// The number of chunks it touches.
        chunks: u128,
        /// The limit.
        limit: u64,
    },
    /// A chunk is too large to be decoded or encoded within the memory of one request.
    #[error(
        "to decode or encode a chunk of {path} takes {size} bytes of memory, and there are {limit} (half of `--max-memory`): it takes a `--max-memory` of {} bytes, or smaller chunks", size.saturating_mul(2)
    )]
    ChunkTooLarge {
        /// The array's path.
        path: NodePath,
        /// The memory that it needs, in bytes.
        size: u64,
        /// The memory that one chunk may have, in bytes.
        limit: u64,
    },
    /// The request needs more work than the limit.
    #[error(
        "it takes {work} steps of work (bytes decoded and encoded times what their codecs cost, and chunks that are visited) beyond what is carried, and the limit is {limit} (`--max-work`)"
    )]
    WorkTooLarge {
        /// Its work in steps, as estimated, or as counted when it was stopped.
        work: u64,
        /// The limit in steps.
        limit: u64,
        /// A leading part of the selection that fits, if one is known.
        smaller: Option<Selection>,
    },
    /// A chunk cannot be decoded.
    #[error("the chunk {key} cannot be decoded")]
    Chunk {
        /// The key of the chunk, or of the shard that contains it.
        key: Key,
        /// The error, with the codec that failed.
        #[source]
        source: CodecError,
    },
    /// Elements of variable length took more memory than the read has.
    #[error(
        "the elements take more than {budget} bytes of memory, the part of `--max-memory` that one request has for them"
    )]
    OverBudget {
        /// The memory that the read has for them, in bytes.
        budget: u64,
    },
    /// An element was written to the wrong place: a bug in this crate, detected before wrong elements are returned.
    #[error("the elements of {path} were assembled wrongly")]
    Misplaced {
        /// The array's path.
        path: NodePath,
    },
    /// Memory is not available.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Locks or threads were held by others until the timeout.
    #[error("others are at work on the same, or have all threads that decode and encode")]
    Busy,
    /// The caller has as many threads as one caller may have while others wait.
    #[error("the caller has as many threads that decode and encode as one may have while others wait")]
    TooManyRequests,
    /// The documents or chunks that an operation was planned on kept changing before its commit or snapshot.
    #[error("{path} kept changing, so that this was given up after many attempts")]
    TooManyConflicts {
        /// The path of the node.
        path: NodePath,
    },
    /// An earlier operation on the path is not finished.
    #[error(
        "an earlier operation on {path}, such as a conversion to it or a change of its shape, has not come to its end"
    )]
    Unfinished {
        /// The path of the node.
        path: NodePath,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is shutting down, so that chunks are no longer decoded.
    #[error("decoding was stopped")]
    ShuttingDown,
}
