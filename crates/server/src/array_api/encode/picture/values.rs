//! The values of elements.

use zarrd_codec::Elements;
use zarrd_meta::data_type::{DataType, Number};

/// The number of elements.
pub(super) fn count(data_type: &DataType, elements: &Elements) -> u64 {
    (bytes_of(elements).len() / data_type.fixed_size().unwrap_or(1).max(1)) as u64
}

/// The integers of types that `f64` cannot have exactly; `None` for other types.
pub(super) fn wide_integers<'e>(
    data_type: &DataType,
    elements: &'e Elements,
) -> Option<impl Iterator<Item = i128> + use<'e>> {
    let of_word: fn([u8; 8]) -> i128 = match data_type.number()? {
        Number::Int64 => |word| i64::from_le_bytes(word).into(),
        Number::UInt64 => |word| u64::from_le_bytes(word).into(),
        _ => return None,
    };
    Some(bytes_of(elements).as_chunks().0.iter().map(move |word| of_word(*word)))
}

/// Visits the value of each element.
pub(super) fn for_each_value(data_type: &DataType, elements: &Elements, visit: &mut impl FnMut(f64)) {
    let bytes = bytes_of(elements);
    match data_type.number() {
        Some(Number::Float64) => bytes.as_chunks().0.iter().for_each(|word| visit(f64::from_le_bytes(*word))),
        Some(Number::Float32) => bytes.as_chunks().0.iter().for_each(|word| visit(f32::from_le_bytes(*word).into())),
        Some(Number::Int32) => bytes.as_chunks().0.iter().for_each(|word| visit(i32::from_le_bytes(*word).into())),
        Some(Number::UInt32) => bytes.as_chunks().0.iter().for_each(|word| visit(u32::from_le_bytes(*word).into())),
        _ => {
            let size = data_type.fixed_size().unwrap_or(1).max(1);
            let value = |element| data_type.to_f64(element).unwrap_or(f64::NAN);
            bytes.chunks_exact(size).map(value).for_each(visit);
        }
    }
}

/// The bytes of elements of a fixed size.
pub(super) fn bytes_of(elements: &Elements) -> &[u8] {
    match elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(_) => &[],
    }
}

/// The bytes of an element of one or two bytes, as a number.
pub(super) fn code_of(element: &[u8]) -> u16 {
    match *element {
        [byte] => byte.into(),
        [low, high, ..] => u16::from_le_bytes([low, high]),
        [] => 0,
    }
}

/// The value of an element of one or two bytes, which [`code_of`] made a number.
pub(super) fn value_of_code(data_type: &DataType, code: u16) -> f64 {
    let [low, high] = code.to_le_bytes();
    let value = match data_type.fixed_size() {
        Some(1) => data_type.to_f64(&[low]),
        _ => data_type.to_f64(&[low, high]),
    };
    value.unwrap_or(f64::NAN)
}
