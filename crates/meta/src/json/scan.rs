//! Validation of JSON, and skipping of values in validated texts.

use std::ops::Range;

use super::{MAX_DEPTH, MAX_DOCUMENT_DEPTH, NON_FINITE_WORDS, SyntaxError};

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The maximum length of a text in bytes, so that offsets fit a `u32`.
pub(super) const MAX_LEN: usize = u32::MAX as usize;

/// The maximum nesting depth of a text.
pub(super) struct Nesting {
    levels: usize,
    /// The reason for rejecting deeper nesting.
    exceeded: &'static str,
}

/// The limit of any text. A test compares the reasons with the limits.
pub(super) const TEXT: Nesting = Nesting { levels: MAX_DEPTH, exceeded: "nested deeper than 127 levels" };

/// The limit of a stored document.
pub(super) const DOCUMENT: Nesting = Nesting { levels: MAX_DOCUMENT_DEPTH, exceeded: "nested deeper than 1000 levels" };

/// The span of the value in a text of one JSON value with surrounding whitespace and an optional byte order mark.
pub(super) fn document(text: &[u8], nesting: &Nesting) -> Result<Range<usize>, SyntaxError> {
    if text.len() > MAX_LEN {
        return Err(SyntaxError { reason: "longer than 4 GiB", line: 1, column: 1 });
    }
    if let Err(error) = std::str::from_utf8(text) {
        return Err(error_at(text, error.valid_up_to(), "invalid UTF-8"));
    }
    let begin = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let mut scanner = Scanner { text, at: begin };
    scanner.whitespace();
    let begin = scanner.at;
    scanner
        .value(nesting)
        .and_then(|()| {
            let end = scanner.at;
            scanner.whitespace();
            match scanner.peek() {
                None => Ok(begin..end),
                Some(_) => Err("trailing characters"),
            }
        })
        .map_err(|reason| error_at(text, scanner.at, reason))
}

fn error_at(text: &[u8], at: usize, reason: &'static str) -> SyntaxError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count().saturating_add(1);
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count().saturating_add(1);
    SyntaxError { reason, line, column }
}

/// The end of the value at `at` in a validated text.
pub(super) fn end_of_value(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let length = match rest.first() {
        Some(b'"') => string_len(rest),
        Some(b'{' | b'[') => container_len(rest),
        _ => rest.iter().position(|byte| b",]} \t\r\n:".contains(byte)).unwrap_or(rest.len()),
    };
    at.saturating_add(length)
}

/// The position of the next byte that is not whitespace.
pub(super) fn skip_whitespace(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at.saturating_add(rest.iter().position(|byte| !is_whitespace(*byte)).unwrap_or(rest.len()))
}

fn is_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The length of the string at the start of a text, including quotes.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of the array or object at the start of a text.
fn container_len(text: &[u8]) -> usize {
    levels(text).find(|(_, depth)| *depth == 0).map_or(text.len(), |(at, _)| at + 1)
}

/// The positions of brackets, each with the nesting depth after it.
fn levels(text: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let (mut at, mut depth) = (0_usize, 0_usize);
    std::iter::from_fn(move || {
        while let Some(byte) = text.get(at) {
            let here = at;
            match byte {
                b'"' => {
                    at += string_len(text.get(at..).unwrap_or_default());
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 1;
            return Some((here, depth));
        }
        None
    })
}

/// The nesting depth of a validated text.
pub(super) fn depth(text: &[u8]) -> usize {
    levels(text).map(|(_, depth)| depth).max().unwrap_or(0)
}

/// A validating parser of RFC 8259.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

type Scanned = Result<(), &'static str>;

impl Scanner<'_> {
    /// Reads a value. It is not recursive: open arrays and objects are on a heap-allocated stack.
    fn value(&mut self, nesting: &Nesting) -> Scanned {
        // The open arrays (false) and objects (true).
        let mut open: Vec<bool> = Vec::new();
        loop {
            match self.peek() {
                Some(byte @ (b'{' | b'[')) => {
                    if open.len() >= nesting.levels {
                        return Err(nesting.exceeded);
                    }
                    self.at += 1;
                    self.whitespace();
                    let is_object = byte == b'{';
                    if self.eat(if is_object { b'}' } else { b']' }) {
                        // An empty array or object is complete.
                    } else {
                        open.push(is_object);
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.string()?,
                Some(b'0'..=b'9' | b'-') => self.number()?,
                Some(_) => self.word()?,
                None => return Err("expected a value"),
            }
            if !self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Advances after a value: to the next one (true), or to the end of all (false).
    fn close(&mut self, open: &mut Vec<bool>) -> Result<bool, &'static str> {
        while let Some(&is_object) = open.last() {
            self.whitespace();
            if self.eat(b',') {
                self.whitespace();
                if is_object {
                    self.name()?;
                }
                return Ok(true);
            }
            if !self.eat(if is_object { b'}' } else { b']' }) {
                return Err(if is_object { "expected `,` or `}`" } else { "expected `,` or `]`" });
            }
            open.pop();
        }
        Ok(false)
    }

    /// Reads a member's name and colon.
    fn name(&mut self) -> Scanned {
        if self.peek() != Some(b'"') {
            return Err("expected a name in quotes");
        }
        self.string()?;
        self.whitespace();
        if !self.eat(b':') {
            return Err("expected `:`");
        }
        self.whitespace();
        Ok(())
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(..0x20) => return Err("control character in a string"),
                Some(_) => self.at += 1,
                None => return Err("the string has no end"),
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err("invalid escape");
                }
                self.at += 5;
            }
            _ => return Err("invalid escape"),
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.rest().starts_with(b"-Infinity") {
            return self.word();
        }
        self.eat(b'-');
        if !self.eat(b'0') && !self.digits() {
            return Err("invalid number");
        }
        if self.eat(b'.') && !self.digits() {
            return Err("invalid number");
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return Err("invalid number");
            }
        }
        Ok(())
    }

    /// Reads digits; returns false if there are none.
    fn digits(&mut self) -> bool {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count > 0
    }

    fn word(&mut self) -> Scanned {
        let rest = self.rest();
        let word =
            ["true", "false", "null"].iter().chain(&NON_FINITE_WORDS).find(|word| rest.starts_with(word.as_bytes()));
        let Some(word) = word else { return Err("expected a value") };
        self.at += word.len();
        // `NaNs` is not a word.
        match self.peek() {
            Some(byte) if byte.is_ascii_alphanumeric() => Err("expected a value"),
            _ => Ok(()),
        }
    }

    fn whitespace(&mut self) {
        self.at = skip_whitespace(self.text, self.at);
    }

    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Reads this byte; returns false if it is not the next one.
    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }
}
