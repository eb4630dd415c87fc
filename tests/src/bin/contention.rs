//! Concurrent writers of overlapping regions of one array: see [`zarrd_tests::contention`].
//!
//! ```text
//! contention [--index sled|redb] [--layout raw|zstd|sharded] [--writers N] [--readers N] [--seconds N] [--kills N]
//!            [--seed N]
//! ```
//!
//! Without `--layout`, all three layouts are run in order.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use std::time::Duration;

use zarrd_tests::contention::{Layout, Plan, run};

#[tokio::main]
async fn main() {
    let (plan, layouts) = arguments();
    for layout in layouts {
        let plan = Plan { layout, ..plan.clone() };
        println!("{plan:?}");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let report = run(&plan, dir.path()).await;
        println!("lost, torn or mixed writes: 0; {report:?}");
    }
}

fn arguments() -> (Plan, Vec<Layout>) {
    let (mut plan, mut layouts) = (Plan::default(), Layout::ALL.to_vec());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--index" => plan.index = value,
            "--layout" => layouts = vec![layout(&value)],
            "--writers" => plan.writers = number().into(),
            "--readers" => plan.readers = number(),
            "--seconds" => plan.time = Duration::from_secs(number().into()),
            "--kills" => plan.kills = number(),
            "--seed" => plan.seed = value.parse().expect("--seed takes a number"),
            _ => panic!("unknown: {name}"),
        }
    }
    (plan, layouts)
}

fn layout(name: &str) -> Layout {
    match name {
        "raw" => Layout::Raw,
        "zstd" => Layout::Zstd,
        "sharded" => Layout::Sharded,
        _ => panic!("--layout raw, zstd or sharded, not {name}"),
    }
}
