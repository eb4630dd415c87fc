//! Keeps work to a part of the time and of the disk.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

/// The time of rest for each time of work: a tenth of a processor is used at most.
const REST: u32 = 9;

/// The pauses between steps of work. They end early if the other end of the channel is dropped.
pub(super) struct Throttle {
    stopped: Receiver<()>,
    bytes_per_second: u64,
    started: Instant,
}

/// The other end of the channel was dropped.
pub(super) struct Stopped;

impl Throttle {
    pub(super) fn new(stopped: Receiver<()>, bytes_per_second: u64) -> Self {
        Self { stopped, bytes_per_second, started: Instant::now() }
    }

    /// Starts a step of work.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Ends a step that read this number of bytes, and rests.
    pub(super) fn end(&mut self, bytes: u64) -> Result<(), Stopped> {
        self.wait(self.rest(self.started.elapsed(), bytes))
    }

    fn rest(&self, worked: Duration, bytes: u64) -> Duration {
        let nanos = u128::from(bytes).saturating_mul(1_000_000_000) / u128::from(self.bytes_per_second.max(1));
        let least = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        worked.saturating_mul(REST).max(least.saturating_sub(worked))
    }

    pub(super) fn wait(&self, time: Duration) -> Result<(), Stopped> {
        match self.stopped.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Err(Stopped),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn rests_are_for_a_tenth_of_the_time_and_for_the_bytes() {
        let (_stop, stopped) = mpsc::channel();
        let throttle = Throttle::new(stopped, 1 << 20);
        assert_eq!(throttle.rest(Duration::from_millis(10), 0), Duration::from_millis(90));
        assert_eq!(throttle.rest(Duration::from_millis(10), 1 << 20), Duration::from_millis(990));
    }

    #[test]
    fn pauses_end_when_the_store_is_closed() {
        let (stop, stopped) = mpsc::channel();
        let throttle = Throttle::new(stopped, 1);
        assert!(throttle.wait(Duration::from_millis(1)).is_ok());
        drop(stop);
        assert!(throttle.wait(Duration::from_secs(1000)).is_err());
    }
}
