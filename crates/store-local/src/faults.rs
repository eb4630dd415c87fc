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
    held: bool,
    /// How many syncs may be made while the others are held.
    passes: u32,
    fails: bool,
}

#[cfg(feature = "test-faults")]
impl SyncFault {
    /// Lets every sync wait from now on.
    pub fn pause(&self) {
        self.0.0.lock().held = true;
    }

    /// Lets one of the syncs that wait, or the next, be made.
    pub fn allow_one(&self) {
        let mut state = self.0.0.lock();
        state.passes = state.passes.saturating_add(1);
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
        *self.0.0.lock() = State { fails: true, ..State::default() };
        self.0.1.notify_all();
    }

    pub(crate) fn before_sync(&self) -> io::Result<()> {
        let mut state = self.0.0.lock();
        while state.held && state.passes == 0 {
            self.0.1.wait(&mut state);
        }
        state.passes = state.passes.saturating_sub(1);
        if state.fails { Err(io::Error::other("a fault that a test caused")) } else { Ok(()) }
    }
}

#[cfg(not(feature = "test-faults"))]
impl SyncFault {
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with the feature")]
    pub(crate) fn before_sync(&self) -> io::Result<()> {
        Ok(())
    }
}
