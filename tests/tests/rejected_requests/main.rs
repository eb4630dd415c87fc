//! Rejected changes: each one is answered with the problem that locates the error, and nothing is written.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod elements;
mod nodes;
mod rejection;
