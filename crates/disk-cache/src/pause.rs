//! Pauses after the disk did not answer in time.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time for which a disk that did not answer is not waited for.
const LEN: Duration = Duration::from_secs(60);

/// A pause of the requests of one kind, which begins when the disk does not answer one in time. At its end one request finds out
/// whether the disk answers again, and the others are still refused.
#[derive(Debug, Default)]
pub(crate) struct Pause(Mutex<Option<Instant>>);

impl Pause {
    /// True if the disk may be waited for.
    pub(crate) fn admits(&self) -> bool {
        self.admits_at(Instant::now())
    }

    /// Starts a pause.
    pub(crate) fn start(&self) {
        self.start_at(Instant::now());
    }

    /// Ends the pause: the disk has answered.
    pub(crate) fn end(&self) {
        *self.0.lock() = None;
    }

    fn admits_at(&self, now: Instant) -> bool {
        let mut until = self.0.lock();
        match *until {
            Some(end) if now < end => false,
            Some(_) => {
                *until = now.checked_add(LEN);
                true
            }
            None => true,
        }
    }

    fn start_at(&self, now: Instant) {
        *self.0.lock() = now.checked_add(LEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_is_admitted_at_the_end_of_a_pause() {
        let (pause, start) = (Pause::default(), Instant::now());
        assert!(pause.admits_at(start) && pause.admits_at(start));
        pause.start_at(start);
        assert!(!pause.admits_at(start) && !pause.admits_at(start + LEN / 2));
        assert!(pause.admits_at(start + LEN));
        assert!(!pause.admits_at(start + LEN), "the first one finds out");
        pause.end();
        assert!(pause.admits_at(start + LEN));
    }
}
