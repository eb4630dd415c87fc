//! Formatting of JSON texts.

use crate::limits::MAX_DOCUMENT_SIZE;

/// The maximum growth factors by indentation, of small and large texts.
const MAX_GROWTH: usize = 8;
const MAX_GROWTH_OF_LARGE: usize = 2;

/// The length from which a text is large, in bytes.
const LARGE_TEXT_THRESHOLD: usize = 64 << 10;

/// The maximum indented length of a text with this compact length.
pub(super) fn max_indented_len(compact: usize) -> usize {
    let factor = if compact > LARGE_TEXT_THRESHOLD { MAX_GROWTH_OF_LARGE } else { MAX_GROWTH };
    compact.saturating_mul(factor).min(MAX_DOCUMENT_SIZE)
}

/// Removes all whitespace.
pub(super) fn compact(text: &[u8]) -> Vec<u8> {
    let mut compact = Vec::with_capacity(text.len());
    tokens(text, |byte, in_string| {
        if in_string || !byte.is_ascii_whitespace() {
            compact.push(byte);
        }
        true
    });
    compact
}

/// Indents a text by two; `None` if it would become too long.
pub(super) fn indented(text: &[u8]) -> Option<Vec<u8>> {
    let mut length = 0_usize;
    tokens(text, |byte, in_string| {
        length += usize::from(in_string || !byte.is_ascii_whitespace());
        true
    });
    let limit = max_indented_len(length);
    let mut out = Vec::with_capacity(text.len());
    let (mut depth, mut opened) = (0_usize, false);
    let fits = tokens(text, |byte, in_string| {
        if !in_string && byte.is_ascii_whitespace() {
            return true;
        }
        let closes = !in_string && matches!(byte, b'}' | b']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        // Empty arrays and objects stay on one line.
        if opened != closes && (opened || closes) {
            write_line_break(&mut out, depth);
        }
        out.push(byte);
        opened = !in_string && matches!(byte, b'{' | b'[');
        if opened {
            depth += 1;
        }
        if !in_string && byte == b',' {
            write_line_break(&mut out, depth);
        }
        if !in_string && byte == b':' {
            out.push(b' ');
        }
        out.len() <= limit
    });
    fits.then_some(out)
}

fn write_line_break(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

/// Calls `visit` with each byte, and true for those of strings including quotes, until it returns false; returns false
/// in that case.
fn tokens(text: &[u8], mut visit: impl FnMut(u8, bool) -> bool) -> bool {
    let (mut in_string, mut is_escaped) = (false, false);
    text.iter().all(|&byte| {
        let is_quote = byte == b'"' && !is_escaped;
        let inside = in_string || is_quote;
        is_escaped = in_string && byte == b'\\' && !is_escaped;
        in_string ^= is_quote;
        visit(byte, inside)
    })
}
