//! `kill -9` in a loop: see [`zarrd_tests::kill_loop`].
//!
//! ```text
//! kill-loop [--index sled|redb] [--rounds N] [--writers N] [--keys N] [--seed N]
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use zarrd_tests::kill_loop::{Plan, run};

#[tokio::main]
async fn main() {
    let plan = plan();
    println!("{plan:?}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let report = run(&plan, dir.path()).await;
    println!("acknowledged writes lost: 0; failed opens: 0; {report:?}");
}

fn plan() -> Plan {
    let mut plan = Plan { rounds: 50, ..Plan::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--index" => plan.index = value,
            "--rounds" => plan.rounds = number(),
            "--writers" => plan.writers = number(),
            "--keys" => plan.keys = number(),
            "--seed" => plan.seed = value.parse().expect("--seed takes a number"),
            _ => panic!("unknown: {name}"),
        }
    }
    plan
}
