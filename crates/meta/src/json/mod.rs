//! JSON texts that are validated once, parsed on demand, and edited in place.
//!
//! A [`Json`] is the text of one JSON value. Its members and items are slices of the same text, so a document takes no
//! more memory than its text; only the parts that are interpreted become a [`Value`]. [`Json::edited`] preserves all
//! other bytes: digits of numbers, escapes of strings, order, layout and duplicate names.
//!
//! In addition to [RFC 8259](https://www.rfc-editor.org/rfc/rfc8259), the bare words `NaN`, `Infinity` and `-Infinity`
//! are values, because zarr-python writes them in attributes; as a [`Value`] they are strings. The last of duplicate
//! names counts, as in Python. Lone surrogates are preserved in the text but have no [`Value`]. A byte order mark at
//! the beginning is treated like whitespace around the value: [`Json::to_padded_bytes`] includes it.

use std::{borrow::Cow, fmt, io, ops::Range, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

mod by_name;
mod compare;
mod edit;
mod format;
mod memberwise;
mod parts;
mod scan;
#[cfg(test)]
mod tests;

pub use edit::{Change, ObjectEdit};
pub(crate) use parts::{AllMemberSlices, MemberSlices};
pub use parts::{Items, Member, Members};

/// The maximum nesting depth of a text; that of serde_json.
pub const MAX_DEPTH: usize = 127;

/// The maximum nesting depth of a stored document; about that of Python. Levels beyond [`MAX_DEPTH`] stay text and have
/// no [`Value`].
pub const MAX_DOCUMENT_DEPTH: usize = 1000;

/// The words for floats that JSON cannot represent.
const NON_FINITE_WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The text of one JSON value. Clones and parts share the bytes. Two are equal if the bytes of the values are,
/// regardless of surrounding whitespace.
#[derive(Clone)]
pub struct Json {
    text: Bytes,
    padding: Option<Arc<Padding>>,
}

/// The whitespace and byte order mark around a value.
struct Padding {
    before: Bytes,
    after: Bytes,
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number, or one of the words `NaN`, `Infinity` and `-Infinity`.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// A JSON syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at line {line} column {column}")]
pub struct SyntaxError {
    /// The reason, such as "expected a value".
    pub reason: &'static str,
    /// The line, counted from 1.
    pub line: usize,
    /// The byte in the line, counted from 1.
    pub column: usize,
}

impl Json {
    /// Checks a text, in one pass and without allocating for its values.
    ///
    /// # Errors
    ///
    /// [`SyntaxError`] where it is not UTF-8, not JSON, or nested deeper than [`MAX_DEPTH`].
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, SyntaxError> {
        let text = text.into();
        let span = scan::document(&text, &scan::TEXT)?;
        Ok(Self::parsed(&text, span))
    }

    /// Checks a borrowed text like [`parse`](Self::parse), and returns the value without what surrounds it.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse).
    pub fn check(text: &[u8]) -> Result<&[u8], SyntaxError> {
        scan::document(text, &scan::TEXT).map(|span| text.get(span).unwrap_or_default())
    }

    /// Checks the text of a stored document, in one pass and without allocating for its values.
    ///
    /// # Errors
    ///
    /// [`SyntaxError`] where it is not UTF-8, not JSON, or nested deeper than [`MAX_DOCUMENT_DEPTH`].
    pub fn parse_document(text: impl Into<Bytes>) -> Result<Self, SyntaxError> {
        let text = text.into();
        let span = scan::document(&text, &scan::DOCUMENT)?;
        Ok(Self::parsed(&text, span))
    }

    /// The value at a span of a text, with the padding around it.
    fn parsed(text: &Bytes, span: Range<usize>) -> Self {
        let (before, after) = (text.slice(..span.start), text.slice(span.end..));
        let is_bare = before.is_empty() && after.is_empty();
        Self { text: text.slice(span), padding: (!is_bare).then(|| Arc::new(Padding { before, after })) }
    }

    /// The value with every bare word (`NaN`, `Infinity`) in quotes, for parsers of RFC 8259; `None` if the text is not
    /// JSON.
    pub fn standard_text(text: &[u8]) -> Option<Cow<'_, [u8]>> {
        Self::check(text).ok().map(with_quoted_non_finite_words)
    }

    /// A text without padding.
    fn bare(text: impl Into<Bytes>) -> Self {
        Self { text: text.into(), padding: None }
    }

    /// The value with the padding of another one.
    #[must_use]
    fn with_padding_of(self, other: &Self) -> Self {
        Self { padding: other.padding.clone(), ..self }
    }

    /// A text without padding, and without the spare capacity of its vector.
    fn owned(text: Vec<u8>) -> Self {
        Self::bare(text.into_boxed_slice())
    }

    /// A text that is composed of valid JSON.
    pub(crate) fn trusted(text: Vec<u8>) -> Self {
        Self::owned(text)
    }

    /// An empty object.
    pub const fn empty_object() -> Self {
        Self { text: Bytes::from_static(b"{}"), padding: None }
    }

    /// An empty object whose members are to be on lines of their own.
    pub const fn indented_empty_object() -> Self {
        Self { text: Bytes::from_static(b"{\n}"), padding: None }
    }

    /// The compact text of a value.
    pub fn compact(value: &Value) -> Self {
        Self::owned(value.to_string().into_bytes())
    }

    /// The value's text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// The value's text, sharing its bytes.
    pub fn to_bytes(&self) -> Bytes {
        self.text.clone()
    }

    /// The text with the padding around it, which [edits](Self::edited) preserve.
    pub fn to_padded_bytes(&self) -> Bytes {
        match &self.padding {
            None => self.text.clone(),
            Some(around) => [&*around.before, &*self.text, &*around.after].concat().into(),
        }
    }

    /// True if two texts are the same, and have no padding around them.
    pub fn is_identical(&self, other: &Self) -> bool {
        self.padding.is_none() && other.padding.is_none() && self.text == other.text
    }

    /// The nesting depth of arrays and objects.
    pub fn depth(&self) -> usize {
        scan::depth(&self.text)
    }

    /// True if all names can be decoded: none has a lone surrogate.
    pub(crate) fn has_readable_names(&self) -> bool {
        match self.kind() {
            Kind::Object => {
                self.members().all(|member| member.has_readable_name() && member.value.has_readable_names())
            }
            Kind::Array => self.items().all(|item| item.has_readable_names()),
            _ => true,
        }
    }

    /// The text as UTF-8.
    pub fn as_str(&self) -> &str {
        // The text was validated, and is only sliced between values.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// The text's length in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a value is never empty")]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// The type of the value.
    pub fn kind(&self) -> Kind {
        match self.text.first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// True if the value is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == Kind::Null
    }

    /// True if the value is an object.
    pub fn is_object(&self) -> bool {
        self.kind() == Kind::Object
    }

    /// The members of an object in order, including duplicate names; empty for other values.
    pub fn members(&self) -> Members {
        Members::of(self)
    }

    /// The items of an array; empty for other values.
    pub fn items(&self) -> Items {
        Items::of(self)
    }

    /// The value of a member; the last one of duplicate names.
    pub fn get(&self, name: &str) -> Option<Self> {
        self.member_slices().filter(|member| member.is_named(name)).last().map(|member| member.to_json())
    }

    /// The members of an object in order, as slices of its text.
    pub(crate) fn member_slices(&self) -> AllMemberSlices<'_> {
        AllMemberSlices::of(self)
    }

    /// The string value.
    pub fn to_text(&self) -> Option<String> {
        (self.kind() == Kind::String).then(|| serde_json::from_slice(&self.text).ok())?
    }

    /// The parsed value. It may take up to about thirty times the memory of the text; see
    /// [`estimated_value_memory`](Self::estimated_value_memory).
    ///
    /// # Errors
    ///
    /// Numbers too large for a float, and lone surrogates.
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.text).or_else(|error| match with_quoted_non_finite_words(&self.text) {
            Cow::Borrowed(_) => Err(error),
            Cow::Owned(quoted) => serde_json::from_slice(&quoted),
        })
    }

    /// An estimate of the memory of [`to_value`](Self::to_value) in bytes: slots of arrays that have just doubled,
    /// entries of objects with their names, and the first entries of objects.
    pub fn estimated_value_memory(&self) -> usize {
        let value = size_of::<Value>();
        let cost = |byte: &u8| match byte {
            b',' | b'[' => 2 * value,
            b':' => 4 * value,
            b'{' => 20 * value,
            _ => 1,
        };
        self.text.iter().map(cost).fold(0, usize::saturating_add)
    }

    /// The text as documents are stored: indented by two like zarr-python. Only whitespace changes. The text is compact
    /// if indentation would make it many times longer, or longer than a document may be.
    #[must_use]
    pub fn formatted(&self) -> Self {
        Self::owned(format::indented(&self.text).unwrap_or_else(|| format::compact(&self.text)))
    }

    /// The text on one line, without whitespace.
    #[must_use]
    pub fn compacted(&self) -> Self {
        Self::owned(format::compact(&self.text))
    }

    /// An object of these members, each with its quoted name.
    pub fn from_members<'a>(members: impl IntoIterator<Item = (&'a Self, &'a Self)>) -> Self {
        let mut text = vec![b'{'];
        for (name, value) in members {
            if text.len() > 1 {
                text.push(b',');
            }
            text.extend_from_slice(&name.text);
            text.push(b':');
            text.extend_from_slice(&value.text);
        }
        text.push(b'}');
        Self::owned(text)
    }

    /// The object without the members of a name, on one line, and the last of them; the same text if there is none.
    pub(crate) fn split_off(&self, name: &str) -> (Self, Option<Self>) {
        let mut rest = self.member_slices().enumerate();
        let Some((index, first)) = rest.find(|(_, member)| member.is_named(name)) else { return (self.clone(), None) };
        let (mut text, mut last) = (vec![b'{'], first);
        self.member_slices().take(index).for_each(|member| push_member(&mut text, &member));
        for (_, member) in rest {
            if member.is_named(name) {
                last = member;
            } else {
                push_member(&mut text, &member);
            }
        }
        text.push(b'}');
        (Self::owned(text), Some(last.to_json()))
    }

    /// A JSON string.
    pub fn string(text: &str) -> Self {
        Self::compact(&Value::from(text))
    }

    /// The value at a path of names and indices.
    pub fn at(&self, path: &[String]) -> Option<Self> {
        path.iter().try_fold(self.clone(), |json, name| match json.kind() {
            Kind::Object => json.get(name),
            Kind::Array => json.items().nth(name.parse().ok()?),
            _ => None,
        })
    }

    /// Inserts `indent` after each line break.
    fn reindented(&self, indent: &[u8]) -> Vec<u8> {
        // Strings have no line breaks.
        let mut text = Vec::with_capacity(self.text.len());
        for byte in &self.text {
            text.push(*byte);
            if *byte == b'\n' {
                text.extend_from_slice(indent);
            }
        }
        text
    }

    /// Writes the text.
    pub fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        to.write_all(&self.text)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::text::truncated(self.as_str()))
    }
}

impl Default for Json {
    fn default() -> Self {
        Self::empty_object()
    }
}

/// Compares parsed values.
impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        self.to_value().is_ok_and(|value| value == *other)
    }
}

impl From<&Map<String, Value>> for Json {
    fn from(members: &Map<String, Value>) -> Self {
        // Writing to a vector cannot fail, and names are strings.
        Self::owned(serde_json::to_vec(members).unwrap_or_default())
    }
}

impl From<Map<String, Value>> for Json {
    fn from(members: Map<String, Value>) -> Self {
        Self::from(&members)
    }
}

/// Serializes like the parsed [`Value`], without building it. Values that cannot be represented, such as numbers beyond
/// all floats, are serialized as strings, and so are values nested deeper than 100 levels, so that the result can be
/// parsed inside of another value.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { json: self.clone(), levels: 100 }.serialize(serializer)
    }
}

/// A value with a maximum nesting depth.
struct Nested {
    json: Json,
    levels: usize,
}

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { json, levels } = self;
        let inner = |json| Self { json, levels: levels.saturating_sub(1) };
        match json.kind() {
            Kind::Array | Kind::Object if *levels == 0 => serializer.serialize_str(json.as_str()),
            Kind::Array => serializer.collect_seq(json.items().map(inner)),
            Kind::Object => {
                let written = |member: &Member| member.quoted_name().as_str().to_owned();
                let named = |member: Member| (member.name().unwrap_or_else(|| written(&member)), inner(member.value));
                serializer.collect_map(json.members().map(named))
            }
            _ => match json.to_value() {
                Ok(value) => value.serialize(serializer),
                Err(_) => serializer.serialize_str(json.as_str()),
            },
        }
    }
}

/// Deserializes a value to compact text.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self::compact(&value))
    }
}

/// Appends a member to the text of an open object.
fn push_member(text: &mut Vec<u8>, member: &MemberSlices<'_>) {
    if text.len() > 1 {
        text.push(b',');
    }
    text.extend_from_slice(member.quoted_name());
    text.push(b':');
    text.extend_from_slice(member.value());
}

/// Puts every bare [word](NON_FINITE_WORDS) in quotes.
fn with_quoted_non_finite_words(text: &[u8]) -> Cow<'_, [u8]> {
    let mut quoted = Vec::new();
    let mut rest = text;
    let mut in_string = false;
    while let Some((&byte, after)) = rest.split_first() {
        let word = NON_FINITE_WORDS.iter().find(|word| !in_string && rest.starts_with(word.as_bytes()));
        let consumed = match word {
            Some(word) => {
                if quoted.is_empty() {
                    quoted.reserve(text.len() + 64);
                    quoted.extend_from_slice(text.strip_suffix(rest).unwrap_or_default());
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
        let (text, next) = rest.split_at_checked(consumed).unwrap_or((rest, after));
        if !quoted.is_empty() {
            quoted.extend_from_slice(text);
        }
        rest = next;
    }
    if quoted.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(quoted) }
}
