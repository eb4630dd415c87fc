//! The JSON of `/healthz` and `/readyz`.

use serde::{Deserialize, Serialize};
use zarrd_store::{Guarantees, ScrubStatus};

use crate::{problem::ProblemType, time::rfc3339};

/// The response of `/healthz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The server's version.
    pub version: String,
}

/// The response of `/readyz` if requests can be served.
///
/// A read-only server is ready, and reports that it is not writable. So is one whose store does not support changes,
/// and a store on a full disk, which reads and erases and recovers by itself. A store that is read-only until it is
/// reopened, or is being closed, is not ready: the response is a problem document with status 503.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// True if a value would be accepted now.
    pub writable: bool,
    /// The reason if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemType>,
    /// The guarantees of each store that is served.
    #[serde(default)]
    pub guarantees: Vec<StoreGuarantees>,
    /// The scrub of the store at the root, for administrators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubReport>,
}

/// The state of a scrub, which reads everything in a store again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubReport {
    /// True while a pass is running.
    pub running: bool,
    /// The number of keys that the running or last pass checked.
    pub keys: u64,
    /// The bytes that it read.
    pub bytes: u64,
    /// Its start (RFC 3339); `None` if there was none.
    pub started: Option<String>,
    /// The end of the last pass that ended.
    pub finished: Option<String>,
    /// The number of damaged values and files.
    pub damaged: u64,
    /// What is damaged, up to a limit.
    pub findings: Vec<ScrubFinding>,
}

/// Damage that a scrub found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubFinding {
    /// The key, or the file of the store.
    pub name: String,
    /// The damage.
    pub cause: String,
}

/// The maximum number of findings in a report.
const MAX_FINDINGS: usize = 100;

impl From<ScrubStatus> for ScrubReport {
    fn from(status: ScrubStatus) -> Self {
        let ScrubStatus { is_running, keys, bytes, started, finished, damaged, findings } = status;
        let findings = findings.into_iter().take(MAX_FINDINGS);
        Self {
            running: is_running,
            keys,
            bytes,
            started: started.map(rfc3339),
            finished: finished.map(rfc3339),
            damaged,
            findings: findings.map(|finding| ScrubFinding { name: finding.name, cause: finding.cause }).collect(),
        }
    }
}

/// The guarantees of a store in words, which later versions may add to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreGuarantees {
    /// The name below which the store is mounted; `None` for the store at the root.
    pub name: Option<String>,
    /// The moment to which the values of one answer belong: `commit` or `key`.
    pub reads: String,
    /// The unit of a change: `commit`, `key` or `none`.
    pub writes: String,
    /// The preconditions that hold when a change is made: `atomic`, `create-only`, `this-process` or `none`.
    pub conditions: String,
    /// The reason why a store that was opened for writing accepts no changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_reason: Option<String>,
    /// The listings: `sorted` or `none`.
    pub listing: String,
    /// The seconds, rounded up, until a change of another program is seen.
    pub staleness: u64,
    /// True if a key may also be a prefix of other keys.
    pub shared_names: bool,
    /// True if the bytes of a value are checked against a checksum of the store.
    pub checked: bool,
    /// The use of consolidated metadata for trees: `ignored` or `trusted`. Empty if the server does not say it.
    #[serde(default)]
    pub consolidated: String,
    /// Whether a store that other programs keep, such as a bucket, answers now; `None` for zarrd's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reachable: Option<bool>,
}

impl StoreGuarantees {
    /// The guarantees of the store that is mounted below a name, or of that at the root.
    pub fn new(name: Option<&str>, guarantees: Guarantees) -> Self {
        let Guarantees { reads, writes, conditions, listing, staleness, shared_names, checked, consolidated, .. } =
            guarantees;
        Self {
            name: name.map(str::to_owned),
            reads: reads.as_str().to_owned(),
            writes: writes.as_str().to_owned(),
            conditions: conditions.as_str().to_owned(),
            read_only_reason: guarantees.read_only_reason.map(str::to_owned),
            listing: listing.as_str().to_owned(),
            staleness: staleness.as_secs().saturating_add(u64::from(staleness.subsec_nanos() > 0)),
            shared_names,
            checked,
            consolidated: consolidated.as_str().to_owned(),
            reachable: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn staleness_is_rounded_up_to_seconds() {
        for (milliseconds, seconds) in [(0, 0), (1, 1), (2000, 2), (2001, 3)] {
            let guarantees = Guarantees { staleness: Duration::from_millis(milliseconds), ..Guarantees::READ_ONLY };
            assert_eq!(StoreGuarantees::new(None, guarantees).staleness, seconds, "{milliseconds}");
        }
    }

    #[test]
    fn a_server_that_reports_no_guarantees_is_understood() {
        let ready: Readiness = serde_json::from_str(r#"{"writable": true}"#).unwrap();
        assert_eq!(ready, Readiness { writable: true, problem: None, guarantees: Vec::new(), scrub: None });
    }
}
