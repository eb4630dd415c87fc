//! Well-behaved and hostile clients for a long time: see [`zarrd_tests::soak`].
//!
//! ```text
//! soak [--seconds N] [--calm SECONDS] [--seed N] [--binary PATH] [--dir DIR]
//! ```
//!
//! Fails if a response is wrong or missing, if the server has unreleased resources in the end, or if it uses more than
//! 300 MiB after it was idle for `--calm`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    arguments::arguments,
    binary,
    soak::{Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let (plan, directory) = options();
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
    let report = run(plan, dir.path()).await;
    println!("{plan:?}\n{report}");
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> (Plan, PathBuf) {
    let mut plan = Plan { time: Duration::from_secs(3600), calm: Duration::from_secs(60), seed: rand::random() };
    let mut directory = std::env::temp_dir();
    for argument in arguments() {
        match argument.name.as_str() {
            "--seconds" => plan.time = Duration::from_secs(argument.number()),
            "--calm" => plan.calm = Duration::from_secs(argument.number()),
            "--seed" => plan.seed = argument.number(),
            "--binary" => binary::use_program(argument.value.into()),
            "--dir" => directory = argument.value.into(),
            _ => argument.reject(),
        }
    }
    (plan, directory)
}
