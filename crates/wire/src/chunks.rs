//! The JSON of the chunks that a selection touches.

use serde::{Deserialize, Serialize};

/// The chunks of an array that a selection touches: a page of them, or their numbers in bins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkMap {
    /// The array's shape.
    pub shape: Vec<u64>,
    /// The number of chunks along each dimension of the array.
    pub grid: Vec<u64>,
    /// The shape of a chunk; `None` for chunks of different lengths.
    pub chunk_shape: Option<Vec<u64>>,
    /// The shape of the inner chunks, if the chunks are shards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_chunk_shape: Option<Vec<u64>>,
    /// The decoded size of a chunk, in bytes; `None` for chunks or elements of different lengths.
    pub chunk_bytes: Option<u64>,
    /// The number of chunks that the selection touches.
    pub touched: u64,
    /// Some of these chunks, in C order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<Vec<Chunk>>,
    /// The cursor of the next page; `None` for the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The numbers of stored chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<Bins>,
}

/// A chunk, or the shard that is stored as one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Its index in the grid.
    pub index: Vec<u64>,
    /// The key under which it is stored, or would be; `None` if that would be too long.
    pub key: Option<String>,
    /// Its stored size, in bytes; `None` if it is not stored.
    pub bytes: Option<u64>,
}

/// Stored chunks in bins over up to two dimensions. All chunks along other dimensions are in one bin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// The dimensions of the bins.
    pub axes: Vec<BinAxis>,
    /// The number of touched chunks along all other dimensions.
    pub others: u64,
    /// The number of stored chunks in each bin, in C order.
    pub stored: Vec<u64>,
    /// Their size in bytes.
    pub bytes: Vec<u64>,
}

/// The bins along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinAxis {
    /// The number of the dimension in the array.
    pub dimension: usize,
    /// The index of the first touched chunk in each bin.
    pub starts: Vec<u64>,
    /// The number of touched chunks in each bin.
    pub chunks: Vec<u64>,
}
