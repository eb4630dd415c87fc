//! The snippets of README.md and of the pages in `docs` run and print the documented output.
//!
//! A marker says on what the snippets below it are run, each time from the beginning:
//!
//! - `<!-- snippets: store -->`: `zarrd serve` in an empty directory, open to everybody.
//! - `<!-- snippets: closed store -->`: the same with `--anonymous none`.
//! - `<!-- snippets: folder -->`: `zarrd serve ./my-data`, the data that the first snippets of the quickstart make.
//! - `<!-- snippets: no server -->`: an empty directory.
//!
//! `<!-- snippets: store, after start/curl.md -->` runs the first snippets of that page before. A snippet that is not run
//! says why: `<!-- not run: … -->`, or for readers `*Not run here: …*`.

use std::{fs, io, iter, os::unix::fs::symlink, process::Command};

use serde_json::json;
use tempfile::TempDir;
use zarrd_store::{Key, Precondition, WriteableStore};
use zarrd_tests::{
    benchmark::{document::section, speed},
    binary::{workspace, zarrd},
    node::{Node, node},
    python::{Python, python},
    readme::{Block, Marker, Page, blocks, matches, module, pages},
    server::{Launch, Server, isolated},
    skip::{note, skip},
};

/// The server's address in the documents.
const ADDRESS: &str = "http://127.0.0.1:8000";

/// The page whose first snippets make `./my-data`.
const MY_DATA: &str = "start/quickstart.md";

/// The Rust snippets, extracted by the build script.
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

/// What snippets are run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Store,
    ClosedStore,
    Folder,
    NoServer,
}

/// Runs snippets in order, as a reader does.
struct Reader {
    setting: Setting,
    /// `None` while there is no server yet.
    server: Option<Server>,
    python: Python,
    node: Node,
    /// The working directory, where snippets put their files, with the store.
    dir: TempDir,
    /// A directory with the program `zarrd`, and configuration files.
    home: TempDir,
}

impl Setting {
    /// The setting of a marker, and the page whose snippets are run before.
    fn of(marker: &Marker) -> (Self, Option<&str>) {
        let (setting, before) = match marker.text.split_once(", after ") {
            Some((setting, page)) => (setting, Some(page)),
            None => (marker.text.as_str(), None),
        };
        let setting = match setting {
            "store" => Self::Store,
            "closed store" => Self::ClosedStore,
            "folder" => Self::Folder,
            "no server" => Self::NoServer,
            unknown => panic!("line {}: snippets cannot be run on {unknown:?}", marker.line),
        };
        (setting, before)
    }
}

impl Reader {
    /// A reader; `None` if a program is missing.
    fn new(marker: &Marker) -> Option<Self> {
        let missing = |tool: &&str| Command::new(tool).arg("--version").output().is_err();
        if let Some(tool) = ["curl", "wget", "rclone", "gdalinfo"].into_iter().find(missing) {
            skip(tool);
            return None;
        }
        let (setting, before) = Setting::of(marker);
        let [dir, home] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        symlink(zarrd(), home.path().join("zarrd")).unwrap();
        let mut reader = Self { setting, server: None, python: python()?, node: node()?, dir, home };
        if setting == Setting::Folder {
            reader.run_first(MY_DATA);
        }
        reader.server = match setting {
            Setting::Store => Some(reader.launch().start()),
            Setting::ClosedStore => Some(reader.launch().arg("--anonymous").arg("none").start()),
            Setting::Folder => {
                Some(Launch::of(format_args!("dir:{}", reader.dir.path().join("my-data").display())).start())
            }
            Setting::NoServer => None,
        };
        if let Some(page) = before {
            reader.run_first(page);
        }
        Some(reader)
    }

    fn launch(&self) -> Launch {
        Launch::sled(&self.dir.path().join("zarrd-data"))
    }

    /// Runs the first snippets of a page in `docs`, and before them those that they follow.
    fn run_first(&self, page: &str) {
        let name = format!("docs/{page}");
        let page =
            all_pages().into_iter().find(|page| page.name == name).unwrap_or_else(|| panic!("{name} is missing"));
        let sections = sections(&page);
        let (marker, blocks) = sections.first().unwrap_or_else(|| panic!("{name} has no snippets"));
        if let Some(before) = Setting::of(marker).1 {
            self.run_first(before);
        }
        blocks.iter().for_each(|block| self.run(&name, block).unwrap_or_else(|error| panic!("{error}")));
    }

    /// Runs a snippet; an error says where it is and what it printed instead.
    fn run(&self, page: &str, block: &Block) -> Result<(), String> {
        let printed = match block.language.as_str() {
            "sh" => self.shell(&block.text),
            "python" => output(
                isolated(self.python.command()).args(["-c", &self.with_address(&block.text)]).current_dir(&self.dir),
            ),
            "javascript" => {
                let name = format!("{}-{}.mjs", page.replace('/', "-"), block.line);
                self.node.run_text(&name, &self.with_address(&block.text), &[])
            }
            "html" => self.pictures(&block.text),
            // It is compiled, and run by a test of its own.
            "rust" => return Ok(()),
            language => panic!("{page}, line {}: {language:?} cannot be run", block.line),
        };
        let printed = printed.map_err(|error| format!("{page}, line {}: {error}", block.line))?;
        let expected = self.with_address(block.prints.as_deref().unwrap_or_default());
        if self.setting == Setting::ClosedStore {
            self.shell(AWAIT_TOKENS).unwrap();
        }
        match matches(&expected, &printed) {
            true => Ok(()),
            false => Err(format!(
                "{page}, line {}: expected output\n{expected}\nbut the actual output is\n{printed}",
                block.line
            )),
        }
    }

    fn shell(&self, script: &str) -> io::Result<String> {
        let path = std::env::join_paths(
            iter::once(self.home.path().to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let mut command = isolated(Command::new("sh"));
        command.args(["-e", "-c", &self.with_address(script)]).current_dir(&self.dir);
        output(command.env("PATH", path.unwrap()).env("XDG_CONFIG_HOME", self.home.path().join("config")))
    }

    /// Fetches what a page of HTML shows; prints nothing.
    fn pictures(&self, html: &str) -> io::Result<String> {
        let urls: Vec<_> = html.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!urls.is_empty(), "{html:?} shows nothing");
        for url in urls {
            let media = self.shell(&format!("curl -sf -o /dev/null -w '%{{content_type}}' '{url}'"))?;
            assert!(media.starts_with("image/"), "{url} is {media:?}");
        }
        Ok(String::new())
    }

    fn with_address(&self, text: &str) -> String {
        match &self.server {
            Some(server) => text.replace(ADDRESS, &server.url("")),
            None => text.to_owned(),
        }
    }
}

fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

fn all_pages() -> Vec<Page> {
    pages(workspace()).unwrap()
}

/// The snippets of a page that are run, by their markers.
fn sections(page: &Page) -> Vec<(Marker, Vec<Block>)> {
    let mut found: Vec<(Marker, Vec<Block>)> = Vec::new();
    for block in blocks(&page.text) {
        let Some(marker) = block.marker.clone().filter(|_| block.is_run() && is_code(&block)) else { continue };
        match found.last_mut() {
            Some((last, blocks)) if *last == marker => blocks.push(block),
            _ => found.push((marker, vec![block])),
        }
    }
    found
}

/// True for what a reader would run, and false for what is to be read, such as a configuration.
fn is_code(block: &Block) -> bool {
    !["", "text", "json", "toml", "yaml", "ini", "caddy", "nginx"].contains(&block.language.as_str())
}

fn rust_snippets(page: &Page) -> Vec<String> {
    let rust = blocks(&page.text).into_iter().filter(|block| block.language == "rust" && block.is_run());
    rust.enumerate().map(|(number, _)| module(&page.name, number + 1)).collect()
}

/// Notes how many snippets were executed, which `scripts/dev show documents` adds up.
fn note_executed(count: usize, of: &str) {
    note(format_args!("snippets executed: {count} of {of}"));
}

/// Runs the snippets of all pages whose names begin with this.
fn run_pages(prefix: &str) {
    let (mut count, mut failures) = (0, Vec::new());
    for page in all_pages().iter().filter(|page| page.name.starts_with(prefix)) {
        for (marker, blocks) in sections(page) {
            let Some(reader) = Reader::new(&marker) else { return };
            failures.extend(blocks.iter().filter_map(|block| reader.run(&page.name, block).err()));
            count += blocks.iter().filter(|block| block.language != "rust").count();
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    note_executed(count, prefix);
}

#[test]
fn snippets_of_the_readme_print_the_documented_output() {
    run_pages("README.md");
}

#[test]
fn snippets_of_the_first_pages_print_the_documented_output() {
    run_pages("docs/start/");
}

#[test]
fn snippets_of_the_guide_print_the_documented_output() {
    run_pages("docs/guide/");
}

#[test]
fn snippets_for_operators_print_the_documented_output() {
    run_pages("docs/operate/");
}

#[test]
fn snippets_of_the_reference_print_the_documented_output() {
    run_pages("docs/reference/");
}

#[test]
fn every_snippet_is_run_or_says_why_not() {
    let run_by_a_prefix = ["README.md", "docs/start/", "docs/guide/", "docs/operate/", "docs/reference/"];
    let mut run = 0;
    for page in all_pages() {
        for block in blocks(&page.text).iter().filter(|block| is_code(block)) {
            let is_run = block.is_run() && run_by_a_prefix.iter().any(|prefix| page.name.starts_with(prefix));
            assert!(
                is_run || block.not_run.is_some() || is_design(&page),
                "{}, line {}: {} is below no marker and does not say why it is not run",
                page.name,
                block.line,
                block.language
            );
            run += usize::from(is_run);
        }
    }
    // As many as there were when all of them were in one page.
    assert!(run >= 40, "{run}");
}

/// True for pages about the code, whose blocks are no recipes.
fn is_design(page: &Page) -> bool {
    ["docs/design/", "docs/adr/"].iter().any(|prefix| page.name.starts_with(prefix))
}

#[test]
fn snippets_with_tokens_end_as_they_say() {
    let page = all_pages().into_iter().find(|page| page.name == "docs/operate/tokens.md").unwrap();
    let sections = sections(&page);
    let [(marker, blocks)] = &sections[..] else { panic!("{}", sections.len()) };
    let Some(reader) = Reader::new(marker) else { return };
    blocks.iter().for_each(|block| reader.run(&page.name, block).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(reader.shell(USE_CREDENTIALS).unwrap(), "200 401 401 401");
}

#[tokio::test]
async fn the_rust_snippets_run() {
    let run = ["start_rust_1", "start_rust_2", "start_rust_3", "start_rust_4"];
    let documented: Vec<_> = all_pages().iter().flat_map(rust_snippets).collect();
    assert_eq!(documented, run, "each Rust snippet that is marked is run below");
    let server = Launch::of("memory:").start();
    rust::start_rust_1::notes(&server.url("")).await.unwrap();

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
    rust::start_rust_2::slices(&server.url("")).await.unwrap();
    rust::start_rust_3::growth(&server.url("")).await.unwrap();
    rust::start_rust_4::creation(&server.url("")).await.unwrap();
    note_executed(run.len(), "Rust");
}

#[test]
fn rows_of_speed_are_those_of_the_benchmarks() {
    let read = |file| fs::read_to_string(workspace().join(file)).unwrap();
    let rows = speed::table(&read("BENCHMARKS.md")).unwrap();
    assert_eq!(section(&read("README.md"), "speed").unwrap(), rows);
}
