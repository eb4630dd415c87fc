//! The benchmark of slices: zarrd beside tensorstore, zarr-python and nginx, in the same run on the same machine.
//!
//! ```text
//! cargo bench -p zarrd-tests --bench slices -- [warm] [cold] [elements] [chunk] [memory] [--dir DIR] [--only ARRAY,…]
//! ```
//!
//! A `float32` array of 512³ elements in chunks of 64³ is read from a store into which its files were imported: uncompressed, with zstd, blosc, gzip, and
//! in shards of 256³. The peers read those files: in their own process, or tensorstore from nginx. `--dir` names where the
//! files are, or are to be kept. `cold` drops the page cache, which needs root, and starts each server anew; its readers open the array first.
//!
//! A ratio above 1 means that zarrd is faster. Each figure is the median of interleaved runs, given with the least and the most. Nothing here
//! passes or fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of its own")]

#[path = "../common/mod.rs"]
mod common;
mod load;
mod slices;

use std::{fs, path::PathBuf};

use store_local::IndexKind;

use crate::common::{
    peers::{Nginx, Zarrd},
    python::Python,
};

const ARRAYS: [&str; 5] = ["raw", "zstd", "blosc", "gzip", "sharded"];

/// What is measured, and where it is.
struct Bench {
    /// Where the files are that the peers read.
    files: PathBuf,
    store: PathBuf,
    scratch: PathBuf,
    arrays: Vec<String>,
    python: Python,
}

fn main() {
    // cargo passes `--bench`.
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let mut option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        let value = arguments.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).clone();
        arguments.drain(at..at + 2);
        Some(value)
    };
    let scratch = tempfile::tempdir().expect("a directory");
    let dir = option("--dir").map_or_else(|| scratch.path().join("data"), PathBuf::from);
    let only = option("--only");
    let arrays =
        only.map_or_else(|| ARRAYS.map(str::to_owned).to_vec(), |only| only.split(',').map(str::to_owned).collect());
    let Some(python) = Python::new() else {
        println!("skipped: the peers need Python");
        return;
    };
    let (files, store) = (dir.join("files"), dir.join("store"));
    if !files.exists() {
        fs::create_dir_all(&files).expect("make a directory");
        python.run("slices", &["write".as_ref(), files.as_os_str()]);
    }
    if !store.exists() {
        Zarrd::import(IndexKind::Sled, &files, &store);
    }
    let mut bench = Bench { files, store, scratch: scratch.path().to_owned(), arrays, python };
    if arguments.is_empty() {
        arguments = ["warm", "cold", "chunk", "elements", "memory"].map(str::to_owned).to_vec();
    }
    for section in &arguments {
        match section.as_str() {
            "warm" => slices::warm(&mut bench),
            "cold" => slices::cold(&mut bench),
            "chunk" => load::chunk(&bench),
            "elements" => load::elements(&bench),
            "memory" => slices::memory(&bench),
            other => panic!("no section {other}"),
        }
    }
}

impl Bench {
    fn zarrd(&self) -> Zarrd {
        Zarrd::start(IndexKind::Sled, &self.store)
    }

    fn nginx(&self) -> Option<Nginx> {
        let nginx = Nginx::start(&self.files, &self.scratch);
        if nginx.is_none() {
            println!("nginx is not installed (apt-get install nginx-light), so nothing is compared with it");
        }
        nginx
    }
}
