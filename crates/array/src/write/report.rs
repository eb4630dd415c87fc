//! The result of a write.

use store::Version;

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteReport {
    /// The version that the node has now.
    pub version: Option<Version>,
    /// The array's shape now, as people see it.
    pub shape: Vec<u64>,
    /// How many chunks (of a sharded array: shards) were stored.
    pub chunks_written: u64,
    /// How many were erased, or left out, since they are full of the fill value.
    pub chunks_erased: u64,
    /// How many had to be done again because somebody else wrote them meanwhile.
    pub conflicts_retried: u64,
}
