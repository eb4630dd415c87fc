//! A folder that a server and other libraries write at the same time: each chunk has one writer in each round, and afterwards all
//! of them read what all have written.

use crate::{python::python_with_clients, server::Launch, skip::note};

/// Writes rounds of rows of an array by the server, zarr-python, tensorstore and xarray; returns the number of rows, or `None` if
/// Python is missing, which is reported as a skipped test.
///
/// # Panics
///
/// If any of them reads something else.
pub fn write_together(rounds: u64) -> Option<u64> {
    let python = python_with_clients()?;
    let folder = tempfile::tempdir().expect("a temporary directory");
    let server = Launch::of(format_args!("dir:{}?writes=yes", folder.path().display())).start();
    let path = folder.path().to_str().expect("temporary directories have plain names");
    let output = python.run("share_chunks.py", &[path, &server.url(""), &rounds.to_string()]);
    note(output.trim_end());
    let written = output.lines().last().and_then(|line| line.split(' ').next()?.parse().ok());
    server.stop();
    Some(written.expect("the script prints the number of rows"))
}
