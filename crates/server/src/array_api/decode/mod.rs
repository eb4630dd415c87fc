//! Decoders for the elements in request bodies.
//!
//! A body is raw bytes, a `.npy` file or JSON. Raw bytes and files with elements of a fixed size in C order are
//! streamed, so they may exceed memory; all other bodies are bounded by `--max-text-selection`. Errors are reported as
//! early as possible: by the announced length, by the header, or else by the piece that is invalid, which fails the
//! [stream](ElementSource::Fixed) with a [`DecodeError`].

mod buffered;
mod conversion;
mod error;
mod json;
mod npy;
mod part_errors;
mod points;
mod raw;
mod transcoder;
mod variable;

#[cfg(test)]
mod tests;

pub(crate) use conversion::Conversions;
pub(crate) use error::DecodeError;
pub(crate) use npy::peek_header;
pub(crate) use part_errors::{FormError, MAX_BOUNDARY, MAX_HEADERS};
pub(crate) use points::{DecodedPoints, decode_points};

use bytes::Bytes;
use futures::{StreamExt, stream};
use zarrd_array::{Arrays, Claim, ElementSource, Permit};
use zarrd_cf::Encoding;
use zarrd_meta::{ArrayModel, data_type::DataType};
use zarrd_store::ByteStream;
use zarrd_wire::{array::Format, elements::Extents};

use crate::{app::App, request_body::ElementsBody};

/// The supported formats of request bodies.
const BODY_FORMATS: [Format; 3] = [Format::Raw, Format::Npy, Format::Json];

/// The type and shape that the elements of a body must have.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedElements {
    /// The array's data type.
    data_type: DataType,
    /// The shape; for an append, open along the dimension that grows.
    extents: Extents,
    /// The conversions from other types.
    conversions: Conversions,
}

/// The elements of a body, complete or still streaming.
pub(crate) struct DecodedBody {
    /// The elements.
    pub(crate) elements: ElementSource,
    /// The number of steps along the open dimension of an append, if known before the body ends.
    pub(crate) count: Option<u64>,
    /// The permit for their memory, to be held as long as the elements.
    pub(crate) memory: Option<Permit>,
}

/// Limits for one body.
struct DecodeContext {
    /// The maximum size, in bytes, of a body that is not streamed, and of its elements.
    text_limit: u64,
    claim: Claim,
    arrays: Arrays,
}

/// Decodes the elements of a body. Elements of a fixed size may still be streaming when this returns.
pub(crate) async fn decode_body(
    app: &App,
    body: ElementsBody,
    expected: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    DecodeContext::new(app, &body).decode(body, expected).await
}

impl DecodeContext {
    fn new(app: &App, body: &ElementsBody) -> Self {
        let (text_limit, claim) = (app.settings().limits.text_selection, body.claim.clone());
        Self { text_limit, arrays: app.arrays().for_request(claim.clone(), None), claim }
    }

    async fn decode(&self, body: ElementsBody, expected: ExpectedElements) -> Result<DecodedBody, DecodeError> {
        match body_format(body.media_type.as_deref())? {
            Format::Npy => npy::decode(self, body, expected).await,
            Format::Json => json::decode(self, body, expected).await,
            _ if expected.body_type().fixed_size().is_none() => raw::variable(self, body, expected).await,
            _ => raw::fixed(body, &expected),
        }
    }
}

/// Returns the format of a body with this media type; the default is raw.
fn body_format(media_type: Option<&str>) -> Result<Format, DecodeError> {
    let Some(found) = media_type else { return Ok(Format::Raw) };
    let format = BODY_FORMATS.into_iter().find(|format| format.media_type() == found);
    format.ok_or_else(|| DecodeError::MediaType { found: found.to_owned() })
}

/// A stream of elements that are already in memory.
fn ready_stream(elements: impl Into<Bytes>) -> ByteStream {
    let elements = elements.into();
    stream::iter((!elements.is_empty()).then_some(Ok(elements))).boxed()
}

impl ExpectedElements {
    /// Expects elements of an array, or what can be converted to them.
    pub(crate) fn new(model: &ArrayModel, extents: Extents, conversions: Conversions) -> Self {
        Self { data_type: model.data_type.clone(), extents, conversions }
    }

    /// The data type of a body that does not name one: that of the array, or of its decoded elements.
    fn body_type(&self) -> &DataType {
        self.conversions.packed().map_or(&self.data_type, Encoding::data_type)
    }

    /// The size of all elements of a body in bytes, or of one step if the shape is open; `None` for elements of variable
    /// length. Saturates.
    fn byte_len(&self) -> Option<u64> {
        let size = self.body_type().fixed_size()? as u64;
        match self.extents.elements() {
            Some(elements) => Some(elements.saturating_mul(size)),
            // The product overflows, but elements of size 0 take no bytes.
            None if size == 0 => Some(0),
            None => Some(u64::MAX),
        }
    }

    /// The extent of a matching shape along the open dimension.
    fn step_count(&self, shape: &[u64]) -> Option<u64> {
        let open = self.extents.dimensions().iter().position(Option::is_none)?;
        shape.get(open).copied()
    }
}

/// Returns the indices of an element from its number in C order. With unknown outer extents, the first of them counts
/// on.
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
