//! Field names in ASCII notations.

/// A field name within the name of its struct: unchanged, or as a JSON string if it has characters other than letters,
/// digits and underscores.
pub(super) fn shown_name(name: &str) -> String {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return name.to_owned();
    }
    let mut text = String::from("\"");
    for character in name.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            ' '..='~' => text.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    text.push('"');
    text
}

/// A string in the notation of Python's `repr`, with non-ASCII characters escaped, so that the header of a `.npy` file
/// stays in version 1.0.
pub(super) fn python_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut python = String::from(quote);
    for character in text.chars() {
        match character {
            '\\' => python.push_str("\\\\"),
            '\n' => python.push_str("\\n"),
            '\r' => python.push_str("\\r"),
            '\t' => python.push_str("\\t"),
            _ if character == quote => python.extend(['\\', character]),
            ' '..='~' => python.push(character),
            _ => {
                let code = u32::from(character);
                python.push_str(&match code {
                    ..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    python.push(quote);
    python
}
