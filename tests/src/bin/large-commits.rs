//! Large commits and erases during small requests of other clients: see [`zarrd_tests::large_commits`].
//!
//! ```text
//! large-commits [--index sled|redb] [--chunks N] [--keys N] [--watch SECONDS] [--dir DIR]
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use std::{path::PathBuf, time::Duration};

use store_local::IndexKind;
use zarrd_tests::large_commits::{Plan, run};

#[tokio::main]
async fn main() {
    let (plan, place) = arguments();
    let dir = tempfile::tempdir_in(place).expect("a temporary directory");
    println!("{plan:?}\n{}", run(plan, &dir.path().join("store")).await);
}

fn arguments() -> (Plan, PathBuf) {
    let watch = Duration::from_secs(10);
    let mut plan = Plan { index: IndexKind::Sled, chunks: 99_000, keys: 3_000_000, watch };
    let mut place = std::env::temp_dir();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--index" if value == "redb" => plan.index = IndexKind::Redb,
            "--index" => plan.index = IndexKind::Sled,
            "--chunks" => plan.chunks = number(),
            "--keys" => plan.keys = number(),
            "--watch" => plan.watch = Duration::from_secs(number()),
            "--dir" => place = value.into(),
            _ => panic!("unknown: {name}"),
        }
    }
    (plan, place)
}
