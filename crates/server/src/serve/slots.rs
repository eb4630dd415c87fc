//! Who is connected, and who has to go for others.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The places for connections. Where all are taken, a new connection gets that of the one that has been idle for longest.
pub(super) struct ConnectionSlots {
    capacity: usize,
    epoch: Instant,
    table: Mutex<SlotTable>,
}

#[derive(Default)]
struct SlotTable {
    next_id: u64,
    connections: HashMap<u64, Arc<Activity>>,
}

/// A place for one connection; dropping it gives it back.
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    activity: Arc<Activity>,
}

/// True if a connection is idle, and since when.
///
/// Idle is whoever has no request running and no answer that is still to be written: a connection that is new, or between two requests, or in the
/// middle of a head, or closing.
pub(super) struct Activity {
    epoch: Instant,
    /// The microsecond since which it is idle, or one of the two below.
    idle_since: AtomicU64,
    /// A request is being answered. This and the next are of the connection's own task.
    in_request: AtomicBool,
    /// Something was written that may not have been flushed yet.
    unsent: AtomicBool,
    /// Cancelled where it lost its place.
    evicted: CancellationToken,
}

/// A request is being answered; dropping it ends it.
pub(super) struct RequestInFlight(Arc<Activity>);

const BUSY: u64 = u64::MAX;
const EVICTED: u64 = u64::MAX - 1;

impl ConnectionSlots {
    /// So many places.
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, epoch: Instant::now(), table: Mutex::default() })
    }

    /// A place, and whether somebody else lost it; `None` where none is free and nobody is idle.
    pub(super) fn acquire(self: &Arc<Self>) -> Option<(ConnectionSlot, SlotSource)> {
        let mut table = self.table.lock();
        let mut source = SlotSource::Unused;
        if table.connections.len() >= self.capacity {
            table.evict_idlest()?;
            source = SlotSource::Evicted;
        }
        let activity = Arc::new(Activity::new(self.epoch));
        let id = table.next_id;
        table.next_id = id.wrapping_add(1);
        table.connections.insert(id, activity.clone());
        Some((ConnectionSlot { slots: self.clone(), id, activity }, source))
    }
}

/// Where a place comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotSource {
    /// It was free.
    Unused,
    /// It was that of an idle connection, which is closed.
    Evicted,
}

impl SlotTable {
    /// Takes the place of the connection that has been idle for longest; `None` where none is.
    fn evict_idlest(&mut self) -> Option<()> {
        loop {
            let idle_micros = self.connections.iter().filter_map(|(id, activity)| Some((activity.idle_micros()?, *id)));
            let (idle_since, id) = idle_micros.min()?;
            // A request that came just now counts more.
            if self.connections.get(&id)?.evict(idle_since) {
                self.connections.remove(&id);
                return Some(());
            }
        }
    }
}

impl ConnectionSlot {
    /// What the connection that has this place does.
    pub(super) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.table.lock().connections.remove(&self.id);
    }
}

impl Activity {
    fn new(epoch: Instant) -> Self {
        let activity = Self {
            epoch,
            idle_since: AtomicU64::new(0),
            in_request: AtomicBool::new(false),
            unsent: AtomicBool::new(false),
            evicted: CancellationToken::new(),
        };
        activity.idle_since.store(activity.now(), Ordering::Relaxed);
        activity
    }

    /// Done where the connection lost its place and has to go.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// A request came; `None` where the connection has lost its place just before, so that it must not be answered.
    pub(super) fn begin_request(self: &Arc<Self>) -> Option<RequestInFlight> {
        let idle_since = self.idle_since.load(Ordering::Relaxed);
        let accepted = match idle_since {
            EVICTED => false,
            BUSY => true,
            _ => self.idle_since.compare_exchange(idle_since, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok(),
        };
        accepted.then(|| {
            self.in_request.store(true, Ordering::Relaxed);
            RequestInFlight(self.clone())
        })
    }

    /// Something is being written.
    pub(super) fn mark_unsent(&self) {
        self.unsent.store(true, Ordering::Relaxed);
    }

    /// All that was written is on its way.
    pub(super) fn mark_flushed(&self) {
        self.unsent.store(false, Ordering::Relaxed);
        self.update_idle();
    }

    /// The connection does nothing any more but wait for the other side to close it.
    pub(super) fn mark_closing(&self) {
        self.in_request.store(false, Ordering::Relaxed);
        self.mark_flushed();
    }

    /// Begins to be idle where nothing is left to do.
    fn update_idle(&self) {
        let busy = self.in_request.load(Ordering::Relaxed) || self.unsent.load(Ordering::Relaxed);
        if !busy && self.idle_since.load(Ordering::Relaxed) == BUSY {
            // Only the connection's own task changes it while it is busy.
            self.idle_since.store(self.now(), Ordering::Release);
        }
    }

    fn idle_micros(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Acquire)).filter(|idle_since| !matches!(*idle_since, BUSY | EVICTED))
    }

    /// Takes the connection's place, if it is still idle since then.
    fn evict(&self, idle_since: u64) -> bool {
        let evicted =
            self.idle_since.compare_exchange(idle_since, EVICTED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if evicted {
            self.evicted.cancel();
        }
        evicted
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX).min(EVICTED - 1)
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        self.0.in_request.store(false, Ordering::Relaxed);
        self.0.update_idle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    async fn later() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    #[tokio::test]
    async fn the_longest_idle_goes_first_and_the_busy_stay() {
        let slots = ConnectionSlots::new(3);
        let (first, source) = slots.acquire().unwrap();
        assert_eq!(source, SlotSource::Unused);
        later().await;
        let (second, _) = slots.acquire().unwrap();
        later().await;
        let (third, _) = slots.acquire().unwrap();
        let in_request = first.activity().begin_request().unwrap();
        later().await;
        let (fourth, source) = slots.acquire().unwrap();
        assert_eq!(source, SlotSource::Evicted);
        second.activity().evicted().await;
        assert!(second.activity().begin_request().is_none(), "its request comes too late");
        drop(second);
        assert!(!third.activity().evicted.is_cancelled());
        drop(in_request);
        later().await;
        let (_fifth, _) = slots.acquire().unwrap();
        third.activity().evicted().await;
        let busy = [first.activity().begin_request().unwrap(), fourth.activity().begin_request().unwrap()];
        let (sixth, _) = slots.acquire().unwrap();
        let _busy = sixth.activity().begin_request().unwrap();
        assert!(slots.acquire().is_none(), "nobody is idle");
        drop(busy);
        drop(sixth);
        assert_eq!(slots.acquire().unwrap().1, SlotSource::Unused);
    }

    #[tokio::test]
    async fn an_answer_that_is_not_written_yet_is_no_idleness() {
        let slots = ConnectionSlots::new(1);
        let (slot, _) = slots.acquire().unwrap();
        let activity = slot.activity();
        let in_request = activity.begin_request().unwrap();
        activity.mark_unsent();
        drop(in_request);
        assert!(slots.acquire().is_none());
        activity.mark_flushed();
        let next_id = activity.begin_request().unwrap();
        activity.mark_flushed();
        assert!(slots.acquire().is_none(), "a piece of the answer was flushed, and more is to come");
        activity.mark_closing();
        drop(next_id);
        assert!(slots.acquire().is_some());
    }
}
