//! The README's snippets run and print the documented output.

use std::{fs, io, iter, os::unix::fs::symlink, process::Command};

use serde_json::json;
use tempfile::TempDir;
use zarrd_store::{Key, Precondition, WriteableStore};
use zarrd_tests::{
    benchmark::document::section,
    binary::{workspace, zarrd},
    node::{Node, node},
    python::{Python, python},
    readme::{Block, blocks, matches},
    server::{Launch, Server, isolated},
    skip::skip,
};

/// The server's address in the README.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// The README's Rust snippets, extracted by the build script.
#[allow(clippy::print_stdout, unreachable_pub, reason = "code for readers")]
mod rust {
    include!(concat!(env!("OUT_DIR"), "/readme.rs"));
}

/// A script that waits until the server accepts a new token, and so knows everything that changed before.
const AWAIT_TOKENS: &str = r#"
token=$(zarrd token create --name new --allow read:/)
for _ in $(seq 600); do
  curl -sf -o /dev/null -H "Authorization: Bearer $token" http://127.0.0.1:8000/store/ && zarrd token revoke new && exit
  sleep 0.05
done
exit 1
"#;

/// A script that prints the status for each credential of the snippets. The last token is valid, all others have ended.
const USE_CREDENTIALS: &str = r#"
value=/store/lab/exp1/notes.txt
for token in Ada.token beamline-7.token zarrd-data/access/admin-token; do
  curl -s -o /dev/null -w '%{http_code} ' -H "Authorization: Bearer $(cat $token)" http://127.0.0.1:8000$value
done
curl -s -o /dev/null -w '%{http_code}' "$(cat link)$value"
"#;

/// The snippets of a section.
fn snippets(section: &str) -> Vec<Block> {
    blocks(&fs::read_to_string(workspace().join("README.md")).unwrap(), section)
}

/// Runs snippets in order, as a reader does.
struct Reader {
    server: Server,
    python: Option<Python>,
    node: Option<Node>,
    /// The working directory, where snippets put their files, with the store.
    dir: TempDir,
    /// A directory with the program `zarrd`, and configuration files.
    home: TempDir,
}

impl Reader {
    /// A reader with a server that has these arguments; `None` if a program is missing.
    fn new(arguments: &[&str]) -> Option<Self> {
        let missing = |tool: &&str| Command::new(tool).arg("--version").output().is_err();
        if let Some(tool) = ["curl", "wget", "rclone"].into_iter().find(missing) {
            skip(tool);
            return None;
        }
        let [dir, home] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        symlink(zarrd(), home.path().join("zarrd")).unwrap();
        let launch = Launch::sled(&dir.path().join("zarrd-data"));
        let server = arguments.iter().fold(launch, |launch, argument| launch.arg(argument)).start();
        Some(Self { server, python: python(), node: node(), dir, home })
    }

    fn run(&self, block: &Block) {
        let printed = match (block.language.as_str(), &self.python, &self.node) {
            ("sh", ..) => self.shell(&block.text),
            ("python", Some(python), _) => {
                output(python.command().args(["-c", &self.with_address(&block.text)]).current_dir(&self.dir))
            }
            // It reads a file written by a Python snippet.
            ("javascript", Some(_), Some(node)) => {
                node.run_text(&format!("readme-{}.mjs", block.line), &self.with_address(&block.text), &[])
            }
            _ => return,
        };
        let printed = printed.unwrap_or_else(|error| panic!("README.md, line {}: {error}", block.line));
        let expected = self.with_address(block.prints.as_deref().unwrap_or_default());
        assert!(
            matches(&expected, &printed),
            "README.md, line {}: expected output\n{expected}\nbut the actual output is\n{printed}",
            block.line
        );
    }

    fn shell(&self, script: &str) -> io::Result<String> {
        let path = std::env::join_paths(
            iter::once(self.home.path().to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let mut command = isolated(Command::new("sh"));
        command.args(["-e", "-c", &self.with_address(script)]).current_dir(&self.dir);
        output(command.env("PATH", path.unwrap()).env("XDG_CONFIG_HOME", self.home.path().join("config")))
    }

    fn with_address(&self, text: &str) -> String {
        text.replace(ADDRESS, &self.server.url(""))
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
    let Some(reader) = Reader::new(&[]) else { return };
    let blocks = snippets("Cookbook");
    let known = ["sh", "python", "javascript", "rust"];
    for block in &blocks {
        assert!(known.contains(&block.language.as_str()), "README.md, line {}: {:?}", block.line, block.language);
        reader.run(block);
    }
    assert!(blocks.len() >= 8, "{}", blocks.len());
    // These read the letters of the cookbook.
    let of_slices = snippets("Reading slices");
    assert!(of_slices.len() >= 3, "{}", of_slices.len());
    of_slices.iter().for_each(|block| reader.run(block));
    // An additional one would not be run below.
    assert_eq!(blocks.iter().filter(|block| block.language == "rust").count(), 3);
}

#[test]
fn snippets_with_tokens_print_the_documented_output() {
    let Some(reader) = Reader::new(&["--anonymous", "none"]) else { return };
    if reader.python.is_none() {
        // Others read what the Python snippet writes.
        return;
    }
    let blocks = snippets("Tokens and share links");
    for block in &blocks {
        assert!(["sh", "python"].contains(&block.language.as_str()), "README.md, line {}", block.line);
        reader.run(block);
        reader.shell(AWAIT_TOKENS).unwrap();
    }
    assert_eq!(blocks.len(), 7);

    assert_eq!(reader.shell(USE_CREDENTIALS).unwrap(), "200 401 401 401");
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
