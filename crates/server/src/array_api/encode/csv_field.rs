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
