//! The text of a selection.
//!
//! Items are separated by commas, one per dimension; a comma after the last is allowed. Spaces and tabs are allowed
//! around numbers and punctuation, but not within a number. A number is a sequence of decimal digits after an optional
//! `-` or `+`. A list has round or square brackets, also around a single index. A text without items selects
//! everything.

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use super::{Item, MAX_ITEMS, MAX_TEXT_SIZE, Selection, Slice};

/// The maximum number of characters of invalid text in messages.
const MAX_EXCERPT_CHARS: usize = 24;

/// A text is not a selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}, at byte {offset}{}", FoundSuffix(found))]
pub struct ParseError {
    /// The error.
    pub kind: ParseErrorKind,
    /// The offset in the text, in bytes.
    pub offset: usize,
    /// The text there, truncated; empty at the end of the text.
    pub found: String,
}

/// Reasons for rejecting a selection's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// The text is longer than [`MAX_TEXT_SIZE`].
    #[error("a selection has at most {MAX_TEXT_SIZE} bytes, this one has {len}")]
    TooLong {
        /// The text's length in bytes.
        len: usize,
    },
    /// An item is missing.
    #[error("an index, a slice, a list or `...` is expected")]
    ExpectedItem,
    /// An item is not followed by a comma.
    #[error("a `,` or the end is expected after an item")]
    ExpectedComma,
    /// A text of a single item continues.
    #[error("the end is expected after the only item")]
    ExpectedEnd,
    /// A sign is not followed by digits.
    #[error("digits are expected after a sign (a `+` does not stand for a space, `%20` does)")]
    ExpectedDigits,
    /// An entry of a list is not an integer.
    #[error("a list holds whole numbers, and a whole number is expected")]
    ExpectedInteger,
    /// A list does not end with its bracket.
    #[error("a `,` or the list's `{close}` is expected")]
    ExpectedBracket {
        /// The bracket.
        close: char,
    },
    /// An item is invalid after those before it.
    #[error(transparent)]
    Item(#[from] ItemError),
}

/// An item is invalid for any shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// There are more than [`MAX_ITEMS`] items.
    #[error("a selection has at most {MAX_ITEMS} items")]
    TooMany,
    /// A second ellipsis.
    #[error("a selection has at most one `...`")]
    SecondEllipsis,
    /// The step of a slice is 0.
    #[error("the step of a slice must not be 0")]
    ZeroStep,
}

impl Selection {
    /// Parses a text such as `2:10, ::-1, (0,5,-1)`.
    ///
    /// Integers that do not fit an `i64` become the nearest one that does. No array has such an index, and slices are
    /// clamped, so the meaning does not change.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text)?;
        let mut selection = Self::default();
        scanner.skip_spaces();
        while scanner.peek().is_some() {
            let at = scanner.at;
            let item = scanner.item()?;
            selection.push(item).map_err(|error| scanner.error_at(at, error.into()))?;
            if !scanner.accept_comma() && scanner.peek().is_some() {
                return Err(scanner.error(ParseErrorKind::ExpectedComma));
            }
        }
        Ok(selection)
    }

    /// Adds an item; fails if it is invalid after those before it.
    pub(super) fn push(&mut self, item: Item) -> Result<(), ItemError> {
        if self.items.len() >= MAX_ITEMS {
            return Err(ItemError::TooMany);
        }
        match item {
            Item::Ellipsis if self.items.contains(&Item::Ellipsis) => return Err(ItemError::SecondEllipsis),
            Item::Slice(Slice { step: Some(0), .. }) => return Err(ItemError::ZeroStep),
            _ => self.items.push(item),
        }
        Ok(())
    }
}

impl Item {
    /// Parses a single item.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut scanner = Scanner::new(text)?;
        scanner.skip_spaces();
        let item = scanner.item()?;
        match scanner.peek() {
            None => Ok(item),
            Some(_) => Err(scanner.error(ParseErrorKind::ExpectedEnd)),
        }
    }
}

impl FromStr for Selection {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Formats the selection without spaces and with round brackets, which need no escaping in a URL. It parses as
/// the same selection if it is not longer than [`MAX_TEXT_SIZE`].
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_separated(f, &self.items)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Slice(slice) => write!(f, "{slice}"),
            Self::Ellipsis => f.write_str("..."),
            Self::List(indices) => {
                f.write_char('(')?;
                write_separated(f, indices)?;
                f.write_char(')')
            }
        }
    }
}

impl fmt::Display for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(start) = self.start {
            write!(f, "{start}")?;
        }
        f.write_char(':')?;
        if let Some(stop) = self.stop {
            write!(f, "{stop}")?;
        }
        match self.step {
            Some(step) => write!(f, ":{step}"),
            None => Ok(()),
        }
    }
}

fn write_separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
    for (n, value) in values.iter().enumerate() {
        if n > 0 {
            f.write_char(',')?;
        }
        write!(f, "{value}")?;
    }
    Ok(())
}

/// The invalid text in an error message.
struct FoundSuffix<'a>(&'a str);

impl fmt::Display for FoundSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str(", where the text ends"),
            piece => write!(f, ": `{}`", Excerpt(piece)),
        }
    }
}

/// Client-supplied text in an error message, with unprintable characters escaped.
pub(super) struct Excerpt<'a>(pub(super) &'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '"' | '\'' | '\\' => f.write_char(c),
            c => write!(f, "{}", c.escape_debug()),
        })
    }
}

/// Truncates a text for an error message.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((end, _)) => text.get(..end).into_iter().chain(["…"]).collect(),
        None => text.to_owned(),
    }
}

/// Parses a text that is one integer, clamped to the range of `i64`.
pub(super) fn whole_number(text: &str) -> Option<i64> {
    let mut scanner = Scanner { text, at: 0 };
    let number = scanner.number().ok().flatten();
    number.filter(|_| scanner.peek().is_none())
}

/// A parser of selections. It stops only before or after ASCII, so `at` is always a character boundary.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Result<Self, ParseError> {
        let scanner = Self { text, at: 0 };
        match text.len() {
            ..=MAX_TEXT_SIZE => Ok(scanner),
            len => Err(scanner.error(ParseErrorKind::TooLong { len })),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Reads `byte` and the spaces after it; returns false if it is not the next byte.
    fn accept(&mut self, byte: u8) -> bool {
        if self.peek() != Some(byte) {
            return false;
        }
        self.at += 1;
        self.skip_spaces();
        true
    }

    fn accept_comma(&mut self) -> bool {
        self.accept(b',')
    }

    /// Reads an item and the spaces after it.
    fn item(&mut self) -> Result<Item, ParseError> {
        if self.rest().starts_with("...") {
            self.at += 3;
            self.skip_spaces();
            return Ok(Item::Ellipsis);
        }
        if self.accept(b'[') {
            return self.list(b']');
        }
        if self.accept(b'(') {
            return self.list(b')');
        }
        let start = self.number()?;
        if self.accept(b':') {
            let stop = self.number()?;
            let step = if self.accept(b':') { self.number()? } else { None };
            return Ok(Item::Slice(Slice { start, stop, step }));
        }
        start.map(Item::Index).ok_or_else(|| self.error(ParseErrorKind::ExpectedItem))
    }

    /// Reads a list after its first bracket, up to `close` and the spaces after it.
    fn list(&mut self, close: u8) -> Result<Item, ParseError> {
        let mut indices = Vec::new();
        while !self.accept(close) {
            let index = self.number()?.ok_or_else(|| self.error(ParseErrorKind::ExpectedInteger))?;
            indices.push(index);
            if !self.accept_comma() && self.peek() != Some(close) {
                return Err(self.error(ParseErrorKind::ExpectedBracket { close: char::from(close) }));
            }
        }
        Ok(Item::List(indices))
    }

    /// Reads a number and the spaces after it; `None` if there is none.
    fn number(&mut self) -> Result<Option<i64>, ParseError> {
        let begin = self.at;
        let negative = self.peek() == Some(b'-');
        let signed = negative || self.peek() == Some(b'+');
        if signed {
            self.at += 1;
        }
        let mut number = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let tens = number.unwrap_or(0_i64).saturating_mul(10);
            let digit = i64::from(digit - b'0');
            // Negative numbers are accumulated downwards, because the smallest one has no positive counterpart.
            number = Some(if negative { tens.saturating_sub(digit) } else { tens.saturating_add(digit) });
            self.at += 1;
        }
        if signed && number.is_none() {
            return Err(self.error_at(begin, ParseErrorKind::ExpectedDigits));
        }
        self.skip_spaces();
        Ok(number)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, kind: ParseErrorKind) -> ParseError {
        self.error_at(self.at, kind)
    }

    fn error_at(&self, at: usize, kind: ParseErrorKind) -> ParseError {
        let rest = self.text.get(at..).unwrap_or_default();
        // The excerpt ends before the next comma or bracket, or consists of it.
        let end = match rest.find([',', '[', ']', '(', ')']) {
            None => rest.len(),
            Some(end) => end.max(1),
        };
        ParseError { kind, offset: at, found: excerpt(rest.get(..end).unwrap_or(rest)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insignificant_characters_are_ignored() {
        for (text, canonical) in [
            ("", ""),
            (" \t ", ""),
            ("5,", "5"),
            (" 1 , 2 : 10 : -3 ", "1,2:10:-3"),
            (": : , ... , [ 1 , +5 , 9 , ]", ":,...,(1,5,9)"),
            ("::", ":"),
            ("1:2:", "1:2"),
            ("::1", "::1"),
            ("[],()", "(),()"),
            ("(7)", "(7)"),
            ("+5,-0,007", "5,0,7"),
            ("99999999999999999999:-99999999999999999999", "9223372036854775807:-9223372036854775808"),
            ("-9223372036854775808,9223372036854775807", "-9223372036854775808,9223372036854775807"),
        ] {
            assert_eq!(Selection::parse(text).unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn errors_have_a_reason_and_an_offset() {
        for (text, expected) in [
            (",", "an index, a slice, a list or `...` is expected, at byte 0: `,`"),
            ("1,,2", "an index, a slice, a list or `...` is expected, at byte 2: `,`"),
            ("1, é:5", "an index, a slice, a list or `...` is expected, at byte 3: `é:5`"),
            ("..", "an index, a slice, a list or `...` is expected, at byte 0: `..`"),
            ("....", "a `,` or the end is expected after an item, at byte 3: `.`"),
            ("1.5", "a `,` or the end is expected after an item, at byte 1: `.5`"),
            ("1 2", "a `,` or the end is expected after an item, at byte 2: `2`"),
            ("1:2:3:4", "a `,` or the end is expected after an item, at byte 5: `:4`"),
            ("(1,2", "a `,` or the list's `)` is expected, at byte 4, where the text ends"),
            ("[1,2)", "a `,` or the list's `]` is expected, at byte 4: `)`"),
            ("[", "a list holds whole numbers, and a whole number is expected, at byte 1, where the text ends"),
            ("[[1]]", "a list holds whole numbers, and a whole number is expected, at byte 1: `[`"),
            ("[1:2]", "a `,` or the list's `]` is expected, at byte 2: `:2`"),
            ("[,]", "a list holds whole numbers, and a whole number is expected, at byte 1: `,`"),
            (
                "0:10,+::2",
                "digits are expected after a sign (a `+` does not stand for a space, `%20` does), at byte 5: `+::2`",
            ),
            (
                "- 5",
                "digits are expected after a sign (a `+` does not stand for a space, `%20` does), at byte 0: `- 5`",
            ),
            ("1, 2:3:0", "the step of a slice must not be 0, at byte 3: `2:3:0`"),
            ("..., 1, ...", "a selection has at most one `...`, at byte 8: `...`"),
            ("x\u{202e}\n", "an index, a slice, a list or `...` is expected, at byte 0: `x\\u{202e}\\n`"),
            (
                "0123456789é123456789é123456789x",
                "a `,` or the end is expected after an item, at byte 10: `é123456789é123456789x`",
            ),
            (
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                "an index, a slice, a list or `...` is expected, at byte 0: `xxxxxxxxxxxxxxxxxxxxxxxx…`",
            ),
        ] {
            assert_eq!(Selection::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn limits_are_enforced() {
        let long = ":".repeat(MAX_TEXT_SIZE + 1);
        assert_eq!(Selection::parse(&long).unwrap_err().kind, ParseErrorKind::TooLong { len: MAX_TEXT_SIZE + 1 });

        let most = vec!["0"; MAX_ITEMS].join(",");
        assert_eq!(Selection::parse(&most).unwrap().items.len(), MAX_ITEMS);
        let error = Selection::parse(&format!("{most},7")).unwrap_err();
        assert_eq!((error.kind, error.found.as_str()), (ParseErrorKind::Item(ItemError::TooMany), "7"));

        let lists = "[1,2],".repeat(20_000);
        assert_eq!(Selection::parse(&lists).unwrap_err().kind, ParseErrorKind::Item(ItemError::TooMany));
        let deep = "[".repeat(MAX_TEXT_SIZE);
        assert_eq!(Selection::parse(&deep).unwrap_err().kind, ParseErrorKind::ExpectedInteger);
        let digits = "9".repeat(MAX_TEXT_SIZE);
        assert_eq!(Selection::parse(&digits).unwrap().items, [Item::Index(i64::MAX)]);
        let entries = format!("[{}]", "1,".repeat(MAX_TEXT_SIZE / 2 - 1));
        assert_eq!(
            Selection::parse(&entries).unwrap().resolve(&[2]).unwrap().elements(),
            Some(MAX_TEXT_SIZE as u64 / 2 - 1)
        );
    }
}
