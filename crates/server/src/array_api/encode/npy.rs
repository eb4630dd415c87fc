//! `format=npy`: a [NumPy file](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) of one array.
//!
//! Strings of variable length are padded to the longest, since a file of objects would be a pickle.

use zarrd_codec::Elements;
use zarrd_wire::elements::npy::render_header;

use super::{EncodeError, slice::ArraySlice};

pub(super) fn unsupported_reason(slice: &ArraySlice) -> Option<String> {
    let has_equivalent = slice.data_type.npy_descr().is_some() || is_string(slice);
    (!has_equivalent).then(|| format!("has no equivalent of {}", slice.data_type))
}

fn is_string(slice: &ArraySlice) -> bool {
    slice.is_variable() && slice.data_type.name() == "string"
}

/// Encodes a file of strings in UTF-32, padded to the longest.
pub(super) fn strings(slice: &ArraySlice, buffers: &[Elements], limit: u64) -> Result<Vec<u8>, EncodeError> {
    let texts =
        || buffers.iter().filter_map(variable).flat_map(|elements| elements.iter()).map(String::from_utf8_lossy);
    let (mut count, mut longest) = (0_u64, 1);
    for text in texts() {
        if text.ends_with('\0') {
            return Err(EncodeError::TrailingNul);
        }
        count += 1;
        longest = longest.max(text.chars().count());
    }
    let expected = slice.elements().unwrap_or(u64::MAX);
    if count != expected {
        return Err(EncodeError::Count { expected, found: count });
    }
    let width = (longest as u64).saturating_mul(4);
    let size = count.saturating_mul(width);
    let (Ok(capacity), Ok(width)) = (usize::try_from(size), usize::try_from(width)) else {
        return Err(EncodeError::TooLong { size });
    };
    if size > limit {
        return Err(EncodeError::TooLong { size });
    }
    let mut out = render_header(&format!("'<U{longest}'"), &slice.shape);
    out.reserve_exact(capacity);
    for text in texts() {
        let end = out.len() + width;
        text.chars().for_each(|character| out.extend_from_slice(&u32::from(character).to_le_bytes()));
        out.resize(end, 0);
    }
    Ok(out)
}

fn variable(elements: &Elements) -> Option<&zarrd_codec::VariableElements> {
    match elements {
        Elements::Variable(elements) => Some(elements),
        Elements::Fixed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::slice;
    use super::*;
    use zarrd_codec::VariableBuilder;

    #[test]
    fn strings_are_padded_to_the_longest() {
        let mut builder = VariableBuilder::new(1 << 10);
        for text in ["a", "é€😀", ""] {
            builder.push(text.as_bytes()).unwrap();
        }
        let buffers = [Elements::Variable(builder.finish())];
        let file = strings(&slice("string", &[3]), &buffers, 36).unwrap();
        let body = "61000000 00000000 00000000 e9000000 ac200000 00f60100 00000000 00000000 00000000";
        let body: Vec<u8> =
            body.split(' ').flat_map(|word| u32::from_str_radix(word, 16).unwrap().to_be_bytes()).collect();
        let mut expected = render_header("'<U3'", &[3]);
        expected.extend_from_slice(&body);
        assert_eq!(file, expected);
        assert!(matches!(strings(&slice("string", &[3]), &buffers, 35), Err(EncodeError::TooLong { size: 36 })));
        assert!(matches!(
            strings(&slice("string", &[4]), &buffers, 99),
            Err(EncodeError::Count { expected: 4, found: 3 })
        ));
        let mut builder = VariableBuilder::new(1 << 10);
        builder.push(b"a\0").unwrap();
        let buffers = [Elements::Variable(builder.finish())];
        assert!(matches!(strings(&slice("string", &[1]), &buffers, 99), Err(EncodeError::TrailingNul)));
        assert!(strings(&slice("string", &[0]), &[], 0).unwrap().starts_with(b"\x93NUMPY\x01\x00"));
    }
}
