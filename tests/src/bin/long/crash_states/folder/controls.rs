//! Runs without something that makes them safe: each must have states that fail.

use std::collections::{HashMap, HashSet};

use super::super::trace::{Event, TracePath};

/// Something that is left out of a run.
pub(super) struct Control {
    pub(super) name: &'static str,
    pub(super) change: fn(&[Event]) -> Vec<Event>,
}

pub(super) const CONTROLS: [Control; 3] = [
    Control { name: "without syncs of files", change: |events| without_syncs(events, Synced::File) },
    Control { name: "without syncs of directories", change: |events| without_syncs(events, Synced::Directory) },
    Control { name: "renamed before it is written", change: renamed_first },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Synced {
    File,
    Directory,
}

/// The flag of files that are made when they are opened.
const O_CREAT: u64 = 0o100;

/// The events with syncs of a kind that fail.
fn without_syncs(events: &[Event], kind: Synced) -> Vec<Event> {
    let mut files = HashSet::new();
    let mut ignored = HashSet::new();
    let mut changed = events.to_vec();
    for event in &mut changed {
        match event {
            Event::Open { fd, flags, .. } if *flags & O_CREAT != 0 => drop(files.insert(*fd)),
            Event::Open { fd, .. } | Event::Close { fd } => drop(files.remove(fd)),
            Event::SyncBegin { fd, number } if files.contains(fd) == (kind == Synced::File) => {
                ignored.insert(*number);
            }
            Event::SyncEnd { number, done } if ignored.contains(number) => *done = false,
            _ => {}
        }
    }
    changed
}

/// The events with each temporary file renamed when it is made.
fn renamed_first(events: &[Event]) -> Vec<Event> {
    let mut renames: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, event) in events.iter().enumerate() {
        if let Event::Rename { from: TracePath { path, .. }, .. } = event {
            renames.entry(path).or_default().push(number);
        }
    }
    // Names of temporary files do not repeat.
    let renamed = |path: &str| renames.get(path).and_then(|numbers| numbers.first()).copied();
    let mut changed = Vec::with_capacity(events.len());
    let mut moved = HashSet::new();
    for (number, event) in events.iter().enumerate() {
        if !moved.contains(&number) {
            changed.push(event.clone());
        }
        if let Event::Open { flags, path_ref, .. } = event
            && *flags & O_CREAT != 0
            && let Some(rename) = renamed(&path_ref.path)
        {
            changed.push(events[rename].clone());
            moved.insert(rename);
        }
    }
    changed
}
