//! Fields of CSV (RFC 4180).

/// The line terminator.
pub(super) const LINE_END: &[u8] = b"\r\n";

/// Writes a text as a field, quoted if necessary.
pub(super) fn text_field(text: &[u8], out: &mut Vec<u8>) {
    // An empty field is quoted because many readers skip empty lines.
    let special = |byte: &u8| matches!(byte, b'"' | b',' | b'\r' | b'\n');
    if !text.is_empty() && !text.iter().any(special) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_if_a_reader_would_take_them_apart() {
        for (text, field) in [
            ("plain text", "plain text"),
            ("", "\"\""),
            ("a,b", "\"a,b\""),
            ("a\rb", "\"a\rb\""),
            ("a\nb", "\"a\nb\""),
            ("a\"b", "\"a\"\"b\""),
        ] {
            let mut out = Vec::new();
            text_field(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), field);
        }
    }
}
