//! Crash states of an embedded store: each one must open with all acknowledged changes and without partial commits.
//!
//! A run of the store is recorded with every change and every sync of its files. At many points of the recording, above
//! all next to acknowledgements and syncs, the states that the disk may have after a crash are built (see [`states`]),
//! opened, and compared with the acknowledged changes. Loss of data that a sync covers is not simulated.
//!
//! ```text
//! crash-states [--index sled|redb|both] [--kind NAME,…] [--states N] [--singles N] [--points N] [--seed N]
//!              [--entries ordered|any] [--leave-out CLASS] [--durable CLASS] [--controls] [--keep DIR] [--dir DIR]
//!              [--jobs N]
//! crash-states --replay RECORDING --point N --state NAME [--seed N] [--leave-out CLASS] [--keep DIR]
//! crash-states folder […]
//! ```
//!
//! `--states` is the number of random states at each point, `--singles` the number of pending changes that are tried
//! both missing and alone, `--points` the maximum number of points of a recording. `--leave-out` ignores the syncs of a
//! class of files; `--controls` does so for each class that some kind must detect, and fails if one goes undetected.
//! `--keep` writes failed states to a directory. `--durable` treats the bytes of a class as durable without any sync,
//! to find failures behind a known one. `--entries any` applies directory changes in any order, which the store does
//! not promise to survive. [`folder`] has the same for folders that are written key by key.
//!
//! Needs `cc`. Exits with 1 if anything failed.

mod classes;
mod coverage;
mod explore;
mod folder;
mod history;
mod image;
mod kinds;
mod plan;
mod pool;
mod record;
mod states;
mod trace;
mod tree;
mod uploads;
mod verify;
mod workload;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use zarrd_store_local::IndexKind;

use crate::crash_states::{
    classes::{CLASSES, Class},
    explore::{Report, explore, replay, sound_state},
    history::History,
    image::EventIndex,
    kinds::{Base, Kind},
    plan::Plan,
    record::Recording,
    tree::Tree,
    workload::Run,
};

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    match arguments.first().map(String::as_str) {
        Some("workload") => return workload::run(&workload::parse(&arguments[1..])),
        Some("folder") => return folder::main(&arguments[1..]),
        Some("verify") => return verify::run(&arguments[1], &arguments[2]),
        _ => {}
    }
    let plan = Plan::parse(&arguments);
    fs::create_dir_all(&plan.dir).expect("make the directory of the recordings");
    let done = if let Some(dir) = &plan.replay {
        let report = replay(&Recording::load(dir), &plan, plan.ignored_class, (plan.point, plan.state));
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

/// Runs all kinds on all indexes; returns true if nothing failed.
fn rounds(plan: &Plan) -> bool {
    let library = record::library(&plan.dir);
    let mut failed = 0;
    for index in &plan.indexes {
        for kind in &plan.kinds {
            let begin = Instant::now();
            let report = one(plan, &library, *index, kind, plan.ignored_class);
            show(&format!("{index:<4} {:<15} {:>4} s", kind.name, begin.elapsed().as_secs()), &report);
            failed += report.failed;
        }
    }
    println!("{failed} states failed");
    failed == 0
}

/// Ignores the syncs of each class in turn; returns true if every omission was detected.
fn controls(plan: &Plan) -> bool {
    let library = record::library(&plan.dir);
    let mut missing_coverage = 0;
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
            // Faults that occur anyway prove nothing.
            let noticed = report.failed > sound.failed
                || report.failures.keys().any(|describe| !sound.failures.contains_key(describe));
            missing_coverage += u32::from(!noticed);
            let word = if noticed { "noticed" } else { "MISSED" };
            println!("{index:<4} without {:<14} {kind:<8} {report}  {word} ({} with all)", class.name, sound.failed);
        }
    }
    println!("{missing_coverage} controls missed");
    missing_coverage == 0
}

fn explore_all(recordings: &[Recording], plan: &Plan, ignored_class: Option<&'static Class>) -> Report {
    let mut report = Report::default();
    recordings.iter().for_each(|recording| report.add(explore(recording, plan, ignored_class)));
    report
}

/// Records a kind and opens its states.
fn one(
    plan: &Plan,
    library: &Path,
    index: IndexKind,
    kind: &'static Kind,
    ignored_class: Option<&'static Class>,
) -> Report {
    let mut all = Report::default();
    for recording in recordings(plan, library, index, kind) {
        if let Some(why) = recording.open_error() {
            all.record_failure(why);
        }
        for missing_coverage in recording.missing_coverage() {
            all.record_failure(&format!("the run did not reach {missing_coverage:?}"));
        }
        all.add(explore(&recording, plan, ignored_class));
    }
    all
}

/// Records a kind, and the kinds that it starts from.
fn recordings(plan: &Plan, library: &Path, index: IndexKind, kind: &'static Kind) -> Vec<Recording> {
    let record_run = |level: u32, base: Tree, before: &History| {
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
        Recording::record_run(&run, library, base, before, &dir)
    };
    match kind.base {
        Base::Nothing => vec![record_run(0, Tree::default(), &History::default())],
        Base::Format1(state) => {
            let (tree, history) = record::format_1(index, state, &plan.dir);
            vec![record_run(1, tree, &history)]
        }
        Base::After(other) => {
            let before = recordings(plan, library, index, kinds::named(other)).pop().expect("a recording");
            vec![record_run(1, before.end(), &before.history.until(EventIndex::MAX - 1))]
        }
        Base::Crashes(other, times) => {
            let mut before = recordings(plan, library, index, kinds::named(other)).pop().expect("a recording");
            let mut recordings_of_crashes = Vec::new();
            for level in 1..=times {
                let Some((point, tree)) = sound_state(&before, plan) else {
                    println!("{index} {}: no state of {} opens without faults", kind.name, before.dir.display());
                    break;
                };
                before = record_run(level, tree, &before.history.until(point));
                recordings_of_crashes.push(before.clone());
            }
            recordings_of_crashes
        }
    }
}

fn show(name: &str, report: &Report) {
    println!("{name}  {report}");
    for ((fault, _), failure) in &report.failures {
        println!("    {} × {fault:?}", failure.count);
        for (describe, command) in &failure.first {
            println!("        {describe}\n            {command}");
        }
    }
}
