//! Tests that a machine cannot run, and other things that tests say.

/// Says that a test was skipped and what it needs.
///
/// # Panics
///
/// Where `CI` is `true`: there, everything must run.
pub fn skip(needs: &str) {
    if std::env::var("CI").is_ok_and(|ci| ci == "true") {
        panic!("this test was skipped, which CI does not allow: {needs}");
    }
    eprintln!("SKIPPED: {needs}");
}

/// Whether this process has root's rights; says that the test was skipped where it does not.
pub fn is_root(why: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(&format!("{why} needs root"));
    }
    root
}

/// Says something that is worth knowing of a test that passes: on stderr, which is shown with `--no-capture`.
pub fn say(line: impl std::fmt::Display) {
    eprintln!("{line}");
}
