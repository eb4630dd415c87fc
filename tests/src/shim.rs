//! Shared libraries, loaded with `LD_PRELOAD`, that make system calls fail or wait.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{binary::workspace, skip::skip};

/// Compiles `tests/shims/{name}.c` to a library in `dir`, for `LD_PRELOAD`; `None` if there is no compiler, which is
/// reported as a skipped test.
///
/// # Panics
///
/// If the source does not compile.
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
