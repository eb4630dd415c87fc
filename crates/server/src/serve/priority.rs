//! The priority of connections: if a caller has many, they are of a crowd, except for a number of active ones.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use zarrd_executor::{ConnectedClient, limits::CROWD_CONNECTIONS};

/// The time without a request after which a connection is no longer active.
pub(super) const QUIET: Duration = Duration::from_secs(1);

/// The priority of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// As for the connections of callers that have few.
    Normal,
    /// Lower: other connections come first.
    Crowd,
}

/// The connections of a caller.
#[derive(Debug, Default)]
pub(super) struct CallerConnections {
    all: AtomicUsize,
    /// The number of active ones of normal priority.
    normal: AtomicUsize,
}

/// The activity of a connection as seen by others: an active one counts as a client, and takes a place among its caller's.
#[derive(Debug)]
pub(super) struct Presence {
    /// The connections of the caller; `None` for a trusted proxy, which has connections of many callers.
    caller: Option<Arc<CallerConnections>>,
    priority: Priority,
    /// The client, while the connection is active.
    client: Option<ConnectedClient>,
    place: Option<NormalPlace>,
}

/// A place among the active connections of normal priority.
#[derive(Debug)]
struct NormalPlace(Arc<CallerConnections>);

impl CallerConnections {
    /// The number of connections.
    pub(super) fn count(&self) -> usize {
        self.all.load(Relaxed)
    }

    /// Counts one more.
    pub(super) fn add(&self) {
        self.all.fetch_add(1, Relaxed);
    }

    /// Counts one less; returns the number that is left.
    pub(super) fn remove(&self) -> usize {
        self.all.fetch_sub(1, Relaxed).saturating_sub(1)
    }

    fn take_place(self: &Arc<Self>) -> Option<NormalPlace> {
        let more = |taken: usize| (taken < CROWD_CONNECTIONS).then_some(taken.saturating_add(1));
        self.normal.fetch_update(Relaxed, Relaxed, more).ok().map(|_| NormalPlace(self.clone()))
    }
}

impl Presence {
    /// A new connection, which is active. `caller` is `None` for a trusted proxy.
    pub(super) fn new(caller: Option<Arc<CallerConnections>>) -> Self {
        let mut presence = Self { caller, priority: Priority::Normal, client: None, place: None };
        presence.start();
        presence
    }

    /// The priority.
    pub(super) fn priority(&self) -> Priority {
        self.priority
    }

    /// True if the connection is active.
    pub(super) fn is_active(&self) -> bool {
        self.client.is_some()
    }

    /// Makes the connection active, with normal priority if its caller has no more than a number of such ones.
    pub(super) fn start(&mut self) {
        self.client.get_or_insert_with(ConnectedClient::new);
        let Some(caller) = &self.caller else { return };
        if self.place.is_none() {
            self.place = caller.take_place();
        }
        self.priority = if self.place.is_some() { Priority::Normal } else { Priority::Crowd };
    }

    /// Ends the activity. If the caller has many connections, the next request is parsed by the crowd's threads.
    pub(super) fn end(&mut self) {
        (self.client, self.place) = (None, None);
        if self.caller.as_ref().is_some_and(|caller| caller.count() > CROWD_CONNECTIONS) {
            self.priority = Priority::Crowd;
        }
    }
}

impl Drop for NormalPlace {
    fn drop(&mut self) {
        self.0.normal.fetch_sub(1, Relaxed);
    }
}
