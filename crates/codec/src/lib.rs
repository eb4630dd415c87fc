//! Zarr codecs with bounded output.
//!
//! A [`CodecChain`] converts between the stored bytes of a chunk and its [`Elements`]:
//!
//! ```text
//!  CodecSpecs + ChunkRepresentation          (from the array's metadata, crate `meta`)
//!        │ CodecChain::new: one factory per codec, looked up by namespace and name
//!        ▼
//!  elements ──► array-to-array* ──► array-to-bytes ──► bytes-to-bytes* ──► stored bytes    encode
//!           ◄──                 ◄──                ◄──                 ◄──                 decode
//! ```
//!
//! - [`ArrayToArray`] codecs change the shape, order or data type of elements: `transpose`, and the filters of
//!   numcodecs.
//! - The one [`ArrayToBytes`] codec serializes elements: `bytes`, `vlen-utf8`, or `sharding_indexed`, whose inner
//!   chunks and index have chains of their own.
//! - [`BytesToBytes`] codecs compress bytes or add a checksum. In v2 and the draft, filters are among them.
//!
//! # Lifecycle
//!
//! 1. A reader of documents (`zarrd_meta::documents`) makes a list of [`CodecSpec`](zarrd_meta::codecs::CodecSpec)s, in the order
//!    of encoding, whatever the dialect is.
//! 2. [`CodecChain::new`] creates the codecs for a [`ChunkRepresentation`]: data type, shape and fill value. Each codec
//!    gets the representation of its input and validates its configuration against it ([`ChainError`]).
//! 3. [`CodecChain::encoded_size`], [`working_memory`](CodecChain::working_memory) and
//!    [`decode_work`](CodecChain::decode_work) limit a request before it starts.
//! 4. [`CodecChain::decode`] and [`encode`](CodecChain::encode) convert chunks ([`CodecError`]).
//!    [`CodecChain::partial_access`] returns which parts of a chunk can be read on their own.
//!
//! # Limits
//!
//! Stored bytes are untrusted. **Every decoder has a maximum output size and never allocates beyond it**: the last
//! stage of decoding is limited by the chunk's size, each stage before by the bound that its codec has for such an
//! input, and elements of variable length by a memory budget. A chunk with another decoded size than its shape requires
//! is an error.
//!
//! This crate does no I/O. Each codec has a module in `codecs` that documents its names, its configuration, its format
//! and its limits; [`supported_codecs`] lists them.

mod builder;
mod byte_swap;
mod chain;
mod codecs;
mod elements;
mod error;
mod factory;
mod filled;
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
pub use filled::filled;
pub use partial_access::PartialAccess;
pub use registry::supported_codecs;
pub use representation::{BytesRepresentation, ChunkRepresentation, EncodedSizeBound};
pub use traits::{ArrayToArray, ArrayToBytes, BytesToBytes, Cost};
