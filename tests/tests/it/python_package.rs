//! The Python package of `clients/python`: its own tests, against the program under test.
//!
//! `ZARRD_EXAMPLES` sets the number of cases that each property test tries.

use std::process::Command;

use zarrd_tests::{
    binary::{workspace, zarrd},
    python::python_with_clients,
    skip::note,
};

/// The cases of each property test, which are few so that the test takes a minute.
const EXAMPLES: &str = "4";

#[test]
fn python_package_passes_its_own_tests() {
    let Some(python) = python_with_clients() else { return };
    let package = workspace().join("clients/python");
    let scratch = tempfile::tempdir().unwrap();
    let installed = scratch.path().join("installed");
    let mut install = python.command();
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]);
    install.args(["--no-build-isolation", "--target"]).arg(&installed).arg(&package);
    run(&mut install);

    let examples = std::env::var("ZARRD_EXAMPLES").unwrap_or_else(|_| EXAMPLES.to_owned());
    let mut tests = python.command();
    // What a failing test leaves stays out of the sources.
    tests.args(["-m", "pytest", "-p", "no:cacheprovider", "-rs", "--basetemp"]).arg(scratch.path().join("tests"));
    tests.current_dir(&package).env("PYTHONPATH", &installed).env("ZARRD_BINARY", zarrd());
    tests.env("ZARRD_EXAMPLES", examples).env("HYPOTHESIS_STORAGE_DIRECTORY", scratch.path().join("hypothesis"));
    let output = run(&mut tests);
    note(output.trim_end());
    assert!(output.contains(" passed"), "{output}");
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
