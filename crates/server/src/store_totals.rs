//! The number and size of all values, for metrics.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use zarrd_store::{MAX_PAGE_ENTRIES, PageRequest, Prefix, Reads, StoreError, Watermark};

use crate::app::App;

/// The time for which an answer waits for a new count.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// A count is followed by a pause of so many times its duration.
const PAUSE: u32 = 100;

/// The values of a store with commits, counted when they are asked for.
///
/// A count lists all keys. The next one begins once the store has changed, after a pause that keeps all of them below a
/// percent of a processor; until then the last one is the answer. A store of other programs is not counted.
#[derive(Debug, Default)]
pub(crate) struct StoreTotals(Mutex<State>);

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
    /// True if a count is due, which must then be [ended](Self::end).
    fn begin(&self, watermark: Watermark) -> bool {
        let mut state = self.0.lock();
        let is_current = state.last.is_some_and(|last| last.watermark == watermark || Instant::now() < last.next);
        if state.is_counting || is_current {
            return false;
        }
        state.is_counting = true;
        true
    }

    fn end(&self, count: Option<Count>) {
        let mut state = self.0.lock();
        state.is_counting = false;
        state.last = count.or(state.last);
    }

    fn last(&self) -> Option<Totals> {
        self.0.lock().last.map(|count| count.totals)
    }
}

/// The values of the store; `None` if they are not counted, or for the first time and not yet.
pub(crate) async fn current(app: &App) -> Option<Totals> {
    if app.store().guarantees().reads != Reads::Commit {
        return None;
    }
    let watermark = app.store().watermark().await.ok()??;
    if app.store_totals().begin(watermark) {
        let counting = app.clone();
        let count = tokio::spawn(async move {
            let begun = Instant::now();
            let totals = count(&counting).await;
            let next = Instant::now() + begun.elapsed() * PAUSE;
            counting.store_totals().end(totals.ok().map(|totals| Count { totals, watermark, next }));
        });
        // It continues if it takes longer.
        let _ = timeout(MAX_WAIT, count).await;
    }
    app.store_totals().last()
}

async fn count(app: &App) -> Result<Totals, StoreError> {
    let (root, mut totals) = (Prefix::root(), Totals::default());
    let mut page = PageRequest::first(MAX_PAGE_ENTRIES);
    loop {
        let found = {
            let _permit = app.listing_permit(&root).await;
            app.store().list_prefix(&root, page).await?
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
