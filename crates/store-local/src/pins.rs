//! Pins: what keeps a replaced value file until nobody needs it.
//!
//! A pin stands for the state after some commit. A file that commit `c` replaced may be needed by every pin that is
//! older than `c`, and is removed when the last of these goes. A pin that is left without progress for too long ends.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::{janitor::Janitor, record::FileId};

/// All pins of a store.
pub(crate) struct Pins {
    state: Mutex<State>,
    begin: Instant,
    timeout: Duration,
    janitor: Janitor,
}

/// Keeps what was visible when it was made. Dropping it ends it.
pub(crate) struct Pin {
    number: u64,
    shared: Arc<Shared>,
    pins: Arc<Pins>,
}

struct State {
    /// The last commit that is visible.
    visible: u64,
    next_number: u64,
    active: BTreeMap<(u64, u64), Arc<Shared>>,
    /// Files by the commit that replaced them, in the order of the commits.
    replaced: VecDeque<(u64, Vec<FileId>)>,
}

struct Shared {
    commit: u64,
    /// When the pin was last used, in milliseconds since [`Pins::begin`].
    used: AtomicU64,
    ended: AtomicBool,
}

impl Pins {
    pub(crate) fn new(visible: u64, timeout: Duration, janitor: Janitor) -> Arc<Self> {
        let state = State { visible, next_number: 0, active: BTreeMap::new(), replaced: VecDeque::new() };
        Arc::new(Self { state: Mutex::new(state), begin: Instant::now(), timeout, janitor })
    }

    /// Pins what is visible. Records that are looked up afterwards name files that stay.
    pub(crate) fn pin(self: &Arc<Self>) -> Pin {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        let commit = state.visible;
        let shared = Shared { commit, used: AtomicU64::new(self.now()), ended: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        state.active.insert((commit, number), Arc::clone(&shared));
        Pin { number, shared, pins: Arc::clone(self) }
    }

    /// Commits up to this one are visible and durable; these files were replaced by them.
    pub(crate) fn publish(&self, commit: u64, replaced: Vec<FileId>) {
        let mut state = self.state.lock();
        state.visible = commit;
        if !replaced.is_empty() {
            state.replaced.push_back((commit, replaced));
        }
        let free = state.free();
        drop(state);
        self.janitor.remove(free);
    }

    /// Ends pins that were left while something waits for them, and tells which files nobody needs any more.
    pub(crate) fn sweep(&self) -> Vec<FileId> {
        let now = self.now();
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        let Some(newest) = state.replaced.back().map(|(commit, _)| *commit) else { return Vec::new() };
        state.active.retain(|(commit, _), pin| {
            let left = now.saturating_sub(pin.used.load(Ordering::Relaxed)) > timeout;
            if *commit < newest && left {
                pin.ended.store(true, Ordering::Relaxed);
                return false;
            }
            true
        });
        state.free()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Pin {
    /// Notes progress. Whether the pin still holds.
    pub(crate) fn touch(&self) -> bool {
        self.shared.used.store(self.pins.now(), Ordering::Relaxed);
        !self.shared.ended.load(Ordering::Relaxed)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut state = self.pins.state.lock();
        state.active.remove(&(self.shared.commit, self.number));
        let free = state.free();
        drop(state);
        self.pins.janitor.remove(free);
    }
}

impl State {
    /// Takes out the files that no pin needs.
    fn free(&mut self) -> Vec<FileId> {
        let oldest = self.active.first_key_value().map(|((commit, _), _)| *commit);
        let mut free = Vec::new();
        while let Some((commit, _)) = self.replaced.front()
            && oldest.is_none_or(|oldest| oldest >= *commit)
        {
            free.extend(self.replaced.pop_front().into_iter().flat_map(|(_, files)| files));
        }
        free
    }
}
