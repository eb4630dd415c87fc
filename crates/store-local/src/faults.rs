//! Faults for tests: syncs of the log that wait or fail, and slow passes over the records. Release builds do not have them.

use std::io;

/// Controls the syncs of a store's log. Clones share their state.
#[cfg(debug_assertions)]
#[derive(Clone, Debug, Default)]
pub struct SyncFault(std::sync::Arc<(parking_lot::Mutex<State>, parking_lot::Condvar)>);

/// In release builds, syncs are never paused and never fail.
#[cfg(not(debug_assertions))]
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncFault;

#[cfg(debug_assertions)]
#[derive(Debug, Default)]
struct State {
    paused: bool,
    /// The number of syncs that are allowed while others are paused.
    allowed: u32,
    failing: bool,
    /// The time between two slices of a pass over the records.
    pass_pause: std::time::Duration,
}

#[cfg(debug_assertions)]
impl SyncFault {
    /// Pauses all syncs.
    pub fn pause(&self) {
        self.0.0.lock().paused = true;
    }

    /// Allows one sync, paused or future.
    pub fn allow_one(&self) {
        let mut state = self.0.0.lock();
        state.allowed = state.allowed.saturating_add(1);
        drop(state);
        self.0.1.notify_all();
    }

    /// Resumes all syncs.
    pub fn resume(&self) {
        *self.0.0.lock() = State::default();
        self.0.1.notify_all();
    }

    /// Pauses passes over the records between two slices, for so long.
    pub fn pause_passes(&self, pause: std::time::Duration) {
        self.0.0.lock().pass_pause = pause;
    }

    pub(crate) fn between_slices(&self) {
        let pause = self.0.0.lock().pass_pause;
        std::thread::sleep(pause);
    }

    /// Lets all paused and future syncs fail.
    pub fn fail(&self) {
        *self.0.0.lock() = State { failing: true, ..State::default() };
        self.0.1.notify_all();
    }

    pub(crate) fn before_sync(&self) -> io::Result<()> {
        let mut state = self.0.0.lock();
        while state.paused && state.allowed == 0 {
            self.0.1.wait(&mut state);
        }
        state.allowed = state.allowed.saturating_sub(1);
        if state.failing { Err(io::Error::other("a fault injected by a test")) } else { Ok(()) }
    }
}

#[cfg(not(debug_assertions))]
impl SyncFault {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in debug builds")]
    pub(crate) fn before_sync(&self) -> io::Result<()> {
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "as in debug builds")]
    pub(crate) fn between_slices(&self) {}
}
