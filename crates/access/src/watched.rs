//! Directories that are watched for changes.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    denial::ReadError,
    files::{Stamp, stamp_dir},
};

/// The time after a change in which a directory is read again whether it shows a change or not: a second change may
/// have the same time. The coarsest file systems have times of two seconds.
const SETTLING: Duration = Duration::from_secs(3);

/// The time after which a directory is read again in any case: files may be changed in place, or by clients of a network
/// file system that is slow to show it.
const AT_LEAST_EVERY: Duration = Duration::from_secs(30);

/// A directory, and the time by which it must be read again.
pub(crate) struct Watched {
    path: PathBuf,
    /// The stamp before the directory was last read; `None` if that failed.
    seen: Option<Stamp>,
    settled: Instant,
    due: Instant,
}

impl Watched {
    pub(crate) fn new(path: PathBuf) -> Self {
        let now = Instant::now();
        Self { path, seen: None, settled: now, due: now }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks the directory. Returns true if it has to be read, which counts as done.
    pub(crate) fn is_due(&mut self, now: Instant) -> Result<bool, ReadError> {
        let stamp = stamp_dir(&self.path)?;
        let is_changed = self.seen != Some(stamp);
        if is_changed {
            self.seen = Some(stamp);
            self.settled = now + SETTLING;
        }
        let is_due = is_changed || now < self.settled || now >= self.due;
        if is_due {
            self.due = now + AT_LEAST_EVERY;
        }
        Ok(is_due)
    }

    /// Makes the directory show no change, as if it had the same times as before.
    #[cfg(test)]
    pub(crate) fn pretend_unchanged(&mut self) {
        self.seen = stamp_dir(&self.path).ok();
    }

    /// Ends the time in which the directory is read again whether it shows a change or not.
    #[cfg(test)]
    pub(crate) fn settle(&mut self) {
        self.settled = Instant::now();
    }

    /// Has the directory read again, because reading it failed.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
    }
}
