//! Versions as entity tags, and the preconditions `If-Match` and `If-None-Match` (RFC 9110, sections 8.8.3 and 13.1).

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{IF_MATCH, IF_NONE_MATCH},
};
use zarrd_store::{Precondition, Version, VersionMatch};

/// A header that lists entity tags is neither `*` nor such a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{header} is neither `*` nor a list of entity tags in double quotes")]
pub struct EtagError {
    /// The header's name.
    pub header: &'static str,
}

/// The comparison of entity tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    /// A weak tag matches nothing.
    Strong,
    /// A weak tag matches like a strong one.
    Weak,
}

/// The strong entity tag of a version: its text in double quotes.
pub fn render(version: Version) -> HeaderValue {
    let mut tag = [b'"'; 34];
    let [_, digits @ .., _] = &mut tag;
    // 16 bytes have 32 digits.
    let _ = hex::encode_to_slice(version.as_u128().to_be_bytes(), digits);
    // Hexadecimal digits and quotes are always a header value.
    HeaderValue::from_bytes(&tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The strong entity tag of a version, as text.
pub fn text(version: Version) -> String {
    format!("\"{version}\"")
}

/// The version that a strong entity tag of ours stands for.
pub fn parse(tag: &str) -> Option<Version> {
    tag.strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}

/// The precondition of `If-Match` and `If-None-Match`; without members if neither is present.
///
/// Tags that are not ours match no version and are left out, so the list can be empty; so are weak ones in `If-Match`,
/// which compares strongly.
pub fn precondition(headers: &HeaderMap) -> Result<Precondition, EtagError> {
    Ok(Precondition {
        if_match: listed(headers, IF_MATCH, Comparison::Strong).ok_or(EtagError { header: "If-Match" })?,
        if_none_match: listed(headers, IF_NONE_MATCH, Comparison::Weak).ok_or(EtagError { header: "If-None-Match" })?,
    })
}

/// The value of `If-Match` or `If-None-Match` that asks for `wanted`.
pub fn render_list(wanted: &VersionMatch) -> HeaderValue {
    let text = match wanted {
        VersionMatch::Any => return HeaderValue::from_static("*"),
        VersionMatch::OneOf(versions) => versions.iter().copied().map(text).collect::<Vec<_>>().join(", "),
    };
    // An empty list would be no precondition at all. The empty tag is valid and matches nothing.
    if text.is_empty() {
        return HeaderValue::from_static("\"\"");
    }
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Outer `None`: malformed. Inner `None`: not there.
fn listed(headers: &HeaderMap, name: HeaderName, comparison: Comparison) -> Option<Option<VersionMatch>> {
    let mut lines = headers.get_all(name).iter().peekable();
    if lines.peek().is_none() {
        return Some(None);
    }
    let (mut versions, mut tags, mut stars) = (Vec::new(), 0_usize, 0_usize);
    for line in lines {
        let mut rest = line.as_bytes().trim_ascii();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(b"*") {
                stars += 1;
                rest = next_element(after)?;
            } else if let Some(after) = rest.strip_prefix(b",") {
                rest = after.trim_ascii_start();
            } else {
                let (version, after) = tag(rest, comparison)?;
                versions.extend(version);
                tags += 1;
                rest = next_element(after)?;
            }
        }
    }
    match (tags, stars) {
        (0, 1) => Some(Some(VersionMatch::Any)),
        (1.., 0) => Some(Some(VersionMatch::OneOf(versions))),
        _ => None,
    }
}

/// The first tag of a list, as a version if it is one of ours that can match, and what follows it.
fn tag(list: &[u8], comparison: Comparison) -> Option<(Option<Version>, &[u8])> {
    let (weak, rest) = match list.strip_prefix(b"W/") {
        Some(rest) => (true, rest),
        None => (false, list),
    };
    let rest = rest.strip_prefix(b"\"")?;
    let end = rest.iter().position(|&byte| byte == b'"')?;
    let (opaque, after) = (rest.get(..end)?, rest.get(end + 1..)?);
    if !opaque.iter().all(|&byte| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)) {
        return None;
    }
    let can_match = !weak || comparison == Comparison::Weak;
    let version = std::str::from_utf8(opaque).ok().filter(|_| can_match).and_then(|text| text.parse().ok());
    Some((version, after))
}

/// The text after the comma that follows an element; `None` if something else follows.
fn next_element(after: &[u8]) -> Option<&[u8]> {
    let after = after.trim_ascii_start();
    if after.is_empty() {
        return Some(after);
    }
    after.strip_prefix(b",").map(<[u8]>::trim_ascii_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Version = Version::from_u128(1);
    const TWO: Version = Version::from_u128(2);

    fn headers(name: HeaderName, lines: &[&[u8]]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), HeaderValue::from_bytes(line).unwrap())).collect()
    }

    fn if_match(lines: &[&[u8]]) -> Result<Option<VersionMatch>, EtagError> {
        precondition(&headers(IF_MATCH, lines)).map(|found| found.if_match)
    }

    fn if_none_match(line: &str) -> Result<Option<VersionMatch>, EtagError> {
        precondition(&headers(IF_NONE_MATCH, &[line.as_bytes()])).map(|found| found.if_none_match)
    }

    #[test]
    fn tags_round_trip() {
        assert_eq!(render(ONE), "\"00000000000000000000000000000001\"");
        assert_eq!(parse(&text(TWO)), Some(TWO));
        for bad in ["", "\"", "\"1\"", "W/\"00000000000000000000000000000001\"", "00000000000000000000000000000001"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn lists_become_preconditions() {
        assert_eq!(if_match(&[]), Ok(None));
        assert_eq!(if_match(&[b" * "]), Ok(Some(VersionMatch::Any)));
        let both = render_list(&VersionMatch::OneOf(vec![ONE, TWO]));
        assert_eq!(if_match(&[both.as_bytes()]), Ok(Some(VersionMatch::OneOf(vec![ONE, TWO]))));
        let lines: [&[u8]; 2] = [render(ONE).as_bytes(), render(TWO).as_bytes()].map(|line| &*line.to_vec().leak());
        assert_eq!(if_match(&lines), Ok(Some(VersionMatch::OneOf(vec![ONE, TWO]))), "several lines are one list");
        assert_eq!(if_match(&[b"\"x,y\" ,, \"\xfc\","]), Ok(Some(VersionMatch::OneOf(vec![]))), "not ours");
        assert_eq!(render_list(&VersionMatch::Any), "*");
        let nothing = render_list(&VersionMatch::OneOf(vec![]));
        assert_eq!(if_match(&[nothing.as_bytes()]), Ok(Some(VersionMatch::OneOf(vec![]))));
        for bad in ["", ",", "abc", "\"a", "\"a\" \"b\"", "*, \"a\"", "*,*", "w/\"a\"", "\"a b\"", "W/ \"a\""] {
            assert_eq!(if_match(&[bad.as_bytes()]), Err(EtagError { header: "If-Match" }), "{bad}");
            assert_eq!(if_none_match(bad), Err(EtagError { header: "If-None-Match" }), "{bad}");
        }
    }

    #[test]
    fn weak_tags_match_only_if_none_match() {
        let weak = format!("W/{}", text(ONE));
        assert_eq!(if_match(&[weak.as_bytes()]), Ok(Some(VersionMatch::OneOf(vec![]))));
        assert_eq!(if_none_match(&weak), Ok(Some(VersionMatch::OneOf(vec![ONE]))));
    }
}
