//! Documents written by other libraries are preserved: a patch leaves every byte unchanged that it does not name.

use std::path::Path;

use zarrd_tests::{
    python::{python, python_with_zarr_2},
    server::Launch,
    skip::note,
};

/// The number of hierarchies that each of the two libraries writes, with nine documents on average.
const HIERARCHIES: &str = "120";

/// The minimum number of documents.
const DOCUMENTS: u64 = 2000;

#[test]
fn patches_preserve_every_unnamed_byte() {
    let (Some(newest), Some(zarr_2)) = (python(), python_with_zarr_2()) else { return };
    let written = tempfile::tempdir().unwrap();
    zarr_2.run("documents/write_zarr2.py", &[text(written.path()), HIERARCHIES]);
    newest.run("documents/write_zarr3.py", &[text(written.path()), HIERARCHIES]);
    let server = Launch::of("memory:").start();
    let output = newest.run("documents/check.py", &[&server.url(""), text(written.path())]);
    note(output.trim_end());
    let documents = output.split_whitespace().next().and_then(|count| count.parse::<u64>().ok()).unwrap();
    assert!(documents >= DOCUMENTS, "{documents}");
}

/// Attributes that are not strict JSON and fill values that are not numbers do not prevent xarray from opening or
/// saving a dataset after any patch.
#[test]
fn xarray_opens_and_saves_patched_datasets() {
    let (Some(newest), Some(zarr_2)) = (python(), python_with_zarr_2()) else { return };
    for (python, of) in [(newest, "zarr-3"), (zarr_2, "zarr-2")] {
        let server = Launch::of("memory:").start();
        note(python.run("documents/xarray_changes.py", &[&server.url(""), of]).trim_end());
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
