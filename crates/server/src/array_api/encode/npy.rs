//! `format=npy`: [NumPy's file](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) of one array.
//!
//! Strings of variable length become NumPy's of a fixed one, that of the longest, since a file of objects would be a pickle.

use codec::Elements;
use wire::elements::npy::write_head;

use super::{WholeError, slice::Answer};

pub(super) fn obstacle(answer: &Answer) -> Option<String> {
    let known = answer.data_type.npy_descr().is_some() || is_string(answer);
    (!known).then(|| format!("has no type for {}", answer.data_type))
}

fn is_string(answer: &Answer) -> bool {
    answer.is_variable() && answer.data_type.name() == "string"
}

/// A file of strings, each of the length of the longest in UTF-32.
pub(super) fn strings(answer: &Answer, pieces: &[Elements], limit: u64) -> Result<Vec<u8>, WholeError> {
    let texts = || pieces.iter().filter_map(variable).flat_map(|elements| elements.iter()).map(String::from_utf8_lossy);
    let (mut found, mut longest) = (0_u64, 1);
    for text in texts() {
        if text.ends_with('\0') {
            return Err(WholeError::TrailingNul);
        }
        found += 1;
        longest = longest.max(text.chars().count());
    }
    let expected = answer.elements().unwrap_or(u64::MAX);
    if found != expected {
        return Err(WholeError::Count { expected, found });
    }
    let width = (longest as u64).saturating_mul(4);
    let size = found.saturating_mul(width);
    let (Ok(room), Ok(width)) = (usize::try_from(size), usize::try_from(width)) else {
        return Err(WholeError::TooLong { size });
    };
    if size > limit {
        return Err(WholeError::TooLong { size });
    }
    let mut out = write_head(&format!("'<U{longest}'"), &answer.shape);
    out.reserve_exact(room);
    for text in texts() {
        let end = out.len() + width;
        text.chars().for_each(|character| out.extend_from_slice(&u32::from(character).to_le_bytes()));
        out.resize(end, 0);
    }
    Ok(out)
}

fn variable(elements: &Elements) -> Option<&codec::VariableElements> {
    match elements {
        Elements::Variable(elements) => Some(elements),
        Elements::Fixed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer;
    use super::*;
    use codec::VariableBuilder;

    #[test]
    fn strings_have_the_length_of_the_longest() {
        let mut builder = VariableBuilder::new(1 << 10);
        for text in ["a", "é€😀", ""] {
            builder.push(text.as_bytes()).unwrap();
        }
        let pieces = [Elements::Variable(builder.finish())];
        let file = strings(&answer("string", &[3]), &pieces, 36).unwrap();
        let body = "61000000 00000000 00000000 e9000000 ac200000 00f60100 00000000 00000000 00000000";
        let body: Vec<u8> =
            body.split(' ').flat_map(|word| u32::from_str_radix(word, 16).unwrap().to_be_bytes()).collect();
        let mut expected = write_head("'<U3'", &[3]);
        expected.extend_from_slice(&body);
        assert_eq!(file, expected);
        assert!(matches!(strings(&answer("string", &[3]), &pieces, 35), Err(WholeError::TooLong { size: 36 })));
        assert!(matches!(
            strings(&answer("string", &[4]), &pieces, 99),
            Err(WholeError::Count { expected: 4, found: 3 })
        ));
        let mut builder = VariableBuilder::new(1 << 10);
        builder.push(b"a\0").unwrap();
        let pieces = [Elements::Variable(builder.finish())];
        assert!(matches!(strings(&answer("string", &[1]), &pieces, 99), Err(WholeError::TrailingNul)));
        assert!(strings(&answer("string", &[0]), &[], 0).unwrap().starts_with(b"\x93NUMPY\x01\x00"));
    }
}
