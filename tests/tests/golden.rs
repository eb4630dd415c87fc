//! The tables that the codecs are held against have what numcodecs and zarr-python make of the same input.

use zarrd_tests::{
    python::{Python, python, python_with_zarr_2},
    skip::say,
};

/// Makes the tables of `crates/codec` anew and compares; the last line says how many rows.
fn made_by(python: &Python) -> String {
    let said = python.run("golden.py", &[]);
    say(said.trim_end());
    said.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn golden_tables_match_the_newest_numcodecs() {
    let Some(python) = python() else { return };
    let rows = "454 rows of tests/numcodecs.rs, 49 rows of src/codecs/known.rs, 45 rows of tests/chain/rows.rs";
    assert_eq!(made_by(&python), format!("made {rows}; 0 differ"));
}

/// It has neither v3 nor all codecs, but objects.
#[test]
fn golden_tables_match_the_numcodecs_of_zarr_python_2() {
    let Some(python) = python_with_zarr_2() else { return };
    let rows = "454 rows of tests/numcodecs.rs, 49 rows of src/codecs/known.rs, 25 rows of tests/chain/rows.rs";
    assert_eq!(made_by(&python), format!("made {rows}; 0 differ"));
}
