//! `format=npy`: [NumPy's file](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) of one array.
//!
//! Strings of variable length become NumPy's of a fixed one, that of the longest, since a file of objects would be a pickle.

use codec::Elements;

use super::{Answer, WholeError};

/// What heads are padded to.
const ALIGNMENT: usize = 64;
/// The space for the first extent to grow in place, as NumPy leaves it.
const GROWTH: usize = 21;
/// Version 1 has the length of its text in two bytes.
const LONGEST_V1: usize = u16::MAX as usize;

pub(super) fn obstacle(answer: &Answer) -> Option<String> {
    let known = answer.data_type.npy_descr().is_some() || is_string(answer);
    (!known).then(|| format!("has no type for {}", answer.data_type))
}

fn is_string(answer: &Answer) -> bool {
    answer.is_variable() && answer.data_type.name() == "string"
}

/// The head of a file whose elements have the type `descr`.
pub(super) fn header(descr: &str, shape: &[u64]) -> Vec<u8> {
    let extents = match shape {
        [extent] => format!("({extent},)"),
        _ => format!("({})", shape.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    };
    let growth = shape.first().map_or(0, |extent| GROWTH.saturating_sub(extent.to_string().len()));
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {extents}, }}{:growth$}", "");
    let (magic, length_size) = match (text.is_ascii(), text.len().saturating_add(ALIGNMENT) <= LONGEST_V1) {
        (true, true) => (*b"\x93NUMPY\x01\x00", 2),
        (true, false) => (*b"\x93NUMPY\x02\x00", 4),
        // The text of the versions before is Latin-1.
        (false, _) => (*b"\x93NUMPY\x03\x00", 4),
    };
    let unpadded = magic.len() + length_size + text.len() + 1;
    let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
    let length = (text.len() + padding + 1) as u32;
    let mut out = magic.to_vec();
    out.extend(length.to_le_bytes().iter().take(length_size));
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + padding, b' ');
    out.push(b'\n');
    out
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
    let mut out = header(&format!("'<U{longest}'"), &answer.shape);
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

    /// What NumPy 2.5 writes with `np.save`, without the elements.
    #[test]
    fn headers_as_numpy_writes_them() {
        for (descr, shape, text) in [
            ("'<f4'", &[2, 3][..], NUMPY_F4),
            ("'|b1'", &[], NUMPY_B1),
            ("[('a', '<i4'), ('b', '|S3')]", &[10], NUMPY_STRUCT),
        ] {
            let mut expected = b"\x93NUMPY\x01\x00".to_vec();
            expected.extend_from_slice(&(text.len() as u16).to_le_bytes());
            expected.extend_from_slice(text.as_bytes());
            assert_eq!(header(descr, shape), expected, "{descr}");
        }
    }

    const NUMPY_F4: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                                                          \n";
    const NUMPY_B1: &str = "{'descr': '|b1', 'fortran_order': False, 'shape': (), }                                                              \n";
    const NUMPY_STRUCT: &str = "{'descr': [('a', '<i4'), ('b', '|S3')], 'fortran_order': False, 'shape': (10,), }                                    \n";

    #[test]
    fn later_versions() {
        let long = header(&format!("'{}'", "x".repeat(70_000)), &[1]);
        assert_eq!((&long[..8], long.len() % 64), (&b"\x93NUMPY\x02\x00"[..], 0));
        assert_eq!(u32::from_le_bytes(long[8..12].try_into().unwrap()) as usize, long.len() - 12);
        let beyond = header("[('Ω', '<i4')]", &[]);
        assert_eq!((&beyond[..8], beyond.len() % 64), (&b"\x93NUMPY\x03\x00"[..], 0));
        for len in 65_350..65_550 {
            let header = header(&"x".repeat(len), &[]);
            let size = if header[6] == 1 { 2 } else { 4 };
            let mut length = [0; 4];
            length[..size].copy_from_slice(&header[8..8 + size]);
            assert_eq!(u32::from_le_bytes(length) as usize, header.len() - 8 - size, "{len}");
        }
    }

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
        let mut expected = header("'<U3'", &[3]);
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
