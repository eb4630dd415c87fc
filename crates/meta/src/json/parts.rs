//! The parts of arrays and objects, as slices of their text.

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
    parts: Parts,
}

/// The elements of an array in their order.
#[derive(Clone, Debug)]
pub struct Items {
    parts: Parts,
}

/// The parts between the brackets of a text that was checked.
#[derive(Clone, Debug)]
struct Parts {
    text: Json,
    /// The offset of the next part; the end of the text if there is none.
    at: usize,
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
        Self { parts: Parts::of(json, Kind::Object) }
    }
}

impl Items {
    pub(super) fn of(json: &Json) -> Self {
        Self { parts: Parts::of(json, Kind::Array) }
    }
}

impl Iterator for Members {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        let name = self.parts.value()?;
        let colon = scan::skip_whitespace(self.parts.text.as_bytes(), name.end);
        self.parts.at = scan::skip_whitespace(self.parts.text.as_bytes(), colon.saturating_add(1));
        let value = self.parts.value()?;
        self.parts.comma();
        let span = name.start..value.end;
        Some(Member { name: self.parts.slice(name), value: self.parts.slice(value), span })
    }
}

impl Iterator for Items {
    type Item = Json;

    fn next(&mut self) -> Option<Json> {
        let value = self.parts.value()?;
        self.parts.comma();
        Some(self.parts.slice(value))
    }
}

impl Items {
    /// The span of the next element in the array's text.
    pub(super) fn next_span(&mut self) -> Option<Range<usize>> {
        let value = self.parts.value()?;
        self.parts.comma();
        Some(value)
    }
}

impl Parts {
    fn of(json: &Json, kind: Kind) -> Self {
        let text = json.clone();
        let at = if json.kind() == kind { scan::skip_whitespace(text.as_bytes(), 1) } else { text.len() };
        Self { text, at }
    }

    /// The span of the next value, behind which it goes on.
    fn value(&mut self) -> Option<Range<usize>> {
        let text = self.text.as_bytes();
        if matches!(text.get(self.at), None | Some(b'}' | b']')) {
            return None;
        }
        let span = self.at..scan::end_of_value(text, self.at);
        self.at = span.end;
        Some(span)
    }

    /// Goes on behind a comma, if there is one.
    fn comma(&mut self) {
        let text = self.text.as_bytes();
        let at = scan::skip_whitespace(text, self.at);
        self.at = match text.get(at) {
            Some(b',') => scan::skip_whitespace(text, at.saturating_add(1)),
            _ => text.len(),
        };
    }

    fn slice(&self, span: Range<usize>) -> Json {
        Json::bare(self.text.text.slice(span))
    }
}
