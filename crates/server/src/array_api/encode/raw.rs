//! `format=raw`: the bytes of the elements.
//!
//! Elements of a fixed size are in their memory layout. Elements of variable length are their number as a `u32`, then
//! each element after its length as a `u32`; all numbers are little-endian.

use super::{
    encoder::{ElementEncoder, Progress},
    slice::ArraySlice,
};

/// Encodes elements of variable length, each after its length.
pub(super) struct LengthPrefixedEncoder {
    elements: u32,
}

pub(super) fn unsupported_reason(slice: &ArraySlice) -> Option<String> {
    (slice.is_variable() && count(slice).is_none())
        .then(|| "supports at most 4294967295 elements of variable length".to_owned())
}

fn count(slice: &ArraySlice) -> Option<u32> {
    u32::try_from(slice.elements()?).ok()
}

impl LengthPrefixedEncoder {
    pub(super) fn new(slice: &ArraySlice) -> Self {
        Self { elements: count(slice).unwrap_or(u32::MAX) }
    }
}

impl ElementEncoder for LengthPrefixedEncoder {
    fn write_header(&mut self, out: &mut Vec<u8>) -> Progress {
        out.extend_from_slice(&self.elements.to_le_bytes());
        Progress::Complete
    }

    fn write_element(&mut self, element: &[u8], out: &mut Vec<u8>) {
        // The limit of all elements together is far below 4 GiB.
        let len = u32::try_from(element.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(element.get(..len as usize).unwrap_or(element));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{encoded, slice};
    use super::*;

    #[test]
    fn elements_follow_their_lengths() {
        let text = encoded(LengthPrefixedEncoder::new(&slice("string", &[3])), &[b"ab", b"", "é".as_bytes()]);
        assert_eq!(text, "\u{3}\0\0\0\u{2}\0\0\0ab\0\0\0\0\u{2}\0\0\0é");
        assert_eq!(encoded(LengthPrefixedEncoder::new(&slice("bytes", &[0])), &[]), "\0\0\0\0");
    }
}
