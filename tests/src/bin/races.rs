//! Writes that race with changes and copies of their array: see [`zarrd_tests::races`].
//!
//! ```text
//! races [--race NAME[,…]] [--rounds N] [--abreast N] [--seed N] [--replay SEED] [--kill MILLISECONDS]
//!       [--index sled|redb] [--binary PATH] [--dir DIR]
//! ```
//!
//! Without `--race`, all races are run in order, each for `--rounds`: `delete`, `replace`, `shrink`, `delete-above`,
//! `copy`, `resize`. With `--replay`, every round uses that seed. `--abreast` is the number of concurrent rounds; with
//! `--kill`, the server is killed at a random time, at most this long after these rounds start to race.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    binary,
    races::{Ending, Others, Plan, Race, run},
};

#[tokio::main]
async fn main() -> ExitCode {
    let (plan, races, place) = arguments();
    println!("seed {}, {:?}, {} abreast", plan.seed, plan.end, plan.concurrency);
    let mut code = ExitCode::SUCCESS;
    for race in races {
        let dir = tempfile::tempdir_in(&place).expect("a temporary directory");
        let report = run(&Plan { race, ..plan.clone() }, dir.path()).await;
        print!("{report}");
        if !report.is_ok() {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn arguments() -> (Plan, Vec<Race>, PathBuf) {
    let mut plan = Plan::of(Race::Delete);
    let (mut races, mut place) = (Race::ALL.to_vec(), std::env::temp_dir());
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{name} takes a value"));
        let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--race" => races = value.split(',').map(race).collect(),
            "--rounds" => plan.rounds = number(),
            "--abreast" => plan.concurrency = number(),
            "--seed" => plan.seed = number(),
            "--replay" => (plan.seed, plan.others) = (number(), Others::Same),
            "--kill" => plan.end = Ending::Killed(Duration::from_millis(number())),
            "--index" => plan.index = value,
            "--binary" => binary::use_program(value.into()),
            "--dir" => place = value.into(),
            _ => panic!("unknown: {name}"),
        }
    }
    (plan, races, place)
}

fn race(name: &str) -> Race {
    Race::named(name).unwrap_or_else(|| {
        let known: Vec<&str> = Race::ALL.iter().map(|race| race.name()).collect();
        panic!("--race takes {}, not {name}", known.join(", "))
    })
}
