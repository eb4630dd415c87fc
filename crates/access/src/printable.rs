//! Characters that cannot be seen, or change what can.

use std::{borrow::Cow, fmt::Write};

/// The format characters (`Cf`) and the separators of lines and paragraphs (`Zl`, `Zp`) of Unicode 16.
const FORMAT: [(char, char); 21] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{2064}'),
    ('\u{2066}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
];

/// True for characters that control a terminal, reverse or break a line, or have no width: control characters, format
/// characters, and separators of lines and paragraphs.
pub fn is_invisible(character: char) -> bool {
    let is_format = || FORMAT.iter().any(|(first, last)| (*first..=*last).contains(&character));
    character.is_control() || !character.is_ascii() && is_format()
}

/// Returns a text with escapes such as `\u202e`, which are those of JSON, for its [invisible](is_invisible) characters.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_invisible)
}

/// Returns a line of a log or of JSON like [`printable`], but with the ASCII control characters that structure and color it.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, |character| !character.is_ascii() && is_invisible(character))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_escaped() {
        for (text, shown) in [
            ("Ada's laptop, Zürich 𝄞 \u{e000}", "Ada's laptop, Zürich 𝄞 \u{e000}"),
            ("a\u{202e}b\u{2028}\u{200b}\u{feff}\u{ad}", r"a\u202eb\u2028\u200b\ufeff\u00ad"),
            ("\u{1b}[2J\n\u{9b}\u{7f}", r"\u001b[2J\u000a\u009b\u007f"),
            ("\u{e0041}", r"\udb40\udc41"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_line("\u{1b}[2m\t\u{9b}\u{202e}\n"), "\u{1b}[2m\t\\u009b\\u202e\n");
        let json = printable_line("\"\u{e0041}\"").into_owned();
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "\u{e0041}");
    }

    #[test]
    fn ranges_are_in_order() {
        assert!(FORMAT.windows(2).all(|pair| pair[0].1 < pair[1].0) && FORMAT.iter().all(|(a, b)| a <= b));
    }
}
