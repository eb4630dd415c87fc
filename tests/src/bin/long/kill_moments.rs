//! Signals at random moments of opening, recovering and closing: see [`zarrd_tests::kill_moments`].
//!
//! ```text
//! kill-moments [--index sled|redb|both] [--rounds N] [--command serve|ls|import|copy|all] [--seed N]
//! ```
//!
//! Exits with 1 if a start failed, and panics if data was lost.

use std::process::ExitCode;

use zarrd_tests::{
    arguments::arguments,
    kill_moments::{ALL, Interrupted, Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for plan in plans() {
        println!("{plan:?}");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let report = run(&plan, dir.path()).await;
        println!(
            "{}: {} rounds; failed opens: {}; acknowledged writes lost: 0 of {}; {} keys read; {} signals before the end, \
             {} after",
            plan.index,
            plan.rounds,
            report.refusals.len(),
            report.acknowledged,
            report.checked,
            report.interrupted,
            report.too_late
        );
        for refusal in report.refusals {
            println!("failed: {refusal}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn plans() -> Vec<Plan> {
    let mut indexes = vec!["sled", "redb"];
    let (mut rounds, mut commands, mut seed) = (100, ALL.to_vec(), rand::random());
    for argument in arguments() {
        match (argument.name.as_str(), argument.value.as_str()) {
            ("--index", "sled") => indexes = vec!["sled"],
            ("--index", "redb") => indexes = vec!["redb"],
            ("--index", "both") | ("--command", "all") => {}
            ("--command", "serve") => commands = vec![Interrupted::Serve],
            ("--command", "ls") => commands = vec![Interrupted::Ls],
            ("--command", "import") => commands = vec![Interrupted::Import],
            ("--command", "copy") => commands = vec![Interrupted::Copy],
            ("--rounds", _) => rounds = argument.number(),
            ("--seed", _) => seed = argument.number(),
            _ => argument.reject(),
        }
    }
    let plan = |index: &str| Plan { index: index.to_owned(), rounds, least: (0, 0), commands: commands.clone(), seed };
    indexes.into_iter().map(plan).collect()
}
