//! Keys and prefixes.

use std::{borrow::Borrow, fmt, sync::Arc};

/// The maximum length of a key, in bytes of UTF-8.
pub const MAX_KEY_LEN: usize = 1024;
/// The maximum length of a hidden key, which may contain another key.
const MAX_HIDDEN_LEN: usize = MAX_KEY_LEN + 64;
/// The first character of a hidden key.
const HIDDEN: char = '\u{3}';
/// The one other control character that a hidden key may have, which is less than all others.
pub(crate) const SEPARATOR: char = '\u{1}';

/// A store key such as `lab/exp1/zarr.json`.
///
/// 1 to [`MAX_KEY_LEN`] bytes of UTF-8 in segments joined by `/`. No segment is empty, `.` or `..`, so a key neither
/// begins nor ends with `/`; no character is a control character. Keys are case-sensitive, never normalised, and
/// ordered by their bytes.
///
/// A store also has **hidden** keys, of what is under way in it ([`UploadStore`](crate::UploadStore)). They begin with a
/// control character, so that no text from outside is one, and are below the hidden prefixes alone: the root does not
/// contain them. They are neither listed nor counted nor erased with it, and are in no snapshot below it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

/// A key prefix: empty (the root), or a valid key followed by `/`.
///
/// A prefix has at most [`MAX_KEY_LEN`] bytes including its `/`, since no key could be below a longer one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix(Arc<str>);

/// The reason why a text is not a valid [`Key`] or [`Prefix`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is empty.
    #[error("a key has at least one character")]
    Empty,
    /// The text is longer than [`MAX_KEY_LEN`].
    #[error("a key of {len} bytes exceeds the limit of {MAX_KEY_LEN}")]
    TooLong {
        /// The text's length in bytes.
        len: usize,
    },
    /// A segment is empty: the text begins or ends with `/`, or has `//`.
    #[error("the segment at byte {offset} is empty")]
    EmptySegment {
        /// The offset of the segment.
        offset: usize,
    },
    /// A segment is `.` or `..`.
    #[error("the segment at byte {offset} is `.` or `..`")]
    DotSegment {
        /// The offset of the segment.
        offset: usize,
    },
    /// A control character.
    #[error("byte {offset} is a control character")]
    ControlCharacter {
        /// The offset of the character.
        offset: usize,
    },
    /// The bytes are not UTF-8.
    #[error("byte {offset} is not valid UTF-8")]
    NotUtf8 {
        /// The offset of the first invalid sequence.
        offset: usize,
    },
    /// A prefix does not end with `/`.
    #[error("a prefix ends with `/`")]
    NoTrailingSlash,
}

impl Key {
    /// Parses a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        check(text)?;
        Ok(Self(text.into()))
    }

    /// A hidden key.
    pub(crate) fn hidden(text: &str) -> Result<Self, KeyError> {
        let text = format!("{HIDDEN}{text}");
        check_hidden(&text)?;
        Ok(Self(text.into()))
    }

    /// Parses what a store has written: a key, or a hidden one. Only implementations of the traits call this.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, KeyError> {
        let text = utf8(bytes)?;
        match text.starts_with(HIDDEN) {
            true => check_hidden(text).map(|()| Self(text.into())),
            false => Self::parse(text),
        }
    }

    /// True if the key is hidden.
    pub fn is_hidden(&self) -> bool {
        self.0.starts_with(HIDDEN)
    }

    /// Parses a key from bytes that may not be UTF-8, such as those of a percent-decoded path.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::parse(utf8(bytes)?)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key's bytes, by which keys are ordered.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The last segment, which is the name of the key within its parent.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The prefix that contains the key: all but its last segment.
    pub fn parent(&self) -> Prefix {
        let end = self.0.rfind('/').map_or(0, |slash| slash + 1);
        Prefix(self.0.get(..end).unwrap_or_default().into())
    }
}

impl Prefix {
    /// The empty prefix, which contains all keys.
    pub fn root() -> Self {
        Self("".into())
    }

    /// Parses a prefix: the empty text, or one that ends in `/`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        let Some(key) = text.strip_suffix('/') else { return Err(KeyError::NoTrailingSlash) };
        if text.len() > MAX_KEY_LEN {
            return Err(KeyError::TooLong { len: text.len() });
        }
        if key.is_empty() {
            return Err(KeyError::EmptySegment { offset: 0 });
        }
        check(key)?;
        Ok(Self(text.into()))
    }

    /// A hidden prefix.
    pub(crate) fn hidden(text: &str) -> Result<Self, KeyError> {
        Key::hidden(text.strip_suffix('/').ok_or(KeyError::NoTrailingSlash)?).map(|key| Self(format!("{key}/").into()))
    }

    /// Parses what a store has written: a prefix, or a hidden one. Only implementations of the traits call this.
    pub fn from_stored(bytes: &[u8]) -> Result<Self, KeyError> {
        let text = utf8(bytes)?;
        match text.strip_prefix(HIDDEN) {
            Some(hidden) => Self::hidden(hidden),
            None => Self::parse(text),
        }
    }

    /// Parses a prefix from bytes that may not be UTF-8.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::parse(utf8(bytes)?)
    }

    /// The prefix of the keys below `key` taken as a directory; `None` if it would be longer than any key.
    pub fn from_key(key: &Key) -> Option<Self> {
        Self::parse(&format!("{key}/")).ok()
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// True if this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// True if `key` lies below this prefix.
    pub fn contains(&self, key: &Key) -> bool {
        self.contains_text(&key.0)
    }

    /// True if the key with this text lies below this prefix.
    pub fn contains_text(&self, key: &str) -> bool {
        key.starts_with(&*self.0) && !(self.is_root() && key.starts_with(HIDDEN))
    }

    /// The last segment, without its `/`; empty for the root.
    pub fn name(&self) -> &str {
        self.0.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// The key below this prefix with the relative name `rest`.
    pub fn join(&self, rest: &str) -> Result<Key, KeyError> {
        Key::parse(&format!("{self}{rest}"))
    }

    /// The name of `key` relative to this prefix; `None` if the key is not below it.
    pub fn strip<'k>(&self, key: &'k Key) -> Option<&'k str> {
        key.0.strip_prefix(&*self.0)
    }

    /// The least text, in byte order, above every key below this prefix; `None` for the root, which has no upper bound.
    /// Seeking to it skips all keys below.
    pub fn upper_bound(&self) -> Option<String> {
        // `0` is the byte after `/`.
        self.0.strip_suffix('/').map(|key| format!("{key}0"))
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, KeyError> {
    std::str::from_utf8(bytes).map_err(|error| KeyError::NotUtf8 { offset: error.valid_up_to() })
}

fn check(text: &str) -> Result<(), KeyError> {
    check_grammar(text, MAX_KEY_LEN, |character| !character.is_control())
}

/// Checks a text that begins with [`HIDDEN`].
fn check_hidden(text: &str) -> Result<(), KeyError> {
    check_grammar(text, MAX_HIDDEN_LEN, |character| !character.is_control() || [HIDDEN, SEPARATOR].contains(&character))
}

fn check_grammar(text: &str, max_len: usize, is_allowed: impl Fn(char) -> bool) -> Result<(), KeyError> {
    if text.is_empty() {
        return Err(KeyError::Empty);
    }
    if text.len() > max_len {
        return Err(KeyError::TooLong { len: text.len() });
    }
    // Most keys are printable ASCII, which is found out without decoding characters.
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && let Some((at, _)) = text.char_indices().find(|(_, character)| !is_allowed(*character))
    {
        return Err(KeyError::ControlCharacter { offset: at });
    }
    let mut at = 0;
    for segment in text.as_bytes().split(|byte| *byte == b'/') {
        match segment {
            b"" => return Err(KeyError::EmptySegment { offset: at }),
            b"." | b".." => return Err(KeyError::DotSegment { offset: at }),
            _ => at += segment.len() + 1,
        }
    }
    Ok(())
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Prefix {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl std::str::FromStr for Prefix {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_validated() {
        for good in ["a", "a/b", ".zarray", "...", "a..", "c/0/1", "Ä/中", "a b", "%2F", &"k".repeat(1024)] {
            assert_eq!(Key::parse(good).map(|key| key.to_string()), Ok(good.to_owned()));
        }
        for (bad, why) in [
            ("", KeyError::Empty),
            ("/a", KeyError::EmptySegment { offset: 0 }),
            ("a/", KeyError::EmptySegment { offset: 2 }),
            ("a//b", KeyError::EmptySegment { offset: 2 }),
            ("a/./b", KeyError::DotSegment { offset: 2 }),
            ("..", KeyError::DotSegment { offset: 0 }),
            ("a/\u{7f}", KeyError::ControlCharacter { offset: 2 }),
            ("a\u{85}b", KeyError::ControlCharacter { offset: 1 }),
            ("a\0", KeyError::ControlCharacter { offset: 1 }),
        ] {
            assert_eq!(Key::parse(bad), Err(why), "{bad:?}");
        }
        assert_eq!(Key::parse(&"k".repeat(1025)), Err(KeyError::TooLong { len: 1025 }));
        assert_eq!(Key::from_bytes(b"a\xff"), Err(KeyError::NotUtf8 { offset: 1 }));
    }

    #[test]
    fn prefixes_are_validated_and_compared() {
        assert_eq!(Prefix::parse(""), Ok(Prefix::root()));
        assert_eq!(Prefix::parse("a"), Err(KeyError::NoTrailingSlash));
        assert_eq!(Prefix::parse("/"), Err(KeyError::EmptySegment { offset: 0 }));
        assert_eq!(Prefix::parse("a//"), Err(KeyError::EmptySegment { offset: 2 }));
        assert_eq!(Prefix::parse("a/../"), Err(KeyError::DotSegment { offset: 2 }));
        let prefix = Prefix::parse("a/b/").unwrap();
        assert_eq!(prefix.upper_bound().as_deref(), Some("a/b0"));
        assert_eq!(prefix.name(), "b");
        assert!(prefix.contains(&Key::parse("a/b/c").unwrap()));
        assert!(!prefix.contains(&Key::parse("a/bc").unwrap()));
        assert_eq!(Key::parse("a/b/c").unwrap().parent(), prefix);
        assert_eq!(Key::parse("c").unwrap().parent(), Prefix::root());
        assert_eq!(Prefix::from_key(&Key::parse(&"k".repeat(1024)).unwrap()), None);
    }
}
