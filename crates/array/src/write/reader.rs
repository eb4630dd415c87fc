//! What comes, window by window.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::TryStreamExt;
use store::ByteStream;

use super::{
    chunk_encoder::ChunkEncoder,
    error::WriteError,
    memory::{MemoryShare, MemoryUse, RESERVATION_STEP},
};
use crate::{error::ArrayError, read::buffer_pool::BufferPool};

/// The bytes of a region on their way in.
pub(crate) struct ElementReader {
    stream: ByteStream,
    /// What came and was not taken.
    rest: Bytes,
    expected: u64,
    taken: u64,
    buffers: Arc<BufferPool>,
}

/// How much was taken.
pub(crate) enum ReadOutcome {
    /// All that was wanted.
    All(ReadWindow),
    /// As much as there was memory for.
    Part(ReadWindow),
}

/// Bytes that were taken.
pub(crate) struct ReadWindow {
    pub(crate) bytes: Bytes,
    pub(crate) memory: BufferMemory,
}

/// Which memory bytes are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferMemory {
    /// That of what came.
    Nothing,
    /// The least that a write can do with, which has to come back before it goes on.
    Least,
    /// Some that was free.
    More,
}

/// A buffer that is used again after the last use of it, with the permission to have it.
struct WindowBuffer {
    buffer: Vec<u8>,
    owner: Weak<BufferPool>,
    shares: Vec<MemoryShare>,
}

impl AsRef<[u8]> for WindowBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for WindowBuffer {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.recycle(std::mem::take(&mut self.buffer));
        }
        self.shares.clear();
    }
}

impl ElementReader {
    /// Of `stream`, which has to yield `expected` bytes.
    pub(crate) fn new(stream: ByteStream, expected: u64) -> Self {
        Self { stream, rest: Bytes::new(), expected, taken: 0, buffers: Arc::default() }
    }

    /// Waits until something has come, or all.
    async fn begin(&mut self) -> Result<(), WriteError> {
        while self.rest.is_empty() {
            let Some(piece) = self.stream.try_next().await? else { return Ok(()) };
            self.rest = piece;
        }
        Ok(())
    }

    /// The next `len` bytes, or those for which there is memory. Where they do not come in one piece they are held in memory, reserved as they come, until the last use of them.
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
            // Whoever sends slowly holds no more than what they sent.
            if filled == covered {
                let step = (wanted - covered).min(RESERVATION_STEP as usize);
                let Some(more) = encoder.more(step as u64).await? else {
                    let bytes = self.into_bytes(buffer, shares);
                    return Ok(ReadOutcome::Part(ReadWindow { bytes, memory }));
                };
                shares.push(more);
                covered += step;
                buffer.resize(covered, 0);
            }
            let now = (covered - filled).min(self.rest.len());
            if let (Some(room), Some(piece)) = (buffer.get_mut(filled..filled + now), self.rest.get(..now)) {
                room.copy_from_slice(piece);
            }
            let _ = self.rest.split_to(now);
            filled += now;
        }
        let bytes = self.into_bytes(buffer, shares);
        Ok(ReadOutcome::All(ReadWindow { bytes, memory }))
    }

    fn into_bytes(&mut self, buffer: Vec<u8>, shares: Vec<MemoryShare>) -> Bytes {
        self.taken = self.taken.saturating_add(buffer.len() as u64);
        Bytes::from_owner(WindowBuffer { buffer, owner: Arc::downgrade(&self.buffers), shares })
    }

    /// Keeps the first `len` bytes of what was taken; the others come again.
    pub(crate) fn put_back(&mut self, taken: ReadWindow, len: u64) -> ReadWindow {
        let ReadWindow { mut bytes, memory } = taken;
        let back = bytes.split_off(usize::try_from(len).unwrap_or(usize::MAX).min(bytes.len()));
        self.taken = self.taken.saturating_sub(back.len() as u64);
        // In memory of its own, since what it was taken with has to come back.
        self.rest = [&back[..], &self.rest[..]].concat().into();
        ReadWindow { bytes, memory }
    }

    /// Fails where more comes than was expected.
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
