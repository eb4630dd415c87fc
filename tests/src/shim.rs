//! Libraries that are loaded into the program, to have the system fail or wait.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{binary::workspace, skip::skip};

/// Makes the library of `tests/shims/{name}.c` in `dir`, for `LD_PRELOAD`; `None`, said on stderr, where no compiler makes it.
///
/// # Panics
///
/// Where the compiler refuses it.
pub fn shim(name: &str, dir: &Path) -> Option<PathBuf> {
    let library = dir.join(name).with_extension("so");
    let source = workspace().join("tests/shims").join(name).with_extension("c");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(source).arg("-ldl");
    match compile.status() {
        Ok(status) => {
            assert!(status.success(), "{compile:?}");
            Some(library)
        }
        Err(error) => {
            skip(&format!("a C compiler called cc: {error}"));
            None
        }
    }
}
