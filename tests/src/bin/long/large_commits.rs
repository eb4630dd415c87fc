//! Large commits and erases during small requests of other clients: see [`zarrd_tests::large_commits`].
//!
//! ```text
//! large-commits [--index sled|redb] [--chunks N] [--keys N] [--watch SECONDS] [--dir DIR]
//! ```

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_store_local::IndexKind;
use zarrd_tests::{
    arguments::arguments,
    large_commits::{Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let (plan, directory) = options();
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
    println!("{plan:?}\n{}", run(plan, &dir.path().join("store")).await);
    ExitCode::SUCCESS
}

fn options() -> (Plan, PathBuf) {
    let watch = Duration::from_secs(10);
    let mut plan = Plan { index: IndexKind::Sled, chunks: 99_000, keys: 3_000_000, watch };
    let mut directory = std::env::temp_dir();
    for argument in arguments() {
        match argument.name.as_str() {
            "--index" if argument.value == "redb" => plan.index = IndexKind::Redb,
            "--index" => plan.index = IndexKind::Sled,
            "--chunks" => plan.chunks = argument.number(),
            "--keys" => plan.keys = argument.number(),
            "--watch" => plan.watch = Duration::from_secs(argument.number()),
            "--dir" => directory = argument.value.into(),
            _ => argument.reject(),
        }
    }
    (plan, directory)
}
