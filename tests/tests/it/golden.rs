//! The golden tables of the codec tests match the output of numcodecs and zarr-python for the same input.

use std::fs;

use zarrd_tests::{
    binary::workspace,
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
    let rows = "454 rows of tests/it/numcodecs/*.rs, 49 rows of src/codecs/golden.rs, \
                121 rows of src/codecs/cast_value/golden.rs, 54 rows of tests/it/chain/rows.rs";
    assert_eq!(regenerated_by(&python), format!("made {rows}; 0 differ"));
}

/// This version has neither v3 nor all codecs, but object arrays.
#[test]
fn golden_tables_match_the_numcodecs_of_zarr_python_2() {
    let Some(python) = python_with_zarr_2() else { return };
    let rows = "454 rows of tests/it/numcodecs/*.rs, 49 rows of src/codecs/golden.rs, \
                0 rows of src/codecs/cast_value/golden.rs, 25 rows of tests/it/chain/rows.rs";
    assert_eq!(regenerated_by(&python), format!("made {rows}; 0 differ"));
}

/// Makes one in eight rows of a table of `crates/cf` anew, and compares them with those in the repository.
fn regenerated_table(script: &str, table: &str) -> Option<String> {
    const ONE_IN: usize = 8;
    let python = python()?;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(table);
    let output = python.run(script, &[path.to_str().unwrap(), &ONE_IN.to_string()]);
    note(output.trim_end());
    let kept = fs::read_to_string(workspace().join("crates/cf/tests/data").join(table)).unwrap();
    let made = fs::read_to_string(path).unwrap();
    assert!(made.lines().eq(kept.lines().step_by(ONE_IN)), "{table} differs from what {script} makes");
    Some(output.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn decoded_arrays_match_xarray() {
    let Some(output) = regenerated_table("cf_decoding.py", "decoding.jsonl") else { return };
    assert_eq!(output, "475 arrays, 56 of them errors");
}

#[test]
fn selections_by_label_match_xarray() {
    let Some(output) = regenerated_table("cf_labels.py", "labels.jsonl") else { return };
    assert_eq!(output, "3216 selections in 37 coordinates");
}
