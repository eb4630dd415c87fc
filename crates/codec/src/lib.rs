//! Codecs: between the bytes that are stored and the elements of a chunk, with bounded output.
//!
//! A [`Chain`] is made of the [`CodecSpec`](meta::codecs::CodecSpec)s of an array's model and the [`Representation`] of its chunks. What is
//! stored comes from strangers, so **every decoder is told how many bytes it may produce and never allocates beyond them**: the chunk's size
//! bounds the last stage of decoding, what its codec says of the length it could have been given bounds the stage before, and what is of variable
//! length is bounded by a budget. A chunk whose decoded length is wrong, short or long, is an error.
//!
//! Each codec has a file of its own in `codecs`, with a link to its specification, its configuration, and its limits. Nothing here does I/O.

mod builder;
mod byte_swap;
mod chain;
mod codecs;
mod elements;
mod error;
mod factory;
mod partial_access;
mod registry;
mod representation;
mod traits;

pub use byte_swap::ByteSwap;
pub use chain::CodecChain;
pub use codecs::sharding::{ShardIndex, ShardingCodec};
pub use elements::{BudgetExceeded, Elements, VariableBuilder, VariableElements};
pub use error::{ChainError, CodecError};
pub use factory::{Codec, CodecFactory, CodecInput, FactoryContext};
pub use partial_access::PartialAccess;
pub use registry::supported_codecs;
pub use representation::{BytesRepresentation, ChunkRepresentation, EncodedSizeBound};
pub use traits::{ArrayToArray, ArrayToBytes, BytesToBytes, Cost};
