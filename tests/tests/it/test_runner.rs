//! `scripts/test-runner` says what cargo's harness does not.

use std::{fs, process::Command};

use zarrd_tests::binary::workspace;

/// Runs the tests of a crate with this source through the script; returns stdout and stderr.
fn run_tests(source: &str) -> (String, String) {
    let dir = tempfile::Builder::new().prefix("with space ").tempdir().unwrap();
    fs::create_dir(dir.path().join("src")).unwrap();
    let manifest = "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(dir.path().join("Cargo.toml"), manifest).unwrap();
    fs::write(dir.path().join("src/lib.rs"), source).unwrap();
    let runner = format!("target.'cfg(unix)'.runner = [{:?}]", workspace().join("scripts/test-runner"));
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--offline", "--lib", "--config", &runner]).current_dir(dir.path());
    cargo.env("RUST_TEST_THREADS", "2").env("XDG_CACHE_HOME", dir.path()).env("LC_ALL", "C");
    let output = cargo.env_remove("CARGO_TARGET_DIR").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn tests_that_ran_when_their_program_aborted_are_named() {
    let (stdout, stderr) = run_tests(
        "#[test] fn a_passes() {}
         #[test] fn b_aborts() { std::thread::sleep(std::time::Duration::from_millis(300)); std::process::abort() }
         #[test] fn c_waits() { std::thread::sleep(std::time::Duration::from_secs(60)) }
         #[test] fn d_never_begins() {}",
    );
    assert!(stdout.contains("test a_passes ... ok"), "{stdout}");
    let named = stderr.split("Not finished, and perhaps running:\n").nth(1).unwrap_or_else(|| panic!("{stderr}"));
    let named: Vec<&str> = named.lines().take_while(|line| line.starts_with("    ")).map(str::trim).collect();
    assert_eq!(named, ["b_aborts", "c_waits"]);
}

#[test]
fn skipped_tests_are_counted_and_named() {
    let (stdout, _) = run_tests(
        r#"#[cfg(test)]
           fn skip() {
               use std::io::Write;
               let path = std::env::var_os("ZARRD_SKIPPED_TESTS").unwrap();
               let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
               let line = format!("{}: Node 20\n", std::thread::current().name().unwrap());
               file.write_all(line.as_bytes()).unwrap();
           }
           #[test] fn needs_node() { skip() }
           #[test] fn also_needs_node() { skip() }"#,
    );
    let named = stdout.split("SKIPPED in sample: 2\n").nth(1).unwrap_or_else(|| panic!("{stdout}"));
    let named: Vec<&str> = named.lines().take(2).map(str::trim).collect();
    assert_eq!(named, ["also_needs_node: Node 20", "needs_node: Node 20"]);
}
