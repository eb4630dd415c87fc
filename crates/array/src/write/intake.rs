//! What comes, window by window.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use store::ByteStream;
use tokio::sync::OwnedSemaphorePermit;

use super::WriteError;
use crate::{ArrayError, read::buffers::Buffers};
/// The bytes of a region on their way in.
pub(super) struct Intake {
    stream: ByteStream,
    /// What came and was not taken.
    rest: Bytes,
    expected: u64,
    taken: u64,
    buffers: Arc<Buffers>,
}

impl Intake {
    /// Of `stream`, which has to yield `expected` bytes.
    pub(super) fn new(stream: ByteStream, expected: u64) -> Self {
        Self { stream, rest: Bytes::new(), expected, taken: 0, buffers: Arc::default() }
    }

    /// Waits until something has come, or all.
    pub(super) async fn begin(&mut self) -> Result<(), WriteError> {
        while self.rest.is_empty() {
            let Some(piece) = self.stream.try_next().await? else { return Ok(()) };
            self.rest = piece;
        }
        Ok(())
    }

    /// Whether the next `len` bytes are there in one piece, so that they take no memory of their own.
    pub(super) fn has(&self, len: u64) -> bool {
        self.rest.len() as u64 >= len
    }

    /// The next `len` bytes. They are held with the permission to have them until the last use of them.
    pub(super) async fn take(&mut self, len: u64, permit: Option<OwnedSemaphorePermit>) -> Result<Bytes, WriteError> {
        self.begin().await?;
        let wanted = usize::try_from(len).map_err(|_| ArrayError::Busy)?;
        if self.has(len) {
            self.taken = self.taken.saturating_add(len);
            return Ok(self.rest.split_to(wanted));
        }
        let mut buffer = self.buffers.take(wanted);
        let mut filled = 0;
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            self.begin().await?;
            let now = room.len().min(self.rest.len());
            let Some((room, piece)) = room.get_mut(..now).zip(self.rest.get(..now)).filter(|_| now > 0) else {
                return Err(self.wrong_length(filled as u64));
            };
            room.copy_from_slice(piece);
            let _ = self.rest.split_to(now);
            filled += now;
        }
        self.taken = self.taken.saturating_add(len);
        Ok(self.buffers.lend(buffer, permit))
    }

    /// Fails where more comes than was expected.
    pub(super) async fn end(mut self) -> Result<(), WriteError> {
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
