//! Changing the whitespace of a text.

use crate::limits::MAX_DOCUMENT_SIZE;

/// The factor by which a text may grow with indentation, and the size from which that matters.
const MAX_GROWTH: usize = 8;
const MAX_GROWTH_OF_LARGE: usize = 2;

/// Texts beyond this length are large.
const LARGE_TEXT_THRESHOLD: usize = 64 << 10;

/// The longest that a text may become with indentation which has this length on one line.
pub(super) fn max_indented_len(compact: usize) -> usize {
    let factor = if compact > LARGE_TEXT_THRESHOLD { MAX_GROWTH_OF_LARGE } else { MAX_GROWTH };
    compact.saturating_mul(factor).min(MAX_DOCUMENT_SIZE)
}

/// The text on one line, without whitespace.
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

/// The text indented by two; `None` if that would be too long.
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
        // An empty one stays on its line.
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

/// Goes over the bytes of a text with whether they are in a string, its quotes included, as long as `visit` says so. The answer is whether it came to the end.
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
