//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod batches;
mod cached_store;
mod conformance;
mod forgetful;
mod keyed;
mod mounts;
mod pieces;
mod uploads;
