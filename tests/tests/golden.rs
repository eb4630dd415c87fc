//! The golden tables of the codec tests match the output of numcodecs and zarr-python for the same input.

use zarrd_tests::{
    python::{Python, python, python_with_zarr_2},
    skip::note,
};

/// Regenerates the tables of `crates/codec` and compares them; the last line of the output contains the number of rows.
fn regenerated_by(python: &Python) -> String {
    let output = python.run("golden.py", &[]);
    note(output.trim_end());
    output.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn golden_tables_match_the_newest_numcodecs() {
    let Some(python) = python() else { return };
    let rows = "454 rows of tests/numcodecs/*.rs, 49 rows of src/codecs/golden.rs, 45 rows of tests/chain/rows.rs";
    assert_eq!(regenerated_by(&python), format!("made {rows}; 0 differ"));
}

/// This version has neither v3 nor all codecs, but object arrays.
#[test]
fn golden_tables_match_the_numcodecs_of_zarr_python_2() {
    let Some(python) = python_with_zarr_2() else { return };
    let rows = "454 rows of tests/numcodecs/*.rs, 49 rows of src/codecs/golden.rs, 25 rows of tests/chain/rows.rs";
    assert_eq!(regenerated_by(&python), format!("made {rows}; 0 differ"));
}
