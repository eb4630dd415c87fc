//! The benchmark of writing: zarrd beside tensorstore and zarr-python, in the same run on the same machine.
//!
//! ```text
//! cargo bench -p zarrd-tests --bench writes -- [arrays] [nodes] [chunks] [--side N] [--nodes N] [--runs N] [--only LAYOUT,…] [--index sled|redb] [--dir DIR]
//! ```
//!
//! - `arrays`: a `float32` array of 512³ elements in chunks of 64³ (in shards of 256³) goes to `/array` with one request, and from their own memory into a directory
//!   with the peers. What zarrd has answered is durable; the peers leave that to the kernel.
//! - `nodes`: a hierarchy of 10,000 nodes is declared with one request and told with one; zarr-python creates and lists it in a directory.
//! - `chunks`: regions of one chunk of 1 KiB, and of a part of one, on 16 connections; beside them values of the same size that go to `/store`.
//!
//! `--side` and `--nodes` make it smaller, `--dir` names where it is done. A ratio above 1 means that zarrd is faster; of `chunks` it is the part of what `/store` does. Each
//! figure is the median of interleaved runs, given with the least and the most. Nothing here passes or fails.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of its own")]

mod arrays;
mod chunks;
#[path = "../common/mod.rs"]
mod common;
mod nodes;

use std::path::PathBuf;

use serde_json::Value;
use store_local::IndexKind;

use crate::common::{http::Connection, peers::Zarrd, python::Python};

/// What is measured, and where.
struct Bench {
    scratch: PathBuf,
    index: IndexKind,
    side: u64,
    nodes: u64,
    runs: usize,
    layouts: Vec<String>,
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
    let place = option("--dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let scratch = tempfile::tempdir_in(place).expect("a directory");
    let mut number = |name: &str, usual: u64| option(name).map_or(usual, |text| text.parse().expect("a number"));
    let (side, nodes, runs) = (number("--side", 512), number("--nodes", 10_000), number("--runs", 5) as usize);
    let index = match option("--index").as_deref() {
        None | Some("sled") => IndexKind::Sled,
        Some("redb") => IndexKind::Redb,
        Some(other) => panic!("--index sled or --index redb, not {other}"),
    };
    let layouts = option("--only").map_or_else(
        || arrays::LAYOUTS.map(str::to_owned).to_vec(),
        |only| only.split(',').map(str::to_owned).collect(),
    );
    if arguments.is_empty() {
        arguments = ["arrays", "nodes", "chunks"].map(str::to_owned).to_vec();
    }
    let bench = Bench { scratch: scratch.path().to_owned(), index, side, nodes, runs, layouts };
    for section in &arguments {
        match section.as_str() {
            "arrays" => arrays::run(&bench),
            "nodes" => nodes::run(&bench),
            "chunks" => chunks::run(&bench),
            other => panic!("no section {other}"),
        }
    }
}

impl Bench {
    fn zarrd(&self, store: &str) -> Zarrd {
        Zarrd::start(self.index, &self.scratch.join(store))
    }
}

/// The peers, which may not be there.
fn python() -> Option<Python> {
    let python = Python::new();
    if python.is_none() {
        println!("skipped: the peers need Python");
    }
    python
}

/// Declares a node, which must be new.
fn declare(connection: &mut Connection, path: &str, zom: &Value) {
    let body = zom.to_string();
    let head = head("PUT", &format!("/node/{path}"), "application/json", body.len());
    assert_eq!(connection.ask(head.as_bytes(), body.as_bytes()).0, 201, "{path}");
}

fn head(method: &str, target: &str, media: &str, length: usize) -> String {
    format!(
        "{method} {target} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// The document of an array of v3.
fn array(shape: &[u64], chunk: &[u64], data_type: &str, codecs: &Value) -> Value {
    serde_json::json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": codecs, "attributes": {},
    })
}
