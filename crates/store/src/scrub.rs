//! The scrub of a store: reading everything again, to find damage before it is needed.

use std::time::SystemTime;

/// The state of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubStatus {
    /// True while a pass is running.
    pub is_running: bool,
    /// The number of keys that the running or last pass checked.
    pub keys: u64,
    /// The bytes of values and log that it read.
    pub bytes: u64,
    /// Its start; `None` if there was none.
    pub started: Option<SystemTime>,
    /// The end of the last pass that ended.
    pub finished: Option<SystemTime>,
    /// The number of damaged values and files that are known.
    pub damaged: u64,
    /// What is damaged, up to a limit.
    pub findings: Vec<ScrubFinding>,
}

/// Damage that a scrub found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubFinding {
    /// The key, or the file of the store.
    pub name: String,
    /// The damage.
    pub cause: String,
}
