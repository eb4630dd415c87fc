//! The files of embedded stores.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

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

/// Waits until no process holds the lock of the store in `dir`, which this process has closed: a process that another test
/// is starting has copies of all descriptors, and so of the lock, until it runs its program.
///
/// # Panics
///
/// If the lock is held for a minute.
pub async fn wait_until_unlocked(dir: &Path) {
    let inode = fs::metadata(dir.join("lock")).expect("a store has a lock").ino();
    let holder = format!(":{inode} ");
    let started = Instant::now();
    while fs::read_to_string("/proc/locks").expect("the locks can be read").contains(&holder) {
        assert!(started.elapsed() < Duration::from_secs(60), "{} remains locked", dir.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
