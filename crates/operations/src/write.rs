//! Writes of elements.

use std::collections::BTreeMap;

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
    /// `None` if one of them has none, or if reading them would take a request.
    pub relation: Option<DialectRelation>,
}

/// The result of an append to the arrays of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendReport {
    /// The name of the dimension.
    pub dimension: String,
    /// Its extent before.
    pub before: u64,
    /// Its extent now.
    pub after: u64,
    /// The shapes of the arrays now, by name.
    pub arrays: BTreeMap<String, Vec<u64>>,
    /// The number of chunks (of a sharded array: shards) written.
    pub chunks_written: u64,
    /// The number of chunks erased, or not stored, because all their elements are the fill value.
    pub chunks_erased: u64,
    /// The number of attempts that other writers prevented.
    pub conflicts_retried: u64,
}
