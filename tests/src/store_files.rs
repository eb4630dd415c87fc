//! The files of embedded stores.

use std::{fs, path::Path, process::Command};

/// Replaces the directory `to` by a copy of `from`, which may be missing.
///
/// # Panics
///
/// If it cannot be copied.
pub fn copy_store(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).expect("remove the copy");
    }
    if from.exists() {
        let copied = Command::new("cp").arg("-a").args([from, to]).status();
        assert!(copied.expect("cp runs").success(), "cp -a {} failed", from.display());
    }
}

/// The number of value files of the store in `dir`.
///
/// # Panics
///
/// If its directories cannot be read.
pub fn value_files(dir: &Path) -> usize {
    let directories = fs::read_dir(dir.join("values")).expect("a store with values");
    let count = |directory: fs::DirEntry| fs::read_dir(directory.path()).expect("a directory of values").count();
    directories.map(|directory| count(directory.expect("a directory of values"))).sum()
}
