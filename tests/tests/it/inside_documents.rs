//! The documents for those who work on zarrd: their sizes, and that what they name exists.

use std::{
    fs,
    path::{Path, PathBuf},
};

use zarrd_tests::{
    benchmark::{document::section, extremes},
    binary::workspace,
};

/// The most lines of ARCHITECTURE.md, which is read in five minutes.
const MAX_ARCHITECTURE: usize = 300;
/// The most lines of a decision.
const MAX_DECISION: usize = 60;
/// The most lines of an example.
const MAX_EXAMPLE: usize = 80;

fn read(path: impl AsRef<Path>) -> String {
    let path = workspace().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages of a directory, except its index.
fn pages(dir: &str) -> Vec<(String, String)> {
    let mut names: Vec<String> = files(dir).iter().map(|path| name(path)).filter(|name| name != "README.md").collect();
    names.retain(|name| name.ends_with(".md"));
    names.into_iter().map(|name| (name.clone(), read(format!("{dir}/{name}")))).collect()
}

fn files(dir: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(workspace().join(dir)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The texts between backticks on a line.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// True if a source has a test of this name.
fn has_test(source: &str, test: &str) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    lines.iter().enumerate().any(|(at, line)| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.trim_start().starts_with("#["));
        line.contains(&format!("fn {test}(")) && attributes.clone().any(|line| line.contains("test"))
    })
}

/// The part of a document below a heading, up to the next one of its level.
fn below<'d>(document: &'d str, heading: &str) -> &'d str {
    let (_, rest) = document.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    rest.split("\n## ").next().unwrap()
}

#[test]
fn architecture_is_short() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(lines <= MAX_ARCHITECTURE, "ARCHITECTURE.md has {lines} lines; its details belong in docs/design");
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let document = read("ARCHITECTURE.md");
    let rows: Vec<&str> =
        below(&document, "Invariants").lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 25, "{} invariants", rows.len());
    for row in rows {
        let test = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let named: Vec<&str> = code(test).collect();
        let [test, file] = named[..] else { panic!("no test and file in: {row}") };
        assert!(has_test(&read(file), test), "{file} has no test {test}");
    }
}

#[test]
fn ten_steps_with_files_lead_through_a_read_a_write_and_a_change() {
    let document = read("ARCHITECTURE.md");
    for heading in ["A read", "A write", "A structural change"] {
        let steps = below(&document, heading);
        let numbers: Vec<&str> =
            steps.lines().filter_map(|line| line.split_once(". ")).map(|(number, _)| number).collect();
        let numbers: Vec<u32> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<_>>(), "{heading}");
        assert!(steps.matches("`crates/").count() >= 10, "{heading} names few files");
    }
}

#[test]
fn files_that_architecture_names_exist() {
    let document = read("ARCHITECTURE.md");
    let named: Vec<&str> = document.lines().flat_map(code).filter(|text| text.contains('/')).collect();
    let named: Vec<&str> =
        named.into_iter().filter(|text| ["crates/", "tests/"].iter().any(|dir| text.starts_with(dir))).collect();
    assert!(named.len() > 60, "{} files", named.len());
    for path in named {
        assert!(workspace().join(path).exists(), "ARCHITECTURE.md names {path}");
    }
}

#[test]
fn decisions_are_short_complete_and_in_the_index() {
    let index = read("docs/adr/README.md");
    let decisions = pages("docs/adr");
    assert!(decisions.len() >= 20, "{} decisions", decisions.len());
    for (number, (name, text)) in (1..).zip(&decisions) {
        assert!(name.starts_with(&format!("{number:04}-")), "{name} is not decision {number}");
        let lines = text.lines().count();
        assert!(lines <= MAX_DECISION, "{name} has {lines} lines");
        let title = text
            .lines()
            .next()
            .unwrap()
            .strip_prefix(&format!("# {number}. "))
            .unwrap_or_else(|| panic!("{name}: no title"));
        for heading in ["Context", "Decision", "Consequences"] {
            assert!(!below(text, heading).trim().is_empty(), "{name}: nothing below {heading}");
        }
        assert!(text.contains("\nStatus: "), "{name}: no status");
        assert!(
            index.contains(&format!("| {number} | [{title}]({name}) |")),
            "the index has no {name}, or another title"
        );
    }
}

#[test]
fn design_pages_begin_with_an_example_and_are_in_the_indexes() {
    let (index, architecture) = (read("docs/design/README.md"), read("ARCHITECTURE.md"));
    let design = pages("docs/design");
    assert!(design.len() >= 10, "{} pages", design.len());
    for (name, text) in design {
        assert!(text.starts_with("# "), "{name}: no title");
        assert!(text.lines().nth(2).unwrap().starts_with("> "), "{name} does not begin with an example");
        assert!(index.contains(&format!("]({name})")), "docs/design/README.md has no {name}");
        assert!(architecture.contains(&format!("](docs/design/{name})")), "ARCHITECTURE.md has no {name}");
    }
}

#[test]
fn examples_are_short_say_how_to_run_them_and_are_run() {
    let run = read(".ci/run");
    let mut found = Vec::new();
    for dir in files("crates") {
        for path in files(dir.join("examples")) {
            let (text, name) = (read(&path), path.file_stem().unwrap().to_string_lossy().into_owned());
            let lines = text.lines().count();
            assert!(lines <= MAX_EXAMPLE, "{} has {lines} lines", path.display());
            let command = format!("//! cargo run -p zarrd-{} --example {name}", self::name(&dir));
            assert!(text.starts_with("//! ") && text.contains(&command), "{} does not say {command}", path.display());
            found.push(name);
        }
    }
    let examples = run.lines().find_map(|line| line.strip_prefix("for example in ")).unwrap().trim_end_matches("; do");
    let mut examples: Vec<&str> = examples.split(' ').collect();
    examples.sort_unstable();
    found.sort();
    assert_eq!(found, examples, ".ci/run runs the examples that exist");
    assert!(found.len() >= 4);
}

#[test]
fn benchmarks_begin_with_losses_that_are_those_of_their_tables() {
    let document = read("BENCHMARKS.md");
    let lost = document.lines().take(10).position(|line| line.contains("zarrd is slower"));
    assert!(lost.is_some(), "the first ten lines do not say where zarrd loses");
    let texts: Vec<(&str, String)> =
        extremes::SECTIONS.iter().map(|(name, ..)| (*name, section(&document, name).unwrap().to_owned())).collect();
    assert_eq!(section(&document, "losses").unwrap(), extremes::losses(&texts));
    let (_, cache) = document.split_once("`--chunk-cache` ").unwrap();
    let cache = cache.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(section(&document, "extremes").unwrap(), extremes::extremes(&texts, cache));
    for (name, title, _) in extremes::SECTIONS {
        let heading = format!("\n## {title}\n");
        let (_, rest) = document.split_once(&heading).unwrap_or_else(|| panic!("no heading {title}"));
        assert!(rest.split("\n## ").next().unwrap().contains(&format!("<!-- generated: {name} -->")), "{title}");
    }
}

#[test]
fn changelog_has_the_version_below_what_is_unreleased() {
    let document = read("CHANGELOG.md");
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")).unwrap().trim_end_matches('"');
    let headings: Vec<&str> = document.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(headings.first(), Some(&"Unreleased"));
    assert!(headings.contains(&version), "no section {version} among {headings:?}");
    assert!(!below(&document, version).trim().is_empty());
}

#[test]
fn rust_version_is_the_same_everywhere() {
    let manifest = read("Cargo.toml");
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")).unwrap().trim_end_matches('"');
    assert!(
        read("rust-toolchain.toml").contains(&format!("channel = \"{version}.")),
        "rust-toolchain.toml is not {version}"
    );
    assert!(read("Dockerfile").contains(&format!("FROM rust:{version}-")), "Dockerfile is not {version}");
    assert!(read("CONTRIBUTING.md").contains("\n## Rust version\n"));
}
