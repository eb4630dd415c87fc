//! The benchmark of the store: zarrd beside its peers, in the same run on the same machine.
//!
//! ```text
//! cargo bench -p zarrd-tests --bench store -- [get] [put] [sustained] [churn] [list] [list-10m] [start] \
//!     [--index sled|redb] [--seconds N]
//! ```
//!
//! `get` needs nginx. `sustained` and `churn` take `--seconds` for each of their parts, 60 if not said. Each figure is the median of interleaved runs, given with the least and the most; a ratio is the
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

mod churn;
#[path = "../common/mod.rs"]
mod common;
mod get;
mod list;
mod put;
mod start;
mod sustained;

use std::time::Duration;

use store_local::IndexKind;

fn main() {
    // cargo passes `--bench`.
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let index = match option(&mut arguments, "--index").as_deref() {
        Some("sled") | None => IndexKind::Sled,
        Some("redb") => IndexKind::Redb,
        Some(other) => panic!("--index sled or --index redb, not {other:?}"),
    };
    let seconds = option(&mut arguments, "--seconds").map_or(60, |seconds| seconds.parse().expect("--seconds N"));
    let time = Duration::from_secs(seconds);
    if arguments.is_empty() {
        arguments = ["get", "put", "list", "start"].map(str::to_owned).to_vec();
    }
    for section in &arguments {
        match section.as_str() {
            "get" => get::run(index),
            "put" => put::run(index),
            "sustained" => sustained::run(index, time),
            "churn" => churn::run(index, time),
            "list" => list::run(index, 1_000_000),
            "list-10m" => list::run(IndexKind::Redb, 10_000_000),
            "start" => start::run(index, 1_000_000),
            other => panic!("no section {other}"),
        }
    }
}

/// Takes an option and its value out of the arguments.
fn option(arguments: &mut Vec<String>, name: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.drain(at..at + 2).nth(1)
}
