//! Python's text encodings.

use std::{borrow::Cow, str};

/// A text encoding that Python has a name for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEncoding {
    Utf8,
    Ascii,
    Latin1,
    Utf16(UnitOrder),
    Utf32(UnitOrder),
}

/// The byte order of code units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitOrder {
    /// The byte order of a byte order mark, or little-endian without one. Written with a mark.
    ByteOrderMark,
    Little,
    Big,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl TextEncoding {
    /// The encoding with a name; case, hyphens and spaces do not matter.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace(['-', ' '], "_");
        Some(match name.as_str() {
            "utf_8" | "utf8" => Self::Utf8,
            "ascii" | "us_ascii" => Self::Ascii,
            "latin_1" | "latin1" | "latin" | "iso_8859_1" | "iso8859_1" | "l1" => Self::Latin1,
            "utf_16" | "utf16" => Self::Utf16(UnitOrder::ByteOrderMark),
            "utf_16_le" | "utf_16le" => Self::Utf16(UnitOrder::Little),
            "utf_16_be" | "utf_16be" => Self::Utf16(UnitOrder::Big),
            "utf_32" | "utf32" => Self::Utf32(UnitOrder::ByteOrderMark),
            "utf_32_le" | "utf_32le" => Self::Utf32(UnitOrder::Little),
            "utf_32_be" | "utf_32be" => Self::Utf32(UnitOrder::Big),
            _ => return None,
        })
    }

    /// Decodes a text of at most twice the size of the bytes; `None` if they are invalid.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Utf8 => str::from_utf8(bytes).ok().map(Cow::from),
            Self::Ascii => str::from_utf8(bytes).ok().filter(|text| text.is_ascii()).map(Cow::from),
            Self::Latin1 => Some(bytes.iter().map(|&byte| char::from(byte)).collect()),
            Self::Utf16(order) => {
                let units = order.units::<2>(bytes)?.map(u16::from_le_bytes);
                char::decode_utf16(units).collect::<Result<_, _>>().ok()
            }
            Self::Utf32(order) => {
                let units = order.units::<4>(bytes)?.map(|unit| char::from_u32(u32::from_le_bytes(unit)));
                units.collect()
            }
        }
    }

    /// Encodes a text; `None` if the encoding lacks a character.
    pub(super) fn encode(self, text: String) -> Option<Vec<u8>> {
        match self {
            Self::Utf8 => Some(text.into_bytes()),
            Self::Ascii => Some(text).filter(|text| text.is_ascii()).map(String::into_bytes),
            Self::Latin1 => text.chars().map(|character| u8::try_from(character).ok()).collect(),
            Self::Utf16(order) => {
                Some(order.bytes(order.byte_order_mark().chain(text.chars()).flat_map(|character| {
                    let mut units = [0; 2];
                    let len = character.encode_utf16(&mut units).len();
                    units.into_iter().take(len).map(u16::to_le_bytes)
                })))
            }
            Self::Utf32(order) => {
                let units =
                    order.byte_order_mark().chain(text.chars()).map(|character| u32::from(character).to_le_bytes());
                Some(order.bytes(units))
            }
        }
    }
}

impl UnitOrder {
    /// The byte order mark to write before a text.
    fn byte_order_mark(self) -> impl Iterator<Item = char> {
        (self == Self::ByteOrderMark).then_some(BYTE_ORDER_MARK).into_iter()
    }

    /// The little-endian code units after the byte order mark; `None` if the last one is incomplete.
    fn units<const N: usize>(self, bytes: &[u8]) -> Option<impl Iterator<Item = [u8; N]>> {
        let (units, rest) = bytes.as_chunks::<N>();
        let marked = |swapped| {
            let mut byte_order_mark = [0; N];
            byte_order_mark.iter_mut().zip([0xff, 0xfe]).for_each(|(to, byte)| *to = byte);
            units.first() == Some(&reversed(byte_order_mark, swapped))
        };
        let (big, skip) = match self {
            Self::ByteOrderMark if marked(false) => (false, 1),
            Self::ByteOrderMark if marked(true) => (true, 1),
            Self::ByteOrderMark | Self::Little => (false, 0),
            Self::Big => (true, 0),
        };
        rest.is_empty().then(|| units.iter().skip(skip).map(move |&unit| reversed(unit, big)))
    }

    fn bytes<const N: usize>(self, units: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
        units.flat_map(|unit| reversed(unit, self == Self::Big)).collect()
    }
}

/// Reverses the bytes of a unit if `swapped`.
fn reversed<const N: usize>(mut unit: [u8; N], swapped: bool) -> [u8; N] {
    if swapped {
        unit.reverse();
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `"aé😀".encode(name).hex()`.
    #[test]
    fn encodings_match_python() {
        for (name, text, hex) in [
            ("UTF-8", "aé😀", "61c3a9f09f9880"),
            ("utf-16", "aé😀", "fffe6100e9003dd800de"),
            ("utf_16_le", "aé😀", "6100e9003dd800de"),
            ("UTF-16BE", "aé😀", "006100e9d83dde00"),
            ("utf32", "aé😀", "fffe000061000000e900000000f60100"),
            ("utf-32-le", "aé😀", "61000000e900000000f60100"),
            ("utf-32-be", "aé😀", "00000061000000e90001f600"),
            ("latin-1", "aé", "61e9"),
            ("us-ascii", "a", "61"),
        ] {
            let encoding = TextEncoding::from_name(name).unwrap();
            let encoded = encoding.encode(text.to_owned()).unwrap();
            let found: String = encoded.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hex, "{name}");
            assert_eq!(encoding.decode(&encoded).as_deref(), Some(text), "{name}");
        }
        let both = [TextEncoding::Utf16(UnitOrder::ByteOrderMark), TextEncoding::Utf32(UnitOrder::ByteOrderMark)];
        for (encoding, [marked, bare]) in
            both.into_iter().zip([[&b"\xfe\xff\0a"[..], b"a\0"], [b"\0\0\xfe\xff\0\0\0a", b"a\0\0\0"]])
        {
            assert_eq!(encoding.decode(marked).as_deref(), Some("a"));
            assert_eq!(encoding.decode(bare).as_deref(), Some("a"));
        }
    }

    #[test]
    fn invalid_text_is_rejected() {
        for (name, bytes) in [
            ("utf-8", &b"\xff"[..]),
            ("ascii", b"\xc3\xa9"),
            ("utf-16", b"a\0b"),
            ("utf-16", b"\0\xd8a\0"),
            ("utf-32", b"\0\xd8\0\0"),
            ("utf-32", b"a\0\0"),
        ] {
            assert_eq!(TextEncoding::from_name(name).unwrap().decode(bytes), None, "{name}");
        }
        assert_eq!(TextEncoding::Ascii.encode("é".to_owned()), None);
        assert_eq!(TextEncoding::Latin1.encode("😀".to_owned()), None);
        assert_eq!(TextEncoding::from_name("cp1252"), None);
    }
}
