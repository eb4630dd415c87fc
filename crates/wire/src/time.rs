//! Times: RFC 3339 with milliseconds in documents, the dates of RFC 9110 in headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last time that both forms can represent: the end of the year 9999.
const LAST: Duration = Duration::from_millis(253_402_300_799_999);

/// The longest time from when a store dates a value to when readers see it: it is made durable in between.
const SETTLING: Duration = Duration::from_secs(4);

/// Renders a time in RFC 3339, such as `2026-11-21T06:28:08.123Z`.
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(shown(time)).to_string()
}

/// Parses what [`rfc3339`] renders.
pub fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

/// Renders a time for headers, such as `Sat, 21 Nov 2026 06:28:08 GMT`.
pub fn http_date(time: SystemTime) -> String {
    httpdate::fmt_http_date(shown(time))
}

/// Parses a header's date in any of its three forms.
pub fn parse_http_date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// A time cut to the second, which is all that a header's date shows.
pub fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// The date that an answer at `now` says something was last modified.
///
/// A date is the beginning of a second, so the first that something was not modified since, to the millisecond, is that
/// of the second after it was set. This is shown once nothing can be set any more that has the same date: then it is a
/// strong validator (RFC 9110, section 8.8.2.2), and a condition with it holds. Before, it would be taken for the date
/// of what may still be set within that second, so the second of setting itself is shown, with which no condition
/// holds.
///
/// `now` must have been taken before the value was looked up.
pub fn last_modified(modified: SystemTime, now: SystemTime) -> SystemTime {
    let next = next_second(modified);
    if now >= next + SETTLING { next } else { whole_seconds(modified.min(now)) }
}

/// Compares: something was set before a date began, judged at `now`. This is what `If-Modified-Since` and
/// `If-Unmodified-Since` ask. A date that lies ahead counts as `now`, since nobody knows what will be set until then.
pub fn is_unmodified_since(modified: SystemTime, date: SystemTime, now: SystemTime) -> bool {
    modified < date.min(whole_seconds(now))
}

/// Compares: a date is the one that [`last_modified`] shows for good, as `If-Range` asks.
pub fn is_last_modified(modified: SystemTime, date: SystemTime, now: SystemTime) -> bool {
    date == next_second(modified) && is_unmodified_since(modified, date, now)
}

fn next_second(time: SystemTime) -> SystemTime {
    whole_seconds(time) + Duration::from_secs(1)
}

/// The nearest time that both forms can represent, from 1970 to 9999.
fn shown(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + time.duration_since(UNIX_EPOCH).unwrap_or_default().min(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_round_trip() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_242_488_123);
        assert_eq!(rfc3339(time), "2026-11-21T06:28:08.123Z");
        assert_eq!(parse_rfc3339("2026-11-21T06:28:08.123Z"), Some(time));
        assert_eq!(http_date(time), "Sat, 21 Nov 2026 06:28:08 GMT");
        assert_eq!(parse_http_date("Sat, 21 Nov 2026 06:28:08 GMT"), Some(whole_seconds(time)));
        assert_eq!(parse_http_date("yesterday"), None);
    }

    #[test]
    fn dates_are_validators_once_their_second_is_over() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        for (modified, now, shown, known) in [
            (10_100, 10_100, 10_000, false),
            (10_100, 11_000, 10_000, false),
            (10_100, 14_999, 10_000, false),
            (10_100, 15_000, 11_000, true),
            (10_000, 15_000, 11_000, true),
            (10_999, 99_000, 11_000, true),
            // The clock was put back.
            (20_000, 10_500, 10_000, false),
        ] {
            let (modified, now) = (at(modified), at(now));
            let date = last_modified(modified, now);
            assert_eq!(date, at(shown));
            assert_eq!(is_unmodified_since(modified, date, now), known);
            assert_eq!(is_last_modified(modified, date, now), known);
            assert!(!is_unmodified_since(modified, whole_seconds(modified), now), "an overwrite may have followed");
        }
        let (modified, ahead) = (at(10_100), at(99_000));
        assert!(!is_unmodified_since(modified, ahead, at(10_900)) && is_unmodified_since(modified, ahead, at(11_000)));
        let later = at(12_000);
        assert!(!is_last_modified(modified, later, at(20_000)) && is_unmodified_since(modified, later, at(20_000)));
        assert!(!is_last_modified(modified, at(11_000), at(10_900)), "it lies ahead");
    }

    #[test]
    fn unrepresentable_times_are_clamped() {
        let (early, late) = (UNIX_EPOCH - Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(1 << 40));
        assert_eq!(rfc3339(early), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(late), "9999-12-31T23:59:59.999Z");
        assert_eq!(http_date(late), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(whole_seconds(early), UNIX_EPOCH);
    }
}
