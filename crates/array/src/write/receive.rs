//! Receiving the elements of a region: complete chunks are encoded at once, parts of others are pending until all
//! elements are there.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_codec::{Elements, VariableBuilder};

use super::{
    chunk_encoder::ChunkEncoder,
    encode::{BodyKind, StagedChunk, WriteContext},
    error::WriteError,
    gather::SourceElements,
    memory::WriteMemory,
    pending::PendingParts,
    reader::{ElementReader, ReadOutcome, ReadWindow},
    source::ElementSource,
};
use crate::{error::ArrayError, memory::account::Account};

/// The target size of a window in bytes.
const WINDOW: u64 = 8 << 20;

/// The received elements of a region.
pub(crate) struct ReceivedChunks {
    /// The chunks that are staged.
    pub(crate) chunks: Vec<StagedChunk>,
    /// The parts of the others.
    pub(crate) pending: PendingParts,
    /// Their memory, unless they are small.
    pub(crate) memory: Option<WriteMemory>,
}

/// Receives all elements.
pub(crate) async fn receive(
    target: &Arc<WriteContext>,
    account: Account,
    elements: ElementSource,
) -> Result<ReceivedChunks, WriteError> {
    target.check_work(match &elements {
        ElementSource::Fixed(_) | ElementSource::Variable(_) => BodyKind::All,
        ElementSource::Scalar(_) => BodyKind::One,
    })?;
    let count = target.layout.elements();
    let rank = target.array.model().shape.len();
    let source = match (elements, target.size) {
        (ElementSource::Fixed(stream), Some(size)) => return receive_stream(target, account, stream, size).await,
        (ElementSource::Scalar(element), size) => SourceElements::scalar(scalar(element, size)?, rank),
        (ElementSource::Variable(elements), None) => {
            if elements.len() as u64 != count {
                return Err(WriteError::Count { expected: count, found: elements.len() as u64 });
            }
            SourceElements::new(Elements::Variable(elements), &target.layout.full_window().extents())
        }
        (ElementSource::Variable(elements), Some(_)) => {
            return Err(WriteError::Count { expected: count, found: elements.len() as u64 });
        }
        (ElementSource::Fixed(_), None) => return Err(WriteError::Count { expected: count, found: 0 }),
    };
    let mut encoder = ChunkEncoder::new(target.clone(), Some(account), None);
    let mut pending = PendingParts::default();
    let window = target.layout.full_window();
    let mut parts = false;
    for part in target.layout.parts(&window) {
        match part.is_complete() {
            true => encoder.add(part, source.clone()).await?,
            false => parts = true,
        }
    }
    if parts {
        pending.push_window(window, source);
    }
    let (staged, memory) = encoder.finish().await?;
    Ok(ReceivedChunks { chunks: staged, pending, memory })
}

/// Fails unless there are no elements: for an empty region.
pub(crate) async fn expect_no_elements(elements: ElementSource) -> Result<(), WriteError> {
    match elements {
        ElementSource::Fixed(stream) => ElementReader::new(stream, (0, 1), Arc::default()).end().await,
        ElementSource::Variable(elements) if !elements.is_empty() => {
            Err(WriteError::Count { expected: 0, found: elements.len() as u64 })
        }
        ElementSource::Variable(_) | ElementSource::Scalar(_) => Ok(()),
    }
}

async fn receive_stream(
    target: &Arc<WriteContext>,
    account: Account,
    stream: zarrd_store::ByteStream,
    size: usize,
) -> Result<ReceivedChunks, WriteError> {
    let expected = target.layout.elements().saturating_mul(size as u64);
    let mut reader = ElementReader::new(stream, (expected, size), target.context.buffers.clone());
    let size = size as u64;
    let mut encoder = ChunkEncoder::new(target.clone(), Some(account), None);
    let mut pending = PendingParts::default();
    let options = &target.context.options;
    // A larger window is worth its memory if it saves parts of chunks from being spilled.
    let row = target.layout.row().saturating_mul(size);
    let most = match row <= options.slab_memory.saturating_mul(2).min(options.max_memory / 4) {
        true => row.max(options.slab_memory / 2),
        false => options.slab_memory / 2,
    };
    // Elements without bytes can have any number, and need no transfer.
    let most = most.checked_div(size).unwrap_or(u64::MAX).max(1);
    let least = WINDOW.checked_div(size).unwrap_or(u64::MAX).clamp(1, most);
    let mut windows = target.layout.windows(least, most);
    while let Some(mut window) = windows.next() {
        let ReadWindow { bytes, memory } =
            match reader.take(window.elements().saturating_mul(size), &mut encoder).await? {
                ReadOutcome::All(taken) => taken,
                ReadOutcome::Part(taken) => {
                    // Memory is short, so the window is shortened; the bytes beyond it are read again.
                    window = windows.shortened(window, taken.bytes.len() as u64 / size.max(1));
                    reader.put_back(taken, window.elements().saturating_mul(size))
                }
            };
        let source = SourceElements::received(bytes, &window.extents());
        let mut parts = Vec::new();
        for part in target.layout.parts(&window) {
            match part.is_complete() {
                true => encoder.add(part, source.clone()).await?,
                false => parts.push(part),
            }
        }
        if !parts.is_empty() {
            pending.push_parts(target, encoder.memory.as_ref(), (window, memory), source, &parts).await?;
        }
    }
    reader.end().await?;
    let (staged, memory) = encoder.finish().await?;
    Ok(ReceivedChunks { chunks: staged, pending, memory })
}

/// One element; fails unless it has the right size.
fn scalar(element: Vec<u8>, size: Option<usize>) -> Result<Elements, WriteError> {
    match size {
        Some(size) if element.len() == size => Ok(Elements::Fixed(Bytes::from(element))),
        Some(size) => Err(WriteError::Length { expected: size as u64, found: element.len() as u64 }),
        None => {
            let mut elements = VariableBuilder::new(u64::MAX);
            elements.push(&element).map_err(|_| ArrayError::Busy)?;
            Ok(Elements::Variable(elements.finish()))
        }
    }
}
