//! Documents that other libraries have written, or might have, stay what they are: a change leaves every byte that it does not name.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::path::Path;

use zarrd_tests::{
    python::{python, python_with_zarr_2},
    server::Launch,
    skip::say,
};

/// How many hierarchies each of the two libraries writes, of nine documents on an average.
const HIERARCHIES: &str = "120";

/// How many documents there are at the least.
const DOCUMENTS: u64 = 2000;

#[test]
fn patches_preserve_every_unnamed_byte() {
    let (Some(newest), Some(zarr_2)) = (python(), python_with_zarr_2()) else { return };
    let written = tempfile::tempdir().unwrap();
    zarr_2.run("documents/write_zarr2.py", &[text(written.path()), HIERARCHIES]);
    newest.run("documents/write_zarr3.py", &[text(written.path()), HIERARCHIES]);
    let server = Launch::of("memory:").start();
    let said = newest.run("documents/check.py", &[&server.url(""), text(written.path())]);
    say(said.trim_end());
    let documents = said.split_whitespace().next().and_then(|count| count.parse::<u64>().ok()).unwrap();
    assert!(documents >= DOCUMENTS, "{documents}");
}

/// Attributes that are no JSON to the letter, and fill values that are no numbers, do not keep xarray from opening a dataset after any change, or from saving it again.
#[test]
fn xarray_opens_and_saves_patched_datasets() {
    let (Some(newest), Some(zarr_2)) = (python(), python_with_zarr_2()) else { return };
    for (python, of) in [(newest, "zarr-3"), (zarr_2, "zarr-2")] {
        let server = Launch::of("memory:").start();
        say(python.run("documents/xarray_changes.py", &[&server.url(""), of]).trim_end());
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
