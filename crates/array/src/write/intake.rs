//! What comes, window by window.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use store::ByteStream;

use super::{WriteError, receive::Making};
use crate::{ArrayError, read::buffers::Buffers};
/// How many bytes of memory are reserved at a time.
const STEP: u64 = 4 << 20;

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
    async fn begin(&mut self) -> Result<(), WriteError> {
        while self.rest.is_empty() {
            let Some(piece) = self.stream.try_next().await? else { return Ok(()) };
            self.rest = piece;
        }
        Ok(())
    }

    /// The next `len` bytes. Where they do not come in one piece they are held in memory, reserved as they come, until the last use of them.
    pub(super) async fn take(&mut self, len: u64, making: &mut Making) -> Result<Bytes, WriteError> {
        self.begin().await?;
        let wanted = usize::try_from(len).map_err(|_| ArrayError::Busy)?;
        if self.rest.len() >= wanted {
            self.taken = self.taken.saturating_add(len);
            return Ok(self.rest.split_to(wanted));
        }
        let mut reserved = making.admit(len.min(STEP)).await?;
        let mut covered = len.min(STEP);
        let mut buffer = self.buffers.take(wanted);
        let mut filled = 0;
        while filled < wanted {
            self.begin().await?;
            if self.rest.is_empty() {
                return Err(self.wrong_length(filled as u64));
            }
            // Whoever sends slowly holds no more than what they sent.
            if filled as u64 == covered {
                let step = (len - covered).min(STEP);
                reserved.merge(making.admit(step).await?);
                covered = covered.saturating_add(step);
            }
            let until = usize::try_from(covered).unwrap_or(wanted).min(wanted);
            let now = (until - filled).min(self.rest.len());
            if let (Some(room), Some(piece)) = (buffer.get_mut(filled..filled + now), self.rest.get(..now)) {
                room.copy_from_slice(piece);
            }
            let _ = self.rest.split_to(now);
            filled += now;
        }
        self.taken = self.taken.saturating_add(len);
        Ok(self.buffers.lend(buffer, Some(reserved)))
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
