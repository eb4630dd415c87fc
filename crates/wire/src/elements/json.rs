//! Elements as JSON: nested lists in their shape, or one value for all elements.

use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, error::Category};
use zarrd_meta::data_type::{DataType, ValueError};

use super::Extents;

/// The most bytes of memory that the JSON of a single element takes, as a generous estimate. The largest of a fixed
/// size, of raw bits, takes half of it.
const MAX_VALUE: usize = 128 << 20;
/// The memory of a value in a list that has just doubled, in bytes.
const SLOT: usize = 2 * size_of::<Value>();
/// The memory of a member of an object, with the first node of a map, in bytes.
const MEMBER: usize = 20 * size_of::<Value>();

/// The result of parsing JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Elements in this shape, passed to the callback in C order.
    Nested {
        /// The shape; an open dimension that is nested in an empty one has extent 0.
        shape: Vec<u64>,
    },
    /// One element for the whole selection. The callback was not called.
    Scalar(Vec<u8>),
}

/// The elements exceed the available memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the elements exceed the available memory")]
pub struct Full;

/// The reason why JSON is not the requested elements.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON, or nested too deeply.
    #[error("the body is not JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// A list has another length than the shape says.
    #[error("the list at {} has {found} entries, but the shape needs {expected}", Place(at))]
    Length {
        /// The indices of the list, from the outside in.
        at: Vec<u64>,
        /// The number that the shape requires.
        expected: u64,
        /// The number found; elements after the first excess one are not counted.
        found: u64,
    },
    /// A value other than a list where the shape requires one.
    #[error("expected a list at {}, for a shape of {rank} dimensions", Place(at))]
    NotAList {
        /// The indices of the value, the outermost dimension first.
        at: Vec<u64>,
        /// The number of dimensions of the shape.
        rank: usize,
    },
    /// A value that the data type cannot represent.
    #[error("the element at {}: {source}", Place(at))]
    Element {
        /// Its indices.
        at: Vec<u64>,
        /// The reason.
        source: ValueError,
    },
    /// The JSON of one element would take too much memory.
    #[error("the element at {} is too large", Place(at))]
    LargeElement {
        /// Its indices.
        at: Vec<u64>,
    },
    /// The elements exceed the available memory.
    #[error(transparent)]
    Full(Full),
}

/// The display form of indices, which may be empty.
struct Place<'a>(&'a [u64]);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("the top") } else { write!(f, "{:?}", self.0) }
    }
}

/// Parses elements of `data_type`, in the shape of `extents`, and passes each to a callback. For a shape with
/// dimensions, a single value stands for all elements.
///
/// Values of some types are lists themselves; the nesting depth at the start of the text distinguishes lists of
/// elements from a single element.
pub fn parse(
    text: &[u8],
    data_type: &DataType,
    extents: &Extents,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Full>,
) -> Result<Parsed, JsonError> {
    if extents.dimensions().is_empty() || depth(text) > depth_of_element(data_type) {
        return nested(text, data_type, extents, take);
    }
    // An element may be written shallower than usual (a text for a list of bytes), so that these may be lists all the
    // same.
    match scalar(text, data_type) {
        Err(error) if depth(text) > 0 => nested(text, data_type, extents, take).map_err(|_| error),
        scalar => scalar.map(Parsed::Scalar),
    }
}

/// The number of dimensions of the lists in a text, as far as its beginning shows it.
pub fn rank(text: &[u8], data_type: &DataType) -> usize {
    depth(text).saturating_sub(depth_of_element(data_type))
}

/// The number of brackets at the start of a text.
fn depth(text: &[u8]) -> usize {
    let mut brackets = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    brackets.by_ref().take_while(|byte| **byte == b'[').count()
}

/// The number of brackets at the start of an element.
fn depth_of_element(data_type: &DataType) -> usize {
    let mut text = Vec::new();
    data_type.write_json(&data_type.zero(), &mut text);
    depth(&text)
}

fn scalar(text: &[u8], data_type: &DataType) -> Result<Vec<u8>, JsonError> {
    let mut element = Vec::new();
    let mut take = |bytes: &[u8]| {
        element.extend_from_slice(bytes);
        Ok(())
    };
    nested(text, data_type, &Extents::exactly(&[]), &mut take)?;
    Ok(element)
}

fn nested(
    text: &[u8],
    data_type: &DataType,
    extents: &Extents,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Full>,
) -> Result<Parsed, JsonError> {
    let extents = extents.dimensions().to_vec();
    let mut state = State { data_type, extents, at: Vec::new(), element: Vec::new(), take, error: None };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let read = Within { state: &mut state, depth: 0 }.deserialize(&mut deserializer);
    match read.and_then(|()| deserializer.end()) {
        Ok(()) => Ok(Parsed::Nested { shape: state.extents.iter().map(|extent| extent.unwrap_or(0)).collect() }),
        Err(error) => Err(state.error.take().unwrap_or_else(|| match error.classify() {
            Category::Data => JsonError::NotAList { at: state.at, rank: state.extents.len() },
            _ => JsonError::NotJson(error),
        })),
    }
}

/// The state while lists are being read.
struct State<'a> {
    data_type: &'a DataType,
    /// The extents; the open one is set by the first list of its dimension.
    extents: Vec<Option<u64>>,
    /// The indices of what is being read.
    at: Vec<u64>,
    element: Vec<u8>,
    take: &'a mut dyn FnMut(&[u8]) -> Result<(), Full>,
    /// The error, unless the text is not JSON.
    error: Option<JsonError>,
}

/// A value nested in `depth` lists: a list, or an element.
struct Within<'s, 'a> {
    state: &'s mut State<'a>,
    depth: usize,
}

impl State<'_> {
    /// Ends the parse; the error that serde gets is ignored.
    fn fail<E: serde::de::Error>(&mut self, error: JsonError) -> E {
        self.error = Some(error);
        E::custom("")
    }

    fn element<E: serde::de::Error>(&mut self, value: &Value) -> Result<(), E> {
        self.element.clear();
        if let Err(source) = self.data_type.parse_json(value, &mut self.element) {
            let at = self.at.clone();
            return Err(self.fail(JsonError::Element { at, source }));
        }
        (self.take)(&self.element).map_err(|full| self.fail(JsonError::Full(full)))
    }
}

impl<'de> DeserializeSeed<'de> for Within<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth < self.state.extents.len() {
            return deserializer.deserialize_seq(self);
        }
        let mut left = Some(MAX_VALUE);
        match (Leaf(&mut left).deserialize(deserializer), left) {
            (Ok(value), _) => self.state.element(&value),
            (Err(_), None) => {
                let at = self.state.at.clone();
                Err(self.state.fail(JsonError::LargeElement { at }))
            }
            (Err(error), Some(_)) => Err(error),
        }
    }
}

impl<'de> Visitor<'de> for Within<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { state, depth } = self;
        let expected = state.extents.get(depth).copied().flatten();
        let mut found = 0_u64;
        loop {
            if Some(found) == expected {
                // Elements in excess are skipped, not parsed.
                found += u64::from(items.next_element::<IgnoredAny>()?.is_some());
                break;
            }
            state.at.push(found);
            let item = items.next_element_seed(Within { state: &mut *state, depth: depth + 1 })?;
            state.at.pop();
            match item {
                Some(()) => found += 1,
                None => break,
            }
        }
        match expected {
            Some(expected) if expected != found => {
                let at = state.at.clone();
                Err(state.fail(JsonError::Length { at, expected, found }))
            }
            _ => {
                state.extents.get_mut(depth).into_iter().for_each(|extent| *extent = Some(found));
                Ok(())
            }
        }
    }
}

/// The value of one element, within the remaining memory; `None` if that was not enough.
struct Leaf<'s>(&'s mut Option<usize>);

impl Leaf<'_> {
    fn charge<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        *self.0 = self.0.and_then(|left| left.checked_sub(bytes));
        if self.0.is_some() { Ok(()) } else { Err(E::custom("")) }
    }
}

impl<'de> DeserializeSeed<'de> for Leaf<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Leaf<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an element")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: serde::de::Error>(mut self, value: &str) -> Result<Value, E> {
        self.charge(value.len())?;
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Leaf(&mut *self.0))? {
            self.charge(SLOT)?;
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.charge(name.len().saturating_add(MEMBER))?;
            object.insert(name, members.next_value_seed(Leaf(&mut *self.0))?);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests;
