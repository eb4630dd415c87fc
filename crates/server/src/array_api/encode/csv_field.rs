//! Fields of CSV (RFC 4180).

/// What each line ends with.
pub(super) const LINE_END: &[u8] = b"\r\n";

/// Writes a text as a field.
pub(super) fn text_field(text: &[u8], out: &mut Vec<u8>) {
    // An empty text without quotes would be an empty line, which many readers skip.
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
