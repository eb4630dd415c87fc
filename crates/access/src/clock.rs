//! A clock that never goes back, and times as text.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The last time that RFC 3339 can represent: the end of the year 9999.
const LAST_MILLIS: u64 = 253_402_300_799_999;

/// The system's clock, or that of a test.
pub(crate) type TimeSource = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// The system's clock with a high-water mark: it stands still while the system's clock is behind it.
pub(crate) struct Clock {
    source: TimeSource,
    /// The latest time that was seen, in milliseconds since 1970.
    mark: AtomicU64,
}

impl Clock {
    pub(crate) fn new(source: TimeSource) -> Self {
        Self { source, mark: AtomicU64::new(0) }
    }

    /// The latest time that was ever seen, to the millisecond.
    pub(crate) fn now(&self) -> SystemTime {
        let system = millis((self.source)());
        from_millis(self.mark.fetch_max(system, Ordering::Relaxed).max(system))
    }

    /// Sees a time, such as one that is on disk.
    pub(crate) fn raise(&self, time: SystemTime) {
        self.mark.fetch_max(millis(time), Ordering::Relaxed);
    }
}

/// A time cut to what its text has: milliseconds, from 1970 to 9999.
pub(crate) fn representable(time: SystemTime) -> SystemTime {
    from_millis(millis(time))
}

/// Renders a time in RFC 3339, such as `2026-11-21T06:28:08.123Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(representable(time)).to_string()
}

/// Parses what [`rfc3339`] renders.
pub(crate) fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok().map(representable)
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).map_or(LAST_MILLIS, |millis| millis.min(LAST_MILLIS))
}

fn from_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(millis.min(LAST_MILLIS))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn clock_never_goes_back() {
        let system = Arc::new(AtomicU64::new(5_000));
        let source = Arc::clone(&system);
        let clock = Clock::new(Box::new(move || from_millis(source.load(Ordering::Relaxed))));
        assert_eq!(clock.now(), from_millis(5_000));
        system.store(1_000, Ordering::Relaxed);
        assert_eq!(clock.now(), from_millis(5_000));
        clock.raise(from_millis(7_000));
        assert_eq!(clock.now(), from_millis(7_000));
        clock.raise(from_millis(6_000));
        system.store(8_000, Ordering::Relaxed);
        assert_eq!(clock.now(), from_millis(8_000));
    }

    #[test]
    fn times_are_cut_to_their_text() {
        let far = UNIX_EPOCH + Duration::from_secs(1 << 40);
        for (time, text) in [
            (UNIX_EPOCH + Duration::from_nanos(1_795_242_488_123_456_789), "2026-11-21T06:28:08.123Z"),
            (UNIX_EPOCH - Duration::from_secs(1), "1970-01-01T00:00:00.000Z"),
            (far, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(rfc3339(time), text);
            assert_eq!(parse_rfc3339(text), Some(representable(time)));
        }
        assert_eq!(parse_rfc3339("tomorrow"), None);
    }
}
