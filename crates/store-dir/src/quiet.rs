//! The time that a file has to be quiet before it is read.

use std::{
    collections::HashMap,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::Mutex;
use zarrd_store::Version;

use crate::attributes::{Attributes, Time};

/// The quiet time of files that may still be written, and on file systems whose times may be as coarse as two seconds, or
/// are set by another machine.
pub(crate) const LONG: Duration = Duration::from_secs(2);

/// The quiet time of files that are complete, on file systems with times of this machine, which advance at least every
/// 10 ms.
const SHORT: Duration = Duration::from_millis(50);

/// Nanoseconds that are a multiple of this are those of a file system that stores times more coarsely.
const COARSE_UNIT: u32 = 1_000_000;

/// The maximum number of recorded files whose times are in the future.
const MAX_SEEN: usize = 4096;

/// The precision of the times of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Fine,
    Coarse,
}

/// Decides how long a file has to be quiet.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    /// The files whose times are in the future, and when they were seen first.
    seen: Mutex<HashMap<Version, Instant>>,
}

impl Quiet {
    /// The time after which a file has been quiet if its attributes are still the same; `None` if it has been already.
    /// `version` stands for the file and its attributes.
    pub(crate) fn wait(
        &self,
        attributes: &Attributes,
        version: impl FnOnce() -> Version,
        precision: Precision,
    ) -> Option<Duration> {
        self.wait_at(attributes, version, precision, (SystemTime::now(), Instant::now()))
    }

    fn wait_at(
        &self,
        attributes: &Attributes,
        version: impl FnOnce() -> Version,
        precision: Precision,
        now: (SystemTime, Instant),
    ) -> Option<Duration> {
        let needed = quiet_time(attributes, precision);
        let quiet = match now.0.duration_since(attributes.changed.system()) {
            Ok(age) => age,
            Err(_) => self.seen_for(version(), now.1),
        };
        needed.checked_sub(quiet).filter(|wait| !wait.is_zero())
    }

    /// The time for which a file with times in the future has been known to this process with these attributes.
    fn seen_for(&self, version: Version, now: Instant) -> Duration {
        let mut seen = self.seen.lock();
        if seen.len() >= MAX_SEEN && !seen.contains_key(&version) {
            seen.clear();
        }
        now.saturating_duration_since(*seen.entry(version).or_insert(now))
    }
}

/// The time that a file has to be quiet after its time of change.
fn quiet_time(attributes: &Attributes, precision: Precision) -> Duration {
    let Attributes { modified, changed, created, .. } = *attributes;
    let is_fine = precision == Precision::Fine && !changed.nanoseconds.is_multiple_of(COARSE_UNIT);
    // A write sets both times to the same one.
    if !is_fine || changed <= modified {
        return LONG;
    }
    // Another time of change is that of something after the beginning of the last write. In a file that was created for
    // these bytes it is the rename, or the like, of a writer that is done. In an older one, which is written in place, it
    // may be any program's that gives the file a mode, an owner or another name meanwhile, and says nothing.
    let since = |earlier: Time, later: Time| later.system().duration_since(earlier.system()).unwrap_or_default();
    let is_new = created.is_some_and(|created| since(created, modified) <= LONG);
    if is_new { SHORT } else { LONG.saturating_sub(since(modified, changed)).max(SHORT) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::{FileId, Kind};

    const CHANGED: Time = Time { seconds: 1_700_000_000, nanoseconds: 123_456_789 };
    const FILE: Version = Version::from_u128(1);

    /// A time before that of the change.
    const BEFORE: Time = Time { seconds: 1_700_000_000, nanoseconds: 123_456_788 };

    fn attributes(modified: Time, changed: Time) -> Attributes {
        let id = FileId { device: (8, 1), inode: 42 };
        Attributes { id, kind: Kind::Regular, size: 10, links: 1, modified, changed, created: Some(modified) }
    }

    #[test]
    fn the_quiet_time_is_short_only_if_the_file_is_complete_and_its_times_are_fine() {
        let ms = Duration::from_millis;
        let rounded = Time { nanoseconds: 120_000_000, ..CHANGED };
        let future = Time { seconds: 2_000_000_000, nanoseconds: 0 };
        let old = Time { seconds: -1, nanoseconds: 0 };
        for (modified, changed, precision, needed) in [
            (BEFORE, CHANGED, Precision::Fine, 50),
            (old, CHANGED, Precision::Fine, 50),
            (CHANGED, CHANGED, Precision::Fine, 2_000),
            (future, CHANGED, Precision::Fine, 2_000),
            (BEFORE, CHANGED, Precision::Coarse, 2_000),
            (old, rounded, Precision::Fine, 2_000),
        ] {
            let file = attributes(modified, changed);
            let wait = |age| {
                let now = (changed.system() + ms(age), Instant::now());
                Quiet::default().wait_at(&file, || FILE, precision, now)
            };
            assert_eq!(wait(0), Some(ms(needed)), "{file:?} {precision:?}");
            assert_eq!(wait(needed - 1), Some(ms(1)), "{file:?} {precision:?}");
            assert_eq!(wait(needed), None, "{file:?} {precision:?}");
        }
    }

    #[test]
    fn the_quiet_time_is_long_after_a_write_to_a_file_that_existed_before() {
        let before = |millis: u64| {
            let time = CHANGED.system().duration_since(SystemTime::UNIX_EPOCH).unwrap() - Duration::from_millis(millis);
            Time { seconds: i64::try_from(time.as_secs()).unwrap(), nanoseconds: time.subsec_nanos() }
        };
        for (created, modified, needed) in [
            (Some(before(10_000)), before(20), 1_980),
            (Some(before(10_000)), before(1_500), 500),
            (Some(before(10_000)), before(1_990), 50),
            (Some(before(10_000)), before(9_000), 50),
            (Some(before(2_020)), before(20), 50),
            (Some(before(2_021)), before(20), 1_980),
            (Some(before(0)), before(10_000), 50),
            (None, before(20), 1_980),
            (None, before(3_000), 50),
        ] {
            let file = Attributes { created, ..attributes(modified, CHANGED) };
            assert_eq!(quiet_time(&file, Precision::Fine), Duration::from_millis(needed), "{file:?}");
            assert_eq!(quiet_time(&file, Precision::Coarse), LONG, "{file:?}");
        }
    }

    #[test]
    fn a_file_from_the_future_is_quiet_when_it_was_seen_for_long_enough() {
        let quiet = Quiet::default();
        let (file, begun) = (attributes(BEFORE, CHANGED), Instant::now());
        let wait = |version, after: u64| {
            let clock = CHANGED.system() - Duration::from_secs(3_600);
            let now = begun + Duration::from_millis(after);
            quiet.wait_at(&file, || version, Precision::Coarse, (clock, now))
        };
        assert_eq!(wait(FILE, 0), Some(Duration::from_secs(2)));
        assert_eq!(wait(FILE, 1_500), Some(Duration::from_millis(500)));
        assert_eq!(wait(FILE, 2_000), None);
        assert_eq!(wait(Version::from_u128(2), 2_000), Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_memory_of_files_from_the_future_is_bounded() {
        let quiet = Quiet::default();
        for number in 0..10_000 {
            quiet.seen_for(Version::from_u128(number), Instant::now());
        }
        assert!(quiet.seen.lock().len() <= MAX_SEEN);
    }
}
