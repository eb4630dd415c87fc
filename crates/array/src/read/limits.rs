//! Limits of what a read fetches at a time.

/// The number of jobs of one read of a distant store that run at a time, most of which wait for an answer.
pub(crate) const MAX_DISTANT_JOBS: u64 = 64;

/// The most bytes that are fetched together from a distant store.
pub(crate) const MAX_DISTANT_FETCH: u64 = 8 << 20;

/// The largest gap between two ranges that are fetched together from a distant store, in bytes.
pub(crate) const MAX_DISTANT_GAP: u64 = 512 << 10;

/// The memory of indexes of shards that are read ahead, in bytes.
pub(crate) const LOOKAHEAD_MEMORY: u64 = 4 << 20;

/// The memory of a job that fetches parts of an uncompressed chunk, in bytes.
pub(crate) const MAX_PARTIAL_FETCH: u64 = 4 << 20;
