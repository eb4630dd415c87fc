//! The cost of a read.

/// The stored values that a read needs, as far as they are known before it begins: the chunks or shards that its
/// selection touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCost {
    /// The number of these.
    pub chunks: u64,
    /// Those that are stored; `None` if it is not known of all.
    pub stored: Option<StoredCost>,
}

/// The stored values among those that a read needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredCost {
    /// Their number.
    pub chunks: u64,
    /// Their size in bytes. Of shards and uncompressed chunks, only parts may be read.
    pub bytes: u64,
}
