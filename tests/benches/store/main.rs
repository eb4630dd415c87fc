//! The benchmark of the store: zarrd beside its peers, in the same run on the same machine.
//!
//! ```text
//! cargo bench -p zarrd-tests --bench store -- [get] [put] [list] [list-10m] [start] [--index sled|redb]
//! ```
//!
//! `get` needs nginx. Each figure is the median of interleaved runs, given with the least and the most; a ratio is the
//! median of the ratios of neighbouring runs. Nothing here passes or fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of its own")]

#[path = "../common/mod.rs"]
mod common;
mod get;
mod list;
mod put;
mod start;

use store_local::IndexKind;

fn main() {
    // cargo passes `--bench`.
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut index = IndexKind::Sled;
    if let Some(at) = arguments.iter().position(|argument| argument == "--index") {
        index = match arguments.get(at + 1).map(String::as_str) {
            Some("sled") => IndexKind::Sled,
            Some("redb") => IndexKind::Redb,
            other => panic!("--index sled or --index redb, not {other:?}"),
        };
        arguments.drain(at..at + 2);
    }
    if arguments.is_empty() {
        arguments = ["get", "put", "list", "start"].map(str::to_owned).to_vec();
    }
    for section in &arguments {
        match section.as_str() {
            "get" => get::run(index),
            "put" => put::run(index),
            "list" => list::run(index, 1_000_000),
            "list-10m" => list::run(IndexKind::Redb, 10_000_000),
            "start" => start::run(index, 1_000_000),
            other => panic!("no section {other}"),
        }
    }
}
