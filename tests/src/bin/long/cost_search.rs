//! The most expensive requests of each operation: see [`zarrd_tests::cost_search`].
//!
//! ```text
//! cost-search [--seconds N] [--seed N] [--only OPERATION[,OPERATION…]] [--binary PATH] [--dir DIR] [--replay GENOME]
//!             [--excess N]
//! ```
//!
//! Fails if a request uses more than 2 s of processor time or 64 MiB of memory, unless it transfers more than that or
//! decodes a larger chunk. `--replay` measures one request again, given the genome shown in the table; `--excess`
//! multiplies the limits, for a machine that runs other programs too.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use zarrd_tests::{
    arguments::arguments,
    binary,
    cost_search::{Genome, Harness, Operation, Outcome, Plan, RatedRequest, Trial, run},
};

struct Options {
    plan: Plan,
    directory: PathBuf,
    replay: Option<Genome>,
    excess: f64,
}

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let Options { plan, directory, replay, excess } = options();
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
    let too_much = match replay {
        Some(genome) => measure_again(genome, dir.path()).await,
        None => {
            let report = run(&plan, dir.path()).await;
            println!("{report}");
            report.excess() > excess
        }
    };
    if too_much { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Measures one request three times.
async fn measure_again(genome: Genome, dir: &Path) -> bool {
    let mut harness = Harness::new(dir, Duration::from_secs(60), genome.operation.effort()).await;
    let trial = Trial::of(&genome, 0);
    println!("{}", trial.request);
    for array in trial.array.iter().chain(&trial.coordinate) {
        println!("of {} of {} stored chunks of {:?}", array.document, array.stored, array.content);
    }
    let mut too_much = true;
    for _ in 0..3 {
        let outcome = harness.measure(&genome).await;
        if let Outcome::Measurement(measured) = outcome {
            println!("{}", RatedRequest { genome: genome.clone(), measured });
            too_much &= measured.exceeds_limit();
        } else {
            println!("{outcome:?}");
        }
    }
    too_much
}

fn options() -> Options {
    let mut plan = Plan { operations: Operation::ALL.to_vec(), time: Duration::from_secs(60), seed: rand::random() };
    let (mut directory, mut replay, mut excess) = (std::env::temp_dir(), None, 1.0);
    for argument in arguments() {
        match argument.name.as_str() {
            "--seconds" => plan.time = Duration::from_secs(argument.number()),
            "--seed" => plan.seed = argument.number(),
            "--only" => plan.operations = argument.value.split(',').map(operation).collect(),
            "--binary" => binary::use_program(argument.value.into()),
            "--excess" => excess = argument.number(),
            "--dir" => directory = argument.value.into(),
            "--replay" => replay = Some(argument.value.parse().unwrap_or_else(|error| panic!("--replay: {error}"))),
            _ => argument.reject(),
        }
    }
    Options { plan, directory, replay, excess }
}

fn operation(name: &str) -> Operation {
    name.parse().unwrap_or_else(|error| panic!("--only: {error}: {:?}", Operation::ALL.map(Operation::name)))
}
