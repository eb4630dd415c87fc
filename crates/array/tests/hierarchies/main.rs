//! Reading and changing hierarchies of all dialects in an in-memory store.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod concurrency;
mod consolidated_metadata;
mod convert;
mod crash_recovery;
mod create;
mod describe;
mod erase;
mod isolation;
mod pagination;
mod patch;
mod replaced;
mod round_trip;
mod store_requests;
mod test_store;
