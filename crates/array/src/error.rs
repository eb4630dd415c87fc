//! Errors of reading arrays.

use zarrd_cf::CfError;
use zarrd_codec::{ChainError, CodecError};
use zarrd_meta::{
    NodePath,
    documents::DocumentError,
    selection::{Selection, SelectionError},
};
use zarrd_store::{Key, StoreError};

use crate::{
    memory::error::MemoryError,
    node::{broken::Broken, counterpart::DialectsDiffer},
};

/// An error of finding, planning or reading an array.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// No node is at the path.
    #[error("no node at {path}")]
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
    #[error("invalid metadata in {key}")]
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
    /// The documents of v2 and v3 at the path differ, so that the request could destroy elements or return wrong ones.
    #[error(transparent)]
    DialectsDiffer(#[from] DialectsDiffer),
    /// A codec of the array is unknown or has an invalid configuration.
    #[error("invalid codecs of {path}")]
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
    #[error("the selection has {size} bytes; the limit is {limit}")]
    SelectionTooLarge {
        /// The size of its elements in bytes.
        size: u128,
        /// The limit in bytes.
        limit: u64,
        /// A leading part of the selection that fits, if there is one.
        smaller: Option<Selection>,
    },
    /// The key of a chunk would be too long.
    #[error("the key of a chunk of {path} would be too long")]
    ChunkKey {
        /// The array's path.
        path: NodePath,
    },
    /// The selection touches more chunks than the limit.
    #[error("the selection touches {chunks} chunks; the limit is {limit} (`--max-chunks`)")]
    TooManyChunks {
        /// The number of chunks it touches.
        chunks: u128,
        /// The limit.
        limit: u64,
    },
    /// A chunk is too large to be decoded or encoded within the memory of one request.
    #[error(
        "a chunk of {path} needs {size} bytes of memory; the limit is {limit} (half of `--max-memory`): set `--max-memory` to {} bytes, or use smaller chunks", size.saturating_mul(2)
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
        "the request takes {work} units of work (bytes decoded and encoded times the cost of their codecs, and chunks visited) beyond what it carries or yields; the limit is {limit} (`--max-work`)"
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
        "the elements need more than {budget} bytes of memory, the share of `--max-memory` for the elements of one request"
    )]
    OverBudget {
        /// The memory that the read has for them, in bytes.
        budget: u64,
    },
    /// The attributes of an array do not follow the conventions by which its elements are to be decoded, or its elements
    /// cannot be represented.
    #[error("the elements of {path} cannot be decoded by convention: {source}")]
    Convention {
        /// The array's path.
        path: NodePath,
        /// The error.
        #[source]
        source: CfError,
    },
    /// An element was written to the wrong place: a bug in this crate, detected before wrong elements are returned.
    #[error("the elements of {path} were assembled wrongly")]
    Misplaced {
        /// The array's path.
        path: NodePath,
    },
    /// A reduction cannot be computed.
    #[error(transparent)]
    Compute(#[from] zarrd_compute::ComputeError),
    /// The array's elements are packed or some of them missing, and the request does not say whether to decode them.
    #[error(
        "the array has packed or missing elements (by attributes such as `scale_factor` or `_FillValue`, or the fill value of v2), so results of the stored numbers could be wrong: add `decode=cf`, or `decode=none` to use what is stored"
    )]
    DecodeUnspecified,
    /// Points and stacks are not reduced.
    #[error("points and stacks of selections cannot be reduced: use one selection")]
    ReducesPoints,
    /// The name is none of a number type.
    #[error("`{name}` is no number type: use a name such as `float32` or `int64`")]
    UnknownNumberType {
        /// The name.
        name: String,
    },
    /// Memory is not available.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Locks or threads were held by others until the timeout.
    #[error("other requests use all decoding threads, or hold the lock of the path")]
    Busy,
    /// The caller has as many threads as one caller may have while others wait.
    #[error("the caller uses half of the decoding threads while others wait")]
    TooManyRequests,
    /// The documents or chunks that an operation was planned on kept changing before its commit or snapshot.
    #[error("{path} kept changing: gave up after several attempts")]
    TooManyConflicts {
        /// The path of the node.
        path: NodePath,
    },
    /// An earlier operation on the path is not finished.
    #[error(
        "an earlier operation on {path}, such as a conversion to it or a change of its shape, is still in progress"
    )]
    Unfinished {
        /// The path of the node.
        path: NodePath,
    },
    /// Another change, of this server or another one over the same store, holds the claim of the array.
    #[error(
        "another server appends to {path} or changes its shape, or did so less than 15 minutes ago and did not end it"
    )]
    Claimed {
        /// The path of the array.
        path: NodePath,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is shutting down, so that chunks are no longer decoded.
    #[error("decoding was stopped")]
    ShuttingDown,
}
