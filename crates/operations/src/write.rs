//! Writes of elements.

use zarrd_meta::relation::DialectRelation;
use zarrd_store::Version;

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// The new version of the node.
    pub version: Option<Version>,
    /// The new shape of the array, or of the view.
    pub shape: Vec<u64>,
    /// The number of chunks (of a sharded array: shards) written.
    pub chunks_written: u64,
    /// The number of chunks erased, or not stored, because they are full of the fill value.
    pub chunks_erased: u64,
    /// The number of chunks that were encoded again because another writer had changed them.
    pub conflicts_retried: u64,
    /// The relation that the documents of v2 and v3 at the path had before the write, which makes two shapes equal;
    /// `None` if one of them has none, or if looking would take a request.
    pub relation: Option<DialectRelation>,
}
