//! Texts without credentials.

use std::{borrow::Cow, ops::Range};

use crate::{credential::Kind, encoded};

/// The mark in the place of a credential.
pub const OMITTED: &str = "…";

/// The minimum number of digits of an id or a MAC that is not complete.
const MIN_DIGITS: usize = 16;
/// The minimum number of digits of a MAC whose id is not complete, which is more than a content hash of 40 digits has.
const MIN_MAC_DIGITS: usize = 48;
/// The minimum number of digits that follow a line break within a credential.
const MIN_WRAPPED_DIGITS: usize = 8;
/// The bytes that end a credential, apart from white space and control characters.
const DELIMITERS: &[u8] = b"/\\?#&;,=:\"'<>()[]{}|@";

/// Replaces everything in a text that looks like a token or like the secret of a share link with [`OMITTED`]: complete
/// or not, with more behind it, in lower or upper case, percent-encoded any number of times, as a whole or in part, and in
/// base64 as `Basic` has it. The rest of the text stays as it is. A MAC alone stays too: it looks like a content hash.
///
/// ```
/// let token = format!("zarrd_1_{}_{}", "0".repeat(32), "a".repeat(64));
/// assert_eq!(zarrd_access::without_credentials(&format!("/s/{token}/a%20b")), "/s/…/a%20b");
/// ```
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    let is_plain = || !text.bytes().any(|byte| matches!(byte, b'_' | b'%'));
    if text.len() < MIN_DIGITS || is_plain() && !encoded::may_have_secrets(text.as_bytes()) {
        return Cow::Borrowed(text);
    }
    let mut decoded = Decoded::new(text);
    let encoded = encoded::secrets(&decoded.bytes, first_credential);
    decoded.bytes.make_ascii_lowercase();
    let (mut redacted, mut shown, mut at) = (String::new(), 0, 0);
    while let Some(rest) = decoded.bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let in_base64 = encoded.iter().find(|secret| secret.contains(&at)).map(|secret| secret.end - at);
        let Some(len) = in_base64.or_else(|| credential(rest, is_inside_number(&decoded.bytes, at))) else {
            at += 1;
            continue;
        };
        redacted.push_str(text.get(shown..decoded.start(at)).unwrap_or_default());
        redacted.push_str(OMITTED);
        at += len;
        shown = decoded.start(at);
    }
    if shown == 0 {
        return Cow::Borrowed(text);
    }
    redacted.push_str(text.get(shown..).unwrap_or_default());
    Cow::Owned(redacted)
}

/// Replaces the user names and passwords of the URLs in a text with [`OMITTED`]. The rest of the text stays as it is.
///
/// ```
/// assert_eq!(zarrd_access::without_userinfo("cannot open 's3://key:secret@bucket/a'"), "cannot open 's3://…@bucket/a'");
/// ```
pub fn without_userinfo(text: &str) -> Cow<'_, str> {
    const SCHEME_END: &str = "://";
    let is_end =
        |c: char| matches!(c, '/' | '?' | '#' | '\'' | '"' | '`' | '<' | '>') || c.is_whitespace() || c.is_control();
    let mut redacted = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(SCHEME_END) {
        let authority = after.split(is_end).next().unwrap_or_default();
        redacted.push_str(before);
        redacted.push_str(SCHEME_END);
        rest = match authority.rsplit_once('@') {
            Some((userinfo, _)) => {
                redacted.push_str(OMITTED);
                after.get(userinfo.len()..).unwrap_or_default()
            }
            None => after,
        };
    }
    if redacted.is_empty() {
        return Cow::Borrowed(text);
    }
    redacted.push_str(rest);
    Cow::Owned(redacted)
}

/// A text without any percent-encoding.
struct Decoded {
    bytes: Vec<u8>,
    /// The end of each byte in the text.
    ends: Vec<usize>,
}

impl Decoded {
    fn new(text: &str) -> Self {
        let (mut bytes, mut ends) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        for (byte, end) in text.bytes().zip(1..) {
            bytes.push(byte);
            ends.push(end);
            // A decoded byte may be a part of another escape.
            while let Some(decoded) = escape(&bytes) {
                let len = bytes.len() - 3;
                bytes.truncate(len);
                ends.truncate(len);
                bytes.push(decoded);
                ends.push(end);
            }
        }
        Self { bytes, ends }
    }

    /// The start of a byte in the text.
    fn start(&self, at: usize) -> usize {
        at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0)
    }
}

/// The byte that an escape at the end stands for.
fn escape(bytes: &[u8]) -> Option<u8> {
    let [.., b'%', high, low] = bytes else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// The first credential in a text.
fn first_credential(text: &[u8]) -> Option<Range<usize>> {
    (0..text.len()).find_map(|at| {
        let len = credential(text.get(at..)?, is_inside_number(text, at))?;
        Some(at..at + len)
    })
}

fn is_inside_number(text: &[u8], at: usize) -> bool {
    at.checked_sub(1).and_then(|before| text.get(before)).is_some_and(is_hex)
}

/// The length of the credential at the beginning of a text.
fn credential(text: &[u8], is_inside_number: bool) -> Option<usize> {
    let named = || [Kind::Link, Kind::Token].into_iter().find_map(|kind| after_name(text, kind));
    let unnamed = || if is_inside_number { None } else { after_id(text) };
    let rest = named().or_else(unnamed)?;
    Some(text.len() - rest.len() + secret_len(rest))
}

/// The text behind the prefix of a credential, the number of its key, and the beginning of its id.
fn after_name(text: &[u8], kind: Kind) -> Option<&[u8]> {
    let rest = text.strip_prefix(kind.prefix().as_bytes())?;
    let rest = after_digits(rest, u8::is_ascii_digit, 1)?.strip_prefix(b"_")?;
    after_digits(rest, is_hex, MIN_DIGITS)
}

/// The text behind the end of an id and a MAC, of which one may be short if the other one is long.
fn after_id(text: &[u8]) -> Option<&[u8]> {
    let rest = after_digits(text, is_hex, 0)?;
    let is_long_id = text.len() - rest.len() >= MIN_DIGITS;
    after_digits(rest.strip_prefix(b"_")?, is_hex, if is_long_id { MIN_DIGITS } else { MIN_MAC_DIGITS })
}

fn after_digits(text: &[u8], is_digit: impl Fn(&u8) -> bool, min: usize) -> Option<&[u8]> {
    let count = text.iter().take_while(|byte| is_digit(byte)).count();
    text.get(count..).filter(|_| count >= min)
}

/// The length of the rest of a credential, which may be wrapped into lines.
fn secret_len(text: &[u8]) -> usize {
    let is_part = |byte: &&u8| !is_gap(byte) && !DELIMITERS.contains(byte);
    let mut len = 0;
    loop {
        let rest = text.get(len..).unwrap_or_default();
        let word = rest.iter().take_while(is_part).count();
        let gap = rest.iter().skip(word).take_while(|byte| is_gap(byte)).count();
        let digits = rest.iter().skip(word + gap).take_while(|byte| is_hex(byte)).count();
        len += word;
        if gap == 0 || digits < MIN_WRAPPED_DIGITS {
            return len;
        }
        len += gap;
    }
}

/// True for white space, in a query too, and for control characters.
fn is_gap(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || byte.is_ascii_control() || *byte == b'+'
}

/// True for hexadecimal digits in lower case.
fn is_hex(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "00112233445566778899aabbccddeeff";
    const MAC: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";

    #[test]
    fn text_around_a_credential_stays() {
        let token = format!("zarrd_1_{ID}_{MAC}");
        let link = format!("zarrdlink_4294967295_{ID}_{MAC}");
        for (text, shown) in [
            (token.clone(), "…"),
            (link.to_uppercase(), "…"),
            (format!("/s/./{link}/store/a%20b"), "/s/./…/store/a%20b"),
            (format!("/s%2F{link}%2Fstore"), "/s%2F…%2Fstore"),
            (format!("/s;/{link}/"), "/s;/…/"),
            (format!("a={token}&b={link}"), "a=…&b=…"),
            (format!("Bearer {token} curl/8"), "Bearer … curl/8"),
            (format!("Bearer%20{token}+x"), "Bearer%20…+x"),
            (format!("é{token}é/é"), "é…/é"),
            // Without its end, with more behind it, and without its beginning.
            (format!("/{}/x", link.get(..60).unwrap()), "/…/x"),
            (format!("/{link}00-x.y/x"), "/…/x"),
            (format!("/link_1_{ID}_{MAC}/x"), "/link_1_…/x"),
            (format!("/{}_{MAC}/x", ID.get(1..).unwrap()), "/…/x"),
            (format!("/{}_{MAC}/x", ID.get(31..).unwrap()), "/…/x"),
            (format!("/_{MAC}/x"), "/…/x"),
            // As copied from a terminal.
            (format!("zarrd_1_{ID}_%0A%20{} x", MAC.get(..40).unwrap()), "… x"),
            (format!("zarrd_1_{ID}_{}\r\n {}/x", MAC.get(..10).unwrap(), MAC.get(10..).unwrap()), "…/x"),
            (format!("{}/a", token.replace('_', "%5f")), "…/a"),
            (format!("{}/a", token.replace('a', "%25%36%31")), "…/a"),
        ] {
            assert_eq!(without_credentials(&text), shown, "{text}");
        }
    }

    #[test]
    fn base64_with_a_credential_is_omitted() {
        use base64::{
            Engine,
            engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
        };
        let token = format!("zarrd_1_{ID}_{MAC}");
        for user in ["", "a", "ab", "abc", "somebody"] {
            let plain = format!("{user}:{token}");
            for encoded in [STANDARD.encode(&plain), URL_SAFE_NO_PAD.encode(&plain), STANDARD.encode(&token)] {
                let escaped = encoded.replace('=', "%3D").replace('M', "%4d");
                for text in [
                    encoded.clone(),
                    escaped,
                    encoded.get(1..).unwrap().to_owned(),
                    encoded.get(3..80).unwrap().to_owned(),
                ] {
                    for path in [format!("/store/{text}/x"), format!("/Basic%20{text}/x"), format!("/a-{text}/x")] {
                        let shown = without_credentials(&path);
                        let secret = &text.get(text.len() - 30..text.len() - 8).unwrap();
                        assert!(shown.contains(OMITTED) && !shown.contains(*secret), "{path}: {shown}");
                        // What follows a part of base64 may be taken for more of it.
                        let is_short = shown.ends_with("/x") || shown.ends_with(OMITTED);
                        assert!(shown.starts_with(path.get(..2).unwrap()) && is_short, "{path}: {shown}");
                    }
                }
            }
        }
        for space in ["%20", "+", " ", ":%20"] {
            let shown = without_credentials(&format!("/?q=Basic{space}dXNlcjpwYXNz&x")).into_owned();
            assert_eq!(shown, format!("/?q=Basic{space}…&x"));
        }
    }

    #[test]
    fn user_names_and_passwords_are_left_out_of_urls() {
        for (text, shown) in [
            ("s3://key:secret@bucket", "s3://…@bucket"),
            ("'http://a:b@c:d@host/x@y' and https://u@h", "'http://…@host/x@y' and https://…@h"),
            ("store = \"az://a:b%2F@c\"\n", "store = \"az://…@c\"\n"),
            ("http://é:ü@h", "http://…@h"),
            ("http://@h", "http://…@h"),
            ("http://host/a@b://c", "http://host/a@b://c"),
            ("http://host?a=b@c", "http://host?a=b@c"),
            ("a@b: s3://bucket ://", "a@b: s3://bucket ://"),
            ("", ""),
        ] {
            assert_eq!(without_userinfo(text), shown, "{text}");
            assert_eq!(without_userinfo(shown), shown, "{text}");
        }
    }

    #[test]
    fn other_texts_are_unchanged() {
        for text in [
            "",
            "/store/a%20b?list=keys",
            "zarrd_1",
            "zarrd_20260101_results/zarrdlink_1_abc",
            "/store/zarrd_1_experiment/zarr.json",
            "%%%7a%zz%",
            &format!("/store/sha256/{MAC}/{ID}"),
            &format!("{ID}-{MAC}"),
        ] {
            assert!(matches!(without_credentials(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    /// Decodes a text once.
    fn decoded_once(text: &[u8]) -> Vec<u8> {
        let (mut decoded, mut rest) = (Vec::new(), text);
        while let Some((first, after)) = rest.split_first() {
            let value = rest.get(..3).and_then(escape);
            decoded.push(value.unwrap_or(*first));
            rest = if value.is_some() { &rest[3..] } else { after };
        }
        decoded
    }

    fn assert_absent(mac: &str, text: &str) -> Result<(), TestCaseError> {
        let mut level = text.as_bytes().to_vec();
        loop {
            prop_assert!(!String::from_utf8_lossy(&level).to_ascii_lowercase().contains(mac), "{}", text);
            let next = decoded_once(&level);
            if next == level {
                return Ok(());
            }
            level = next;
        }
    }

    /// Spells each character of a text: as it is, in the other case, or percent-encoded up to three times.
    fn spelled(text: &str, spellings: &[u8]) -> String {
        let spell = |(character, spelling): (char, &u8)| match spelling {
            0..=9 => character.to_string(),
            10..=12 => character.to_ascii_uppercase().to_string(),
            13 => format!("%{:02x}", u32::from(character)),
            14 => format!("%{:02X}", u32::from(character.to_ascii_uppercase())),
            15 => format!("%25{:02x}", u32::from(character)),
            16 => {
                format!("%25%{:02x}%{:02x}", u32::from('2'), u32::from('5')) + &format!("{:02x}", u32::from(character))
            }
            _ => format!("%2525{:02X}", u32::from(character)),
        };
        text.chars().zip(spellings.iter().cycle()).map(spell).collect()
    }

    proptest! {
        #[test]
        fn no_mac_is_left(
            before in "[ -~é]{0,30}",
            is_link: bool,
            key in 1..u32::MAX,
            id in "[0-9a-f]{32}",
            mac in "[0-9a-f]{64}",
            after in "[ -~é]{0,30}",
            spellings in prop::collection::vec(0_u8..18, 1..80),
            cut in 0_usize..60,
        ) {
            let name = if is_link { "zarrdlink" } else { "zarrd" };
            let secret = spelled(&format!("{name}_{key}_{id}_{mac}"), &spellings);
            let shown = without_credentials(&format!("{before}{secret}{after}")).into_owned();
            assert_absent(&mac, &shown)?;
            prop_assert!(shown.contains(OMITTED));
            let shown = without_credentials(&format!("{before}/{secret}/{after}")).into_owned();
            prop_assert!(shown.ends_with(&format!("/{after}")), "{}", shown);
            // Neither is the beginning of one.
            let kept = secret.get(..secret.len() - cut.min(secret.len())).unwrap();
            assert_absent(mac.get(..8).unwrap(), &without_credentials(kept).replace(&id, ""))?;
        }

        #[test]
        fn any_text_is_redacted_once(text in "([ -~é]|%|zarrd_1_|zarrdlink_|[0-9a-f]{8,40}|%25|%5[fF]){0,40}") {
            let once = without_credentials(&text);
            prop_assert_eq!(&without_credentials(&once), &once);
        }
    }
}
