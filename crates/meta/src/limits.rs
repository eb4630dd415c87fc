//! Limits of metadata documents.

/// The maximum number of dimensions of an array; that of NumPy.
pub const MAX_RANK: usize = 64;

/// The maximum extent of a dimension, so that every index and every distance fits an `i64`.
pub const MAX_EXTENT: u64 = i64::MAX as u64;

/// The maximum size of a fixed-size element, and of a fill value, in bytes.
pub const MAX_ELEMENT_SIZE: usize = 1 << 20;

/// The maximum size of a decoded chunk or shard in bytes.
pub const MAX_CHUNK_SIZE: u64 = 1 << 40;

/// The maximum size of a metadata document in bytes.
pub const MAX_DOCUMENT_SIZE: usize = 64 << 20;

/// The maximum size of a document with consolidated metadata that changes keep up to date, in bytes. Beyond it they remove
/// the consolidated metadata.
pub const MAX_CONSOLIDATED_SIZE: usize = 16 << 20;

/// The maximum size of a document that is too large to be read, and from which consolidated metadata can be removed, in
/// bytes.
pub const MAX_OVERSIZED_DOCUMENT: usize = 128 << 20;

/// The maximum memory of the parsed values of a metadata document in bytes, as estimated from their text. Attributes,
/// consolidated metadata and unknown members stay text and do not count.
pub const MAX_DOCUMENT_MEMORY: usize = 96 << 20;

/// The maximum number of chunks that a rectilinear grid lists, in all dimensions.
pub const MAX_LISTED_CHUNKS: u64 = 1 << 20;

/// The maximum number of codecs in a chain.
pub const MAX_CODECS: usize = 64;

/// The maximum nesting depth of shards.
pub const MAX_SHARD_DEPTH: usize = 8;

/// The maximum number of fields of a struct, including those of inner structs.
pub const MAX_FIELDS: usize = 4096;
