//! Writes of arrays from memory.

use std::cell::RefCell;

use serde_json::json;
use tempfile::TempDir;
use zarrd_tests::{
    benchmark::comparison::{Comparison, Contestant},
    python::Python,
};

use crate::{python::Process, section::Section, servers::Zarrd, setup::Bench, small_writes};

pub(crate) fn run(bench: &Bench) -> Section {
    let mut section = Section::default();
    match bench.python() {
        Ok(python) => arrays(bench, python, &mut section),
        Err(reason) => section.notes.push(format!("Whole arrays are not measured: {reason}.")),
    }
    small_writes::values(bench, &mut section);
    small_writes::regions(bench, &mut section);
    section
}

fn arrays(bench: &Bench, python: &Python, section: &mut Section) {
    let directory = bench.directory();
    let zarrd = Zarrd::start(bench.options.index, &directory.path().join("store"), &[]);
    let process = RefCell::new(Process::start(python, "the clients"));
    let side = bench.options.scale.side;
    let writers = [
        ("zarrd", "zarrd", zarrd.url("")),
        ("tensorstore, local files, each synced", "tensorstore", file(&directory, "tensorstore")),
        ("zarr-python, local files, then `sync`", "zarr-python-synced", file(&directory, "synced")),
        ("zarr-python, local files, not durable", "zarr-python", file(&directory, "files")),
        ("zarr-python, zarrd's `/store`", "zarr-python", zarrd.url("/store")),
    ];
    let mut count = 0;
    let mut compare = |layout: &str| {
        let contestants = writers.iter().map(|(name, writer, url)| {
            count += 1;
            let field_name = format!("field{count}");
            let turn = {
                let process = &process;
                move |round: usize| {
                    // A new location each time, so that nothing of an earlier round is replaced.
                    let field_name = format!("{field_name}-{round}");
                    let url = format!("{url}/{field_name}");
                    let request = json!({"do": "write", "writer": writer, "url": url, "side": side, "layout": layout});
                    process.borrow_mut().turn(&request)
                }
            };
            Contestant::new(*name, turn)
        });
        let contestants = contestants.collect();
        Comparison::run(format!("`{layout}`, all"), bench.options.scale.few, contestants).of_bytes(side.pow(3) * 4)
    };
    // Do not measure initialization.
    for (_, writer, url) in &writers {
        let url = format!("{url}/first");
        process
            .borrow_mut()
            .request(&json!({"do": "write", "writer": writer, "url": url, "side": 64, "layout": "zstd"}));
    }
    let comparisons = ["zstd", "sharded", "raw"].map(&mut compare).into();
    section.add("**A new array from a NumPy array**, declared and written.", comparisons);
    section.add_peaks([zarrd.peak(), process.borrow().peak()]);
}

fn file(directory: &TempDir, name: &str) -> String {
    format!("file://{}", directory.path().join(name).display())
}
