//! The cursor of arrays and objects, as slices of their text.

use std::ops::Range;

use super::{Json, Kind, scan};

/// A member of an object.
#[derive(Clone, Debug)]
pub struct Member {
    /// The name in quotes, as it is written.
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

/// The elements of an array in their order.
#[derive(Clone, Debug)]
pub struct Items {
    cursor: Cursor,
}

/// The cursor between the brackets of a text that was checked.
#[derive(Clone, Debug)]
struct Cursor {
    text: Json,
    /// The offset of the next part; the end of the text if there is none.
    offset: usize,
}

impl Member {
    /// The name; `None` if it has an escape of a lone surrogate.
    pub fn name(&self) -> Option<String> {
        self.name.to_text()
    }

    /// True if this is the name.
    pub fn is_named(&self, name: &str) -> bool {
        let quoted = self.name.as_bytes();
        let raw = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or_default();
        raw == name.as_bytes() || raw.contains(&b'\\') && self.name().is_some_and(|found| found == name)
    }

    /// The name in quotes, as it is written.
    pub fn quoted_name(&self) -> &Json {
        &self.name
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
        let name = self.cursor.next_value_span()?;
        let colon = scan::skip_whitespace(self.cursor.text.as_bytes(), name.end);
        self.cursor.offset = scan::skip_whitespace(self.cursor.text.as_bytes(), colon.saturating_add(1));
        let value = self.cursor.next_value_span()?;
        self.cursor.skip_comma();
        let span = name.start..value.end;
        Some(Member { name: self.cursor.slice(name), value: self.cursor.slice(value), span })
    }
}

impl Iterator for Items {
    type Item = Json;

    fn next(&mut self) -> Option<Json> {
        let value = self.cursor.next_value_span()?;
        self.cursor.skip_comma();
        Some(self.cursor.slice(value))
    }
}

impl Items {
    /// The span of the next element in the array's text.
    pub(super) fn next_span(&mut self) -> Option<Range<usize>> {
        let value = self.cursor.next_value_span()?;
        self.cursor.skip_comma();
        Some(value)
    }
}

impl Cursor {
    fn of(json: &Json, kind: Kind) -> Self {
        let text = json.clone();
        let offset = if json.kind() == kind { scan::skip_whitespace(text.as_bytes(), 1) } else { text.len() };
        Self { text, offset }
    }

    /// The span of the next value, behind which it goes on.
    fn next_value_span(&mut self) -> Option<Range<usize>> {
        let text = self.text.as_bytes();
        if matches!(text.get(self.offset), None | Some(b'}' | b']')) {
            return None;
        }
        let span = self.offset..scan::end_of_value(text, self.offset);
        self.offset = span.end;
        Some(span)
    }

    /// Goes on behind a comma, if there is one.
    fn skip_comma(&mut self) {
        let text = self.text.as_bytes();
        let at = scan::skip_whitespace(text, self.offset);
        self.offset = match text.get(at) {
            Some(b',') => scan::skip_whitespace(text, at.saturating_add(1)),
            _ => text.len(),
        };
    }

    fn slice(&self, span: Range<usize>) -> Json {
        Json::bare(self.text.text.slice(span))
    }
}
