//! What is fuzzed, as plain functions: a fuzzer calls them with bytes of its making, and a test with those of the corpus.

#![allow(clippy::expect_used, clippy::panic, reason = "a finding is a panic")]

mod request;
mod selection;

pub use request::request;
pub use selection::selection;
