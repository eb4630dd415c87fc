//! Faults that tests cause: syncs of the log that wait, or fail. Without the feature `test-faults` there are none.

use std::io;

/// The faults of a store's log. Clones are the same ones.
#[cfg(feature = "test-faults")]
#[derive(Clone, Debug, Default)]
pub struct SyncFault(std::sync::Arc<(parking_lot::Mutex<State>, parking_lot::Condvar)>);

/// The faults of a store's log: none.
#[cfg(not(feature = "test-faults"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncFault;

#[cfg(feature = "test-faults")]
#[derive(Debug, Default)]
struct State {
    paused: bool,
    /// How many syncs may be made while the others are held.
    allowed: u32,
    failing: bool,
}

#[cfg(feature = "test-faults")]
impl SyncFault {
    /// Lets every sync wait from now on.
    pub fn pause(&self) {
        self.0.0.lock().paused = true;
    }

    /// Lets one of the syncs that wait, or the next, be made.
    pub fn allow_one(&self) {
        let mut state = self.0.0.lock();
        state.allowed = state.allowed.saturating_add(1);
        drop(state);
        self.0.1.notify_all();
    }

    /// Lets no sync wait any more.
    pub fn resume(&self) {
        *self.0.0.lock() = State::default();
        self.0.1.notify_all();
    }

    /// Lets the syncs fail that wait, and every later one.
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
        if state.failing { Err(io::Error::other("a fault that a test caused")) } else { Ok(()) }
    }
}

#[cfg(not(feature = "test-faults"))]
impl SyncFault {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(crate) fn before_sync(&self) -> io::Result<()> {
        Ok(())
    }
}
