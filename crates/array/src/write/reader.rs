//! Reading the elements of a request's body, window by window.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use zarrd_store::ByteStream;

use super::{
    chunk_encoder::ChunkEncoder,
    error::WriteError,
    memory::{MemoryShare, MemoryUse, RESERVATION_STEP},
};
use crate::{buffer_pool::BufferPool, error::ArrayError};

/// A reader of the bytes of a region.
pub(crate) struct ElementReader {
    stream: ByteStream,
    /// Received bytes that were not yet read.
    rest: Bytes,
    expected: u64,
    taken: u64,
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
    pub(crate) bytes: Bytes,
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
    /// A reader of `stream`, which has to yield `expected` bytes.
    pub(crate) fn new(stream: ByteStream, expected: u64, buffers: Arc<BufferPool>) -> Self {
        Self { stream, rest: Bytes::new(), expected, taken: 0, buffers }
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
            return Ok(ReadOutcome::All(ReadWindow {
                bytes: self.rest.split_to(wanted),
                memory: BufferMemory::Nothing,
            }));
        }
        let first = encoder.take(MemoryUse::Window, len.min(RESERVATION_STEP)).await?;
        let memory = if first.is_least() { BufferMemory::Least } else { BufferMemory::More };
        let mut shares = vec![first];
        let mut covered = usize::try_from(len.min(RESERVATION_STEP)).unwrap_or(wanted);
        let mut buffer = self.buffers.take(covered);
        let mut filled = 0;
        while filled < wanted {
            self.begin().await?;
            if self.rest.is_empty() {
                return Err(self.wrong_length(filled as u64));
            }
            // A slow client occupies only the memory of what it has sent.
            if filled == covered {
                let step = (wanted - covered).min(RESERVATION_STEP as usize);
                let Some(more) = encoder.more(step as u64).await? else {
                    let bytes = self.finish_window(buffer, shares);
                    return Ok(ReadOutcome::Part(ReadWindow { bytes, memory }));
                };
                shares.push(more);
                covered += step;
                buffer.resize(covered, 0);
            }
            let now = (covered - filled).min(self.rest.len());
            if let (Some(free), Some(piece)) = (buffer.get_mut(filled..filled + now), self.rest.get(..now)) {
                free.copy_from_slice(piece);
            }
            let _ = self.rest.split_to(now);
            filled += now;
        }
        let bytes = self.finish_window(buffer, shares);
        Ok(ReadOutcome::All(ReadWindow { bytes, memory }))
    }

    fn finish_window(&mut self, buffer: Vec<u8>, shares: Vec<MemoryShare>) -> Bytes {
        self.taken = self.taken.saturating_add(buffer.len() as u64);
        self.buffers.into_bytes(buffer, shares)
    }

    /// Keeps the first `len` bytes of a window; the others will be read again.
    pub(crate) fn put_back(&mut self, taken: ReadWindow, len: u64) -> ReadWindow {
        let ReadWindow { mut bytes, memory } = taken;
        let back = bytes.split_off(usize::try_from(len).unwrap_or(usize::MAX).min(bytes.len()));
        self.taken = self.taken.saturating_sub(back.len() as u64);
        // A copy, since the window's memory has to be returned.
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
