//! JSON bodies: nested lists in the shape of the selection, or one value for all of its elements.

use bytes::BytesMut;
use serde_json::Value;
use zarrd_array::ElementSource;
use zarrd_executor::{Cost, Work};
use zarrd_meta::data_type::{DataType, parse_v3};
use zarrd_wire::elements::{
    Extents,
    json::{Full, JsonError, Parsed, parse, rank},
};

use super::{
    DecodeContext, DecodeError, DecodedBody, ExpectedElements,
    buffered::BufferedBody,
    conversion::RejectedElement,
    indices, ready_stream,
    variable::{Collector, TimeCollector, VariableCollector},
};
use crate::request_body::ElementsBody;

/// The memory overhead of one element of variable length, in bytes.
const VARIABLE_ELEMENT_COST: u64 = 16;

pub(super) async fn decode(
    context: &DecodeContext,
    body: ElementsBody,
    expected: ExpectedElements,
) -> Result<DecodedBody, DecodeError> {
    let size = |data_type: &DataType| data_type.fixed_size().map_or(VARIABLE_ELEMENT_COST, |size| size as u64);
    let (limit, size) = (context.text_limit, size(&expected.data_type).max(size(expected.body_type())));
    // Each element takes at least one character and a comma; a growing vector doubles its capacity.
    let decoded_size = move |text: u64| (text / 2).saturating_add(1).saturating_mul(size).min(limit).saturating_mul(2);
    let memory_needed = |text: u64| text.saturating_mul(2).saturating_add(decoded_size(text));
    let BufferedBody { bytes, memory } = context.buffer(BytesMut::new(), body.stream, body.size, memory_needed).await?;
    let len = bytes.len() as u64;
    let mut cost = Cost::of(Work::Documents, len);
    if memory.is_some() {
        // Short text may have many elements.
        cost = cost.not_at_once();
    }
    let (elements, count) = context.run_decoder(cost, move || decode_text(&bytes, &expected, limit)).await?;
    Ok(DecodedBody { elements, count, memory })
}

fn decode_text(
    text: &[u8],
    expected: &ExpectedElements,
    limit: u64,
) -> Result<(ElementSource, Option<u64>), DecodeError> {
    let body_type = expected.body_type();
    if let Some(times) = expected.conversions.times()
        && (expected.conversions.packed().is_some() || begins_with_time(text))
    {
        let texts = parse_v3(&Value::from("string")).ok();
        return decode_elements(
            text,
            expected,
            texts.as_ref().unwrap_or(body_type),
            Collector::Times(TimeCollector::new(times, limit)),
            limit,
        );
    }
    if body_type.fixed_size().is_none() {
        let elements = Collector::Elements(VariableCollector::new(body_type, limit));
        return decode_elements(text, expected, body_type, elements, limit);
    }
    decode_fixed(text, expected, body_type, limit)
}

/// Decodes elements of a fixed size, and encodes them if they are decoded ones.
fn decode_fixed(
    text: &[u8],
    expected: &ExpectedElements,
    body_type: &DataType,
    limit: u64,
) -> Result<(ElementSource, Option<u64>), DecodeError> {
    let step = expected.conversions.step(body_type, &expected.data_type);
    let step = step.ok_or_else(|| expected.conversions.mismatch(body_type, &expected.data_type))?;
    let mut elements = Vec::new();
    let mut push = |element: &[u8]| match (elements.len() as u64).saturating_add(element.len() as u64) {
        len if len <= limit => {
            elements.extend_from_slice(element);
            Ok(())
        }
        _ => Err(Full),
    };
    let (extents, is_row) = aligned(text, expected, body_type);
    let parsed = parse(text, body_type, &extents, &mut push).map_err(|error| too_large(error, limit))?;
    let shape: Vec<Option<u64>> = match &parsed {
        Parsed::Scalar(_) => Vec::new(),
        Parsed::Nested { shape } => shape.iter().copied().map(Some).collect(),
    };
    let apply = |elements: Vec<u8>| match step.apply(&elements) {
        Ok(converted) => Ok(converted.unwrap_or(elements)),
        Err(RejectedElement { index, reason }) => {
            Err(DecodeError::Unrepresentable { at: indices(&shape, index), reason })
        }
    };
    Ok(match parsed {
        Parsed::Scalar(element) => scalar(apply(element)?, expected),
        Parsed::Nested { shape } => {
            let count = step_count(expected, &extents, &shape, is_row);
            (ElementSource::Fixed(ready_stream(apply(elements)?)), count)
        }
    })
}

/// Decodes elements of variable length, or texts of times.
fn decode_elements(
    text: &[u8],
    expected: &ExpectedElements,
    body_type: &DataType,
    mut elements: Collector,
    limit: u64,
) -> Result<(ElementSource, Option<u64>), DecodeError> {
    let (extents, is_row) = aligned(text, expected, body_type);
    let mut failed = None;
    let mut push = |element: &[u8]| {
        elements.push(element, extents.dimensions()).map_err(|error| {
            failed = Some(error);
            Full
        })
    };
    let parsed = parse(text, body_type, &extents, &mut push);
    let parsed = match (parsed, failed) {
        (Err(JsonError::Full(Full)), Some(error)) => return Err(error),
        (parsed, _) => parsed.map_err(|error| too_large(error, limit))?,
    };
    Ok(match parsed {
        Parsed::Scalar(element) => match elements {
            Collector::Elements(_) => scalar(element, expected),
            Collector::Times(mut times) => {
                times.push(&element, &[])?;
                scalar(times.finish(), expected)
            }
        },
        Parsed::Nested { shape } => {
            let count = step_count(expected, &extents, &shape, is_row);
            (elements.finish(), count)
        }
    })
}

/// The extents of a text: without dimensions at the beginning that it leaves out, in which case it is a row.
fn aligned(text: &[u8], expected: &ExpectedElements, body_type: &DataType) -> (Extents, bool) {
    // A list without elements does not show how many dimensions are below it.
    let rank = if begins_with_empty_list(text) { 0 } else { rank(text, body_type) };
    let extents = &expected.extents;
    match extents.without_leading_ones(rank).filter(|_| (1..extents.dimensions().len()).contains(&rank)) {
        Some(row) => (row, true),
        None => (extents.clone(), false),
    }
}

/// The number of steps of an append, of which a row is one.
fn step_count(expected: &ExpectedElements, extents: &Extents, shape: &[u64], is_row: bool) -> Option<u64> {
    match expected.extents.is_open() && !extents.is_open() && is_row {
        true => Some(1),
        false => {
            let ones = expected.extents.dimensions().len().saturating_sub(shape.len());
            let shape: Vec<u64> = std::iter::repeat_n(1, ones).chain(shape.iter().copied()).collect();
            expected.step_count(&shape)
        }
    }
}

/// True if the first list of a text that has no list as its first entry has none at all.
fn begins_with_empty_list(text: &[u8]) -> bool {
    text.iter().find(|byte| **byte != b'[' && !byte.is_ascii_whitespace()) == Some(&b']')
}

/// True if the first element of a text is a text that may be a time, and no name of a number such as "NaN".
fn begins_with_time(text: &[u8]) -> bool {
    let mut beginning = text.iter().copied().skip_while(|byte| *byte == b'[' || byte.is_ascii_whitespace());
    let start: Vec<u8> = beginning.by_ref().take(4).collect();
    match start.as_slice() {
        [b'"', b'0', b'x', ..] => false,
        [b'"', b'-' | b'+', digit, ..] => digit.is_ascii_digit(),
        [b'"', rest @ ..] => rest.starts_with(b"NaT") || rest.first().is_some_and(u8::is_ascii_digit),
        _ => false,
    }
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
