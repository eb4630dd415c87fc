//! What is fuzzed, as plain functions: a fuzzer calls them with bytes of its making, and a test with those of the corpus.

#![allow(clippy::expect_used, clippy::panic, reason = "a finding is a panic")]

mod chunk;
mod decode;
mod document_edit;
mod elements;
mod metadata;
mod request;
mod selection;
mod shard_index;
mod zom;

pub use decode::decode;
pub use document_edit::document_edit;
pub use elements::elements;
pub use metadata::metadata;
pub use request::request;
pub use selection::selection;
pub use shard_index::shard_index;
pub use zom::zom;
