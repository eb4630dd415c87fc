//! The long tests, each a command with arguments of its own, which its module describes.
//!
//! ```text
//! cargo run --release -p zarrd-tests -- races --rounds 10000
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "tests report to the terminal")]

mod contention;
mod cost_search;
mod crash_states;
mod crowds;
mod foreign_arrays;
mod full_disk;
mod garage_cluster;
mod kill_loop;
mod kill_moments;
mod large_commits;
mod memory;
mod power_loss;
mod races;
mod shared_folder;
mod soak;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match name.as_str() {
        "contention" => contention::main(),
        "cost-search" => cost_search::main(),
        "crash-states" => crash_states::main(),
        "crowds" => crowds::main(),
        "foreign-arrays" => foreign_arrays::main(),
        "full-disk" => full_disk::main(),
        "garage-cluster" => garage_cluster::main(),
        "kill-loop" => kill_loop::main(),
        "kill-moments" => kill_moments::main(),
        "large-commits" => large_commits::main(),
        "memory" => memory::main(),
        "power-loss" => power_loss::main(),
        "races" => races::main(),
        "shared-folder" => shared_folder::main(),
        "soak" => soak::main(),
        _ => {
            eprintln!(
                "long tests: contention, cost-search, crash-states, crowds, foreign-arrays, full-disk, garage-cluster, kill-loop, kill-moments, large-commits, memory, power-loss, races, shared-folder, soak"
            );
            ExitCode::from(2)
        }
    }
}
