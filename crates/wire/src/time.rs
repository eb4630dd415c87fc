//! Times: RFC 3339 with milliseconds in documents, the dates of RFC 9110 in headers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last time that both forms can show: the end of the year 9999.
const LAST: Duration = Duration::from_millis(253_402_300_799_999);

/// A time as RFC 3339 has it, such as `2026-11-21T06:28:08.123Z`.
pub fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(shown(time)).to_string()
}

/// Parses what [`rfc3339`] renders.
pub fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(text).ok()
}

/// A time as headers have it, such as `Sat, 21 Nov 2026 06:28:08 GMT`.
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

/// A time that can be shown: times before 1970 and after 9999 become the nearest that can.
fn shown(time: SystemTime) -> SystemTime {
    UNIX_EPOCH + time.duration_since(UNIX_EPOCH).unwrap_or_default().min(LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_242_488_123);
        assert_eq!(rfc3339(time), "2026-11-21T06:28:08.123Z");
        assert_eq!(parse_rfc3339("2026-11-21T06:28:08.123Z"), Some(time));
        assert_eq!(http_date(time), "Sat, 21 Nov 2026 06:28:08 GMT");
        assert_eq!(parse_http_date("Sat, 21 Nov 2026 06:28:08 GMT"), Some(whole_seconds(time)));
        assert_eq!(parse_http_date("yesterday"), None);
    }

    #[test]
    fn times_that_cannot_be_shown_do_not_panic() {
        let (early, late) = (UNIX_EPOCH - Duration::from_secs(1), UNIX_EPOCH + Duration::from_secs(1 << 40));
        assert_eq!(rfc3339(early), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(late), "9999-12-31T23:59:59.999Z");
        assert_eq!(http_date(late), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(whole_seconds(early), UNIX_EPOCH);
    }
}
