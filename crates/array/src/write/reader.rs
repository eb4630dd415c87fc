//! Reading the elements of a request's body, window by window.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::ByteStream;

use super::{
    chunk_encoder::ChunkEncoder,
    error::WriteError,
    memory::{MemoryUse, RESERVATION_STEP},
    segments::Segments,
};
use crate::{buffer_pool::BufferPool, error::ArrayError};

/// The size of the buffers of a window, in bytes, unless an element is larger. Buffers of one size are used again by the
/// next window, which saves the kernel from clearing fresh pages.
const SEGMENT: usize = RESERVATION_STEP as usize;

/// A reader of the bytes of a region.
pub(crate) struct ElementReader {
    stream: ByteStream,
    /// Received bytes that were not yet read.
    rest: Bytes,
    expected: u64,
    taken: u64,
    /// The length of the segments of a window in bytes.
    segment: usize,
    buffers: Arc<BufferPool>,
}

/// The result of reading a window.
pub(crate) enum ReadOutcome {
    /// The whole window.
    All(ReadWindow),
    /// As much of it as there was memory for.
    Part(ReadWindow),
}

/// Bytes of a window.
pub(crate) struct ReadWindow {
    pub(crate) bytes: Segments,
    pub(crate) memory: BufferMemory,
}

/// The memory of a window's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferMemory {
    /// The received buffer itself.
    Nothing,
    /// The write's minimum, which has to be returned before the write goes on.
    Least,
    /// Memory beyond the minimum.
    More,
}

impl ElementReader {
    /// A reader of `stream`, which has to yield `expected` bytes, of elements of `size` bytes.
    pub(crate) fn new(stream: ByteStream, (expected, size): (u64, usize), buffers: Arc<BufferPool>) -> Self {
        let segment = (SEGMENT / size.max(1)).max(1).saturating_mul(size.max(1));
        Self { stream, rest: Bytes::new(), expected, taken: 0, segment, buffers }
    }

    /// Waits for the next bytes, or for the end.
    async fn begin(&mut self) -> Result<(), WriteError> {
        while self.rest.is_empty() {
            let Some(piece) = self.stream.try_next().await? else { return Ok(()) };
            self.rest = piece;
        }
        Ok(())
    }

    /// Reads the next `len` bytes, or as many as there is memory for. Bytes that do not come in one buffer are copied
    /// to memory that is reserved as they arrive, and held until their last use.
    pub(crate) async fn take(&mut self, len: u64, encoder: &mut ChunkEncoder) -> Result<ReadOutcome, WriteError> {
        self.begin().await?;
        let wanted = usize::try_from(len).map_err(|_| ArrayError::Busy)?;
        if self.rest.len() >= wanted {
            self.taken = self.taken.saturating_add(len);
            let bytes = self.rest.split_to(wanted).into();
            return Ok(ReadOutcome::All(ReadWindow { bytes, memory: BufferMemory::Nothing }));
        }
        let mut reserved = len.min(RESERVATION_STEP);
        let first = encoder.take(MemoryUse::Window, reserved).await?;
        let memory = if first.is_least() { BufferMemory::Least } else { BufferMemory::More };
        let (mut shares, mut segments, mut filled) = (vec![first], Vec::new(), 0);
        while filled < wanted {
            let length = self.segment.min(wanted - filled);
            let mut buffer = self.buffers.take_empty(length);
            while buffer.len() < length {
                self.begin().await?;
                let at = filled + buffer.len();
                if self.rest.is_empty() {
                    return Err(self.wrong_length(at as u64));
                }
                // A slow client occupies only the memory of what it has sent.
                let mut free = usize::try_from(reserved).unwrap_or(usize::MAX).saturating_sub(at);
                if free == 0 {
                    let step = ((wanted - at) as u64).min(RESERVATION_STEP);
                    let Some(more) = encoder.more(step).await? else {
                        segments.push(self.buffers.into_bytes(buffer, shares));
                        return Ok(ReadOutcome::Part(self.window(segments, memory)));
                    };
                    shares.push(more);
                    reserved = reserved.saturating_add(step);
                    free = usize::try_from(step).unwrap_or(usize::MAX);
                }
                let now = free.min(length - buffer.len()).min(self.rest.len());
                buffer.extend_from_slice(&self.rest.split_to(now));
            }
            filled += length;
            segments.push(self.buffers.into_bytes(buffer, std::mem::take(&mut shares)));
        }
        Ok(ReadOutcome::All(self.window(segments, memory)))
    }

    fn window(&mut self, segments: Vec<Bytes>, memory: BufferMemory) -> ReadWindow {
        let bytes = Segments::new(segments, self.segment);
        self.taken = self.taken.saturating_add(bytes.len() as u64);
        ReadWindow { bytes, memory }
    }

    /// Keeps the first `len` bytes of a window; the others will be read again.
    pub(crate) fn put_back(&mut self, taken: ReadWindow, len: u64) -> ReadWindow {
        let ReadWindow { bytes, memory } = taken;
        // A copy, since the window's memory has to be returned.
        let (bytes, back) = bytes.split(usize::try_from(len).unwrap_or(usize::MAX));
        self.taken = self.taken.saturating_sub(back.len() as u64);
        self.rest = [&back[..], &self.rest[..]].concat().into();
        ReadWindow { bytes, memory }
    }

    /// Fails if the stream has more bytes than expected.
    pub(crate) async fn end(mut self) -> Result<(), WriteError> {
        self.begin().await?;
        match self.rest.len() {
            0 => Ok(()),
            more => Err(self.wrong_length(more as u64)),
        }
    }

    fn wrong_length(&self, more: u64) -> WriteError {
        WriteError::Length { expected: self.expected, found: self.taken.saturating_add(more) }
    }
}
