//! Strings with a maximum number of code points, four bytes each and padded with zeros.

use serde_json::{Map, Value, json};

use super::{
    DataType, DataTypeFamily, ElementType, FixedLayout, Layout, StoredOrder, TypeError, UnsupportedInFormat, V2Context,
    ValueError,
    text::{NumpyText, append, invalid, invalid_value, length_bytes, order_sign, text_fill_value, words},
};
use crate::Dialect;

const NAME: &str = "fixed_length_utf32";
/// The size of a code point in bytes.
const WIDTH: usize = 4;

#[derive(Debug)]
struct FixedText {
    /// The maximum number of code points.
    length: usize,
}

/// `fixed_length_utf32` (v3), `<U3` (v2, draft).
pub(super) struct FixedTextFamily;

impl DataTypeFamily for FixedTextFamily {
    fn read_v2(&self, dtype: &Value, _context: V2Context<'_>) -> Option<Result<(DataType, StoredOrder), TypeError>> {
        let text = NumpyText::parse(dtype)?;
        if text.kind != 'U' {
            return None;
        }
        let read = |size: usize| Ok((DataType::new(FixedText { length: size / WIDTH }), text.order()?));
        Some(text.size(WIDTH)?.and_then(read))
    }

    fn read_v3(&self, name: &str, configuration: Option<&Map<String, Value>>) -> Option<Result<DataType, TypeError>> {
        if name != NAME {
            return None;
        }
        Some(length_bytes(name, configuration).and_then(|size| {
            if !size.is_multiple_of(WIDTH) {
                return Err(invalid(name, "does not have four bytes for each code point"));
            }
            Ok(DataType::new(FixedText { length: size / WIDTH }))
        }))
    }
}

impl FixedText {
    /// The string without padding; `None` if a word is not a code point.
    fn text(&self, element: &[u8]) -> Option<String> {
        let mut text = element.chunks_exact(WIDTH).map(code_point).collect::<Option<String>>()?;
        text.truncate(text.trim_end_matches('\0').len());
        Some(text)
    }
}

fn code_point(word: &[u8]) -> Option<char> {
    char::from_u32(u32::from_le_bytes(word.try_into().ok()?))
}

impl ElementType for FixedText {
    fn name(&self) -> String {
        format!("{NAME}[{}]", self.length.saturating_mul(WIDTH))
    }

    fn layout(&self) -> Layout {
        Layout::Fixed(FixedLayout { size: self.length.saturating_mul(WIDTH), words: words(WIDTH, self.length) })
    }

    fn fill_value(&self, json: &Value, dialect: Dialect) -> Result<Vec<u8>, ValueError> {
        text_fill_value(self, json, dialect)
    }

    fn fill_value_json(&self, element: &[u8], dialect: Dialect) -> Result<Value, UnsupportedInFormat> {
        let what = || "a text with what is no code point".to_owned();
        self.text(element).map(Value::from).ok_or_else(|| UnsupportedInFormat { dialect, feature: what() })
    }

    fn zero(&self) -> Vec<u8> {
        vec![0; self.length.saturating_mul(WIDTH)]
    }

    fn write_json(&self, element: &[u8], out: &mut Vec<u8>) {
        let text = self.text(element).unwrap_or_else(|| {
            // Replaces code points that JSON cannot represent.
            element.chunks_exact(WIDTH).map(|word| code_point(word).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        });
        append(out, &text);
    }

    fn parse_json(&self, json: &Value, out: &mut Vec<u8>) -> Result<(), ValueError> {
        let text = json.as_str().ok_or_else(|| invalid_value(self, json, "it is a text"))?;
        if text.chars().count() > self.length {
            return Err(invalid_value(self, json, format!("it has at most {} code points", self.length)));
        }
        let start = out.len();
        out.extend(text.chars().flat_map(|character| u32::from(character).to_le_bytes()));
        out.resize(start.saturating_add(self.length.saturating_mul(WIDTH)), 0);
        Ok(())
    }

    fn npy_descr(&self) -> Option<String> {
        Some(format!("'<U{}'", self.length))
    }

    fn to_v3(&self) -> Value {
        json!({"name": NAME, "configuration": {"length_bytes": self.length.saturating_mul(WIDTH)}})
    }

    fn to_v2(&self, order: &StoredOrder) -> Result<Value, UnsupportedInFormat> {
        Ok(Value::from(format!("{}U{}", order_sign(order), self.length)))
    }
}
