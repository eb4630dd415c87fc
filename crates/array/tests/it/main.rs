//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod append;
mod common;
mod concurrent_reads;
mod hierarchies;
mod key_by_key;
mod latency;
mod read;
mod read_only;
mod reductions;
mod resolve;
mod shared_reads;
mod trusted;
mod unlisted;
mod write;
mod write_conflicts;
