//! Times of modification that do not repeat.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::attributes::Time;

/// Times are earlier than now by this, which is more than a tick of the clock of a file system: so the time of change,
/// which the rename sets, is later, as it is in files of other writers that are complete.
const LEAD: Duration = Duration::from_millis(20);

/// Whole microseconds, so that file systems which store less than nanoseconds store them as they are, and so that the
/// times of other writers, which are read from a clock, are hardly ever equal to one of them.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The last time that was returned, in microseconds since 1970.
    last: Mutex<u64>,
}

impl Clock {
    /// A time that was not returned before, close to now.
    pub(super) fn next(&self) -> Time {
        self.next_after(SystemTime::now())
    }

    fn next_after(&self, now: SystemTime) -> Time {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(LEAD);
        let now = u64::try_from(since_1970.as_micros()).unwrap_or_default();
        let mut last = self.last.lock();
        *last = last.saturating_add(1).max(now);
        let time = Duration::from_micros(*last);
        Time { seconds: i64::try_from(time.as_secs()).unwrap_or_default(), nanoseconds: time.subsec_nanos() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_increase_even_if_the_clock_does_not() {
        let clock = Clock::default();
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let first = clock.next_after(now);
        assert_eq!(first, Time { seconds: 1_699_999_999, nanoseconds: 980_000_000 });
        let mut last = first;
        for clock_is in [now, now - Duration::from_secs(5), UNIX_EPOCH, now + Duration::from_nanos(1)] {
            let time = clock.next_after(clock_is);
            assert!(time > last, "{time:?} after {last:?}");
            assert_eq!(time.nanoseconds % 1000, 0);
            last = time;
        }
    }
}
