//! From bytes to JSON values.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::DocumentError;
use crate::limits::{MAX_DOCUMENT, MAX_PARSED_DOCUMENT};

/// The words that zarr-python writes for floats that JSON does not have.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Reads a document, which is an object. Nesting is limited by serde_json, to 128 levels.
pub(super) fn read(bytes: &[u8]) -> Result<Value, DocumentError> {
    if bytes.len() > MAX_DOCUMENT {
        return Err(DocumentError::TooLarge { size: bytes.len() });
    }
    if parsed_size(bytes) > MAX_PARSED_DOCUMENT {
        return Err(DocumentError::TooManyValues);
    }
    let value = parse(bytes).map_err(DocumentError::NotJson)?;
    if value.is_object() { Ok(value) } else { Err(DocumentError::NotAnObject) }
}

/// The members of a document that was [read].
pub(super) fn into_object(document: Value) -> Map<String, Value> {
    match document {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// A generous estimate of the memory that a document's values take: a byte of text can make a hundred of values.
///
/// Counted are a slot in a list that has just doubled, an entry of a map with its name, and the first node of a map.
fn parsed_size(bytes: &[u8]) -> usize {
    let value = size_of::<Value>();
    let cost = |byte: &u8| match byte {
        b',' | b'[' => 2 * value,
        b':' => 4 * value,
        b'{' => 20 * value,
        _ => 1,
    };
    // Cannot overflow: a document has at most `MAX_DOCUMENT` bytes.
    bytes.iter().map(cost).sum()
}

/// Reads any JSON. Nesting is limited by serde_json, to 128 levels; nothing else is.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| match with_quoted_words(bytes) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(quoted) => serde_json::from_slice(&quoted),
    })
}

/// The text with every bare [word](WORDS) in quotes.
fn with_quoted_words(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut quoted = Vec::new();
    let mut rest = bytes;
    let mut in_string = false;
    while let Some((&byte, after)) = rest.split_first() {
        let word = WORDS.iter().find(|word| !in_string && rest.starts_with(word.as_bytes()));
        let taken = match word {
            Some(word) => {
                if quoted.is_empty() {
                    quoted.reserve(bytes.len() + 64);
                    quoted.extend_from_slice(bytes.strip_suffix(rest).unwrap_or_default());
                }
                quoted.extend_from_slice(format!("\"{word}\"").as_bytes());
                rest = rest.strip_prefix(word.as_bytes()).unwrap_or_default();
                continue;
            }
            // The byte after a backslash does not end the string.
            None if in_string && byte == b'\\' => 2.min(rest.len()),
            None => 1,
        };
        in_string ^= byte == b'"';
        let (text, next) = rest.split_at_checked(taken).unwrap_or((rest, after));
        if !quoted.is_empty() {
            quoted.extend_from_slice(text);
        }
        rest = next;
    }
    if quoted.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned(quoted) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_zarr_python_writes() {
        let text = br#"{"a": NaN, "b": [Infinity,-Infinity], "NaN": "say \"NaN, Infinity\\", "c": "\\", "d":NaN}"#;
        let expected =
            json!({"a": "NaN", "b": ["Infinity", "-Infinity"], "NaN": "say \"NaN, Infinity\\", "c": "\\", "d": "NaN"});
        assert_eq!(read(text).unwrap(), expected);
        for text in ["{\"a\": NaNs}", "{\"a\": nan}", "{\"a\": -NaN}", "{NaN: 1", "{\"a\\", "{\"a\": NaN, }"] {
            assert!(matches!(read(text.as_bytes()), Err(DocumentError::NotJson(_))), "{text}");
        }
    }

    #[test]
    fn refusals() {
        assert!(matches!(read(b""), Err(DocumentError::NotJson(_))));
        assert!(matches!(read(b"{} {}"), Err(DocumentError::NotJson(_))));
        assert!(matches!(read(b"[1]"), Err(DocumentError::NotAnObject)));
        assert!(matches!(read(b"\xff"), Err(DocumentError::NotJson(_))));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(read(deep.as_bytes()), Err(DocumentError::NotJson(_))));
        let size = MAX_DOCUMENT + 1;
        assert!(matches!(read(&vec![b' '; size]), Err(DocumentError::TooLarge { size: found }) if found == size));
        let many = format!("{{\"a\":[{}0]}}", "0,".repeat(8 << 20));
        assert!(matches!(read(many.as_bytes()), Err(DocumentError::TooManyValues)));
        let maps = format!("{{\"a\":[{}0]}}", "{\"\":0},".repeat(1 << 20));
        assert!(matches!(read(maps.as_bytes()), Err(DocumentError::TooManyValues)));
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        assert_eq!(read(br#"{"a": 1, "a": 2}"#).unwrap(), json!({"a": 2}));
    }

    proptest! {
        #[test]
        fn quoting_leaves_json_as_it_is(text in "\\PC*") {
            let document = json!({"a": [text, 1], "b": null}).to_string();
            prop_assert!(matches!(with_quoted_words(document.as_bytes()), Cow::Borrowed(_)));
        }

        #[test]
        fn any_bytes(bytes in prop::collection::vec(prop_oneof![Just(b'"'), Just(b'\\'), Just(b'N'), Just(b'a'), any::<u8>()], 0..64)) {
            with_quoted_words(&bytes);
            let _ = read(&bytes);
        }

        #[test]
        fn floats_are_read_exactly(float in any::<f64>().prop_filter("JSON has it", |float| float.is_finite())) {
            let value = read(format!("{{\"a\": {float:e}}}").as_bytes()).unwrap();
            prop_assert_eq!(value["a"].as_f64().unwrap().to_bits(), float.to_bits());
        }
    }
}
