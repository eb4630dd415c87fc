//! Periodic work.

use std::time::{Duration, Instant};

use super::{Checkpointer, CompactProgress, CompactRequest, generation::disk_bytes};
use crate::orphans::RETENTION;

const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(1);
const COMPACT_INTERVAL: Duration = Duration::from_secs(60);
const COMPACT_INTERVAL_LOW_SPACE: Duration = Duration::from_secs(2);
/// The factor between the size of an index and that of its entries above which it is compacted,
const WASTE_FACTOR_THRESHOLD: u64 = 6;
/// if it is larger than this, in bytes.
const MIN_WASTEFUL_BYTES: u64 = 96 << 20;

impl Checkpointer {
    pub(super) fn run_housekeeping(&mut self) {
        if !is_due(&mut self.timers.housekeeping, HOUSEKEEPING_INTERVAL) {
            return;
        }
        if let Err(error) = self.directory.check_place() {
            return self.read_only.set(&error);
        }
        if self.timers.retry_at.is_none() {
            // Readers see the error of a failed write, but cannot open the index again.
            let written = self.writer.index.check_writes();
            self.note(written);
        }
        self.ballast.restore();
        self.remove_retired_generations();
        if let Err(error) = self.files.prepare_spare(self.spare_bytes) {
            tracing::debug!(%error, "could not prepare a segment of the log");
        }
        self.prune_orphans();
        let every = if self.is_short_of_space() { COMPACT_INTERVAL_LOW_SPACE } else { COMPACT_INTERVAL };
        if is_due(&mut self.timers.compact, every) {
            self.compact_if_wasteful();
        }
    }

    /// Removes the orphans that were found when the store was opened, when it has been open for long enough.
    fn prune_orphans(&mut self) {
        let result = match self.timers.prune {
            Some(last) if last.elapsed() < RETENTION => return,
            Some(_) => self.orphans.prune(),
            None => self.orphans.measure(),
        };
        self.timers.prune = Some(Instant::now());
        if let Err(error) = result {
            tracing::warn!(%error, "could not prune orphaned value files");
        }
    }

    /// True if values are rejected because they would use the reserve.
    fn is_short_of_space(&self) -> bool {
        self.directory.space().is_ok_and(|space| self.reserve.check(space, self.ballast.size(), 0).is_err())
    }

    /// Starts a compaction if the index is much larger than its entries, or, while values are rejected for lack of
    /// space, if it would free any.
    fn compact_if_wasteful(&mut self) {
        if self.compaction.is_some() || self.has_sweeps() || self.timers.retry_at.is_some() {
            return;
        }
        let used = disk_bytes(&self.generations.dir()).unwrap_or_default();
        let (bytes, needed) = (self.writer.meta.bytes, self.compaction_space());
        // Small records take several times their size in either index, so a compaction is not repeated without effect.
        let compacted_size = self.timers.compacted_size.map_or(0, |(compacted_size, entries)| {
            let scaled = u128::from(compacted_size).saturating_mul(bytes.into()).checked_div(entries.into());
            u64::try_from(scaled.unwrap_or_default()).unwrap_or(u64::MAX)
        });
        if used <= compacted_size.saturating_add(compacted_size / 4) {
            return;
        }
        let wasteful = used > bytes.saturating_mul(WASTE_FACTOR_THRESHOLD).max(MIN_WASTEFUL_BYTES);
        let Ok(space) = self.directory.space() else { return };
        let fits = space.free.saturating_add(self.ballast.size()) >= needed;
        let saves_space = used >= needed.saturating_add(self.index_options.segment_bytes);
        if fits && (wasteful || saves_space && self.is_short_of_space()) {
            let (reply, _) = tokio::sync::oneshot::channel();
            let progress = Box::new(|_: &CompactProgress| ());
            self.start_compaction(CompactRequest { progress, reply });
        }
    }
}

fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= every);
    if due {
        *last = Some(Instant::now());
    }
    due
}
