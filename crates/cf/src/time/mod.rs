//! Times: calendars, the units of encoded times, and ISO 8601.

pub(crate) mod calendar;
pub(crate) mod iso;
pub(crate) mod units;

/// The number of nanoseconds of a day.
pub(crate) const NS_PER_DAY: i128 = 86_400_000_000_000;
/// The number of nanoseconds of a second.
pub(crate) const NS_PER_SECOND: i128 = 1_000_000_000;
/// "Not a time".
pub(crate) const NOT_A_TIME: i64 = i64::MIN;
