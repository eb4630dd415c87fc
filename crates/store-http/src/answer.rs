//! Judging answers: the properties of a value in them, and the signs that their bytes are not its bytes.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::{
    HeaderMap, HeaderName, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, LAST_MODIFIED},
};
use zarrd_store::{ByteRange, Key, ValueMeta};
use zarrd_store_remote::{Pins, is_strong};

use crate::{failure::Failure, url::Versions};

/// The time after which a modification within the same second would have another time.
const QUIET: Duration = Duration::from_secs(2);

/// The condition of a request that pins it to one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// The strong entity tag, as the server sent it.
    ETag(Arc<str>),
    /// The time of modification, as the server sent it.
    Modified(Arc<str>),
    /// No condition: the value never changes.
    Constant,
}

/// An answer with a value or a range of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) meta: ValueMeta,
    pub(crate) pin: Pin,
    /// The range of the value that was requested for; `None` if it has no byte of it.
    pub(crate) range: Option<Range<u64>>,
    /// The number of bytes in the body before that range.
    pub(crate) skip: u64,
}

/// The head of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'h> {
    pub(crate) status: StatusCode,
    pub(crate) headers: &'h HeaderMap,
}

impl<'h> Head<'h> {
    /// Checks the answer to a request for the value of a key, or a range of it. Fails if its body is not
    /// the value.
    pub(crate) fn check(
        self,
        pins: &Pins<Pin>,
        versions: Versions,
        key: &Key,
        requested: Option<ByteRange>,
    ) -> Result<Answer, Failure> {
        if self.text(&CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(Failure::Encoded);
        }
        if self.is_page() && !is_page_name(key) {
            return Err(Failure::Html);
        }
        let length = self.text(&CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
        let (size, range, skip) = match self.status {
            StatusCode::PARTIAL_CONTENT => {
                let (range, size) = self.content_range().ok_or(Failure::Range)?;
                let requested = requested.and_then(|requested| requested.resolve(size));
                let len = range.end.saturating_sub(range.start);
                if requested.as_ref() != Some(&range) || length.is_some_and(|length| length != len) {
                    return Err(Failure::Range);
                }
                (size, Some(range), 0)
            }
            StatusCode::OK => {
                let size = length.ok_or(Failure::NoLength)?;
                // The server may ignore ranges.
                let range = requested.map_or(Some(0..size), |requested| requested.resolve(size));
                let skip = range.as_ref().map_or(0, |range| range.start);
                (size, range, skip)
            }
            status => return Err(Failure::refused(status.as_u16())),
        };
        let (meta, pin) = self.validate(pins, versions, key, size)?;
        Ok(Answer { meta, pin, range, skip })
    }

    /// The metadata of the value, and what pins it.
    fn validate(self, pins: &Pins<Pin>, versions: Versions, key: &Key, size: u64) -> Result<(ValueMeta, Pin), Failure> {
        let last_modified = self.text(&LAST_MODIFIED);
        let modified = last_modified.and_then(|text| httpdate::parse_http_date(text).ok());
        let etag = self.text(&ETAG).filter(|etag| is_strong(etag));
        let (version, pin) = match (etag, last_modified.zip(modified)) {
            (Some(etag), modified) => {
                if let Some((_, modified)) = modified.filter(|(_, modified)| is_time(etag, *modified)) {
                    self.check_quiet(modified)?;
                }
                (pins.version(key, "etag", etag, size), Pin::ETag(etag.into()))
            }
            (None, Some((text, modified))) if versions == Versions::LastModified => {
                self.check_quiet(modified)?;
                (pins.version(key, "last-modified", text, size), Pin::Modified(text.into()))
            }
            (None, modified) if versions == Versions::Constant => {
                let validator = self.text(&ETAG).or(modified.map(|(text, _)| text)).unwrap_or_default();
                (pins.version(key, "constant", validator, size), Pin::Constant)
            }
            (None, Some(_)) => return Err(Failure::NoValidator),
            (None, None) => return Err(Failure::NoTime),
        };
        pins.insert(version, pin.clone());
        Ok((
            ValueMeta {
                size,
                version,
                modified: modified.unwrap_or(UNIX_EPOCH),
                attributes: zarrd_store::Attributes::NONE,
            },
            pin,
        ))
    }

    /// Fails if the value may change again without changing its time, which has seconds only. Both times are of the
    /// server's clock.
    fn check_quiet(self, modified: SystemTime) -> Result<(), Failure> {
        let date = self.text(&DATE).and_then(|text| httpdate::parse_http_date(text).ok());
        let age = date.ok_or(Failure::NoTime)?.duration_since(modified).unwrap_or_default();
        match QUIET.saturating_sub(age) {
            Duration::ZERO => Ok(()),
            remaining => Err(Failure::Young { remaining }),
        }
    }

    /// The range of the body, and the size of the value.
    fn content_range(self) -> Option<(Range<u64>, u64)> {
        let (range, size) = self.text(&CONTENT_RANGE)?.strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, size) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, size.parse().ok()?);
        let range = first..last.checked_add(1)?;
        (range.start < range.end && range.end <= size).then_some((range, size))
    }

    fn is_page(self) -> bool {
        let media_type = self.text(&CONTENT_TYPE).and_then(|text| text.split(';').next()).unwrap_or_default();
        ["text/html", "application/xhtml+xml"].iter().any(|page| media_type.trim().eq_ignore_ascii_case(page))
    }

    fn text(self, name: &HeaderName) -> Option<&'h str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// True if an entity tag is made of the time of modification in seconds, and the size, as nginx does (`"6a0f1c2d-400"`).
/// Two values of one second and one size have the same.
fn is_time(etag: &str, modified: SystemTime) -> bool {
    let time = etag.trim_matches('"').split_once('-').and_then(|(time, _)| u64::from_str_radix(time, 16).ok());
    let modified = modified.duration_since(UNIX_EPOCH).ok().map(|modified| modified.as_secs());
    time.is_some() && time == modified
}

/// True if a value of this key may be a page.
fn is_page_name(key: &Key) -> bool {
    let name = key.name().to_ascii_lowercase();
    [".html", ".htm", ".xhtml"].iter().any(|extension| name.ends_with(extension))
}

/// The time of a `Retry-After`: seconds, or until a date.
pub(crate) fn delay(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, headers: &[(HeaderName, &str)], requested: Option<ByteRange>) -> Result<Answer, Failure> {
        judge_as("c/0", Versions::ETag, status, headers, requested)
    }

    fn judge_as(
        key: &str,
        versions: Versions,
        status: u16,
        headers: &[(HeaderName, &str)],
        requested: Option<ByteRange>,
    ) -> Result<Answer, Failure> {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let head = Head { status: StatusCode::from_u16(status).unwrap(), headers: &headers };
        head.check(&Pins::new("http://h/"), versions, &Key::parse(key).unwrap(), requested)
    }

    const TAG: (HeaderName, &str) = (ETAG, "\"x\"");

    #[test]
    fn a_range_is_the_one_that_was_asked_for() {
        let requested = ByteRange::bounded(2, 5).ok();
        let found = check(206, &[TAG, (CONTENT_RANGE, "bytes 2-4/10"), (CONTENT_LENGTH, "3")], requested).unwrap();
        assert_eq!((found.meta.size, found.range, found.skip), (10, Some(2..5), 0));
        let found = check(206, &[TAG, (CONTENT_RANGE, "bytes 2-3/4")], requested).unwrap();
        assert_eq!((found.meta.size, found.range), (4, Some(2..4)));
        for range in [
            "bytes 1-4/10",
            "bytes 2-5/10",
            "bytes 2-4/*",
            "bytes */10",
            "bytes 4-2/10",
            "bytes 2-4/3",
            "2-4/10",
            "",
            "bytes 2-18446744073709551615/18446744073709551615",
        ] {
            assert_eq!(check(206, &[TAG, (CONTENT_RANGE, range)], requested), Err(Failure::Range), "{range}");
        }
        let short = [TAG, (CONTENT_RANGE, "bytes 2-4/10"), (CONTENT_LENGTH, "2")];
        assert_eq!(check(206, &short, requested), Err(Failure::Range));
        assert_eq!(check(206, &[TAG, (CONTENT_RANGE, "bytes 0-9/10")], None), Err(Failure::Range));
        assert_eq!(check(206, &[TAG], requested), Err(Failure::Range));
    }

    #[test]
    fn a_whole_value_has_the_range_within_it() {
        let whole = [TAG, (CONTENT_LENGTH, "10")];
        let found = |requested| check(200, &whole, requested).map(|found| (found.range, found.skip)).unwrap();
        assert_eq!(found(None), (Some(0..10), 0));
        assert_eq!(found(Some(ByteRange::From(7))), (Some(7..10), 7));
        assert_eq!(found(Some(ByteRange::last(3).unwrap())), (Some(7..10), 7));
        assert_eq!(found(Some(ByteRange::From(10))), (None, 0));
        assert_eq!(check(200, &[TAG], None), Err(Failure::NoLength));
        assert_eq!(check(204, &[TAG], None), Err(Failure::refused(204)));
    }

    #[test]
    fn only_a_strong_tag_tells_values_apart_unless_times_are_allowed_to() {
        let version = |headers: &[_]| check(200, headers, None).map(|found| found.meta.version);
        let length = (CONTENT_LENGTH, "3");
        let first = version(&[TAG, length.clone()]).unwrap();
        assert_ne!(version(&[(ETAG, "\"y\""), length.clone()]).unwrap(), first);
        assert_ne!(version(&[TAG, (CONTENT_LENGTH, "4")]).unwrap(), first);
        let time = (LAST_MODIFIED, "Mon, 02 Nov 2026 10:00:00 GMT");
        for etag in ["W/\"x\"", "\"\"", ""] {
            let headers = [(ETAG, etag), length.clone(), time.clone()];
            assert_eq!(version(&headers), Err(Failure::NoValidator), "{etag}");
        }
        let timed = |date: &'static str, modified: &'static str| {
            let headers = [length.clone(), (LAST_MODIFIED, modified), (DATE, date)];
            judge_as("c/0", Versions::LastModified, 200, &headers, None)
        };
        let quiet = timed("Mon, 02 Nov 2026 10:00:02 GMT", time.1).unwrap();
        assert_eq!(quiet.pin, Pin::Modified(time.1.into()));
        assert_eq!(timed("Mon, 02 Nov 2026 11:00:00 GMT", time.1).unwrap().meta, quiet.meta);
        let young = |seconds| Err(Failure::Young { remaining: Duration::from_secs(seconds) });
        assert_eq!(timed("Mon, 02 Nov 2026 10:00:01 GMT", time.1), young(1));
        assert_eq!(timed("Mon, 02 Nov 2026 09:00:00 GMT", time.1), young(2));
        assert_eq!(timed("", time.1), Err(Failure::NoTime));
        assert_eq!(timed("Mon, 02 Nov 2026 10:00:02 GMT", "yesterday"), Err(Failure::NoTime));
    }

    #[test]
    fn values_that_never_change_need_no_strong_tag_and_no_time() {
        let length = (CONTENT_LENGTH, "3");
        let checked = |versions, headers: &[(HeaderName, &str)]| {
            let headers = [headers, std::slice::from_ref(&length)].concat();
            judge_as("c/0", versions, 200, &headers, None).map(|found| (found.meta.version, found.pin))
        };
        let weak = (ETAG, "W/\"x\"");
        for versions in [Versions::ETag, Versions::LastModified] {
            for headers in [&[weak.clone()][..], &[]] {
                let failure = checked(versions, headers).unwrap_err();
                assert_eq!(failure, Failure::NoTime);
                assert!(!failure.to_string().contains("versions="), "{failure}");
            }
        }
        let (version, pin) = checked(Versions::Constant, &[weak]).unwrap();
        assert_eq!(pin, Pin::Constant);
        // A file that was replaced nevertheless is noticed if the server shows it.
        assert_ne!(checked(Versions::Constant, &[(ETAG, "W/\"y\"")]).unwrap().0, version);
        let time = (LAST_MODIFIED, "Mon, 02 Nov 2026 10:00:00 GMT");
        assert_ne!(checked(Versions::Constant, &[time]).unwrap().0, checked(Versions::Constant, &[]).unwrap().0);
        assert_eq!(checked(Versions::Constant, &[TAG]).unwrap().1, Pin::ETag("\"x\"".into()));
    }

    #[test]
    fn a_tag_of_nginx_tells_values_apart_once_they_are_quiet() {
        let checked = |etag: &'static str, date: &'static str| {
            let modified = (LAST_MODIFIED, "Mon, 02 Nov 2026 10:00:00 GMT");
            let headers = [(ETAG, etag), (CONTENT_LENGTH, "1024"), modified, (DATE, date)];
            check(200, &headers, None).map(|found| found.pin)
        };
        let of_time = format!("\"{:x}-400\"", 1_793_613_600);
        let of_time: &'static str = of_time.leak();
        let young = |seconds| Err(Failure::Young { remaining: Duration::from_secs(seconds) });
        assert_eq!(checked(of_time, "Mon, 02 Nov 2026 10:00:00 GMT"), young(2));
        assert_eq!(checked(of_time, "Mon, 02 Nov 2026 10:00:02 GMT"), Ok(Pin::ETag(of_time.into())));
        assert_eq!(checked(of_time, ""), Err(Failure::NoTime));
        for other in ["\"6ae72a1f-400\"", "\"x\"", "\"-\"", "\"d41d8cd98f00b204e9800998ecf8427e-2\""] {
            assert_eq!(checked(other, "Mon, 02 Nov 2026 10:00:00 GMT"), Ok(Pin::ETag(other.into())), "{other}");
        }
    }

    #[test]
    fn pages_and_coded_answers_are_no_values() {
        let html = |key, kind| {
            let headers = [TAG, (CONTENT_LENGTH, "3"), (CONTENT_TYPE, kind)];
            judge_as(key, Versions::ETag, 200, &headers, None).map(|_| ())
        };
        for key in ["zarr.json", "c/0", "a.htmls"] {
            assert_eq!(html(key, "text/html"), Err(Failure::Html), "{key}");
            assert_eq!(html(key, "Text/HTML; charset=utf-8"), Err(Failure::Html), "{key}");
            assert_eq!(html(key, "text/plain"), Ok(()), "{key}");
        }
        assert_eq!(html("about.HTML", "text/html"), Ok(()));
        for (coding, expected) in [("gzip", Err(Failure::Encoded)), ("br", Err(Failure::Encoded)), ("Identity", Ok(()))]
        {
            let headers = [TAG, (CONTENT_LENGTH, "3"), (CONTENT_ENCODING, coding)];
            assert_eq!(check(200, &headers, None).map(|_| ()), expected, "{coding}");
        }
    }

    #[test]
    fn delays_are_seconds_or_dates() {
        let now = httpdate::parse_http_date("Mon, 02 Nov 2026 10:00:00 GMT").unwrap();
        for (text, seconds) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Mon, 02 Nov 2026 10:01:00 GMT", Some(60)),
            ("Mon, 02 Nov 2026 09:00:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
        ] {
            assert_eq!(delay(text, now), seconds.map(Duration::from_secs), "{text}");
        }
    }
}
