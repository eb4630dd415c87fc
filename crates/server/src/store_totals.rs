//! The number and size of all values, for metrics.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use zarrd_store::{MAX_PAGE_ENTRIES, PageRequest, Prefix, Reads, SnapshotStore, StoreError, Watermark};

use crate::listing_permits::ListingPermits;

/// The time for which an answer waits for a new count.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// A count is followed by a pause of so many times its duration.
const PAUSE: u32 = 100;

/// The values of a store with commits, counted when they are asked for.
///
/// A count lists all keys. The next one begins once the store has changed, after a pause that keeps all of them below a
/// percent of a processor; until then the last one is the answer. A store of other programs is not counted.
#[derive(Clone)]
pub(crate) struct StoreTotals(Arc<Inner>);

struct Inner {
    store: Arc<dyn SnapshotStore>,
    permits: Arc<ListingPermits>,
    state: Mutex<State>,
}

/// The number and size of all values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) keys: u64,
    /// The size of the values, in bytes.
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    last: Option<Count>,
    is_counting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    totals: Totals,
    /// The state of the store before the count.
    watermark: Watermark,
    next: Instant,
}

impl StoreTotals {
    /// The values of a store, whose listings need permits.
    pub(crate) fn new(store: Arc<dyn SnapshotStore>, permits: Arc<ListingPermits>) -> Self {
        Self(Arc::new(Inner { store, permits, state: Mutex::default() }))
    }

    /// The values of the store; `None` if they are not counted, or for the first time and not yet.
    pub(crate) async fn current(&self) -> Option<Totals> {
        if self.0.store.guarantees().reads != Reads::Commit {
            return None;
        }
        let watermark = self.0.store.watermark().await.ok()??;
        if self.begin(watermark) {
            let counting = self.clone();
            let count = tokio::spawn(async move {
                let begun = Instant::now();
                let totals = counting.count().await;
                let next = Instant::now() + begun.elapsed() * PAUSE;
                counting.end(totals.ok().map(|totals| Count { totals, watermark, next }));
            });
            // It continues if it takes longer.
            let _ = timeout(MAX_WAIT, count).await;
        }
        self.0.state.lock().last.map(|count| count.totals)
    }

    async fn count(&self) -> Result<Totals, StoreError> {
        let (root, mut totals) = (Prefix::root(), Totals::default());
        let mut page = PageRequest::first(MAX_PAGE_ENTRIES);
        loop {
            let found = {
                let _permit = self.0.permits.acquire(&root).await;
                self.0.store.list_prefix(&root, page).await?
            };
            totals.keys = totals.keys.saturating_add(found.keys.len() as u64);
            let sizes = found.keys.iter().map(|entry| entry.meta.size);
            totals.bytes = sizes.fold(totals.bytes, u64::saturating_add);
            match found.cursor {
                Some(cursor) => page = PageRequest::after(MAX_PAGE_ENTRIES, cursor),
                None => return Ok(totals),
            }
        }
    }

    /// True if a count is due, which must then be [ended](Self::end).
    fn begin(&self, watermark: Watermark) -> bool {
        let mut state = self.0.state.lock();
        let is_current = state.last.is_some_and(|last| last.watermark == watermark || Instant::now() < last.next);
        if state.is_counting || is_current {
            return false;
        }
        state.is_counting = true;
        true
    }

    fn end(&self, count: Option<Count>) {
        let mut state = self.0.state.lock();
        state.is_counting = false;
        state.last = count.or(state.last);
    }
}

impl fmt::Debug for StoreTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreTotals").field("state", &self.0.state).finish_non_exhaustive()
    }
}
