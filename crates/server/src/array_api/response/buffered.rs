//! Responses that are encoded from all elements at once.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_array::{ArrayError, ArrayResult};
use zarrd_executor::{Cost, Work};
use zarrd_wire::{array::Format, problem::ProblemType};

use crate::{
    app::App,
    array_api::{
        block_stream::MetricsGuard,
        encode::{self, ArraySlice, BufferedFormat, EncodeError},
    },
    engine::Engine,
    error::ApiError,
};

/// Encodes a response from all elements at once.
pub(super) async fn buffered_body(
    engine: &Engine,
    format: BufferedFormat,
    slice: ArraySlice,
    mut result: ArrayResult,
    guard: MetricsGuard,
) -> Result<Bytes, ApiError> {
    let limit = engine.app.settings().limits.text_selection;
    let needed = memory_needed(&engine.app, &format, &result);
    let mut permit = result.reserve_with_extra(needed).await?;
    let elements = if format.needs_elements() { result.into_stream().boxed() } else { stream::empty().boxed() };
    let (mut buffers, mut stream, mut memory) = (Vec::new(), elements, 0_u64);
    while let Some(elements) = stream.try_next().await? {
        memory = memory.saturating_add(elements.memory_size());
        buffers.push(elements);
        if slice.is_variable() && memory > limit {
            let detail = format!("the elements exceed the limit of {limit} bytes (`--max-text-selection`)");
            return Err(ApiError::selection_too_large(None, limit, None, detail));
        }
        permit.grow_to(memory).map_err(ArrayError::from)?;
    }
    drop((stream, guard));
    let (slice, buffers) = (Arc::new(slice), Arc::new(buffers));
    loop {
        let (slice, buffers) = (slice.clone(), buffers.clone());
        let max_size = limit.min(permit.bytes().saturating_sub(memory));
        let supported = encode::supported_formats(&slice);
        let format = format.clone();
        let encode = move || encode::encode_buffered(format, &slice, &buffers, max_size);
        match engine.arrays.run(Cost::of(Work::Tree, needed), encode).await? {
            Ok(bytes) => return Ok(permit.attach_to(bytes)),
            // The size is within the limit, but needs a larger permit.
            Err(EncodeError::TooLong { size }) if size > max_size && size <= limit => {
                permit.grow_to(memory.saturating_add(size)).map_err(ArrayError::from)?;
            }
            Err(error @ EncodeError::TooLong { size }) => {
                return Err(ApiError::selection_too_large(Some(size), limit, None, error.to_string()));
            }
            Err(error @ EncodeError::TrailingNul) => {
                let others: Vec<_> = supported.into_iter().filter(|&format| format != Format::Npy).collect();
                return Err(ApiError::format_not_supported(Format::Npy, &error.to_string(), &others));
            }
            Err(error @ (EncodeError::Count { .. } | EncodeError::Png(_) | EncodeError::Json(_))) => {
                return Err(ApiError::with_cause(ProblemType::Internal, error));
            }
        }
    }
}

/// Estimates the memory for a response encoded at once, in addition to the read itself: the elements and what encoding
/// takes, or twice the limit for strings of unknown length. Starts with a quarter of the memory per request if that is
/// less.
fn memory_needed(app: &App, format: &BufferedFormat, result: &ArrayResult) -> u64 {
    match result.byte_len() {
        _ if !format.needs_elements() => 0,
        Some(len) => len.saturating_add(format.memory_needed(result.elements())),
        None => app.settings().limits.text_selection.saturating_mul(2).min(app.memory().max_per_request() / 4),
    }
}
