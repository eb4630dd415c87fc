//! Connection slots and the eviction of idle connections.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use zarrd_executor::{Caller, ConnectedClient, limits::CROWD_CONNECTIONS};

/// The part of all slots that is reserved for callers with [`FEW_CONNECTIONS`]: one of so many.
const RESERVED_PART: usize = 16;
/// The number of connections up to which a caller may take a reserved slot.
const FEW_CONNECTIONS: usize = 8;

/// A fixed number of connection slots. If all are taken, a new connection evicts the one that has been idle for
/// longest.
///
/// Some slots are reserved for callers with few connections, which are only evicted for each other, so that one caller
/// whose connections are all busy does not lock out others. Beyond that a caller may have as many as it likes, since a
/// laboratory may be behind one address.
pub(super) struct ConnectionSlots {
    capacity: usize,
    table: Mutex<SlotTable>,
}

#[derive(Default)]
struct SlotTable {
    next_id: u64,
    connections: HashMap<u64, Connection>,
    /// The number of connections of each caller that has any.
    counts: HashMap<Option<Caller>, usize>,
}

struct Connection {
    /// The caller; `None` for a trusted proxy, which may have many.
    caller: Option<Caller>,
    activity: Arc<Activity>,
}

/// A slot for one connection, released when dropped.
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    activity: Arc<Activity>,
    is_of_crowd: bool,
}

/// Tracks the idle time of a connection.
///
/// A connection is idle if no request is in progress and no response is left to write: when new, during its TLS
/// handshake, between requests, while receiving a head, or while closing.
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    /// Cancelled when the connection is evicted.
    evicted: CancellationToken,
}

struct ActivityState {
    /// The number of requests in progress; over HTTP/1 at most one.
    requests: usize,
    /// The time when the number of requests became 0; `None` while it is not.
    idle_since: Option<Instant>,
    /// True if written data may not have been flushed.
    unsent: bool,
    /// True if the connection only waits for the client to close it.
    closing: bool,
    evicted: bool,
}

/// A request in progress, until dropped.
pub(super) struct RequestInFlight {
    activity: Arc<Activity>,
    /// The permit of a request that is not the only one of its connection. It counts as another client.
    permit: Option<(OwnedSemaphorePermit, ConnectedClient)>,
}

impl ConnectionSlots {
    /// Creates `capacity` slots.
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, table: Mutex::default() })
    }

    /// Takes a slot for a connection of a caller, or of a trusted proxy; `None` if all that it may take are busy.
    pub(super) fn acquire(self: &Arc<Self>, caller: Option<Caller>) -> Option<(ConnectionSlot, SlotSource)> {
        let mut table = self.table.lock();
        let mut source = SlotSource::Unused;
        let taken = table.connections.len();
        let unreserved = self.capacity - self.capacity / RESERVED_PART;
        if taken >= unreserved {
            let share = if caller.is_some() { table.share_with_new(caller) } else { Share::Few };
            if taken >= self.capacity || share == Share::Many {
                table.evict_idlest(caller, share)?;
                source = SlotSource::Evicted;
            }
        }
        let activity = Arc::new(Activity::new());
        let is_of_crowd = caller.is_some() && table.count(caller) >= CROWD_CONNECTIONS;
        let id = table.insert(Connection { caller, activity: activity.clone() });
        Some((ConnectionSlot { slots: self.clone(), id, activity, is_of_crowd }, source))
    }
}

/// The share of all connections that a caller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Share {
    /// More than the number up to which it may take a reserved slot.
    Many,
    Few,
}

impl Share {
    fn of(count: usize) -> Self {
        if count > FEW_CONNECTIONS { Self::Many } else { Self::Few }
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
    /// Adds a connection and returns its id.
    fn insert(&mut self, connection: Connection) -> u64 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        *self.counts.entry(connection.caller).or_default() += 1;
        self.connections.insert(id, connection);
        id
    }

    /// Removes a connection, unless it was evicted.
    fn remove(&mut self, id: u64) {
        let Some(Connection { caller, .. }) = self.connections.remove(&id) else { return };
        if let Entry::Occupied(mut count) = self.counts.entry(caller) {
            match count.get().saturating_sub(1) {
                0 => drop(count.remove()),
                left => *count.get_mut() = left,
            }
        }
    }

    /// The number of connections of a caller.
    fn count(&self, caller: Option<Caller>) -> usize {
        self.counts.get(&caller).copied().unwrap_or_default()
    }

    /// The share of a caller once it has another connection.
    fn share_with_new(&self, caller: Option<Caller>) -> Share {
        Share::of(self.count(caller).saturating_add(1))
    }

    /// Evicts the connection that has been idle for longest of a caller that has many with the new one of `newcomer`, or
    /// else of one that has few if that has few itself; `None` if none is idle.
    fn evict_idlest(&mut self, newcomer: Option<Caller>, new: Share) -> Option<()> {
        let own = self.share_with_new(newcomer);
        loop {
            let idle = self.connections.iter().filter_map(|(id, one)| {
                let idle_since = one.activity.idle_since()?;
                let share = if one.caller == newcomer { own } else { Share::of(self.count(one.caller)) };
                Some((share, idle_since, *id))
            });
            let (_, idle_since, id) = idle.filter(|(of, ..)| new == Share::Few || *of == Share::Many).min()?;
            // A connection that just received a request is no longer idle.
            if self.connections.get(&id)?.activity.evict(idle_since) {
                self.remove(id);
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

    /// True if the caller had many connections when this one came.
    pub(super) fn is_of_crowd(&self) -> bool {
        self.is_of_crowd
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.table.lock().remove(self.id);
    }
}

impl Activity {
    fn new() -> Self {
        let state = ActivityState {
            requests: 0,
            idle_since: Some(Instant::now()),
            unsent: false,
            closing: false,
            evicted: false,
        };
        Self { state: Mutex::new(state), evicted: CancellationToken::new() }
    }

    /// Completes when the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Completes when the connection has been idle for a time.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let idle = self.idle_since().map_or(Duration::ZERO, |since| since.elapsed());
            match limit.checked_sub(idle) {
                Some(left) if !left.is_zero() => sleep(left).await,
                _ => return,
            }
        }
    }

    /// Marks a request as in progress; `None` if the connection was evicted before.
    pub(super) fn begin_request(self: &Arc<Self>) -> Option<RequestInFlight> {
        let mut state = self.state.lock();
        if state.evicted {
            return None;
        }
        state.requests = state.requests.saturating_add(1);
        state.idle_since = None;
        Some(RequestInFlight { activity: self.clone(), permit: None })
    }

    /// The number of requests in progress.
    pub(super) fn requests(&self) -> usize {
        self.state.lock().requests
    }

    /// Records that data was written.
    pub(super) fn mark_unsent(&self) {
        self.state.lock().unsent = true;
    }

    /// Records that all written data was flushed.
    pub(super) fn mark_flushed(&self) {
        self.state.lock().unsent = false;
    }

    /// Records that the connection only waits for the client to close.
    pub(super) fn mark_closing(&self) {
        let mut state = self.state.lock();
        state.unsent = false;
        state.closing = true;
        state.idle_since.get_or_insert_with(Instant::now);
    }

    /// The start of the idle time; `None` if the connection is busy or evicted.
    fn idle_since(&self) -> Option<Instant> {
        self.state.lock().idle_since()
    }

    /// Evicts the connection if it is still idle since `idle_since`.
    fn evict(&self, idle_since: Instant) -> bool {
        let mut state = self.state.lock();
        if state.idle_since() != Some(idle_since) {
            return false;
        }
        state.evicted = true;
        drop(state);
        self.evicted.cancel();
        true
    }
}

impl ActivityState {
    fn idle_since(&self) -> Option<Instant> {
        self.idle_since.filter(|_| !self.unsent && !self.evicted)
    }
}

impl RequestInFlight {
    /// Keeps a permit until the request ends.
    pub(super) fn with_permit(mut self, permit: OwnedSemaphorePermit) -> Self {
        self.permit = Some((permit, ConnectedClient::new()));
        self
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.requests = state.requests.saturating_sub(1);
        if state.requests == 0 && !state.closing {
            state.idle_since = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn short_delay() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    #[tokio::test]
    async fn longest_idle_connection_is_evicted_first() {
        let slots = ConnectionSlots::new(3);
        let (first, source) = slots.acquire(None).unwrap();
        assert_eq!(source, SlotSource::Unused);
        short_delay().await;
        let (second, _) = slots.acquire(None).unwrap();
        short_delay().await;
        let (third, _) = slots.acquire(None).unwrap();
        let in_request = first.activity().begin_request().unwrap();
        short_delay().await;
        let (fourth, source) = slots.acquire(None).unwrap();
        assert_eq!(source, SlotSource::Evicted);
        second.activity().evicted().await;
        assert!(second.activity().begin_request().is_none(), "its request comes too late");
        drop(second);
        assert!(!third.activity().evicted.is_cancelled());
        drop(in_request);
        short_delay().await;
        let (_fifth, _) = slots.acquire(None).unwrap();
        third.activity().evicted().await;
        let busy = [first.activity().begin_request().unwrap(), fourth.activity().begin_request().unwrap()];
        let (sixth, _) = slots.acquire(None).unwrap();
        let _busy = sixth.activity().begin_request().unwrap();
        assert!(slots.acquire(None).is_none(), "nobody is idle");
        drop(busy);
        drop(sixth);
        assert_eq!(slots.acquire(None).unwrap().1, SlotSource::Unused);
    }

    #[tokio::test]
    async fn some_slots_are_reserved_for_callers_with_few_connections() {
        let slots = ConnectionSlots::new(64);
        let (crowd, stranger) = (Some(Caller::new(1)), Some(Caller::new(2)));
        let busy = |caller| {
            let (slot, source) = slots.acquire(caller)?;
            let request = slot.activity().begin_request()?;
            Some((slot, request, source))
        };
        let mut crowded: Vec<_> = std::iter::from_fn(|| busy(crowd)).collect();
        assert_eq!(crowded.len(), 60);
        let (first, _) = slots.acquire(stranger).unwrap();
        assert!(slots.acquire(crowd).is_none(), "it does not make room for one of many");
        drop(first);
        let few: Vec<_> = std::iter::from_fn(|| busy(stranger)).collect();
        assert_eq!(few.len(), 4, "all that are reserved");
        assert!(busy(Some(Caller::new(3))).is_none());
        let (idle, request, _) = crowded.pop().unwrap();
        drop(request);
        let (fifth, source) = slots.acquire(Some(Caller::new(3))).unwrap();
        assert_eq!(source, SlotSource::Evicted, "the crowd's own idle ones do");
        drop(idle);
        drop((crowded, few, fifth));
        let proxied: Vec<_> = std::iter::from_fn(|| busy(None)).collect();
        assert_eq!(proxied.len(), 64, "a proxy has the connections of many");
    }

    #[tokio::test]
    async fn idle_connections_make_room_for_their_own_caller() {
        for capacity in [FEW_CONNECTIONS - 1, FEW_CONNECTIONS, FEW_CONNECTIONS + 1, 100] {
            let slots = ConnectionSlots::new(capacity);
            let all: Vec<_> = (0..2 * capacity).map(|_| slots.acquire(Some(Caller::new(1)))).collect();
            assert!(all.iter().all(Option::is_some), "{capacity} slots");
        }
    }

    #[tokio::test]
    async fn callers_of_few_connections_take_no_more_than_few_reserved_slots() {
        let slots = ConnectionSlots::new(1024);
        let busy = |caller| {
            let (slot, _) = slots.acquire(Some(Caller::new(caller)))?;
            let request = slot.activity().begin_request()?;
            Some((slot, request))
        };
        let crowded: Vec<_> = std::iter::from_fn(|| busy(0)).collect();
        assert_eq!(crowded.len(), 960);
        let few: Vec<_> = (1..=8).map(|caller| std::iter::from_fn(|| busy(caller)).collect::<Vec<_>>()).collect();
        assert!(few.iter().all(|few| few.len() == FEW_CONNECTIONS));
    }

    #[tokio::test]
    async fn connections_beyond_many_are_of_a_crowd() {
        let slots = ConnectionSlots::new(1024);
        let crowded = |caller: Option<u128>| {
            let slots: Vec<_> = (0..100).map(|_| slots.acquire(caller.map(Caller::new)).unwrap().0).collect();
            slots.iter().filter(|slot| slot.is_of_crowd()).count()
        };
        assert_eq!([crowded(Some(1)), crowded(Some(2))], [36; 2], "callers are counted apart");
        assert_eq!(crowded(Some(1)), 36, "none of those that ended counts");
        assert_eq!(crowded(None), 0, "a proxy has the connections of many");
    }

    #[tokio::test]
    async fn unsent_response_is_not_idle() {
        let slots = ConnectionSlots::new(1);
        let (slot, _) = slots.acquire(None).unwrap();
        let activity = slot.activity();
        let in_request = activity.begin_request().unwrap();
        activity.mark_unsent();
        drop(in_request);
        assert!(slots.acquire(None).is_none());
        activity.mark_flushed();
        let next_id = activity.begin_request().unwrap();
        activity.mark_flushed();
        assert!(slots.acquire(None).is_none(), "a piece of the answer was flushed, and more is to come");
        activity.mark_closing();
        drop(next_id);
        assert!(slots.acquire(None).is_some());
    }

    #[tokio::test]
    async fn connection_is_busy_until_its_last_request_ends() {
        let slots = ConnectionSlots::new(1);
        let (slot, _) = slots.acquire(None).unwrap();
        let activity = slot.activity();
        let (first, second) = (activity.begin_request().unwrap(), activity.begin_request().unwrap());
        assert_eq!(activity.requests(), 2);
        drop(first);
        assert!(slots.acquire(None).is_none(), "one of two requests has ended");
        drop(second);
        assert!(slots.acquire(None).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_begins_after_the_last_request() {
        let limit = Duration::from_secs(10);
        let activity = Arc::new(Activity::new());
        let started = Instant::now();
        let request = activity.begin_request().unwrap();
        let ends = async {
            sleep(Duration::from_secs(25)).await;
            drop(request);
        };
        tokio::join!(activity.idle_for(limit), ends);
        assert!((35..=36).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    }
}
