//! JSON read piece by piece, so that errors know their place and nothing is held that is not asked for.

use std::fmt;

use serde::{
    Deserializer as _,
    de::{Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Deserializer, value::RawValue};

use super::{
    RequestError, RequestErrorKind,
    text::{excerpt, whole_number},
};

/// The kind of a JSON value, as far as it matters to a request.
pub(super) enum Shape {
    Object,
    Array,
    Text,
    Other,
}

pub(super) fn shape(value: &RawValue) -> Shape {
    match value.get().as_bytes().first() {
        Some(b'{') => Shape::Object,
        Some(b'[') => Shape::Array,
        Some(b'"') => Shape::Text,
        _ => Shape::Other,
    }
}

/// Checks a whole body: one JSON value, however deep.
pub(super) fn document(body: &[u8]) -> Result<&RawValue, RequestError> {
    serde_json::from_slice(body).map_err(not_json)
}

/// Calls `each` with the index and the value of every element of an array.
pub(super) fn elements<'de>(
    value: &'de RawValue,
    expected: &'static str,
    mut each: impl FnMut(usize, &'de RawValue) -> Result<(), RequestError>,
) -> Result<(), RequestError> {
    let Shape::Array = shape(value) else { return Err(unexpected(value, expected)) };
    let mut at = 0;
    let mut first_error = None;
    let step = |value| {
        let result = each(at, value).map_err(|error| error.under(at));
        at += 1;
        result.map_err(|error| first_error = Some(error)).is_ok()
    };
    let visited = Deserializer::from_str(value.get()).deserialize_seq(Elements(step));
    first_error.map_or_else(|| visited.map_err(not_json), Err)
}

/// Calls `each` with the name and the value of every member of an object.
pub(super) fn members<'de>(
    value: &'de RawValue,
    expected: &'static str,
    mut each: impl FnMut(&str, &'de RawValue) -> Result<(), RequestError>,
) -> Result<(), RequestError> {
    let Shape::Object = shape(value) else { return Err(unexpected(value, expected)) };
    let mut first_error = None;
    let step =
        |name: String, value: &'de RawValue| each(&name, value).map_err(|error| first_error = Some(error)).is_ok();
    let visited = Deserializer::from_str(value.get()).deserialize_map(Members(step));
    first_error.map_or_else(|| visited.map_err(not_json), Err)
}

/// The text of a string.
pub(super) fn text(value: &RawValue, expected: &'static str) -> Result<String, RequestError> {
    let Shape::Text = shape(value) else { return Err(unexpected(value, expected)) };
    serde_json::from_str(value.get()).map_err(not_json)
}

/// A whole number. One that an `i64` does not hold becomes the nearest one that it does.
pub(super) fn integer(value: &RawValue, expected: &'static str) -> Result<i64, RequestError> {
    whole_number(value.get()).ok_or_else(|| unexpected(value, expected))
}

/// The error that `value` is not what is expected.
pub(super) fn unexpected(value: &RawValue, expected: &'static str) -> RequestError {
    RequestErrorKind::Unexpected { expected, found: excerpt(value.get()) }.into()
}

fn not_json(error: serde_json::Error) -> RequestError {
    RequestErrorKind::NotJson(error).into()
}

/// Steps over an array for as long as the function says so.
struct Elements<F>(F);

impl<'de, F: FnMut(&'de RawValue) -> bool> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(value) = elements.next_element()? {
            if !(self.0)(value) {
                return Err(A::Error::custom("first_error"));
            }
        }
        Ok(())
    }
}

/// Steps over an object for as long as the function says so.
struct Members<F>(F);

impl<'de, F: FnMut(String, &'de RawValue) -> bool> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some((name, value)) = members.next_entry()? {
            if !(self.0)(name, value) {
                return Err(A::Error::custom("first_error"));
            }
        }
        Ok(())
    }
}
