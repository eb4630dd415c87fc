//! Arrays that other libraries write in every possible way are written where their data is: in a folder, and in a bucket. There
//! they are patched, grown and erased, and these libraries read the files.

use zarrd_tests::{foreign_arrays::in_place, originals::Extent};

#[test]
fn arrays_of_zarr_python_3_are_changed_in_place() {
    in_place::of_zarr_python_3(Extent::Sample);
}

#[test]
fn arrays_of_zarr_python_2_are_changed_in_place() {
    in_place::of_zarr_python_2(Extent::Sample);
}

#[test]
fn arrays_of_tensorstore_are_changed_in_place() {
    in_place::of_tensorstore(Extent::Sample);
}
