//! Well-behaved and hostile clients for a long time: see [`zarrd_tests::soak`].
//!
//! ```text
//! soak [--seconds N] [--calm SECONDS] [--seed N] [--binary PATH] [--dir DIR]
//! ```
//!
//! Fails if a response is wrong or missing, if the server has unreleased resources in the end, or if it uses more than
//! 300 MiB after it was idle for `--calm`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    binary,
    soak::{Plan, run},
};

#[tokio::main]
async fn main() -> ExitCode {
    let (plan, place) = arguments();
    let dir = tempfile::tempdir_in(place).expect("a temporary directory");
    let report = run(plan, dir.path()).await;
    println!("{plan:?}\n{report}");
    if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn arguments() -> (Plan, PathBuf) {
    let mut plan = Plan { time: Duration::from_secs(3600), calm: Duration::from_secs(60), seed: rand::random() };
    let mut place = std::env::temp_dir();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--seconds" => plan.time = Duration::from_secs(number()),
            "--calm" => plan.calm = Duration::from_secs(number()),
            "--seed" => plan.seed = number(),
            "--binary" => binary::use_program(value.into()),
            "--dir" => place = value.into(),
            _ => panic!("unknown: {name}"),
        }
    }
    (plan, place)
}
