//! The notation of selections by label.
//!
//! | text | labels |
//! |---|---|
//! | `V` | exactly this one; the dimension is dropped |
//! | `V~` | the nearest one |
//! | `V~TOL` | the nearest one, at most `TOL` away |
//! | `A..B`, `A..`, `..B`, `..` | those from A to B, both included |
//! | `(V,V~,…)` | these, in this order |
//!
//! A text in quotes is taken as it is, with `""` for a quote. The leftmost `..` that is not in quotes splits a range.

use zarrd_meta::json::{Json, Kind};

use super::{
    error::LabelError,
    limits::{MAX_LABEL_SIZE, MAX_LABELS, MAX_SELECTION_SIZE},
};
use crate::attributes::excerpt;

/// The selection along one dimension, not yet compared with a coordinate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelSelection {
    /// One label; the dimension is dropped, except for a date without seconds, which is an interval.
    One(Label),
    /// The labels from one to another, both included.
    Range {
        /// The smallest label.
        from: Option<LabelText>,
        /// The largest label.
        to: Option<LabelText>,
    },
    /// These labels, in this order.
    List(Vec<Label>),
}

/// A label to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The label.
    pub text: LabelText,
    /// The labels that match it.
    pub matching: Match,
}

/// The labels that match another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// Equal ones.
    Exact,
    /// The nearest one; of two, the larger one.
    Nearest,
    /// The nearest one, at most so far away.
    Within(String),
}

/// The text of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelText {
    /// The text, without quotes.
    pub text: String,
    /// The source of the text.
    pub source: TextSource,
}

/// The source of a label's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// As it stands.
    Plain,
    /// In quotes.
    Quoted,
}

const EXPECTED_LABEL: &str = "a label is expected, and an empty one is `\"\"`";
const EXPECTED_QUOTE: &str = "a text in quotes ends with a quote, and two quotes stand for one";
const EXPECTED_QUOTES: &str = "a text with `\"` or `~` is put into quotes";
const EXPECTED_BRACKET: &str = "a list ends with `)`, after which nothing follows";
const EXPECTED_VALUE: &str = "it is a string, a number or an array of these";

impl LabelSelection {
    /// Parses a text.
    ///
    /// # Errors
    ///
    /// Texts that are not of the notation, or exceed a limit.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        if text.len() > MAX_SELECTION_SIZE {
            return Err(LabelError::TooLong { size: text.len() });
        }
        let text = text.trim();
        if let Some(list) = text.strip_prefix('(') {
            return Self::parse_list(list);
        }
        match split_unquoted(text, "..") {
            Some((from, to)) => Ok(Self::Range { from: parse_bound(from)?, to: parse_bound(to)? }),
            None => parse_label(text).map(Self::One),
        }
    }

    /// Reads a member of a request's JSON: a text, a number, or an array of these.
    ///
    /// # Errors
    ///
    /// Other values, and texts like in [`parse`](Self::parse).
    pub fn from_json(json: &Json) -> Result<Self, LabelError> {
        match json.kind() {
            Kind::String => Self::parse(&text_of(json)?),
            Kind::Array => {
                let mut labels = Vec::new();
                for item in json.items() {
                    push(&mut labels, json_label(&item)?)?;
                }
                Ok(Self::List(labels))
            }
            _ => json_label(json).map(Self::One),
        }
    }

    fn parse_list(text: &str) -> Result<Self, LabelError> {
        let (mut rest, mut labels) = (text.trim_start(), Vec::new());
        if rest == ")" {
            return Ok(Self::List(labels));
        }
        loop {
            let end = find_unquoted(rest, |text| text.starts_with([',', ')']));
            let Some((item, after)) = end.and_then(|end| rest.split_at_checked(end)) else {
                return Err(invalid(text, EXPECTED_BRACKET));
            };
            push(&mut labels, parse_label(item.trim())?)?;
            match after.strip_prefix(',') {
                // A comma after the last label is allowed.
                Some(after) if after.trim() != ")" => rest = after,
                None if after != ")" => return Err(invalid(text, EXPECTED_BRACKET)),
                _ => return Ok(Self::List(labels)),
            }
        }
    }
}

impl LabelText {
    /// A label without quotes.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), source: TextSource::Plain }
    }
}

fn push(labels: &mut Vec<Label>, label: Label) -> Result<(), LabelError> {
    if labels.len() >= MAX_LABELS {
        return Err(LabelError::TooManyLabels);
    }
    labels.push(label);
    Ok(())
}

fn json_label(json: &Json) -> Result<Label, LabelError> {
    match json.kind() {
        Kind::String => parse_label(text_of(json)?.trim()),
        Kind::Number | Kind::Bool => {
            Ok(Label { text: checked(LabelText::plain(json.as_str()))?, matching: Match::Exact })
        }
        Kind::Null | Kind::Array | Kind::Object => Err(invalid(json.as_str(), EXPECTED_VALUE)),
    }
}

fn text_of(json: &Json) -> Result<String, LabelError> {
    if json.as_bytes().len() > MAX_SELECTION_SIZE {
        return Err(LabelError::TooLong { size: json.as_bytes().len() });
    }
    json.to_text().ok_or_else(|| invalid(json.as_str(), EXPECTED_VALUE))
}

fn parse_bound(text: &str) -> Result<Option<LabelText>, LabelError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    match parse_label(text)? {
        Label { text, matching: Match::Exact } => Ok(Some(text)),
        _ => Err(invalid(text, "the ends of a range have no `~`")),
    }
}

fn parse_label(text: &str) -> Result<Label, LabelError> {
    let (label, matching) = match split_unquoted(text, "~") {
        None => (text, Match::Exact),
        Some((label, "")) => (label, Match::Nearest),
        Some((label, tolerance)) => (label, Match::Within(checked(LabelText::plain(tolerance.trim()))?.text)),
    };
    let label = label.trim();
    let text = match label.strip_prefix('"') {
        Some(quoted) => LabelText { text: unquoted(quoted)?, source: TextSource::Quoted },
        None if label.is_empty() => return Err(invalid(text, EXPECTED_LABEL)),
        None if label.contains('"') => return Err(invalid(text, EXPECTED_QUOTES)),
        None => LabelText::plain(label),
    };
    Ok(Label { text: checked(text)?, matching })
}

fn checked(text: LabelText) -> Result<LabelText, LabelError> {
    match text.text.len() {
        size if size > MAX_LABEL_SIZE => Err(LabelError::LabelTooLong { label: excerpt(&text.text), size }),
        _ => Ok(text),
    }
}

/// The text before the closing quote, which is the last character.
fn unquoted(text: &str) -> Result<String, LabelError> {
    let inner = text.strip_suffix('"').ok_or_else(|| invalid(text, EXPECTED_QUOTE))?;
    if inner.replace("\"\"", "").contains('"') {
        return Err(invalid(text, EXPECTED_QUOTE));
    }
    Ok(inner.replace("\"\"", "\""))
}

/// Splits a text at the leftmost separator that is not in quotes.
fn split_unquoted<'a>(text: &'a str, separator: &str) -> Option<(&'a str, &'a str)> {
    let (before, after) = text.split_at_checked(find_unquoted(text, |text| text.starts_with(separator))?)?;
    Some((before, after.strip_prefix(separator)?))
}

/// The offset of the first character that is not in quotes and from which on a text is searched for.
fn find_unquoted(text: &str, matches: impl Fn(&str) -> bool) -> Option<usize> {
    let mut in_quotes = false;
    text.char_indices().find_map(|(at, character)| {
        in_quotes ^= character == '"';
        (!in_quotes && text.get(at..).is_some_and(&matches)).then_some(at)
    })
}

fn invalid(label: &str, expected: &'static str) -> LabelError {
    LabelError::Invalid { label: excerpt(label), expected }
}
