//! Iterators over members and items, as slices of the text.

use std::{borrow::Cow, ops::Range};

use super::{Json, Kind, scan};

/// A member of an object.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name with quotes, in its notation.
    name: Json,
    /// The value.
    pub value: Json,
    /// The span of name and value in the object's text.
    pub(super) span: Range<usize>,
}

/// The members of an object in their order.
#[derive(Clone, Debug)]
pub struct Members {
    cursor: Cursor,
}

/// A member of an object, as slices of the borrowed text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberSlices<'a> {
    object: &'a Json,
    /// The name with quotes, in its notation.
    name: &'a [u8],
    span: (usize, usize),
}

/// The members of an object in their order, as slices of the borrowed text: for searches, which share the ownership of
/// the members found and of no others.
#[derive(Clone, Debug)]
pub(crate) struct AllMemberSlices<'a> {
    object: &'a Json,
    offset: usize,
}

/// The elements of an array in their order.
#[derive(Clone, Debug)]
pub struct Items {
    cursor: Cursor,
}

/// The position of an iterator in a validated array or object.
#[derive(Clone, Debug)]
struct Cursor {
    text: Json,
    /// The offset of the next value; the end of the text if there is none.
    offset: usize,
}

impl Member {
    /// The name; `None` if it has a lone surrogate.
    pub fn name(&self) -> Option<String> {
        self.name.to_text()
    }

    /// The name, borrowed if it has no escapes; `None` if it has a lone surrogate.
    pub(super) fn decoded_name(&self) -> Option<Cow<'_, str>> {
        decoded(self.name.as_bytes())
    }

    /// True if the name can be decoded.
    pub(super) fn has_readable_name(&self) -> bool {
        self.decoded_name().is_some()
    }

    /// True if the member has this name.
    pub fn is_named(&self, name: &str) -> bool {
        is_string(self.name.as_bytes(), name)
    }

    /// The name with quotes, in its notation.
    pub fn quoted_name(&self) -> &Json {
        &self.name
    }
}

impl<'a> MemberSlices<'a> {
    /// True if the member has this name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        is_string(self.name, name)
    }

    /// The name; `None` if it has a lone surrogate.
    pub(crate) fn name(&self) -> Option<String> {
        serde_json::from_slice(self.name).ok()
    }

    /// The name, borrowed if it has no escapes; `None` if it has a lone surrogate.
    pub(super) fn decoded_name(&self) -> Option<Cow<'a, str>> {
        decoded(self.name)
    }

    /// The name with quotes, in its notation.
    pub(crate) fn quoted_name(&self) -> &'a [u8] {
        self.name
    }

    /// The name with quotes, in its notation.
    pub(super) fn notation(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.name)
    }

    /// The offset of the value in the object.
    pub(super) fn value_offset(&self) -> usize {
        self.span.0
    }

    /// The text of the value.
    pub(crate) fn value(&self) -> &'a [u8] {
        let (begin, end) = self.span;
        self.object.as_bytes().get(begin..end).unwrap_or_default()
    }

    /// The value, sharing the bytes of the object.
    pub(crate) fn to_json(self) -> Json {
        let (begin, end) = self.span;
        Json::bare(self.object.text.slice(begin..end))
    }
}

impl<'a> AllMemberSlices<'a> {
    pub(super) fn of(object: &'a Json) -> Self {
        Self { object, offset: first_offset(object, Kind::Object) }
    }
}

impl<'a> Iterator for AllMemberSlices<'a> {
    type Item = MemberSlices<'a>;

    fn next(&mut self) -> Option<MemberSlices<'a>> {
        let text = self.object.as_bytes();
        let (name, value) = next_member(text, &mut self.offset)?;
        let name = text.get(name).unwrap_or_default();
        Some(MemberSlices { object: self.object, name, span: (value.start, value.end) })
    }
}

impl Members {
    pub(super) fn of(json: &Json) -> Self {
        Self { cursor: Cursor::of(json, Kind::Object) }
    }
}

impl Items {
    pub(super) fn of(json: &Json) -> Self {
        Self { cursor: Cursor::of(json, Kind::Array) }
    }
}

impl Iterator for Members {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        let (name, value) = next_member(self.cursor.text.as_bytes(), &mut self.cursor.offset)?;
        let span = name.start..value.end;
        Some(Member { name: self.cursor.slice(name), value: self.cursor.slice(value), span })
    }
}

impl Iterator for Items {
    type Item = Json;

    fn next(&mut self) -> Option<Json> {
        let value = self.cursor.next_item()?;
        Some(self.cursor.slice(value))
    }
}

impl Items {
    /// The span of the next item in the array's text.
    pub(super) fn next_span(&mut self) -> Option<Range<usize>> {
        self.cursor.next_item()
    }
}

impl Cursor {
    fn of(json: &Json, kind: Kind) -> Self {
        Self { text: json.clone(), offset: first_offset(json, kind) }
    }

    /// The span of the next item; advances to the one after it.
    fn next_item(&mut self) -> Option<Range<usize>> {
        let text = self.text.as_bytes();
        let item = next_value(text, &mut self.offset)?;
        skip_comma(text, &mut self.offset);
        Some(item)
    }

    fn slice(&self, span: Range<usize>) -> Json {
        Json::bare(self.text.text.slice(span))
    }
}

/// The value of a string with quotes, borrowed if it has no escapes; `None` if it has a lone surrogate.
fn decoded(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let raw = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    match raw.contains(&b'\\') {
        true => serde_json::from_slice(quoted).ok().map(Cow::Owned),
        false => std::str::from_utf8(raw).ok().map(Cow::Borrowed),
    }
}

/// True if a string with quotes has this value.
fn is_string(quoted: &[u8], value: &str) -> bool {
    let raw = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default();
    raw == value.as_bytes()
        || raw.contains(&b'\\') && serde_json::from_slice::<String>(quoted).is_ok_and(|found| found == value)
}

/// The offset of the first name or item in a value of this kind; the end of a value of another kind.
fn first_offset(json: &Json, kind: Kind) -> usize {
    if json.kind() == kind { scan::skip_whitespace(json.as_bytes(), 1) } else { json.len() }
}

/// The spans of the next name and its value; advances to the member after it.
fn next_member(text: &[u8], offset: &mut usize) -> Option<(Range<usize>, Range<usize>)> {
    let name = next_value(text, offset)?;
    let colon = scan::skip_whitespace(text, name.end);
    *offset = scan::skip_whitespace(text, colon.saturating_add(1));
    let value = next_value(text, offset)?;
    skip_comma(text, offset);
    Some((name, value))
}

/// The span of the next value; advances to its end.
fn next_value(text: &[u8], offset: &mut usize) -> Option<Range<usize>> {
    if matches!(text.get(*offset), None | Some(b'}' | b']')) {
        return None;
    }
    let span = *offset..scan::end_of_value(text, *offset);
    *offset = span.end;
    Some(span)
}

/// Advances to the next value, or to the end of the text.
fn skip_comma(text: &[u8], offset: &mut usize) {
    let at = scan::skip_whitespace(text, *offset);
    *offset = match text.get(at) {
        Some(b',') => scan::skip_whitespace(text, at.saturating_add(1)),
        _ => text.len(),
    };
}
