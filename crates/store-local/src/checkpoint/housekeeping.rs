//! Periodic work.

use std::time::{Duration, Instant};

use super::{Checkpointer, CompactProgress, CompactRequest, generation::disk_bytes};
use crate::orphans::prune_lost_and_found;

const HOUSEKEEPING: Duration = Duration::from_secs(1);
const PRUNING: Duration = Duration::from_secs(3600);
const COMPACTING: Duration = Duration::from_secs(60);
const COMPACTING_WHEN_SHORT: Duration = Duration::from_secs(2);
/// An index that takes more than so many times the bytes of its entries is compacted,
const WASTEFUL: u64 = 6;
/// if it takes more than so many bytes.
const SMALL_INDEX: u64 = 96 << 20;

impl Checkpointer {
    pub(super) fn keep_house(&mut self) {
        if !is_due(&mut self.clock.housekept, HOUSEKEEPING) {
            return;
        }
        self.ballast.restore();
        self.remove_retired();
        if let Err(error) = self.files.prepare_spare(self.spare_bytes) {
            tracing::debug!(%error, "could not prepare a segment of the log");
        }
        if is_due(&mut self.clock.pruned, PRUNING)
            && let Err(error) = prune_lost_and_found(&self.paths)
        {
            tracing::warn!(%error, "could not prune lost+found");
        }
        let every = if self.is_short_of_space() { COMPACTING_WHEN_SHORT } else { COMPACTING };
        if is_due(&mut self.clock.compacted, every) {
            self.compact_if_wasteful();
        }
    }

    /// True if values are refused since they would cut into the reserve.
    fn is_short_of_space(&self) -> bool {
        self.directory.space().is_ok_and(|space| self.reserve.check(space, self.ballast.held(), 0).is_err())
    }

    /// Begins a compaction if the index takes much more than its entries do; or, while values are refused for lack of space, if
    /// there is any to be had.
    fn compact_if_wasteful(&mut self) {
        if self.compaction.is_some() || self.has_sweeps() || self.clock.retry_at.is_some() {
            return;
        }
        let used = disk_bytes(&self.generations.dir()).unwrap_or_default();
        let (bytes, needed) = (self.writer.meta.bytes, self.compaction_needs());
        // Small records take several times their bytes in either index, so a compaction is not repeated for nothing.
        let left = self.clock.left.map_or(0, |(left, entries)| {
            let scaled = u128::from(left).saturating_mul(bytes.into()).checked_div(entries.into());
            u64::try_from(scaled.unwrap_or_default()).unwrap_or(u64::MAX)
        });
        if used <= left.saturating_add(left / 4) {
            return;
        }
        let wasteful = used > bytes.saturating_mul(WASTEFUL).max(SMALL_INDEX);
        let Ok(space) = self.directory.space() else { return };
        let fits = space.free.saturating_add(self.ballast.held()) >= needed;
        let gives_back = used >= needed.saturating_add(self.index_options.segment_bytes);
        if fits && (wasteful || gives_back && self.is_short_of_space()) {
            let (reply, _) = tokio::sync::oneshot::channel();
            let progress = Box::new(|_: &CompactProgress| ());
            self.begin_compaction(CompactRequest { progress, reply });
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
