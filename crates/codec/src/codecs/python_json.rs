//! JSON in exactly the form of Python's `json` module.

use std::{ops::Range, str::Chars};

/// The options of `json.dumps`.
#[derive(Clone, Debug)]
pub(super) struct PythonJson {
    /// True if characters beyond ASCII are escaped.
    pub(super) ensure_ascii: bool,
    /// True if the members of objects are sorted.
    pub(super) sort_keys: bool,
    /// The separator of items, and that of keys and values.
    pub(super) separators: [String; 2],
}

impl PythonJson {
    /// Appends a valid text as `json.dumps(json.loads(text))` would be: integers of any size, Python's `NaN` and
    /// infinities, and lone surrogates, which are always escaped, keep their values. Only floats beyond all `f64`, which
    /// Python reads as infinite, keep their digits.
    ///
    /// The recursion is as deep as the value. `None` if the text is not valid.
    pub(super) fn write(&self, text: &str, out: &mut String) -> Option<()> {
        Writer { form: self, rest: text, out }.value()
    }

    fn string(&self, code_points: impl IntoIterator<Item = u32>, out: &mut String) {
        out.push('"');
        for code_point in code_points {
            match char::from_u32(code_point) {
                Some('"') => out.push_str("\\\""),
                Some('\\') => out.push_str("\\\\"),
                Some('\n') => out.push_str("\\n"),
                Some('\r') => out.push_str("\\r"),
                Some('\t') => out.push_str("\\t"),
                Some('\u{c}') => out.push_str("\\f"),
                Some('\u{8}') => out.push_str("\\b"),
                Some(character @ ' '..='~') => out.push(character),
                Some(character @ '\u{7f}'..) if !self.ensure_ascii => out.push(character),
                Some(character) => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                None => out.push_str(&format!("\\u{code_point:04x}")),
            }
        }
        out.push('"');
    }
}

/// Writes the values at the beginning of a text.
struct Writer<'a> {
    form: &'a PythonJson,
    rest: &'a str,
    out: &'a mut String,
}

/// A member of an object that was written.
struct Member {
    /// The code points of the key, by which Python sorts.
    key: Vec<u32>,
    /// The key and the value in the output.
    span: Range<usize>,
}

impl<'a> Writer<'a> {
    fn value(&mut self) -> Option<()> {
        match self.rest.trim_ascii_start().as_bytes().first()? {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                let code_points = self.string()?;
                self.form.string(code_points, self.out);
                Some(())
            }
            _ => self.number_or_word(),
        }
    }

    fn array(&mut self) -> Option<()> {
        let [between, _] = &self.form.separators;
        self.take("[")?;
        self.out.push('[');
        let mut is_first = true;
        while self.take("]").is_none() {
            if !is_first {
                self.take(",")?;
                self.out.push_str(between);
            }
            is_first = false;
            self.value()?;
        }
        self.out.push(']');
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        let [between, colon] = &self.form.separators;
        self.take("{")?;
        self.out.push('{');
        let begin = self.out.len();
        let mut members = Vec::<Member>::new();
        while self.take("}").is_none() {
            if !members.is_empty() {
                self.take(",")?;
                self.out.push_str(between);
            }
            let begin = self.out.len();
            let key: Vec<u32> = self.string()?.collect();
            self.form.string(key.iter().copied(), self.out);
            self.take(":")?;
            self.out.push_str(colon);
            self.value()?;
            members.push(Member { key, span: begin..self.out.len() });
        }
        if let Some(order) = self.other_order(&members) {
            let written = self.out.split_off(begin);
            let member = |index: usize| {
                let span = &members.get(index)?.span;
                written.get(span.start.checked_sub(begin)?..span.end.checked_sub(begin)?)
            };
            for (position, index) in order.into_iter().enumerate() {
                self.out.push_str(if position == 0 { "" } else { between });
                self.out.push_str(member(index)?);
            }
        }
        self.out.push('}');
        Some(())
    }

    /// The members in the order in which Python writes them, if it is another one or if keys are repeated: the last value
    /// of a key counts, at the place of the first one if keys are not sorted.
    fn other_order(&self, members: &[Member]) -> Option<Vec<usize>> {
        if members.is_sorted_by(|a, b| a.key < b.key) {
            return None;
        }
        let mut by_key: Vec<(usize, &Member)> = members.iter().enumerate().collect();
        by_key.sort_by_key(|(_, member)| &member.key);
        // The places of the first and the last member of each key.
        let mut keys: Vec<(usize, usize)> = by_key
            .chunk_by(|(_, a), (_, b)| a.key == b.key)
            .filter_map(|same| Some((same.first()?.0, same.last()?.0)))
            .collect();
        if !self.form.sort_keys {
            keys.sort_unstable();
        }
        Some(keys.into_iter().map(|(_, last)| last).collect())
    }

    /// A float as Python's `repr`, other numbers and words as they are.
    fn number_or_word(&mut self) -> Option<()> {
        let text = self.rest.trim_ascii_start();
        let is_delimiter = |character: char| matches!(character, ',' | ']' | '}') || character.is_ascii_whitespace();
        let (word, rest) = text.split_at_checked(text.find(is_delimiter).unwrap_or(text.len()))?;
        self.rest = rest;
        let is_float =
            word.starts_with(|first: char| first == '-' || first.is_ascii_digit()) && word.contains(['.', 'e', 'E']);
        match word.parse::<f64>() {
            Ok(float) if is_float && float.is_finite() => self.out.push_str(&repr(float)),
            _ => self.out.push_str(word),
        }
        Some(())
    }

    /// Takes a string, and returns its code points.
    fn string(&mut self) -> Option<CodePoints<'a>> {
        self.take("\"")?;
        let mut escaped = false;
        let is_end = |character: char| {
            let is_end = character == '"' && !escaped;
            escaped = character == '\\' && !escaped;
            is_end
        };
        let (content, rest) = self.rest.split_once(is_end)?;
        self.rest = rest;
        Some(CodePoints { rest: content.chars() })
    }

    /// Takes a token after whitespace; `None` if another one comes.
    fn take(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.trim_ascii_start().strip_prefix(token)?;
        Some(())
    }
}

/// The code points of a string between its quotes. A surrogate pair is one, a lone surrogate too.
struct CodePoints<'a> {
    rest: Chars<'a>,
}

impl CodePoints<'_> {
    /// The number of the four digits that come next.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest.as_str().get(..4)?;
        self.rest = self.rest.as_str().get(4..)?.chars();
        u32::from_str_radix(digits, 16).ok()
    }

    /// The second half of a pair, if it comes next.
    fn low_surrogate(&mut self) -> Option<u32> {
        let mut ahead = Self { rest: self.rest.as_str().strip_prefix("\\u")?.chars() };
        let unit = ahead.unit().filter(|unit| (0xdc00..0xe000).contains(unit))?;
        self.rest = ahead.rest;
        Some(unit - 0xdc00)
    }
}

impl Iterator for CodePoints<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let character = self.rest.next()?;
        if character != '\\' {
            return Some(character.into());
        }
        Some(match self.rest.next()? {
            'b' => 0x8,
            'f' => 0xc,
            'n' => 0xa,
            'r' => 0xd,
            't' => 0x9,
            'u' => match self.unit()? {
                high @ 0xd800..0xdc00 => match self.low_surrogate() {
                    Some(low) => 0x1_0000 + ((high - 0xd800) << 10) + low,
                    None => high,
                },
                unit => unit,
            },
            other => other.into(),
        })
    }
}

/// Python's `repr` of a float: the shortest digits that read back the same.
fn repr(float: f64) -> String {
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..16 if float.fract() == 0.0 => format!("{float}.0"),
        -4..16 => format!("{float}"),
        exponent @ 0.. => format!("{digits}e+{exponent:02}"),
        exponent => format!("{digits}e-{:02}", exponent.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, ensure_ascii: bool, sort_keys: bool) -> String {
        let form = PythonJson { ensure_ascii, sort_keys, separators: [",".to_owned(), ":".to_owned()] };
        let mut out = String::new();
        form.write(text, &mut out).unwrap();
        out
    }

    #[test]
    fn output_matches_python() {
        // The outputs of `json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)`.
        let known = [
            (r#" { "b" : 1 , "a" : [ 1.50 , null,true ] } "#, r#"{"a":[1.5,null,true],"b":1}"#),
            (r#""hé😀\u00E9\ud83d\uDE00""#, r#""h\u00e9\ud83d\ude00\u00e9\ud83d\ude00""#),
            (r#""\"\\\/\b\f\n\r\t\u0001\u007f""#, r#""\"\\/\b\f\n\r\t\u0001\u007f""#),
            (
                "[1e16, 1e-5, 1E-4, 1e22, 123456789.125, 1e15, -0.0, 1.5e-300, 5e-324, 100e-2]",
                "[1e+16,1e-05,0.0001,1e+22,123456789.125,1000000000000000.0,-0.0,1.5e-300,5e-324,1.0]",
            ),
            (
                "[18446744073709551615, -9223372036854775808, 18446744073709551616, 123456789012345678901234567890]",
                "[18446744073709551615,-9223372036854775808,18446744073709551616,123456789012345678901234567890]",
            ),
            ("[NaN, Infinity, -Infinity, \"NaN\"]", "[NaN,Infinity,-Infinity,\"NaN\"]"),
            (
                r#"["\ud800", "\ude00\ud83d", "\ud83d\ud83d\ude00"]"#,
                r#"["\ud800","\ude00\ud83d","\ud83d\ud83d\ude00"]"#,
            ),
            (r#"{"b":1,"a":{"d":[],"c":{}},"b":2,"":3}"#, r#"{"":3,"a":{"c":{},"d":[]},"b":2}"#),
            // Python sorts by code points, not by UTF-16 units.
            (r#"{"😀":1,"\uff5e":2,"\ud800":3}"#, r#"{"\ud800":3,"\uff5e":2,"\ud83d\ude00":1}"#),
            ("[]", "[]"),
            ("[[ ] , { }]", "[[],{}]"),
        ];
        for (text, expected) in known {
            assert_eq!(written(text, true, true), expected);
            assert_eq!(written(expected, true, true), expected);
        }
        assert_eq!(written("\"é\\u0001\u{7f}\\ud800\"", false, true), "\"é\\u0001\u{7f}\\ud800\"");
        assert_eq!(written(r#"{"b":1,"a":2,"b":3,"c":4}"#, true, false), r#"{"b":3,"a":2,"c":4}"#);
        assert_eq!(written("1e400", true, true), "1e400");
    }

    #[test]
    fn invalid_texts_end() {
        for text in ["", "[", "[1", "[1,", "{\"a\"", "{\"a\":", "{\"a\":1", "\"a", "{1}", "[1 2]"] {
            let form = PythonJson { ensure_ascii: true, sort_keys: true, separators: [",".to_owned(), ":".to_owned()] };
            assert_eq!(form.write(text, &mut String::new()), None, "{text}");
        }
    }
}
