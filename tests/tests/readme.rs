//! The README's cookbook runs and prints the documented output.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, io, process::Command};

use serde_json::json;
use store::{Key, Precondition, WriteableStore};
use tempfile::TempDir;
use zarrd_tests::{
    benchmark::document::section,
    binary::workspace,
    node::{Node, node},
    python::{Python, python},
    readme::{Block, blocks, matches},
    server::{Launch, Server},
    skip::skip,
};

/// The server's address in the README.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// The README's Rust snippets, extracted by the build script.
#[allow(clippy::print_stdout, unreachable_pub, reason = "code for readers")]
mod rust {
    include!(concat!(env!("OUT_DIR"), "/readme.rs"));
}

/// The cookbook's snippets.
fn cookbook() -> Vec<Block> {
    blocks(&fs::read_to_string(workspace().join("README.md")).unwrap(), "Cookbook")
}

/// Runs snippets in order, as a reader does.
struct Reader {
    server: Server,
    python: Option<Python>,
    node: Option<Node>,
    /// The working directory, where snippets put their files.
    dir: TempDir,
}

impl Reader {
    fn run(&self, block: &Block) {
        let program = block.text.replace(ADDRESS, &self.server.url(""));
        let printed = match (block.language.as_str(), &self.python, &self.node) {
            ("sh", ..) => output(Command::new("sh").args(["-e", "-c", &program]).current_dir(&self.dir)),
            ("python", Some(python), _) => output(python.command().args(["-c", &program])),
            // It reads a file written by a Python snippet.
            ("javascript", Some(_), Some(node)) => node.run_text(&format!("readme-{}.mjs", block.line), &program, &[]),
            _ => return,
        };
        let printed = printed.unwrap_or_else(|error| panic!("README.md, line {}: {error}", block.line));
        let expected = block.prints.as_deref().unwrap_or_default();
        assert!(
            matches(expected, &printed),
            "README.md, line {}: expected output\n{expected}\nbut the actual output is\n{printed}",
            block.line
        );
    }
}

fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

#[test]
fn every_snippet_prints_the_documented_output() {
    let missing = |tool: &&str| Command::new(tool).arg("--version").output().is_err();
    if let Some(tool) = ["curl", "wget", "rclone"].into_iter().find(missing) {
        skip(tool);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(&dir.path().join("store")).start();
    let reader = Reader { server, python: python(), node: node(), dir };
    let blocks = cookbook();
    let known = ["sh", "python", "javascript", "rust"];
    for block in &blocks {
        assert!(known.contains(&block.language.as_str()), "README.md, line {}: {:?}", block.line, block.language);
        reader.run(block);
    }
    assert!(blocks.len() >= 8, "{}", blocks.len());
    // An additional one would not be run below.
    assert_eq!(blocks.iter().filter(|block| block.language == "rust").count(), 3);
}

#[tokio::test]
async fn the_rust_snippets_run() {
    let server = Launch::of("memory:").start();
    rust::snippet_1::notes(&server.url("")).await.unwrap();

    let document = json!({
        "zarr_format": 3, "node_type": "array", "shape": [3, 4], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 4]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    });
    let store = server.store();
    for (key, value) in [("lab/letters/zarr.json", document.to_string()), ("lab/letters/c/0/0", "abcdefghijkl".into())]
    {
        store.set(&Key::parse(key).unwrap(), value.into_bytes().into(), Precondition::none()).await.unwrap();
    }
    rust::snippet_2::slices(&server.url("")).await.unwrap();
    rust::snippet_3::growth(&server.url("")).await.unwrap();
}

#[test]
fn readme_summary_matches_the_benchmarks() {
    let summary = |file| {
        let document = fs::read_to_string(workspace().join(file)).unwrap();
        section(&document, "summary").unwrap().to_owned()
    };
    let readme = summary("README.md");
    assert!(!readme.is_empty());
    assert_eq!(readme, summary("BENCHMARKS.md"));
}
