//! Crash states of a folder that is written key by key: no file of a key is incomplete, what was acknowledged is there, what
//! writers left is swept, and a declaration or an erase that was cut is completed by repeating it.
//!
//! ```text
//! crash-states folder [--states N] [--singles N] [--points N] [--seed N] [--controls] [--keep DIR] [--dir DIR] [--jobs N]
//! ```
//!
//! A run sets, replaces, creates and erases values of several sizes, and declares, writes and erases trees through the engine,
//! several at a time. `--controls` explores its states without the syncs of files, without the syncs of directories, and with
//! each file renamed before it is written, and fails if one of these goes undetected.

mod check;
mod contents;
mod controls;
mod engine;
mod recording;
mod workload;

use std::{collections::BTreeMap, fs, path::PathBuf, process::ExitCode, sync::Arc, time::Instant};

use tokio::{sync::Semaphore, task::JoinSet};

use self::{check::Outcome, contents::TreeDocuments, controls::CONTROLS, recording::Recording};
use super::{
    explore::{Report, points},
    history::Fault,
    image::{EventIndex, Image},
    plan::Plan,
    states::{Choice, choices, state},
    trace::Event,
    tree::Tree,
};

/// The number of states that are opened at a time for each job, since they wait until their files are quiet.
const OPENED_FOR_EACH_JOB: usize = 8;

pub(super) fn main(arguments: &[String]) -> ExitCode {
    if arguments.first().is_some_and(|argument| argument == "workload") {
        return workload::run(&arguments[1..]);
    }
    let plan = Plan::parse(arguments);
    fs::create_dir_all(&plan.dir).expect("make the directory of the recording");
    let recording = Recording::record(&plan);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let is_done = runtime.block_on(async {
        let documents = Arc::new(TreeDocuments::read(&plan.states_dir.join("documents")).await);
        if plan.controls {
            controls(&plan, &recording, &documents).await
        } else {
            round(&plan, &recording, &documents).await
        }
    });
    let _ = fs::remove_dir_all(&plan.states_dir);
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Explores the states of a run; true if none has a fault.
async fn round(plan: &Plan, recording: &Recording, documents: &Arc<TreeDocuments>) -> bool {
    let start = Instant::now();
    let report = explore(plan, recording, &recording.events, documents).await;
    super::show(&format!("folder {:>4} s", start.elapsed().as_secs()), &report);
    println!("{} states failed", report.failed);
    report.failed == 0
}

/// Explores the states of a run without something that it did; true if each omission was noticed.
async fn controls(plan: &Plan, recording: &Recording, documents: &Arc<TreeDocuments>) -> bool {
    let sound = explore(plan, recording, &recording.events, documents).await;
    let mut missed = 0;
    for control in CONTROLS {
        let report = explore(plan, recording, &(control.change)(&recording.events), documents).await;
        let is_noticed = report.failures.keys().any(|failure| !sound.failures.contains_key(failure));
        missed += u32::from(!is_noticed);
        let word = if is_noticed { "noticed" } else { "MISSED" };
        println!("folder {:<28} {report}  {word} ({} with all)", control.name, sound.failed);
    }
    println!("{missed} controls missed");
    missed == 0
}

/// A state to open, of a point.
struct Opened {
    point: EventIndex,
    choice: Choice,
    hash: u128,
    tree: Tree,
}

/// Opens the states of the points of a run.
async fn explore(plan: &Plan, recording: &Recording, events: &[Event], documents: &Arc<TreeDocuments>) -> Report {
    let points = points(events, recording.first, plan);
    let mut image = Image::of(&recording.base, None, None);
    let mut report = Report { points: points.len(), ..Report::default() };
    let mut outcomes: BTreeMap<u128, Arc<Outcome>> = BTreeMap::new();
    for point in points {
        events[image.now..point].iter().for_each(|event| image.take(event));
        let choices = choices(&image, plan.singles, plan.random, plan.seed);
        let states = choices.into_iter().map(|choice| {
            let tree = state(&image, choice, plan.order, plan.seed);
            Opened { point, choice, hash: tree.hash(), tree }
        });
        let states: Vec<Opened> = states.collect();
        open_new(plan, &states, &mut outcomes, documents).await;
        for Opened { point, choice, hash, tree } in states {
            let outcome = &outcomes[&hash];
            let mut faults = recording.history.find_faults(point, &outcome.found);
            faults.extend(outcome.problems.iter().map(|problem| (Fault::Unsound, problem.clone())));
            if let Some(keep) = plan.keep.as_ref().filter(|_| !faults.is_empty()) {
                let dir = keep.join(format!("folder-{point}-{choice}").replace(':', "-"));
                fs::create_dir_all(&dir).expect("make a directory for a state");
                tree.write(&dir);
            }
            report.note(&faults, || format!("point {point}, state {choice}, of {}", recording.dir.display()));
        }
    }
    report.opened = outcomes.len();
    report
}

/// Opens those states that were not opened yet, several at a time.
async fn open_new(
    plan: &Plan,
    states: &[Opened],
    outcomes: &mut BTreeMap<u128, Arc<Outcome>>,
    documents: &Arc<TreeDocuments>,
) {
    let places = Arc::new(Semaphore::new(plan.jobs * OPENED_FOR_EACH_JOB));
    let new: BTreeMap<u128, &Tree> = states.iter().map(|state| (state.hash, &state.tree)).collect();
    let new = new.into_iter().filter(|(hash, _)| !outcomes.contains_key(hash)).collect::<Vec<_>>();
    let mut opening = JoinSet::new();
    for (hash, tree) in new {
        let dir: PathBuf = plan.states_dir.join(format!("{hash:032x}"));
        let (tree, documents, places) = (tree.clone(), documents.clone(), places.clone());
        opening.spawn(async move {
            let _place = places.acquire_owned().await.expect("it is not closed");
            (hash, Arc::new(check::inspect(&tree, &dir, &documents).await))
        });
    }
    while let Some(opened) = opening.join_next().await {
        let (hash, outcome) = opened.expect("no check of a state panics");
        outcomes.insert(hash, outcome);
    }
}
