//! Skipped tests, and notes of tests on stderr.

use std::{fs::File, io::Write};

/// The environment variable with the path of a file that names the skipped tests, set by `scripts/test-runner`, which
/// prints it after the program's tests.
const SKIPPED: &str = "ZARRD_SKIPPED_TESTS";

/// Reports that a test was skipped, with its missing requirement.
///
/// # Panics
///
/// If `CI` is `true`, since CI must run every test.
pub fn skip(needs: &str) {
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        panic!("this test was skipped, which CI does not allow: {needs}");
    }
    eprintln!("SKIPPED: {needs}");
    let thread = std::thread::current();
    if let Some(path) = std::env::var_os(SKIPPED)
        && let Ok(mut file) = File::options().append(true).create(true).open(path)
    {
        // In one write, since other tests append to the file as well.
        let line = format!("{}: {}\n", thread.name().unwrap_or("a test"), needs.replace('\n', " "));
        let _ = file.write_all(line.as_bytes());
    }
}

/// True if this process runs as root; otherwise reports a skipped test.
pub fn is_root(why: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(&format!("{why} needs root"));
    }
    root
}

/// Prints a note of a passing test to stderr, shown with `--no-capture`.
pub fn note(line: impl std::fmt::Display) {
    eprintln!("{line}");
}
