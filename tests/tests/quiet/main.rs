//! Tests that measure time, or memory that grows while the disk is busy with other programs. `scripts/test-runner` runs
//! this program alone, and one test at a time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod interrupted_erase;
mod large_commits;
mod request_cost;
