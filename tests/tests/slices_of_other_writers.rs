//! What other libraries wrote, in all the ways that they can, is read through `/array` as they read it themselves.

use std::path::Path;

use zarrd_tests::{
    binary::workspace,
    python::{Python, python, python_with_zarr_2},
    slices::{Compared, Written},
};

/// Lets `writer` run `script`, and the newest Python compare.
fn compared(writer: &Python, script: &str, arguments: &[&str], selections: usize) -> Option<Compared> {
    let python = python()?;
    Some(Written::by(writer, script, arguments).compare(&python, selections))
}

#[test]
fn all_of_the_drafts_sample() {
    let Some(python) = python() else { return };
    let sample = workspace().join("tests/data/draft_v3_zarr218.tar.gz");
    let sample: &Path = &sample;
    let Some(compared) = compared(&python, "note_sample.py", &[sample.to_str().unwrap()], 20) else { return };
    assert_eq!(compared.arrays, 61);
}

#[test]
fn all_that_zarr_python_3_writes() {
    let Some(python) = python() else { return };
    let Some(compared) = compared(&python, "write_zarr3.py", &[], 1) else { return };
    assert!(compared.arrays > 2500, "{compared:?}");
}

#[test]
fn all_that_zarr_python_2_writes() {
    let Some(python) = python_with_zarr_2() else { return };
    let Some(compared) = compared(&python, "write_zarr2.py", &[], 1) else { return };
    assert!(compared.arrays > 3000, "{compared:?}");
}

#[test]
fn all_that_tensorstore_writes() {
    let Some(python) = python() else { return };
    let Some(compared) = compared(&python, "write_tensorstore.py", &[], 1) else { return };
    assert!(compared.arrays > 800, "{compared:?}");
}

#[test]
fn thousands_of_random_selections() {
    let Some(python) = python() else { return };
    let Some(compared) = compared(&python, "write_random.py", &["60"], 60) else { return };
    assert_eq!(compared.arrays, 60);
    assert!(compared.answers > 5000, "{compared:?}");
}
