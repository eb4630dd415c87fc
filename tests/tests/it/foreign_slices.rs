//! Arrays written by other libraries in every possible way are read through `/array` as by these libraries.

use zarrd_tests::{
    binary::workspace,
    foreign_arrays::slices,
    originals::Extent,
    python::{Python, python},
    slices::{Compared, ServedArrays},
};

/// Runs a script and compares random selections of each array that it wrote.
fn compared(python: &Python, script: &str, arguments: &[&str], selections: usize) -> Compared {
    ServedArrays::by(python, script, arguments).compare(python, selections)
}

#[test]
fn slices_of_the_draft_sample_match() {
    let Some(python) = python() else { return };
    let sample = workspace().join("tests/data/draft_v3_zarr218.tar.gz");
    let compared = compared(&python, "note_sample.py", &[sample.to_str().unwrap()], 20);
    assert_eq!(compared, Compared { arrays: 61, answers: 2543 });
}

#[test]
fn slices_of_zarr_python_3_arrays_match() {
    slices::of_zarr_python_3(Extent::Sample);
}

#[test]
fn slices_of_zarr_python_2_arrays_match() {
    slices::of_zarr_python_2(Extent::Sample);
}

#[test]
fn slices_of_tensorstore_arrays_match() {
    slices::of_tensorstore(Extent::Sample);
}

#[test]
fn random_selections_match_numpy() {
    let Some(python) = python() else { return };
    let compared = compared(&python, "write_random.py", &["60"], 12);
    assert_eq!(compared, Compared { arrays: 60, answers: 1620 });
}
