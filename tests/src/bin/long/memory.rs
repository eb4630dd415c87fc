//! The server's peak memory while it transfers large values: see [`zarrd_tests::memory`].
//!
//! ```text
//! memory [--gib N] [--downloads N] [--mib N] [--array-gib N] [--reduced-gib N] [--binary PATH] [--dir DIR]
//! ```
//!
//! Uploads and downloads one value of `--gib`, then downloads one of `--mib` with `--downloads` concurrent requests.
//! Then writes arrays of `--array-gib`, each with one request, with chunks in the order of the elements and with other
//! layouts. At last reduces an array of `--reduced-gib`, as a whole. A size of 0 leaves its part out.

use std::{path::PathBuf, process::ExitCode};

use zarrd_tests::{
    arguments::arguments,
    binary,
    memory::{Plan, run},
};

#[tokio::main]
pub(crate) async fn main() -> ExitCode {
    let (plan, directory) = options();
    let dir = tempfile::tempdir_in(directory).expect("a temporary directory");
    let report = run(plan, dir.path()).await;
    println!("{plan:?}\n{report}");
    if report.is_within_limit() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> (Plan, PathBuf) {
    let mut plan = Plan { large: 8 << 30, downloads: 64, download_size: 256 << 20, array: 10 << 30, reduced: 8 << 30 };
    let mut directory = std::env::temp_dir();
    for argument in arguments() {
        match argument.name.as_str() {
            "--gib" => plan.large = u64::from(argument.number::<u32>()) << 30,
            "--downloads" => plan.downloads = argument.number(),
            "--mib" => plan.download_size = u64::from(argument.number::<u32>()) << 20,
            "--array-gib" => plan.array = u64::from(argument.number::<u32>()) << 30,
            "--reduced-gib" => plan.reduced = u64::from(argument.number::<u32>()) << 30,
            "--binary" => binary::use_program(argument.value.into()),
            "--dir" => directory = argument.value.into(),
            _ => argument.reject(),
        }
    }
    (plan, directory)
}
