//! Random operations on a full disk: see [`zarrd_tests::full_disk`].
//!
//! ```text
//! full-disk [--index sled|redb|both] [--disk tmpfs|ext4] [--mib N] [--value BYTES] [--steps N] [--seed N]
//! ```
//!
//! Exits with 1 if an expectation was violated, and with 77 if no disk can be mounted.

use std::process::ExitCode;

use zarrd_tests::{
    arguments::arguments,
    disk::{FileSystem, SmallDisk},
    full_disk::{Plan, run},
};

/// The exit code for "skipped".
const SKIPPED: u8 = 77;

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let (kind, mib, plans) = plans();
    for plan in plans {
        println!("{kind:?} of {mib} MiB: {plan:?}");
        let Some(disk) = SmallDisk::mount(kind, mib) else { return SKIPPED.into() };
        let mut report = run(&plan, &disk).await;
        let errors = std::mem::take(&mut report.errors);
        println!("{} of {mib} MiB: {} errors; {report:?}", plan.index, errors.len());
        for error in errors {
            println!("error: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn plans() -> (FileSystem, u32, Vec<Plan>) {
    let mut indexes = vec!["sled", "redb"];
    let (mut kind, mut mib, mut value_bytes, mut steps, mut seed) = (FileSystem::Ext4, 64, 1024, 100, rand::random());
    for argument in arguments() {
        match (argument.name.as_str(), argument.value.as_str()) {
            ("--index", "sled") => indexes = vec!["sled"],
            ("--index", "redb") => indexes = vec!["redb"],
            ("--index", "both") => {}
            ("--disk", "tmpfs") => kind = FileSystem::Tmpfs,
            ("--disk", "ext4") => kind = FileSystem::Ext4,
            ("--mib", _) => mib = argument.number(),
            ("--argument.value", _) => value_bytes = argument.number(),
            ("--steps", _) => steps = argument.number(),
            ("--seed", _) => seed = argument.number(),
            _ => argument.reject(),
        }
    }
    let plan = |index: &str| Plan { index: index.to_owned(), value_bytes, steps, seed };
    (kind, mib, indexes.into_iter().map(plan).collect())
}
