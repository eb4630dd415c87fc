//! Byte strings as texts, and arrays of single characters, whose last dimension is the length of texts.

use base64::Engine;
use bytes::Bytes;
use serde_json::json;
use zarrd_codec::{Elements, VariableBuilder};
use zarrd_meta::{
    ArrayModel,
    data_type::{DataType, parse_v3},
};

use crate::attributes::attribute;

/// The name of the data type of byte strings, without its parameter.
const BYTE_STRING: &str = "null_terminated_bytes[";

/// The memory of a text in addition to its bytes.
const TEXT_OVERHEAD: u64 = 16;

/// The way from byte strings to texts.
///
/// Zeros at the end are no part of a text. A byte string that is not UTF-8 becomes base64, unless the attribute
/// `_Encoding` says that it is Latin-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteTexts {
    /// The size of a byte string, at least 1.
    size: usize,
    encoding: Encoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Latin1,
}

impl ByteTexts {
    /// The texts of a type's elements; `None` for other types than byte strings.
    pub fn of_type(data_type: &DataType) -> Option<Self> {
        let size = byte_string_size(data_type)?;
        Some(Self { size, encoding: Encoding::Utf8 })
    }

    /// The texts that decoding makes of an array's elements, each of `width` of them: of byte strings with an
    /// `_Encoding`, and of single characters.
    pub fn of_array(model: &ArrayModel, width: usize) -> Option<Self> {
        let size = byte_string_size(&model.data_type)?.checked_mul(width)?;
        let encoding = attribute(&model.attributes, "_Encoding").ok().flatten().and_then(|value| value.to_text());
        if encoding.is_none() && !is_characters(model) {
            return None;
        }
        let encoding = match encoding.unwrap_or_default().to_ascii_lowercase().as_str() {
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => Encoding::Latin1,
            _ => Encoding::Utf8,
        };
        Some(Self { size, encoding })
    }

    /// The size of a byte string in bytes, at least 1.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The type of texts.
    pub fn data_type(&self) -> Option<DataType> {
        parse_v3(&json!("string")).ok()
    }

    /// The texts of whole byte strings; an incomplete last one is dropped.
    pub fn write(&self, bytes: &[u8]) -> Elements {
        let count = (bytes.len() / self.size) as u64;
        // A byte becomes at most two of UTF-8, or four thirds of base64.
        let memory = (bytes.len() as u64).saturating_mul(2).saturating_add(count.saturating_mul(TEXT_OVERHEAD));
        let mut builder = VariableBuilder::new(memory.saturating_add(count.saturating_mul(4)));
        for element in bytes.chunks_exact(self.size) {
            // The builder has room for every text.
            let _pushed = builder.push(self.text(element).as_bytes());
        }
        Elements::Variable(builder.finish())
    }

    fn text(&self, element: &[u8]) -> String {
        let zeros = element.iter().rev().take_while(|byte| **byte == 0).count();
        let element = element.get(..element.len().saturating_sub(zeros)).unwrap_or_default();
        match (self.encoding, str::from_utf8(element)) {
            (Encoding::Latin1, _) => element.iter().map(|byte| char::from(*byte)).collect(),
            (Encoding::Utf8, Ok(text)) => text.to_owned(),
            (Encoding::Utf8, Err(_)) => base64::engine::general_purpose::STANDARD.encode(element),
        }
    }
}

/// True for an array of single characters, whose last dimension is the length of texts.
pub fn is_characters(model: &ArrayModel) -> bool {
    !model.shape.is_empty() && byte_string_size(&model.data_type) == Some(1)
}

/// The type of byte strings that `width` characters are.
pub fn joined_type(width: u64) -> Option<DataType> {
    parse_v3(&json!({"name": "null_terminated_bytes", "configuration": {"length_bytes": width}})).ok()
}

/// The elements of byte strings as texts, with their type; others as they are.
pub(crate) fn as_texts(elements: Elements, data_type: DataType) -> (Elements, DataType) {
    let Some((texts, Elements::Fixed(bytes))) = ByteTexts::of_type(&data_type).map(|texts| (texts, &elements)) else {
        return (elements, data_type);
    };
    match texts.data_type() {
        Some(text) => (texts.write(bytes), text),
        None => (Elements::Fixed(Bytes::clone(bytes)), data_type),
    }
}

fn byte_string_size(data_type: &DataType) -> Option<usize> {
    data_type.name().starts_with(BYTE_STRING).then(|| data_type.fixed_size())?.filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(size: u64, bytes: &[u8]) -> Vec<String> {
        let data_type = joined_type(size).unwrap();
        let Elements::Variable(found) = as_texts(Elements::Fixed(Bytes::copy_from_slice(bytes)), data_type).0 else {
            panic!("texts")
        };
        found.iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
    }

    #[test]
    fn byte_strings_are_texts_without_zeros_at_their_end() {
        assert_eq!(texts(4, b"OsloRom\0\0\0\0\0\0a\0\0"), ["Oslo", "Rom", "", "\0a"]);
        assert_eq!(texts(2, "é".as_bytes()), ["é"]);
        assert_eq!(texts(2, &[0xff, 0xfe]), ["//4="]);
        assert!(texts(3, b"ab").is_empty());
        assert_eq!(texts(1, &[0xff; 3]), ["/w=="; 3]);
    }

    #[test]
    fn latin1_has_a_character_for_every_byte() {
        let texts = ByteTexts { size: 2, encoding: Encoding::Latin1 };
        let every: Vec<u8> = (0..=255).flat_map(|byte| [b'x', byte]).collect();
        let Elements::Variable(found) = texts.write(&every) else { panic!("texts") };
        assert_eq!(found.len(), 256);
        assert_eq!(found.get(0xe9), Some("xé".as_bytes()));
    }
}
