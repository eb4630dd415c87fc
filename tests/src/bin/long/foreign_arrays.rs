//! All arrays and documents that other libraries can write: see [`zarrd_tests::foreign_arrays`]. The tests take a sample.
//!
//! ```text
//! foreign-arrays [--part zarr-3|zarr-2|draft|tensorstore|slices|in-place|documents]
//! ```
//!
//! Without a part it runs all of them, one after another.

use std::process::ExitCode;

use zarrd_tests::{
    arguments::arguments,
    foreign_arrays::{in_place, patch_documents, rewritten, slices},
    originals::Extent,
};

type Part = (&'static str, fn(Extent));

const PARTS: [Part; 11] = [
    ("zarr-3", rewritten::of_zarr_python_3),
    ("zarr-2", rewritten::of_zarr_python_2),
    ("draft", rewritten::of_the_draft),
    ("tensorstore", rewritten::of_tensorstore),
    ("slices", slices::of_zarr_python_3),
    ("slices", slices::of_zarr_python_2),
    ("slices", slices::of_tensorstore),
    ("in-place", in_place::of_zarr_python_3),
    ("in-place", in_place::of_zarr_python_2),
    ("in-place", in_place::of_tensorstore),
    ("documents", patch_documents),
];

pub(crate) fn main() -> ExitCode {
    let mut wanted = None;
    for argument in arguments() {
        match argument.name.as_str() {
            "--part" if PARTS.iter().any(|(name, _)| *name == argument.value) => wanted = Some(argument.value),
            _ => argument.reject(),
        }
    }
    for (name, part) in PARTS {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            println!("{name}");
            part(Extent::All);
        }
    }
    ExitCode::SUCCESS
}
