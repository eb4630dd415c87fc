//! Python literals in the header of a `.npy` file: strings, numbers, booleans, lists, tuples and one dictionary.

use serde_json::{Map, Number, Value};

/// The maximum nesting depth of lists and tuples.
const MAX_DEPTH: usize = 32;

/// The reason why a text is no literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at character {at}")]
pub struct LiteralError {
    /// The position, in characters.
    pub at: usize,
    /// The expected text.
    pub expected: &'static str,
}

/// Parses a dictionary with strings as keys. Lists and tuples become arrays. Surrounding space is skipped; a repeated
/// key is an error.
pub(super) fn dictionary(text: &str) -> Result<Map<String, Value>, LiteralError> {
    let mut reader = Reader { rest: text.chars().peekable(), at: 0 };
    let members = reader.dictionary()?;
    match reader.peek() {
        None => Ok(members),
        Some(_) => Err(reader.expected("the end")),
    }
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    at: usize,
}

impl Reader<'_> {
    fn expected(&self, expected: &'static str) -> LiteralError {
        LiteralError { at: self.at, expected }
    }

    fn next(&mut self) -> Option<char> {
        self.at += 1;
        self.rest.next()
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.rest.peek().is_some_and(char::is_ascii_whitespace) {
            self.next();
        }
        self.rest.peek().copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let next_is_wanted = self.peek() == Some(wanted);
        if next_is_wanted {
            self.next();
        }
        next_is_wanted
    }

    fn dictionary(&mut self) -> Result<Map<String, Value>, LiteralError> {
        if !self.take('{') {
            return Err(self.expected("a dictionary"));
        }
        let mut members = Map::new();
        while !self.take('}') {
            let Some(quote @ ('\'' | '"')) = self.peek() else { return Err(self.expected("a key")) };
            let key = self.text(quote)?;
            if !self.take(':') {
                return Err(self.expected("a colon"));
            }
            let value = self.value(MAX_DEPTH)?;
            if members.insert(key, value).is_some() {
                return Err(self.expected("another key"));
            }
            if !self.take(',') && self.peek() != Some('}') {
                return Err(self.expected("a comma or the end of the dictionary"));
            }
        }
        Ok(members)
    }

    fn value(&mut self, depth: usize) -> Result<Value, LiteralError> {
        let Some(inner) = depth.checked_sub(1) else { return Err(self.expected("something nested less deeply")) };
        match self.peek() {
            Some(quote @ ('\'' | '"')) => self.text(quote).map(Value::String),
            Some('[') => self.items(']', inner).map(|(items, _)| Value::Array(items)),
            Some('(') => self.items(')', inner).map(|(mut items, comma)| match items.pop() {
                // Parentheses around a single value are not yet a tuple.
                Some(only) if items.is_empty() && !comma => only,
                last => Value::Array(items.into_iter().chain(last).collect()),
            }),
            Some('0'..='9') => self.number(),
            Some(character) if character.is_ascii_alphabetic() => self.word(),
            _ => Err(self.expected("a value")),
        }
    }

    /// The items in brackets, and whether a comma follows the last.
    fn items(&mut self, end: char, depth: usize) -> Result<(Vec<Value>, bool), LiteralError> {
        self.next();
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.take(end) {
            items.push(self.value(depth)?);
            comma = self.take(',');
            if !comma && self.peek() != Some(end) {
                return Err(self.expected("a comma or the closing bracket"));
            }
        }
        Ok((items, comma))
    }

    fn number(&mut self) -> Result<Value, LiteralError> {
        let mut number = 0_u64;
        while let Some(digit) = self.rest.peek().and_then(|character| character.to_digit(10)) {
            let longer = number.checked_mul(10).and_then(|number| number.checked_add(u64::from(digit)));
            number = longer.ok_or_else(|| self.expected("a number of 64 bits"))?;
            self.next();
        }
        // Python 2 wrote long integers so.
        if self.rest.peek() == Some(&'L') {
            self.next();
        }
        Ok(Value::Number(Number::from(number)))
    }

    fn word(&mut self) -> Result<Value, LiteralError> {
        let mut word = String::new();
        while let Some(character) = self.rest.peek().copied().filter(char::is_ascii_alphabetic) {
            word.push(character);
            self.next();
        }
        match word.as_str() {
            "True" => Ok(Value::Bool(true)),
            "False" => Ok(Value::Bool(false)),
            _ => Err(self.expected("True or False")),
        }
    }

    fn text(&mut self, quote: char) -> Result<String, LiteralError> {
        self.next();
        let mut text = String::new();
        loop {
            match self.next() {
                Some('\\') => text.push(self.escaped()?),
                Some(character) if character == quote => return Ok(text),
                Some(character) if character != '\n' => text.push(character),
                _ => return Err(self.expected("the end of the text")),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, LiteralError> {
        match self.next() {
            Some(character @ ('\\' | '\'' | '"')) => Ok(character),
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('x') => self.hexadecimal(2),
            Some('u') => self.hexadecimal(4),
            Some('U') => self.hexadecimal(8),
            _ => Err(self.expected("an escape")),
        }
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<char, LiteralError> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.next().and_then(|character| character.to_digit(16));
            let digit = digit.ok_or_else(|| self.expected("a hexadecimal digit"))?;
            // At most eight digits come.
            code = (code << 4) | digit;
        }
        char::from_u32(code).ok_or_else(|| self.expected("a code point"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn literals_are_parsed() {
        for (text, value) in [
            (r"'<f4'", json!("<f4")),
            (r#""it's""#, json!("it's")),
            (r"'\'\\\x41\u20ac\U0001f600\n'", json!("'\\A€😀\n")),
            ("12", json!(12)),
            ("12L", json!(12)),
            ("True", json!(true)),
            ("False", json!(false)),
            ("()", json!([])),
            ("(3,)", json!([3])),
            ("(3)", json!(3)),
            ("(3, 4L , )", json!([3, 4])),
            ("[('a', '<i4'), ('b', '<f8', (2, 3))]", json!([["a", "<i4"], ["b", "<f8", [2, 3]]])),
        ] {
            assert_eq!(
                dictionary(&format!(" {{'a': {text}, }} \n")).map(Value::Object),
                Ok(json!({"a": value})),
                "{text}"
            );
        }
        assert_eq!(dictionary("{}"), Ok(Map::new()));
    }

    #[test]
    fn other_text_is_rejected_with_its_position() {
        for (text, at, expected) in [
            ("", 0, "a dictionary"),
            ("{", 1, "a key"),
            ("{'a'", 4, "a colon"),
            ("{'a':", 5, "a value"),
            ("{'a': -1}", 6, "a value"),
            ("{'a': None}", 10, "True or False"),
            ("{'a': 1 'b'", 8, "a comma or the end of the dictionary"),
            ("{'a': (1 2)}", 9, "a comma or the closing bracket"),
            ("{'a': 1, 'a': 2}", 15, "another key"),
            ("{'a': 1} {", 9, "the end"),
            ("{'a': '\\q'}", 9, "an escape"),
            ("{'a': '\\ud800'}", 13, "a code point"),
            ("{'a': '\\xg0'}", 10, "a hexadecimal digit"),
            ("{'a': 'b\nc'}", 9, "the end of the text"),
            ("{'a': 99999999999999999999}", 25, "a number of 64 bits"),
        ] {
            assert_eq!(dictionary(text), Err(LiteralError { at, expected }), "{text}");
        }
        let deep = format!("{{'a': {}", "(".repeat(60_000));
        assert!(matches!(dictionary(&deep), Err(LiteralError { expected: "something nested less deeply", .. })));
    }
}
