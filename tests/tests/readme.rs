//! What the README's cookbook says is what happens.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, io, process::Command};

use zarrd_tests::{
    binary::workspace,
    node::{Node, node},
    python::{Python, python},
    readme::{Block, blocks, matches},
    server::{Launch, Server},
    skip::skip,
};

/// Where the README says that the server is.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// The README's Rust snippets, as the build script found them.
#[allow(clippy::print_stdout, unreachable_pub, reason = "code for readers")]
mod rust {
    include!(concat!(env!("OUT_DIR"), "/readme.rs"));
}

/// The cookbook's snippets.
fn cookbook() -> Vec<Block> {
    blocks(&fs::read_to_string(workspace().join("README.md")).unwrap(), "Cookbook")
}

/// Runs snippets one after another, as a reader does.
struct Reader {
    server: Server,
    python: Option<Python>,
    node: Option<Node>,
}

impl Reader {
    fn run(&self, block: &Block) {
        let program = block.text.replace(ADDRESS, &self.server.url(""));
        let printed = match (block.language.as_str(), &self.python, &self.node) {
            ("sh", ..) => output(Command::new("sh").args(["-e", "-c", &program])),
            ("python", Some(python), _) => output(python.command().args(["-c", &program])),
            // It reads what a snippet in Python wrote.
            ("javascript", Some(_), Some(node)) => node.run_text(&format!("readme-{}.mjs", block.line), &program, &[]),
            _ => return,
        };
        let printed = printed.unwrap_or_else(|error| panic!("README.md, line {}: {error}", block.line));
        let expected = block.prints.as_deref().unwrap_or_default();
        assert!(
            matches(expected, &printed),
            "README.md, line {}: it says that this prints\n{expected}\nbut it printed\n{printed}",
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
fn every_snippet_prints_what_the_readme_says() {
    if Command::new("curl").arg("--version").output().is_err() {
        skip("curl");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let reader = Reader { server: Launch::sled(dir.path()).start(), python: python(), node: node() };
    let blocks = cookbook();
    let known = ["sh", "python", "javascript", "rust"];
    for block in &blocks {
        assert!(known.contains(&block.language.as_str()), "README.md, line {}: {:?}", block.line, block.language);
        reader.run(block);
    }
    assert!(blocks.len() >= 8, "{}", blocks.len());
    // Another one would not be run below.
    assert_eq!(blocks.iter().filter(|block| block.language == "rust").count(), 1);
}

#[tokio::test]
async fn the_rust_snippet_runs() {
    let server = Launch::of("memory:").start();
    rust::snippet_1::notes(&server.url("")).await.unwrap();
}
