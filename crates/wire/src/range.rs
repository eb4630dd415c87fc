//! `Range` and `Content-Range` (RFC 9110, section 14).

use std::ops::Range;

use zarrd_store::ByteRange;

/// The range that a `Range` header requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeRequest {
    /// One range.
    One(ByteRange),
    /// A valid range that no value satisfies: the last zero bytes.
    Unsatisfiable,
    /// The whole value: the header is malformed, names another unit, or asks for several ranges, which a server may
    /// ignore.
    Whole,
}

/// A `Content-Range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes that follow; `None` if the requested range contains none.
    pub range: Option<Range<u64>>,
    /// The length of the full value.
    pub size: u64,
}

/// Parses a `Range` header. Numbers too large for 64 bits count as the largest one.
pub fn parse(header: &str) -> RangeRequest {
    match single(header).and_then(spec) {
        Some(request) => request,
        None => RangeRequest::Whole,
    }
}

/// The `Range` header for a range.
pub fn render(range: ByteRange) -> String {
    match range {
        ByteRange::Bounded { start, end } => format!("bytes={start}-{}", end.saturating_sub(1)),
        ByteRange::From(start) => format!("bytes={start}-"),
        ByteRange::Last(count) => format!("bytes=-{count}"),
    }
}

impl ContentRange {
    /// The header's text. An empty range cannot be written and becomes `None`'s text.
    pub fn render(&self) -> String {
        match &self.range {
            Some(range) if range.start < range.end => {
                format!("bytes {}-{}/{}", range.start, range.end - 1, self.size)
            }
            _ => format!("bytes */{}", self.size),
        }
    }

    /// Parses the header. A range that does not lie within the value, and an unknown size, are `None`.
    pub fn parse(header: &str) -> Option<Self> {
        let (unit, rest) = header.split_once(' ')?;
        let (range, size) = rest.split_once('/')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let size = size.parse().ok()?;
        if range == "*" {
            return Some(Self { range: None, size });
        }
        let (first, last) = range.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < size).then(|| Self { range: Some(first..last + 1), size })
    }
}

/// The only element of the list of ranges; `None` if there is another number of them.
fn single(header: &str) -> Option<&str> {
    let (unit, list) = header.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut elements = list.split(',').map(|element| element.trim_matches([' ', '\t'])).filter(|e| !e.is_empty());
    let first = elements.next()?;
    elements.next().is_none().then_some(first)
}

fn spec(text: &str) -> Option<RangeRequest> {
    let (first, last) = text.split_once('-')?;
    if first.is_empty() {
        return Some(ByteRange::last(number(last)?).map_or(RangeRequest::Unsatisfiable, RangeRequest::One));
    }
    let first = number(first)?;
    if last.is_empty() {
        return Some(RangeRequest::One(ByteRange::From(first)));
    }
    let last = number(last)?;
    if last < first {
        return None;
    }
    // Only if both are the largest number is there no range, and no value reaches so far.
    Some(RangeRequest::One(ByteRange::bounded(first, last.saturating_add(1)).unwrap_or(ByteRange::From(first))))
}

fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn single_ranges_round_trip() {
        let bounded = |start, end| RangeRequest::One(ByteRange::bounded(start, end).unwrap());
        for (header, request) in [
            ("bytes=0-0", bounded(0, 1)),
            ("bytes=2-5", bounded(2, 6)),
            ("Bytes=2-5", bounded(2, 6)),
            ("bytes= 2-5\t,", bounded(2, 6)),
            ("bytes=,2-5", bounded(2, 6)),
            ("bytes=7-", RangeRequest::One(ByteRange::From(7))),
            ("bytes=-7", RangeRequest::One(ByteRange::Last(7))),
            ("bytes=-0", RangeRequest::Unsatisfiable),
            ("bytes=0-18446744073709551615", bounded(0, u64::MAX)),
            ("bytes=0-99999999999999999999999999", bounded(0, u64::MAX)),
            ("bytes=-99999999999999999999999999", RangeRequest::One(ByteRange::Last(u64::MAX))),
            ("bytes=99999999999999999999-99999999999999999999", RangeRequest::One(ByteRange::From(u64::MAX))),
        ] {
            assert_eq!(parse(header), request, "{header}");
        }
    }

    #[test]
    fn malformed_and_multiple_ranges_select_the_full_value() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=1",
            "bytes=1-2-3",
            "bytes=+1-2",
            "bytes=0 - 1",
            "bytes=0-1,3-4",
            "bytes=0-1,x",
            "items=0-1",
            "bytes 0-1",
            "bytes=--1",
            "bytes=0x1-2",
        ] {
            assert_eq!(parse(header), RangeRequest::Whole, "{header}");
        }
    }

    #[test]
    fn content_ranges_round_trip() {
        let some = ContentRange { range: Some(2..6), size: 10 };
        assert_eq!(some.render(), "bytes 2-5/10");
        assert_eq!(ContentRange::parse("bytes 2-5/10"), Some(some));
        let none = ContentRange { range: None, size: 10 };
        assert_eq!(none.render(), "bytes */10");
        assert_eq!(ContentRange::parse("bytes */10"), Some(none));
        for bad in ["", "bytes", "bytes 2-5/*", "bytes 5-2/10", "bytes 2-10/10", "items 2-5/10", "bytes 2-5/x"] {
            assert_eq!(ContentRange::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn rendered_ranges_parse_back(start: u64, end: u64, count in 1..=u64::MAX) {
            let bounded = ByteRange::bounded(start, end).ok();
            for range in bounded.into_iter().chain([ByteRange::From(start), ByteRange::Last(count)]) {
                prop_assert_eq!(parse(&render(range)), RangeRequest::One(range));
            }
        }
    }
}
