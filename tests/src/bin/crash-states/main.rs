//! The states that a crash may leave of an embedded store: each must open, with all that was acknowledged and no half commit.
//!
//! A run of the store is recorded, every change of a file and every sync of it. At many moments of it, and above all next
//! to each acknowledgement and each sync, the states are built that the disk may then have (see [`states`]), opened, and
//! compared with what the run was told. What the drive does with data that a sync covers is not its concern.
//!
//! ```text
//! crash-states [--index sled|redb|both] [--kind NAME,…] [--states N] [--singles N] [--points N] [--seed N]
//!              [--entries ordered|any] [--leave-out CLASS] [--durable CLASS] [--controls] [--keep DIR] [--dir DIR] [--jobs N]
//! crash-states --replay RECORDING --point N --state NAME [--seed N] [--leave-out CLASS] [--keep DIR]
//! ```
//!
//! `--states` are the random ones of each moment, `--singles` the pending changes of which each is tried missing and
//! alone, `--points` the most moments of a recording. `--leave-out` counts the syncs of a class of files for nothing, and
//! `--controls` does so for each class that one of the kinds must notice, and fails unless it does. `--keep` writes the states that fail to a
//! directory. `--durable` takes the bytes of a class as durable without any sync, to see past a fault that is known.
//! `--entries any` takes entries in any order, which the store does not promise to survive.
//!
//! Needs `cc`. Exits with 1 when anything failed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of its own")]

mod classes;
mod explore;
mod history;
mod image;
mod kinds;
mod plan;
mod pool;
mod reach;
mod record;
mod states;
mod trace;
mod tree;
mod verify;
mod workload;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use store_local::IndexKind;

use crate::{
    classes::{CLASSES, Class},
    explore::{Report, explore, replay, sound_state},
    history::History,
    image::At,
    kinds::{Base, Kind},
    plan::Plan,
    record::Recording,
    tree::Tree,
    workload::Run,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("workload") => return workload::run(&workload::parse(&arguments[1..])),
        Some("verify") => return verify::run(&arguments[1], &arguments[2]),
        _ => {}
    }
    let plan = Plan::parse(&arguments);
    fs::create_dir_all(&plan.dir).expect("make the directory of the recordings");
    let done = if let Some(dir) = &plan.replay {
        let report = replay(&Recording::load(dir), &plan, plan.left_out, (plan.point, plan.state));
        show("replay", &report);
        report.failed == 0
    } else if plan.controls {
        controls(&plan)
    } else {
        rounds(&plan)
    };
    let _ = fs::remove_dir_all(&plan.states_dir);
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All kinds on all indexes. Whether nothing failed.
fn rounds(plan: &Plan) -> bool {
    let library = record::library(&plan.dir);
    let mut failed = 0;
    for index in &plan.indexes {
        for kind in &plan.kinds {
            let begin = Instant::now();
            let report = one(plan, &library, *index, kind, plan.left_out);
            show(&format!("{index:<4} {:<15} {:>4} s", kind.name, begin.elapsed().as_secs()), &report);
            failed += report.failed;
        }
    }
    println!("{failed} states failed");
    failed == 0
}

/// Leaves the syncs of each class out, which must be noticed. Whether all were.
fn controls(plan: &Plan) -> bool {
    let library = record::library(&plan.dir);
    let mut missed = 0;
    for index in &plan.indexes {
        let mut known: BTreeMap<&str, (Vec<Recording>, Report)> = BTreeMap::new();
        for class in CLASSES.iter().filter(|class| class.concerns(*index)) {
            let Some(kind) = class.noticed_by.filter(|kind| plan.kinds.iter().any(|wanted| wanted.name == *kind))
            else {
                continue;
            };
            let (with, sound) = known.entry(kind).or_insert_with(|| {
                let recordings = recordings(plan, &library, *index, kinds::named(kind));
                let sound = explore_all(&recordings, plan, None);
                (recordings, sound)
            });
            let report = explore_all(with, plan, Some(class));
            // Faults that are there anyway prove nothing.
            let noticed =
                report.failed > sound.failed || report.failures.keys().any(|words| !sound.failures.contains_key(words));
            missed += u32::from(!noticed);
            let word = if noticed { "noticed" } else { "MISSED" };
            println!("{index:<4} without {:<14} {kind:<8} {report}  {word} ({} with all)", class.name, sound.failed);
        }
    }
    println!("{missed} controls missed");
    missed == 0
}

fn explore_all(recordings: &[Recording], plan: &Plan, left_out: Option<&'static Class>) -> Report {
    let mut report = Report::default();
    recordings.iter().for_each(|recording| report.add(explore(recording, plan, left_out)));
    report
}

/// Records a kind and opens its states.
fn one(plan: &Plan, library: &Path, index: IndexKind, kind: &'static Kind, left_out: Option<&'static Class>) -> Report {
    let mut all = Report::default();
    for recording in recordings(plan, library, index, kind) {
        if let Some(why) = recording.refused() {
            all.refuse(why);
        }
        for missed in recording.missed() {
            all.refuse(&format!("{missed:?} is what the run is for, and it did not come to that"));
        }
        all.add(explore(&recording, plan, left_out));
    }
    all
}

/// Records a kind, and those that it begins with.
fn recordings(plan: &Plan, library: &Path, index: IndexKind, kind: &'static Kind) -> Vec<Recording> {
    let make = |level: u32, base: Tree, before: &History| {
        let run = Run {
            index,
            kind,
            seed: plan.seed,
            level,
            store: PathBuf::new(),
            keys: PathBuf::new(),
            notes: PathBuf::new(),
        };
        let dir = plan.dir.join(format!("{index}-{}-{}-{level}", kind.name, plan.seed));
        Recording::make(&run, library, base, before, &dir)
    };
    match kind.base {
        Base::Nothing => vec![make(0, Tree::default(), &History::default())],
        Base::Format1(state) => {
            let (tree, history) = record::format_1(index, state, &plan.dir);
            vec![make(1, tree, &history)]
        }
        Base::After(other) => {
            let before = recordings(plan, library, index, kinds::named(other)).pop().expect("a recording");
            vec![make(1, before.end(), &before.history.until(At::MAX - 1))]
        }
        Base::Crashes(other, times) => {
            let mut before = recordings(plan, library, index, kinds::named(other)).pop().expect("a recording");
            let mut made = Vec::new();
            for level in 1..=times {
                let Some((point, tree)) = sound_state(&before, plan) else {
                    println!("{index} {}: no state of {} opens to begin with", kind.name, before.dir.display());
                    break;
                };
                before = make(level, tree, &before.history.until(point));
                made.push(before.clone());
            }
            made
        }
    }
}

fn show(name: &str, report: &Report) {
    println!("{name}  {report}");
    for ((fault, _), failure) in &report.failures {
        println!("    {} × {fault:?}", failure.count);
        for (words, command) in &failure.first {
            println!("        {words}\n            {command}");
        }
    }
}
