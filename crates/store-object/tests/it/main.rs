//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod listing;
mod lost_answers;
mod memory;
mod opening;
mod probing;
mod reading;
mod writing;
