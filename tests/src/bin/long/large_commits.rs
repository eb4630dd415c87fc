//! Large commits and erases during small requests of other clients: see [`zarrd_tests::large_commits`].
//!
//! ```text
//! large-commits [--index sled|redb] [--chunks N] [--keys N] [--watch SECONDS] [--max-growth MIB]
//!     [--binary PATH] [--dir DIR]
//! ```
//!
//! It fails if the server's memory grew by more than `--max-growth`, 300 MiB by default.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_store_local::IndexKind;
use zarrd_tests::{
    arguments::arguments,
    binary,
    large_commits::{Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let (plan, max_growth, directory) = options();
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
    let report = run(plan, &dir.path().join("store")).await;
    println!("{plan:?}\n{report}");
    if report.peak <= report.idle + max_growth { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> (Plan, u64, PathBuf) {
    let watch = Duration::from_secs(10);
    let mut plan = Plan { index: IndexKind::Sled, chunks: 99_000, keys: 3_000_000, watch };
    let mut max_growth = 300 << 20;
    let mut directory = std::env::temp_dir();
    for argument in arguments() {
        match argument.name.as_str() {
            "--index" if argument.value == "redb" => plan.index = IndexKind::Redb,
            "--index" => plan.index = IndexKind::Sled,
            "--chunks" => plan.chunks = argument.number(),
            "--keys" => plan.keys = argument.number(),
            "--watch" => plan.watch = Duration::from_secs(argument.number()),
            "--max-growth" => max_growth = u64::from(argument.number::<u32>()) << 20,
            "--binary" => binary::use_program(argument.value.into()),
            "--dir" => directory = argument.value.into(),
            _ => argument.reject(),
        }
    }
    (plan, max_growth, directory)
}
