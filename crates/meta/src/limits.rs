//! Limits of documents.

/// The most dimensions that an array has. NumPy allows as many.
pub const MAX_RANK: usize = 64;

/// The most elements along one dimension, so that every index and every distance between two fits an `i64`.
pub const MAX_EXTENT: u64 = i64::MAX as u64;

/// The most bytes that an element of a fixed size has, and that a fill value has.
pub const MAX_ELEMENT_SIZE: usize = 1 << 20;

/// The most bytes that one decoded chunk (or shard) is allowed to have, declared or not.
pub const MAX_CHUNK_SIZE: u64 = 1 << 40;

/// The most bytes of a metadata document.
pub const MAX_DOCUMENT_SIZE: usize = 64 << 20;

/// The most memory for the values by which one metadata document describes its node, as estimated from their text.
/// Attributes, consolidated metadata and unknown members are kept as text, and do not count.
pub const MAX_DOCUMENT_MEMORY: usize = 96 << 20;

/// The most pieces that a document lists for the dimensions of its chunk grid, all of them together.
pub const MAX_LISTED_CHUNKS: u64 = 1 << 20;

/// The most codecs in a chain.
pub const MAX_CODECS: usize = 64;

/// The maximum nesting depth of shards.
pub const MAX_SHARD_DEPTH: usize = 8;

/// The most fields of a struct, those of its inner structs included.
pub const MAX_FIELDS: usize = 4096;
