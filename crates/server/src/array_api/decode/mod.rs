//! The bodies of writes, and the elements that they are.
//!
//! A body is raw bytes, a `.npy` file, or JSON. Raw bytes and files are streamed, and so may be larger than memory, wherever elements are of a fixed
//! size and come in C order; all else is bounded by the limit for text. What is wrong with a body is found out as early as can be: by its announced
//! length, by its head, else by the piece that is wrong, which fails the [stream](Incoming::Fixed) with an [`IncomingError`].

mod buffered;
mod error;
mod json;
mod npy;
mod raw;
mod transcoder;
mod variable;

#[cfg(test)]
mod tests;

pub(crate) use error::DecodeError;

use array::{Claim, ElementSource, Permit};
use bytes::Bytes;
use futures::{StreamExt, stream};
use meta::{ArrayModel, data_type::DataType};
use store::ByteStream;
use wire::{array::Format, elements::Extents};

use crate::{app::App, request_body::ElementsBody};

/// The forms in which elements are taken.
const BODY_FORMATS: [Format; 3] = [Format::Raw, Format::Npy, Format::Json];

/// What elements have to be.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedElements {
    /// Their type.
    data_type: DataType,
    /// Their shape; where they are appended, open along the dimension that grows.
    extents: Extents,
}

/// Elements that came, or are coming.
pub(crate) struct DecodedBody {
    /// The elements.
    pub(crate) elements: ElementSource,
    /// How many steps they are along the open dimension, where there is one and this is known before all of them are here.
    pub(crate) count: Option<u64>,
    /// The memory that they take, to be held as long as they are.
    pub(crate) memory: Option<Permit>,
}

/// What a body may take.
struct DecodeContext {
    /// The most bytes of what is not streamed: of the body, and of its elements.
    text_limit: u64,
    claim: Claim,
}

/// Reads the elements of a body. Those of a fixed size may still be on their way then.
pub(crate) async fn decode_body(
    app: &App,
    body: ElementsBody,
    expected: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    let context = DecodeContext { text_limit: app.settings().limits.text_selection, claim: body.claim.clone() };
    context.decode(body, expected).await
}

impl DecodeContext {
    async fn decode(&self, body: ElementsBody, expected: ExpectedElements) -> Result<DecodedBody, DecodeError> {
        match body_format(body.media_type.as_deref())? {
            Format::Npy => npy::decode(self, body, expected).await,
            Format::Json => json::decode(self, body, expected).await,
            _ if expected.data_type.fixed_size().is_none() => raw::variable(self, body, expected).await,
            _ => raw::fixed(body, &expected),
        }
    }
}

/// The form of a body. One that is not said to be anything is raw.
fn body_format(media_type: Option<&str>) -> Result<Format, DecodeError> {
    let Some(found) = media_type else { return Ok(Format::Raw) };
    let format = BODY_FORMATS.into_iter().find(|format| format.media_type() == found);
    format.ok_or_else(|| DecodeError::MediaType { found: found.to_owned() })
}

/// Elements of a fixed size that are all there.
fn ready_stream(elements: impl Into<Bytes>) -> ByteStream {
    let elements = elements.into();
    stream::iter((!elements.is_empty()).then_some(Ok(elements))).boxed()
}

impl ExpectedElements {
    /// Elements of an array.
    pub(crate) fn new(model: &ArrayModel, extents: Extents) -> Self {
        Self { data_type: model.data_type.clone(), extents }
    }

    /// The size of all elements in bytes, of an open shape for each step along its dimension, if they are of a fixed one. What no `u64` counts is the largest.
    fn byte_len(&self) -> Option<u64> {
        let size = self.data_type.fixed_size()? as u64;
        match self.extents.elements() {
            Some(elements) => Some(elements.saturating_mul(size)),
            // As many as that, of no size.
            None if size == 0 => Some(0),
            None => Some(u64::MAX),
        }
    }

    /// The extent of the open dimension, if there is one, in a shape that fits.
    fn step_count(&self, shape: &[u64]) -> Option<u64> {
        let open = self.extents.dimensions().iter().position(Option::is_none)?;
        shape.get(open).copied()
    }
}

/// The indices of an element by its number in C order. Where the outermost extents are not known, the number is counted on in the first of these.
fn indices(extents: &[Option<u64>], number: u64) -> Vec<u64> {
    let mut remaining = number;
    let mut indices: Vec<u64> = Vec::with_capacity(extents.len());
    for extent in extents.iter().rev() {
        let (index, rest) = match extent {
            Some(extent) => (remaining.checked_rem(*extent).unwrap_or(0), remaining.checked_div(*extent).unwrap_or(0)),
            None => (remaining, 0),
        };
        indices.push(index);
        remaining = rest;
    }
    indices.reverse();
    indices
}
