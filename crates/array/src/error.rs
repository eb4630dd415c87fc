//! Why an array is not read.

use codec::{ChainError, CodecError};
use meta::{
    NodePath,
    documents::DocumentError,
    selection::{Selection, SelectionError},
};
use store::{Key, StoreError};

use crate::{memory::error::MemoryError, node::broken::Broken};

/// Why an array is not read.
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
    /// A metadata document is not understood, or asks for something that is not supported.
    #[error("the metadata in {key} is not understood")]
    Document {
        /// The document's key.
        key: Key,
        /// What is wrong.
        #[source]
        source: DocumentError,
    },
    /// A metadata document cannot be read.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A codec of the array is not known, or wrongly configured.
    #[error("the codecs of {path} are not understood")]
    Chain {
        /// The array's path.
        path: NodePath,
        /// What is wrong.
        #[source]
        source: ChainError,
    },
    /// The selection does not fit the array.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The selection has more bytes than it may have.
    #[error("the selection has {size} bytes, and the limit is {limit}")]
    SelectionTooLarge {
        /// How many bytes its elements have.
        size: u128,
        /// How many they may have.
        limit: u64,
        /// A part of it that fits, where there is one.
        smaller: Option<Selection>,
    },
    /// The selection concerns more chunks than it may.
    #[error("the selection concerns {chunks} chunks, and the limit is {limit}")]
    TooManyChunks {
        /// How many it concerns.
        chunks: u128,
        /// How many it may.
        limit: u64,
    },
    /// A chunk is too large to be decoded here.
    #[error(
        "to decode or encode a chunk of {path} takes {size} bytes of memory, and there are {limit} (half of `--max-memory`): it takes a `--max-memory` of {} bytes, or smaller chunks", size.saturating_mul(2)
    )]
    ChunkTooLarge {
        /// The array's path.
        path: NodePath,
        /// How many bytes it takes.
        size: u64,
        /// How many there are.
        limit: u64,
    },
    /// It takes more work than it may.
    #[error(
        "it takes {work} steps of work (bytes decoded and encoded times what their codecs cost, and chunks that are visited) beyond what is carried, and the limit is {limit} (`--max-work`)"
    )]
    WorkTooLarge {
        /// How much it takes, as it was estimated, or as it was stopped.
        work: u64,
        /// How much it may.
        limit: u64,
        /// A part of the selection that takes less, where one is known.
        smaller: Option<Selection>,
    },
    /// A chunk cannot be decoded.
    #[error("the chunk {key} cannot be decoded")]
    Chunk {
        /// The key of the chunk, or of the shard that it is in.
        key: Key,
        /// What is wrong, and with which codec.
        #[source]
        source: CodecError,
    },
    /// Elements of variable length took more memory than a reading has.
    #[error(
        "the elements take more than {budget} bytes of memory, the part of `--max-memory` that one request has for them"
    )]
    OverBudget {
        /// How many there are.
        budget: u64,
    },
    /// An element was put where it does not belong, which is a mistake of this crate's: noticed before anything wrong leaves.
    #[error("the elements of {path} were assembled wrongly")]
    Misplaced {
        /// The array's path.
        path: NodePath,
    },
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Others are at work on the same, or on all threads, for too long.
    #[error("others are at work on the same, or have all threads that decode and encode")]
    Busy,
    /// The caller has as many threads as one may have while others wait.
    #[error("the caller has as many threads that decode and encode as one may have while others wait")]
    TooManyRequests,
    /// What an attempt was made on had changed by the time of its commit or its snapshot, again and again.
    #[error("{path} kept changing, so that this was given up after many attempts")]
    TooManyConflicts {
        /// The path of the node.
        path: NodePath,
    },
    /// An earlier operation on the path has not come to its end.
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
    /// What decodes chunks was stopped, since the server stops.
    #[error("decoding was stopped")]
    ShuttingDown,
}
