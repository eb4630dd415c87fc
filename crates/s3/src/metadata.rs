//! Headers with the metadata of objects.
//!
//! Texts other than printable ASCII are encoded words of RFC 2047.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::{S3Error, s3_error};

/// The prefix of their names.
pub const METADATA_PREFIX: &str = "x-amz-meta-";
/// The maximum number of bytes of a text in one encoded word, which has at most 75 characters.
const MAX_WORD_BYTES: usize = 45;

/// The metadata in the headers of a request, by lower-case names.
pub fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, S3Error> {
    let mut metadata = BTreeMap::new();
    for (header, value) in headers {
        let Some(name) = header.as_str().strip_prefix(METADATA_PREFIX).filter(|name| !name.is_empty()) else {
            continue;
        };
        let text = str::from_utf8(value.as_bytes()).ok().and_then(decoded);
        let text = text.ok_or_else(|| s3_error!(InvalidArgument, "{header} is neither UTF-8 nor encoded words"))?;
        if metadata.insert(name.to_owned(), text).is_some() {
            return Err(s3_error!(InvalidRequest, "{header} is repeated"));
        }
    }
    Ok(metadata)
}

/// The header with one member of an object's metadata; `None` if it has no form as a header.
pub fn metadata_header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(format!("{METADATA_PREFIX}{name}")).ok()?;
    Some((name, HeaderValue::from_str(&encoded(value)).ok()?))
}

fn encoded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.into();
    }
    let mut words = vec![String::new()];
    for character in text.chars() {
        match words.last_mut() {
            Some(word) if word.len().saturating_add(character.len_utf8()) <= MAX_WORD_BYTES => word.push(character),
            _ => words.push(character.to_string()),
        }
    }
    let words: Vec<String> = words.iter().map(|word| format!("=?UTF-8?B?{}?=", BASE64_STANDARD.encode(word))).collect();
    words.join(" ").into()
}

/// The text that a header stands for; `None` if its encoded words are malformed.
fn decoded(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with("=?") || !text.ends_with("?=") {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        let mut parts = word.strip_prefix("=?")?.strip_suffix("?=")?.splitn(3, '?');
        let (_charset, encoding, content) = (parts.next()?, parts.next()?, parts.next()?);
        match encoding {
            "B" | "b" => bytes.extend(BASE64_STANDARD.decode(content).ok()?),
            "Q" | "q" => bytes.extend(quoted(content.as_bytes())?),
            _ => return None,
        }
    }
    String::from_utf8(bytes).ok()
}

/// The bytes of an encoded word in the encoding `Q`.
fn quoted(content: &[u8]) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), content.iter());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'=' => {
                let mut digit = || u8::try_from(char::from(*rest.next()?).to_digit(16)?).ok();
                digit()?.checked_mul(16)?.checked_add(digit()?)?
            }
            b'_' => b' ',
            plain => *plain,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_from_headers() {
        let read = |value: &str| {
            let headers = HeaderMap::from_iter([
                (HeaderName::from_static("x-amz-meta-note"), HeaderValue::from_bytes(value.as_bytes()).unwrap()),
                (HeaderName::from_static("x-amz-meta-"), HeaderValue::from_static("no name")),
                (HeaderName::from_static("x-amz-acl"), HeaderValue::from_static("private")),
            ]);
            let metadata = metadata(&headers).map_err(|error| error.code().as_str().to_owned())?;
            Ok(metadata.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<String>())
        };
        for (value, text) in [
            ("plain text", "note=plain text"),
            ("é", "note=é"),
            ("=?UTF-8?B?w6k=?=", "note=é"),
            ("=?utf-8?q?=C3=A9_a?= =?UTF-8?B?w6k=?=", "note=é aé"),
            ("=?UTF-8?B?w6k=?= and more", "note==?UTF-8?B?w6k=?= and more"),
        ] {
            assert_eq!(read(value), Ok(text.to_owned()), "{value}");
        }
        for malformed in ["=?=", "=??=", "=?UTF-8?B?*?=", "=?UTF-8?Q?=C?=", "=?UTF-8?X?a?=", "=?UTF-8?Q?=C3?="] {
            assert_eq!(read(malformed), Err("InvalidArgument".to_owned()), "{malformed}");
        }
        let mut twice = HeaderMap::new();
        for value in ["a", "b"] {
            twice.append("x-amz-meta-a", HeaderValue::from_static(value));
        }
        assert_eq!(metadata(&twice).unwrap_err().code().as_str(), "InvalidRequest");
    }

    #[test]
    fn metadata_is_the_same_after_a_transfer() {
        for text in ["plain", "é", &"日本".repeat(40), "tab\tand =?"] {
            let metadata = metadata(&HeaderMap::from_iter(metadata_header("a", text))).unwrap();
            assert_eq!(metadata.get("a").map(String::as_str), Some(text));
        }
    }

    #[test]
    fn texts_beyond_ascii_are_encoded_words() {
        for (value, shown) in [
            ("plain text~", "plain text~"),
            ("", ""),
            ("é", "=?UTF-8?B?w6k=?="),
            ("a\tb", "=?UTF-8?B?YQli?="),
            (&"é".repeat(23), &format!("=?UTF-8?B?{}?= =?UTF-8?B?w6k=?=", BASE64_STANDARD.encode("é".repeat(22)))),
        ] {
            let (name, header) = metadata_header("note", value).unwrap();
            assert_eq!((name.as_str(), header.to_str().unwrap()), ("x-amz-meta-note", shown), "{value}");
        }
        assert!(metadata_header("a b", "").is_none());
    }
}
