//! JSON bodies: nested lists in the shape of the selection, or one value for all of its elements.

use bytes::BytesMut;
use zarrd_array::ElementSource;
use zarrd_wire::elements::json::{Full, JsonError, Parsed, parse};

use super::{
    DecodeContext, DecodeError, DecodedBody, ExpectedElements,
    buffered::{BufferedBody, INLINE_DECODE_LIMIT},
    ready_stream,
    variable::VariableCollector,
};
use crate::request_body::ElementsBody;

/// The memory overhead of one element of variable length, in bytes.
const VARIABLE_ELEMENT_COST: u64 = 16;

pub(super) async fn decode(
    context: &DecodeContext,
    body: ElementsBody,
    expected: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    let (limit, size) =
        (context.text_limit, expected.data_type.fixed_size().map_or(VARIABLE_ELEMENT_COST, |size| size as u64));
    // Each element takes at least one character and a comma; a growing vector doubles its capacity.
    let decoded_size = move |text: u64| (text / 2).saturating_add(1).saturating_mul(size).min(limit).saturating_mul(2);
    let memory_needed = |text: u64| text.saturating_mul(2).saturating_add(decoded_size(text));
    let BufferedBody { bytes, memory } = context.buffer(BytesMut::new(), body.stream, body.size, memory_needed).await?;
    let len = bytes.len() as u64;
    let work = if memory.is_some() { len.max(INLINE_DECODE_LIMIT + 1) } else { len };
    let (elements, count) = context.run_decoder(work, move || decode_text(&bytes, &expected, limit)).await?;
    Ok(DecodedBody { elements, count, memory })
}

fn decode_text(
    text: &[u8],
    expected: &ExpectedElements,
    limit: u64,
) -> Result<(ElementSource, Option<u64>), DecodeError> {
    let (data_type, extents) = (&expected.data_type, &expected.extents);
    if data_type.fixed_size().is_some() {
        let mut elements = Vec::new();
        let mut push = |element: &[u8]| match (elements.len() as u64).saturating_add(element.len() as u64) {
            len if len <= limit => {
                elements.extend_from_slice(element);
                Ok(())
            }
            _ => Err(Full),
        };
        let parsed = parse(text, data_type, extents, &mut push).map_err(|error| too_large(error, limit))?;
        return Ok(match parsed {
            Parsed::Scalar(element) => scalar(element, expected),
            Parsed::Nested { shape } => (ElementSource::Fixed(ready_stream(elements)), expected.step_count(&shape)),
        });
    }
    let mut elements = VariableCollector::new(data_type, limit);
    let mut push = |element: &[u8]| elements.push(element, &[]).map_err(|_| Full);
    let parsed = parse(text, data_type, extents, &mut push).map_err(|error| too_large(error, limit))?;
    Ok(match parsed {
        Parsed::Scalar(element) => scalar(element, expected),
        Parsed::Nested { shape } => (ElementSource::Variable(elements.finish()), expected.step_count(&shape)),
    })
}

/// One value for the full selection. An append of it is one step.
fn scalar(element: Vec<u8>, expected: &ExpectedElements) -> (ElementSource, Option<u64>) {
    (ElementSource::Scalar(element), expected.extents.is_open().then_some(1))
}

fn too_large(error: JsonError, limit: u64) -> DecodeError {
    match error {
        JsonError::Full(Full) => DecodeError::TooLarge { limit },
        other => other.into(),
    }
}
