//! Raw bodies. Elements of a fixed size are in their memory layout. Elements of variable length are their number as a
//! `u32`, then each element after its length as a `u32`; all numbers are little-endian.

use bytes::{Buf, BytesMut};
use zarrd_array::ElementSource;
use zarrd_codec::ByteSwap;
use zarrd_executor::{Cost, Work};

use super::{
    DecodeContext, DecodeError, DecodedBody, ExpectedElements,
    buffered::BufferedBody,
    transcoder::ElementTranscoder,
    variable::{Collector, count_steps},
};
use crate::request_body::ElementsBody;

/// The size of a length prefix, in bytes.
const LENGTH_PREFIX_BYTES: usize = size_of::<u32>();

/// Decodes elements of a fixed size.
pub(super) fn fixed(body: ElementsBody, expected_elements: &ExpectedElements) -> Result<DecodedBody, DecodeError> {
    let step = expected_elements.byte_len().unwrap_or(0);
    let (expected, count) = match (expected_elements.extents.is_open(), body.size) {
        (false, Some(found)) if found != step => return Err(DecodeError::Length { expected: step, found }),
        (false, _) => (Some(step), None),
        // The length of the body does not tell the number of steps if elements have no bytes.
        (true, Some(found)) if found.checked_rem(step).unwrap_or(found) != 0 => {
            return Err(DecodeError::Steps { step, found });
        }
        (true, found) => match step {
            0 => (Some(0), Some(0)),
            _ => (found, found.and_then(|found| found.checked_div(step))),
        },
    };
    let data_type = expected_elements.body_type();
    let conversions = &expected_elements.conversions;
    let step = conversions.step(data_type, &expected_elements.data_type);
    let transcoder = ElementTranscoder {
        expected,
        extents: expected_elements.extents.dimensions().to_vec(),
        data_type: data_type.clone(),
        step: step.ok_or_else(|| conversions.mismatch(data_type, &expected_elements.data_type))?,
        size: data_type.fixed_size().unwrap_or(0),
        swap: ByteSwap::None,
    };
    Ok(DecodedBody { elements: ElementSource::Fixed(transcoder.transcode(body.stream)), count, memory: None })
}

/// Decodes elements of variable length.
pub(super) async fn variable(
    context: &DecodeContext,
    body: ElementsBody,
    expected_elements: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    // The offsets take twice the space of the length prefixes, and growing vectors double their capacity.
    let memory_needed = |size: u64| size.saturating_mul(5);
    let BufferedBody { bytes, memory } = context.buffer(BytesMut::new(), body.stream, body.size, memory_needed).await?;
    let limit = context.text_limit;
    let cost = Cost::of(Work::Documents, bytes.len() as u64);
    let (elements, count) =
        context.run_decoder(cost, move || decode_variable(&bytes, &expected_elements, limit)).await?;
    Ok(DecodedBody { elements, count, memory })
}

fn decode_variable(
    body: &[u8],
    expected_elements: &ExpectedElements,
    limit: u64,
) -> Result<(ElementSource, Option<u64>), DecodeError> {
    let invalid_lengths = || DecodeError::Lengths { size: body.len() as u64 };
    let mut bytes = body;
    let found = bytes.try_get_u32_le().map_err(|_| invalid_lengths())?;
    let count = count_steps(expected_elements, u64::from(found))?;
    // Each element takes at least its length prefix.
    if found as usize > bytes.len() / LENGTH_PREFIX_BYTES {
        return Err(invalid_lengths());
    }
    let extents = expected_elements.extents.dimensions();
    let times = expected_elements.conversions.times().filter(|_| expected_elements.data_type.fixed_size().is_some());
    let mut elements = Collector::new(&expected_elements.data_type, times, limit);
    for _ in 0..found {
        let len = bytes.try_get_u32_le().map_err(|_| invalid_lengths())?;
        let (element, rest) = bytes.split_at_checked(len as usize).ok_or_else(invalid_lengths)?;
        elements.push(element, extents)?;
        bytes = rest;
    }
    if bytes.is_empty() { Ok((elements.finish(), count)) } else { Err(invalid_lengths()) }
}
