//! The integration tests of this crate, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod changes;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod listing;
mod listing_states;
mod metadata_reader;
mod reading;
mod received;
mod writing;
mod writing_conformance;
mod writing_faults;
mod writing_model;
