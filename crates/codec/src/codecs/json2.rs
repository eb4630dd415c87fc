//! The `json2` codec: stores objects as JSON.
//!
//! - Kind: array to bytes
//! - Names: `numcodecs.json2` (v3), id `json2` (v2, draft)
//! - Specification: [numcodecs.json](https://numcodecs.readthedocs.io/en/stable/other/json.html)
//!
//! ## Configuration
//!
//! ```json
//! {"encoding": "utf-8", "allow_nan": true, "check_circular": true, "ensure_ascii": true, "indent": null, "separators": [",", ":"],
//!  "skipkeys": false, "sort_keys": true, "strict": true}
//! ```
//!
//! All members are optional and only affect encoding. `encoding` is Python's name of UTF-8, UTF-16, UTF-32, ASCII or
//! Latin-1.
//!
//! ## Encoded bytes
//!
//! One JSON list: the elements as nested lists, the `dtype` and the shape. A decoded element is the text of a JSON
//! value as it is stored, which may have Python's words `NaN`, `Infinity` and `-Infinity`. It is encoded in the form of
//! Python's `json` module with its value unchanged, except that `indent` is ignored and of repeated keys the last counts.
//!
//! ## Errors and limits
//!
//! There are exactly as many elements as the chunk has, each nested at most 127 levels deep. Control characters in
//! strings are rejected, whatever `strict` is. Characters that the encoding lacks are not encoded.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    json::Json,
};

use super::{python_json::PythonJson, python_text::TextEncoding};
use crate::{
    ArrayToBytes, ChainError, ChunkRepresentation, Codec, CodecError, CodecFactory, CodecInput, Cost, Elements,
    EncodedSizeBound, FactoryContext, VariableBuilder,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "json2";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Debug)]
struct Json2 {
    array: ChunkRepresentation,
    writer: PythonJson,
    encoding: TextEncoding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default = "default_encoding")]
    encoding: String,
    #[serde(default = "default_true")]
    ensure_ascii: bool,
    #[serde(default = "default_true")]
    sort_keys: bool,
    separators: Option<[String; 2]>,
    #[serde(rename = "skipkeys")]
    _skipkeys: Option<IgnoredAny>,
    #[serde(rename = "check_circular")]
    _check_circular: Option<IgnoredAny>,
    #[serde(rename = "allow_nan")]
    _allow_nan: Option<IgnoredAny>,
    #[serde(rename = "indent")]
    _indent: Option<IgnoredAny>,
    #[serde(rename = "strict")]
    _strict: Option<IgnoredAny>,
}

fn default_encoding() -> String {
    "utf-8".to_owned()
}

fn default_true() -> bool {
    true
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let Configuration { encoding, ensure_ascii, sort_keys, separators, .. } = parse_configuration(spec)?;
    let encoding = TextEncoding::from_name(&encoding)
        .ok_or_else(|| invalid_configuration(spec, format!("has the unknown encoding {}", encoding.escape_debug())))?;
    if array.data_type().fixed_size().is_some() {
        return Err(invalid_configuration(spec, format!("does not support elements of {}", array.data_type())));
    }
    let separators = separators.unwrap_or_else(|| [",".to_owned(), ":".to_owned()]);
    let writer = PythonJson { ensure_ascii, sort_keys, separators };
    Ok(Codec::ArrayToBytes(Arc::new(Json2 { array: array.clone(), writer, encoding })))
}

/// The texts of a JSON list's items. They are not validated, and nothing is allocated.
struct ListItems<'a> {
    rest: &'a str,
    state: ItemState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemState {
    First,
    Next,
    Done,
}

impl<'a> ListItems<'a> {
    fn new(list: &'a str) -> Result<Self, CodecError> {
        let rest = list.trim_ascii().strip_prefix('[').ok_or_else(not_a_list)?;
        Ok(Self { rest: rest.trim_ascii_start(), state: ItemState::First })
    }

    fn next_item(&mut self) -> Result<Option<&'a str>, CodecError> {
        if self.state == ItemState::Done {
            return Ok(None);
        }
        let end = end_of_item(self.rest).ok_or_else(not_a_list)?;
        let (item, rest) = self.rest.split_at_checked(end).ok_or_else(not_a_list)?;
        let item = item.trim_ascii();
        match rest.split_at_checked(1) {
            Some((",", rest)) => (self.rest, self.state) = (rest, ItemState::Next),
            Some(("]", rest)) if rest.trim_ascii().is_empty() => {
                let empty = item.is_empty() && self.state == ItemState::First;
                self.state = ItemState::Done;
                if empty {
                    return Ok(None);
                }
            }
            _ => return Err(not_a_list()),
        }
        Ok(Some(item))
    }
}

/// The offset of the comma or bracket that ends an item.
fn end_of_item(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut bytes = text.bytes().enumerate();
    while let Some((position, byte)) = bytes.next() {
        match byte {
            b',' | b']' if depth == 0 => return Some(position),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b'"' => loop {
                match bytes.next()?.1 {
                    b'"' => break,
                    b'\\' => _ = bytes.next()?,
                    _ => {}
                }
            },
            _ => {}
        }
    }
    None
}

impl Json2 {
    /// Reads a nested list of this shape. The recursion is at most [`MAX_RANK`](zarrd_meta::limits::MAX_RANK) deep.
    fn read(&self, text: &str, shape: &[u64], out: &mut VariableBuilder, budget: u64) -> Result<(), CodecError> {
        let Some((&extent, inner)) = shape.split_first() else {
            return push_element(text, out, budget);
        };
        let mut items = ListItems::new(text)?;
        for _ in 0..extent {
            self.read(items.next_item()?.ok_or_else(shape_mismatch)?, inner, out, budget)?;
        }
        if items.next_item()?.is_some() { Err(shape_mismatch()) } else { Ok(()) }
    }

    /// Writes the next elements as nested lists of this shape.
    fn write<'a>(
        &self,
        elements: &mut impl Iterator<Item = (u64, &'a [u8])>,
        shape: &[u64],
        out: &mut String,
    ) -> Result<(), CodecError> {
        let Some((&extent, inner)) = shape.split_first() else {
            let (index, element) = elements.next().ok_or_else(shape_mismatch)?;
            return self.write_element(element, out).ok_or(CodecError::InvalidElement {
                codec: NAME,
                index,
                reason: "it is not JSON",
            });
        };
        out.push('[');
        for position in 0..extent {
            if position > 0 {
                out.push_str(self.item_separator());
            }
            self.write(elements, inner, out)?;
        }
        out.push(']');
        Ok(())
    }

    fn write_element(&self, element: &[u8], out: &mut String) -> Option<()> {
        let text = str::from_utf8(Json::check(element).ok()?).ok()?;
        self.writer.write(text, out)
    }

    fn item_separator(&self) -> &str {
        let [between, _] = &self.writer.separators;
        between
    }
}

/// The `dtype` and the shape at the end of a list, and the number of items before them.
fn parse_trailer(text: &str) -> Result<(&str, &str, u64), CodecError> {
    let mut items = ListItems::new(text)?;
    let (mut dtype, mut shape, mut count) = (None, None, 0_u64);
    while let Some(item) = items.next_item()? {
        (dtype, shape) = (shape, Some(item));
        count += 1;
    }
    dtype.zip(shape).map(|(dtype, shape)| (dtype, shape, count - 2)).ok_or_else(not_a_list)
}

fn push_element(text: &str, out: &mut VariableBuilder, budget: u64) -> Result<(), CodecError> {
    let element =
        Json::check(text.as_bytes()).map_err(|source| CodecError::Library { codec: NAME, source: source.into() })?;
    out.push(element).map_err(|_| CodecError::BudgetExceeded { codec: NAME, budget })
}

impl ArrayToBytes for Json2 {
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let invalid_text = CodecError::Malformed { codec: NAME, reason: "the bytes are not valid in the encoding" };
        let text = self.encoding.decode(&encoded).ok_or(invalid_text)?;
        let (dtype, shape, items) = parse_trailer(&text)?;
        let shape: Vec<u64> = serde_json::from_str(shape).map_err(|_| not_a_list())?;
        let elements = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
        // The shape may be the one before a transposition: zarr-python, too, checks only the number of elements.
        if serde_json::from_str::<String>(dtype).is_err() || elements != Some(self.array.num_elements()) {
            return Err(shape_mismatch());
        }
        if items != shape.first().copied().unwrap_or(1) || shape.len() > zarrd_meta::limits::MAX_RANK {
            return Err(shape_mismatch());
        }
        let mut out = VariableBuilder::new(budget);
        let mut list = ListItems::new(&text)?;
        for _ in 0..items {
            let item = list.next_item()?.ok_or_else(shape_mismatch)?;
            self.read(item, shape.get(1..).unwrap_or_default(), &mut out, budget)?;
        }
        Ok(Elements::Variable(out.finish()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let Elements::Variable(elements) = decoded else {
            return Err(CodecError::Malformed { codec: NAME, reason: "the elements have a fixed size" });
        };
        let shape = match self.array.num_elements() {
            // Avoids as many empty lists as the extent of an empty array.
            0 => &[0],
            _ => self.array.shape(),
        };
        let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
        let between = self.item_separator();
        let mut elements = (0..).zip(elements.iter());
        let mut text = String::new();
        // The only element of an array without dimensions is in a list, too.
        self.write(&mut elements, if shape.is_empty() { &[1] } else { shape }, &mut text)?;
        // The list continues with the type and the shape.
        text.pop();
        if text.len() > 1 {
            text.push_str(between);
        }
        text.extend(["\"|O\"", between, "[", &extents.join(between), "]]"]);
        let invalid_text =
            CodecError::Malformed { codec: NAME, reason: "the encoding lacks a character of the elements" };
        self.encoding.encode(text).map(Bytes::from).ok_or(invalid_text)
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(50)
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        None
    }
}

fn not_a_list() -> CodecError {
    CodecError::Malformed { codec: NAME, reason: "the JSON is not a list of elements, a dtype and a shape" }
}

fn shape_mismatch() -> CodecError {
    CodecError::Malformed { codec: NAME, reason: "the number of elements does not match the chunk" }
}
