//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod arrays;
mod conformance;
mod nodes;
mod refusals;
mod scripted;
mod shares;
mod test_server;
mod zarrs;
