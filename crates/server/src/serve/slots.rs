//! Connection slots and the eviction of idle connections.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit},
    task::yield_now,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use zarrd_executor::{Caller, ConnectedClient};

use super::priority::{CallerConnections, Presence, Priority, QUIET};

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
    /// The connections of each caller that has any.
    callers: HashMap<Option<Caller>, Arc<CallerConnections>>,
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
}

/// Tracks the idle time of a connection.
///
/// A connection is idle if no request is in progress and no response is left to write: when new, during its TLS
/// handshake, between requests, while receiving a head, or while closing.
pub(super) struct Activity {
    state: Mutex<ActivityState>,
    /// Cancelled when the connection is evicted.
    evicted: CancellationToken,
    /// Notified when the connection becomes active again.
    active: Notify,
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
    presence: Presence,
}

/// A request in progress, until dropped.
pub(super) struct RequestInFlight {
    activity: Arc<Activity>,
    /// The permit of a request that is not the only one of its connection. It counts as another client.
    permit: Option<(OwnedSemaphorePermit, ConnectedClient)>,
    /// True if the connection moves to another runtime for it.
    moves: bool,
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
        let (id, activity) = table.insert(caller);
        Some((ConnectionSlot { slots: self.clone(), id, activity }, source))
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
    fn insert(&mut self, caller: Option<Caller>) -> (u64, Arc<Activity>) {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let connections = self.callers.entry(caller).or_default();
        connections.add();
        let of_caller = caller.is_some().then(|| connections.clone());
        let activity = Arc::new(Activity::new(Presence::new(of_caller)));
        self.connections.insert(id, Connection { caller, activity: activity.clone() });
        (id, activity)
    }

    /// Removes a connection, unless it was evicted.
    fn remove(&mut self, id: u64) {
        let Some(Connection { caller, .. }) = self.connections.remove(&id) else { return };
        if let Entry::Occupied(connections) = self.callers.entry(caller)
            && connections.get().remove() == 0
        {
            connections.remove();
        }
    }

    /// The number of connections of a caller.
    fn count(&self, caller: Option<Caller>) -> usize {
        self.callers.get(&caller).map_or(0, |connections| connections.count())
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
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.table.lock().remove(self.id);
    }
}

impl Activity {
    /// The activity of a new connection.
    pub(super) fn new(presence: Presence) -> Self {
        let state = ActivityState {
            requests: 0,
            idle_since: Some(Instant::now()),
            unsent: false,
            closing: false,
            evicted: false,
            presence,
        };
        Self { state: Mutex::new(state), evicted: CancellationToken::new(), active: Notify::new() }
    }

    /// The priority of the connection.
    pub(super) fn priority(&self) -> Priority {
        self.state.lock().presence.priority()
    }

    /// Makes that the connection does not count as active after a time without a request. Never completes.
    pub(super) async fn observe_presence(&self) {
        loop {
            self.idle_for(QUIET).await;
            if self.end_presence() {
                self.active.notified().await;
            }
        }
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
        let priority = state.presence.priority();
        if !state.presence.is_active() {
            self.active.notify_one();
        }
        state.presence.start();
        let moves = state.presence.priority() != priority;
        drop(state);
        Some(RequestInFlight { activity: self.clone(), permit: None, moves })
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

    /// Ends the presence of the connection if it has been idle for long enough; false if it has not.
    fn end_presence(&self) -> bool {
        let mut state = self.state.lock();
        let is_quiet = state.idle_since().is_some_and(|since| since.elapsed() >= QUIET);
        if is_quiet {
            state.presence.end();
        }
        is_quiet
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
    /// The request, once its connection runs at the priority that it has for this request.
    pub(super) async fn in_place(self) -> Self {
        if self.moves {
            // The connection is polled next where it moves to.
            yield_now().await;
        }
        self
    }

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
mod tests;
