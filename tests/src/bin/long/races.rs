//! Writes that race with changes and copies of their array: see [`zarrd_tests::races`].
//!
//! ```text
//! races [--race NAME[,…]] [--rounds N] [--abreast N] [--seed N] [--replay SEED] [--kill MILLISECONDS]
//!       [--index sled|redb|memory|folder] [--engines one|two|s3|bucket|losing-bucket] [--binary PATH] [--dir DIR]
//! ```
//!
//! Without `--race`, all races are run in order, each for `--rounds`: `delete`, `replace`, `shrink`, `delete-above`,
//! `copy`, `resize`, `convert`; with `--engines s3`, `bucket` or `losing-bucket`, or `--index folder`, `overlap` and `reshape`. With `--replay`, every round uses that seed. `--abreast` is the number of concurrent rounds; with
//! `--kill`, the server is killed at a random time, at most this long after these rounds start to race. `--engines two`
//! races against two engines over one store, in this process. The others are two processes of the program over one bucket: the
//! S3 of a third one, or a server of this process, which loses requests and answers as a `losing-bucket`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use zarrd_tests::{
    arguments::arguments,
    binary,
    races::{BucketOf, Checks, Ending, Engines, OtherSeeds, Plan, Race, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let (plan, races, directory) = options();
    println!("seed {}, {:?}, {:?}, {} abreast", plan.seed, plan.engines, plan.end, plan.concurrency);
    let mut code = ExitCode::SUCCESS;
    for race in races {
        let dir = tempfile::tempdir_in(&directory).expect("a temporary directory");
        let report = run(&Plan { race, ..plan.clone() }, dir.path()).await;
        print!("{report}");
        if !report.is_ok() {
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn options() -> (Plan, Vec<Race>, PathBuf) {
    let mut plan = Plan::of(Race::Delete);
    let (mut races, mut directory) = (Vec::new(), std::env::temp_dir());
    for argument in arguments() {
        match argument.name.as_str() {
            "--race" => races = argument.value.split(',').map(race).collect(),
            "--rounds" => plan.rounds = argument.number(),
            "--abreast" => plan.concurrency = argument.number(),
            "--seed" => plan.seed = argument.number(),
            "--replay" => (plan.seed, plan.other_seeds) = (argument.number(), OtherSeeds::Same),
            "--kill" => plan.end = Ending::Killed(Duration::from_millis(argument.number())),
            "--engines" if argument.value == "two" => plan.engines = Engines::Two(Checks::All),
            "--engines" if argument.value == "s3" => plan.engines = Engines::Bucket(BucketOf::Zarrd),
            "--engines" if argument.value == "bucket" => plan.engines = Engines::Bucket(BucketOf::Tests),
            "--engines" if argument.value == "losing-bucket" => {
                plan.engines = Engines::Bucket(BucketOf::TestsWithLosses);
            }
            "--index" => plan.index = argument.value,
            "--binary" => binary::use_program(argument.value.into()),
            "--dir" => directory = argument.value.into(),
            _ => argument.reject(),
        }
    }
    if races.is_empty() {
        let is_keyed = matches!(plan.engines, Engines::Bucket(_)) || plan.index == "folder";
        races = if is_keyed { Race::KEYED.to_vec() } else { Race::ALL.to_vec() };
    }
    (plan, races, directory)
}

fn race(name: &str) -> Race {
    Race::named(name).unwrap_or_else(|| {
        let known: Vec<&str> = Race::ALL.iter().chain(&Race::KEYED).map(|race| race.name()).collect();
        panic!("--race takes {}, not {name}", known.join(", "))
    })
}
