//! Tests of the program: each runs it as a process in a directory of its own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod broken_nodes;
mod config;
mod elements;
mod endless_listings;
mod files;
mod help;
mod logins;
mod request_logs;
mod runner;
mod serve;
mod tls;
mod tokens;
mod transfers;
