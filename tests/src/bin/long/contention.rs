//! Concurrent writers of overlapping regions of one array: see [`zarrd_tests::contention`].
//!
//! ```text
//! contention [--index sled|redb] [--layout raw|zstd|sharded] [--writers N] [--readers N] [--seconds N] [--kills N]
//!            [--seed N]
//! ```
//!
//! Without `--layout`, all three layouts are run in order.

use std::{process::ExitCode, time::Duration};

use zarrd_tests::{
    arguments::arguments,
    contention::{Layout, Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let (plan, layouts) = options();
    for layout in layouts {
        let plan = Plan { layout, ..plan.clone() };
        println!("{plan:?}");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let report = run(&plan, dir.path()).await;
        println!("lost, torn or mixed writes: 0; {report:?}");
    }
    ExitCode::SUCCESS
}

fn options() -> (Plan, Vec<Layout>) {
    let (mut plan, mut layouts) = (Plan::default(), Layout::ALL.to_vec());
    for argument in arguments() {
        match argument.name.as_str() {
            "--index" => plan.index = argument.value,
            "--layout" => layouts = vec![layout(&argument.value)],
            "--writers" => plan.writers = argument.number::<u32>().into(),
            "--readers" => plan.readers = argument.number(),
            "--seconds" => plan.time = Duration::from_secs(argument.number::<u32>().into()),
            "--kills" => plan.kills = argument.number(),
            "--seed" => plan.seed = argument.number(),
            _ => argument.reject(),
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
