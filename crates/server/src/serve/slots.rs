//! Connection slots and the eviction of idle connections.

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

/// A fixed number of connection slots. If all are taken, a new connection evicts the one that has been idle for
/// longest.
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

/// A slot for one connection, released when dropped.
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    activity: Arc<Activity>,
}

/// Tracks the idle time of a connection.
///
/// A connection is idle if no request is in progress and no response is left to write: when new, between requests,
/// while receiving a head, or while closing.
pub(super) struct Activity {
    epoch: Instant,
    /// The start of the idle time in microseconds after `epoch`, or [`BUSY`] or [`EVICTED`].
    idle_since: AtomicU64,
    /// True while a request is in progress. Only the connection's own task sets this flag and the next.
    in_request: AtomicBool,
    /// True if written data may not have been flushed.
    unsent: AtomicBool,
    /// Cancelled when the connection is evicted.
    evicted: CancellationToken,
}

/// A request in progress, until dropped.
pub(super) struct RequestInFlight(Arc<Activity>);

const BUSY: u64 = u64::MAX;
const EVICTED: u64 = u64::MAX - 1;

impl ConnectionSlots {
    /// Creates `capacity` slots.
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, epoch: Instant::now(), table: Mutex::default() })
    }

    /// Takes a slot; `None` if all connections are busy.
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

/// The origin of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotSource {
    /// The slot was unused.
    Unused,
    /// An idle connection was evicted.
    Evicted,
}

impl SlotTable {
    /// Evicts the connection that has been idle for longest; `None` if none is idle.
    fn evict_idlest(&mut self) -> Option<()> {
        loop {
            let idle_micros = self.connections.iter().filter_map(|(id, activity)| Some((activity.idle_micros()?, *id)));
            let (idle_since, id) = idle_micros.min()?;
            // A connection that just received a request is no longer idle.
            if self.connections.get(&id)?.evict(idle_since) {
                self.connections.remove(&id);
                return Some(());
            }
        }
    }
}

impl ConnectionSlot {
    /// The activity of the connection in this slot.
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

    /// Completes when the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Marks a request as in progress; `None` if the connection was evicted before.
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

    /// Records that data was written.
    pub(super) fn mark_unsent(&self) {
        self.unsent.store(true, Ordering::Relaxed);
    }

    /// Records that all written data was flushed.
    pub(super) fn mark_flushed(&self) {
        self.unsent.store(false, Ordering::Relaxed);
        self.update_idle();
    }

    /// Records that the connection only waits for the client to close.
    pub(super) fn mark_closing(&self) {
        self.in_request.store(false, Ordering::Relaxed);
        self.mark_flushed();
    }

    /// Starts the idle time if nothing is left to do.
    fn update_idle(&self) {
        let busy = self.in_request.load(Ordering::Relaxed) || self.unsent.load(Ordering::Relaxed);
        if !busy && self.idle_since.load(Ordering::Relaxed) == BUSY {
            // Only the connection's own task changes the state while it is busy.
            self.idle_since.store(self.now(), Ordering::Release);
        }
    }

    fn idle_micros(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Acquire)).filter(|idle_since| !matches!(*idle_since, BUSY | EVICTED))
    }

    /// Evicts the connection if it is still idle since `idle_since`.
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

    async fn short_delay() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    #[tokio::test]
    async fn longest_idle_connection_is_evicted_first() {
        let slots = ConnectionSlots::new(3);
        let (first, source) = slots.acquire().unwrap();
        assert_eq!(source, SlotSource::Unused);
        short_delay().await;
        let (second, _) = slots.acquire().unwrap();
        short_delay().await;
        let (third, _) = slots.acquire().unwrap();
        let in_request = first.activity().begin_request().unwrap();
        short_delay().await;
        let (fourth, source) = slots.acquire().unwrap();
        assert_eq!(source, SlotSource::Evicted);
        second.activity().evicted().await;
        assert!(second.activity().begin_request().is_none(), "its request comes too late");
        drop(second);
        assert!(!third.activity().evicted.is_cancelled());
        drop(in_request);
        short_delay().await;
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
    async fn unsent_response_is_not_idle() {
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
