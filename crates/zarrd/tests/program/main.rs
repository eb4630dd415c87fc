//! The real program, run as people and scripts run it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod config;
mod endless;
mod help;
mod looking;
mod moving;
mod runner;
mod serving;
mod tree;
