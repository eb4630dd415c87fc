//! The state of the scrub, and its file.

use std::{
    io,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use zarrd_store::{Key, ScrubFinding, ScrubStatus};

use crate::{durable::write_durably, paths::Paths, regular_file};

/// The number of findings that are recorded; more are counted.
const MAX_FINDINGS: usize = 1000;

/// How far a pass is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The values after a key, or all of them.
    Values {
        after: Option<Key>,
    },
    Log,
}

/// The state of the scrub. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// The start of the running pass, or of the last one.
    started: Option<u64>,
    /// The end of the last pass that ended.
    finished: Option<u64>,
    is_running: bool,
    /// The last key of the running pass.
    after: Option<String>,
    in_log: bool,
    keys: u64,
    bytes: u64,
    /// What the running pass found.
    found: Vec<Stored>,
    found_more: u64,
    /// What the last pass that ended found.
    findings: Vec<Stored>,
    findings_more: u64,
}

/// A finding in the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stored {
    name: String,
    cause: String,
}

impl State {
    /// Reads the file; a store that has none was never scrubbed.
    pub(super) fn read(paths: &Paths) -> Self {
        let text = regular_file::read(&paths.scrub());
        text.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // A struct of numbers and texts can always be serialized.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// The time of the next pass: now, if one was interrupted.
    pub(super) fn due(&self, interval: Duration) -> u64 {
        let interval = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        match (self.is_running, self.started) {
            (false, Some(started)) => started.saturating_add(interval),
            _ => 0,
        }
    }

    /// Starts a pass, or continues the one that was interrupted.
    pub(super) fn start_pass(&mut self, now: u64) {
        if !self.is_running {
            let Self { finished, findings, findings_more, .. } = std::mem::take(self);
            *self = Self { started: Some(now), finished, is_running: true, findings, findings_more, ..Self::default() };
        }
    }

    /// Ends a pass; returns the number of its findings.
    pub(super) fn finish_pass(&mut self, now: u64) -> u64 {
        self.finished = Some(now);
        self.is_running = false;
        self.findings = std::mem::take(&mut self.found);
        self.findings_more = std::mem::take(&mut self.found_more);
        (self.after, self.in_log) = (None, false);
        count(&self.findings, self.findings_more)
    }

    pub(super) fn progress(&self) -> Progress {
        match (self.in_log, &self.after) {
            (true, _) => Progress::Log,
            (false, after) => {
                Progress::Values { after: after.as_deref().and_then(|key| Key::from_stored(key.as_bytes()).ok()) }
            }
        }
    }

    pub(super) fn start_log(&mut self) {
        self.in_log = true;
    }

    /// Records that a key was checked.
    pub(super) fn passed(&mut self, key: &Key) {
        key.as_str().clone_into(self.after.get_or_insert_default());
        self.keys = self.keys.saturating_add(1);
    }

    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(super) fn add(&mut self, finding: ScrubFinding) {
        if self.found.iter().any(|other| other.name == finding.name) {
            return;
        }
        if self.found.len() < MAX_FINDINGS {
            self.found.push(Stored { name: finding.name, cause: finding.cause });
        } else {
            self.found_more = self.found_more.saturating_add(1);
        }
    }

    pub(super) fn status(&self) -> ScrubStatus {
        // Damage that the running pass found counts at once; that of the last pass until a pass has ended without it.
        let mut findings = self.findings.clone();
        findings.extend(self.found.iter().filter(|new| self.findings.iter().all(|old| old.name != new.name)).cloned());
        let damaged = count(&findings, self.findings_more.max(self.found_more));
        ScrubStatus {
            is_running: self.is_running,
            keys: self.keys,
            bytes: self.bytes,
            started: self.started.map(time),
            finished: self.finished.map(time),
            damaged,
            findings: findings.into_iter().map(|Stored { name, cause }| ScrubFinding { name, cause }).collect(),
        }
    }
}

/// Writes the file.
pub(super) fn write(paths: &Paths, text: &[u8]) -> io::Result<()> {
    write_durably(&paths.scrub(), text)
}

fn count(findings: &[Stored], more: u64) -> u64 {
    (findings.len() as u64).saturating_add(more)
}

fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &str) -> ScrubFinding {
        ScrubFinding { name: name.to_owned(), cause: "damaged".to_owned() }
    }

    #[test]
    fn interrupted_passes_continue_and_later_ones_wait() {
        let mut state = State::default();
        let month = Duration::from_secs(30 * 86400);
        assert_eq!(state.due(month), 0);
        state.start_pass(1000);
        state.passed(&Key::parse("a/b").unwrap());
        state.add(finding("a/b"));
        let mut read: State = serde_json::from_slice(&state.encode()).unwrap();
        assert_eq!(read.due(month), 0, "it was interrupted");
        read.start_pass(2000);
        assert_eq!(read.progress(), Progress::Values { after: Key::parse("a/b").ok() });
        assert_eq!((read.status().damaged, read.status().keys), (1, 1));
        assert_eq!(read.finish_pass(3000), 1);
        assert_eq!(read.due(month), 1000 + 30 * 86_400_000);
        // What the last pass found counts until the next one has ended.
        read.start_pass(5000);
        assert_eq!((read.progress(), read.status().damaged), (Progress::Values { after: None }, 1));
        read.finish_pass(6000);
        assert_eq!(read.status().damaged, 0);
    }

    #[test]
    fn findings_are_bounded_and_counted() {
        let mut state = State::default();
        state.start_pass(1);
        for number in 0..MAX_FINDINGS + 5 {
            state.add(finding(&number.to_string()));
            state.add(finding(&number.to_string()));
        }
        let status = state.status();
        assert_eq!(status.findings.len(), MAX_FINDINGS);
        assert!(status.damaged >= MAX_FINDINGS as u64 + 5);
    }
}
