//! Documents written by other libraries are preserved: a patch leaves every byte unchanged that it does not name.

use zarrd_tests::{
    foreign_arrays::patch_documents,
    originals::Extent,
    python::{python, python_with_zarr_2},
    server::Launch,
    skip::note,
};

#[test]
fn patches_preserve_every_unnamed_byte() {
    patch_documents(Extent::Sample);
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
