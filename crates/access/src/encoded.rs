//! Credentials in base64, as in the `Authorization` header of `Basic`.

use std::ops::Range;

/// The minimum number of characters in base64 that are decoded: those of the shortest text that counts as a credential.
const MIN_LEN: usize = 40;
/// The minimum number of characters behind `Basic`.
const MIN_BASIC_LEN: usize = 8;
const BASIC: &[u8] = b"basic";

/// True if a text may have something in base64 that [`secrets`] finds.
pub(crate) fn may_have_secrets(text: &[u8]) -> bool {
    text.split(|byte| sextet(*byte).is_none()).any(|run| run.len() >= MIN_LEN)
        || text.windows(BASIC.len()).any(|word| word.eq_ignore_ascii_case(BASIC))
}

/// The ranges of a text in base64 in which `find` finds a credential, given the decoded bytes in lower case, and those
/// of a user name with a password behind `Basic`. `find` returns the range of the credential in the bytes.
pub(crate) fn secrets(text: &[u8], find: impl Fn(&[u8]) -> Option<Range<usize>>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let len = rest.iter().take_while(|byte| sextet(**byte).is_some()).count();
        let run = rest.get(..len).unwrap_or_default();
        if let Some(word) = behind_basic(text.get(..at).unwrap_or_default(), run) {
            found.push(at + word.start..at + word.end);
        } else if len >= MIN_LEN {
            found.extend(in_run(run, &find).map(|secret| at + secret.start..at + secret.end));
        }
        at += len.max(1);
    }
    found
}

/// The range of a credential in a run of characters of base64, wherever its encoding begins in it.
fn in_run(run: &[u8], find: impl Fn(&[u8]) -> Option<Range<usize>>) -> Option<Range<usize>> {
    (0..4).find_map(|skipped| {
        let mut bytes = decode(run.get(skipped..)?);
        bytes.make_ascii_lowercase();
        let secret = find(&bytes)?;
        // Four characters have three bytes.
        let start = skipped + secret.start / 3 * 4;
        let end = (skipped + secret.end.div_ceil(3) * 4).min(run.len());
        let rest = run.get(end..)?.iter().take_while(|byte| **byte != b'/').count();
        Some(start..end + rest)
    })
}

/// The range of a user name with a password in a run of characters of base64, if `Basic` and a space are before it:
/// in the text before the run, or in the run, where the space is a `+`.
fn behind_basic(before: &[u8], run: &[u8]) -> Option<Range<usize>> {
    let is_basic = |word: &[u8]| word.eq_ignore_ascii_case(BASIC);
    let name = before.trim_ascii_end();
    let name = name.strip_suffix(b":").unwrap_or(name);
    let is_before = name.len() < before.len() && name.last_chunk::<5>().is_some_and(|word| is_basic(word));
    let skipped = match run.split_at_checked(BASIC.len()) {
        Some((word, rest)) if is_basic(word) && rest.starts_with(b"+") => BASIC.len() + 1,
        _ if is_before => 0,
        _ => return None,
    };
    // A `/` is a character of base64, or ends a segment of a path.
    let ends = run.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    let ends = ends.chain([run.len()]).collect::<Vec<_>>();
    let is_found = |end: &usize| {
        let encoded = run.get(skipped..*end).filter(|encoded| encoded.len() >= MIN_BASIC_LEN);
        encoded.is_some_and(|encoded| is_user_with_password(&decode(encoded)))
    };
    ends.into_iter().rev().find(is_found).map(|end| skipped..end)
}

fn is_user_with_password(bytes: &[u8]) -> bool {
    bytes.contains(&b':') && str::from_utf8(bytes).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// Decodes characters of base64. What remains of the last four is left out if it has no complete byte.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.chunks(4) {
        let bits =
            four.iter().filter_map(|byte| sextet(*byte)).fold(0_u32, |bits, sextet| bits << 6 | u32::from(sextet));
        let missing = 4_usize.saturating_sub(four.len());
        let [_, all @ ..] = (bits << (6 * missing)).to_be_bytes();
        bytes.extend(all.iter().take(3_usize.saturating_sub(missing)));
    }
    bytes
}

/// The six bits of a character of base64, of the usual alphabet or that of URLs.
fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_in_both_alphabets() {
        for (text, bytes) in [
            ("dXNlcjp0b2tlbg", &b"user:token"[..]),
            ("dXNlcjpwYXNz", b"user:pass"),
            ("-_-_", &[0xfb, 0xff, 0xbf]),
            ("+/+/", &[0xfb, 0xff, 0xbf]),
            ("A", b""),
            ("", b""),
        ] {
            assert_eq!(decode(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn user_and_password_behind_basic_are_found() {
        let found = |text: &str| -> Vec<(usize, usize)> {
            secrets(text.as_bytes(), |_| None).into_iter().map(|range| (range.start, range.end)).collect()
        };
        assert_eq!(found("/Basic dXNlcjpwYXNz/x"), [(7, 19)]);
        assert_eq!(found("basic: dXNlcjpwYXNz=="), [(7, 19)]);
        assert_eq!(found("?q=Basic+dXNlcjpwYXNz"), [(9, 21)]);
        for text in ["/basic research", "/Basic", "Basicdxnlcjpwyxnz", "/store/basic/dXNlcjpwYXNz"] {
            assert_eq!(found(text), [], "{text}");
        }
    }
}
