//! The benchmark of zarrd and its peers, measured in one run on one machine; it writes BENCHMARKS.md.
//!
//! ```text
//! cargo bench -p zarrd-tests --bench report -- [--quick] [--write] [--index sled|redb] [SECTION…]
//! ```
//!
//! The sections are `chunks`, `planes`, `points`, `ingest`, `nodes`, `start` and `buckets`, by default all of them, and `askers`,
//! `churn`, `compute`, `page` and `stores`, which only run if they are named. The report goes to stdout, progress to stderr.
//! `--write` replaces the generated parts of BENCHMARKS.md and README.md, and requires all sections. `--quick` measures a little of
//! everything, to test the benchmark itself. zarrd is built first if necessary. Python clients get an environment below
//! `target/`; the tables name peers that are not installed. Data for the measurements is stored below `target/` and
//! removed at the end. No result fails the benchmark by its time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a benchmark fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of its own")]

mod askers;
mod buckets;
mod chunks;
mod churn;
mod clients;
mod cold;
mod compute;
mod http;
mod ingest;
mod nodes;
mod options;
mod page;
mod planes;
mod points;
mod python;
mod rust_client;
mod section;
mod servers;
mod setup;
mod small_writes;
mod start;
mod stores;
mod summary;

use std::{fs, process::ExitCode, time::Instant};

use zarrd_tests::{
    benchmark::{document::with_section, speed},
    binary::workspace,
};

use crate::{
    options::Options,
    section::{Section, guarded},
    setup::Bench,
};

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1)).unwrap_or_else(|error| panic!("{error}"));
    let begin = Instant::now();
    let bench = Bench::new(options);
    // Taken first, since a report changes files itself.
    let run = bench.description();
    let mut sections: Vec<Section> = Vec::new();
    for name in bench.options.sections.clone() {
        sections.push(guarded(name, || match name {
            "chunks" => chunks::run(&bench),
            "planes" => planes::run(&bench),
            "points" => points::run(&bench),
            "ingest" => ingest::run(&bench),
            "nodes" => nodes::run(&bench),
            "start" => start::run(&bench),
            "buckets" => buckets::run(&bench),
            "churn" => churn::run(&bench),
            "compute" => compute::run(&bench),
            "page" => page::run(&bench),
            "stores" => stores::run(&bench),
            "askers" => askers::run(&bench),
            other => panic!("no section {other}"),
        }));
        eprintln!("{name}: done after {} s", begin.elapsed().as_secs());
    }
    let run = format!("{run}\nIt took {} s.", begin.elapsed().as_secs());
    let summary = summary::of(&sections, &bench);
    let [losses, extremes] = summary::losses_and_extremes(&sections, &bench);
    println!("{run}\n\n{}\n\n{summary}\n\n{}\n", losses.1, extremes.1);
    for section in &sections {
        println!("# {}\n\n{}\n", section.name, section.text());
    }
    let failed: Vec<&str> =
        sections.iter().filter(|section| section.failed.is_some()).map(|section| section.name).collect();
    if !failed.is_empty() {
        eprintln!("nothing is written, since these sections failed: {}", failed.join(", "));
        return ExitCode::FAILURE;
    }
    if bench.options.write {
        write(&run, &summary, [losses, extremes], &sections);
    }
    ExitCode::SUCCESS
}

/// Replaces the generated parts of the documents.
fn write(run: &str, summary: &str, extremes: [(&'static str, String); 2], sections: &[Section]) {
    let texts = sections.iter().map(|section| (section.name, section.text()));
    let all = [("run", run.to_owned()), ("summary", summary.to_owned())].into_iter().chain(extremes).chain(texts);
    replace("BENCHMARKS.md", all);
    let benchmarks = fs::read_to_string(workspace().join("BENCHMARKS.md")).unwrap_or_default();
    match speed::table(&benchmarks) {
        Ok(rows) => replace("README.md", [("speed", rows)]),
        Err(error) => eprintln!("README.md is as it was: {error}"),
    }
}

fn replace<'a>(file: &str, sections: impl IntoIterator<Item = (&'a str, String)>) {
    let path = workspace().join(file);
    let document = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let changed =
        sections.into_iter().try_fold(document, |document, (name, text)| with_section(&document, name, &text));
    let changed = changed.unwrap_or_else(|error| panic!("{file}: {error}"));
    fs::write(&path, changed).unwrap_or_else(|error| panic!("{file}: {error}"));
    eprintln!("{file} is written");
}
