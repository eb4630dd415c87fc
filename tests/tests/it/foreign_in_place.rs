//! Arrays that another library writes in every possible way are written where their data is: in a folder, and in a bucket.
//! There they are patched, grown and erased, and the library reads the files. The long test `foreign-arrays in-place` does so
//! with all arrays of more libraries.

use zarrd_tests::{foreign_arrays::in_place, originals::Extent};

#[test]
fn arrays_of_zarr_python_3_are_changed_in_place() {
    in_place::of_zarr_python_3(Extent::Sample);
}
