//! Payloads, gathered until they can be sent.

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::PutPayload;
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::{ByteStream, Payload, StoreError, UploadError};

use crate::inner::Inner;

/// The size of a value that is sent in one PUT whether or not it has a condition, and of a part of a larger one.
pub(super) const PART_SIZE: u64 = 8 << 20;

/// The largest value whose write can have a condition: it is sent in one PUT, from memory.
pub(super) const MAX_CONDITIONAL: u64 = 256 << 20;

/// The largest number of parts of a value.
pub(super) const MAX_PARTS: u64 = 10_000;

/// The largest part.
const MAX_PART_SIZE: u64 = 64 << 20;

/// The part of a value of unknown size.
const UNKNOWN_PART_SIZE: u64 = 16 << 20;

/// The unit in which memory for conditional values is counted.
const MEMORY_UNIT: u64 = 1 << 20;

/// A payload that arrives.
pub(super) struct Incoming {
    stream: ByteStream,
    announced: Option<u64>,
    received: u64,
}

/// A payload, or the start of one.
pub(super) enum Body {
    /// All of it, with the memory that it takes.
    Whole(PutPayload, Option<OwnedSemaphorePermit>),
    /// The first part of a larger one.
    Begun(Vec<Bytes>),
}

impl Incoming {
    /// Fails if a payload is larger than any value can be.
    pub(super) fn new(payload: Payload) -> Result<Self, StoreError> {
        let Payload { size: announced, stream, .. } = payload;
        let limit = MAX_PARTS.saturating_mul(MAX_PART_SIZE);
        match announced {
            Some(size) if size > limit => Err(UploadError::TooLarge { limit }.into()),
            _ => Ok(Self { stream, announced, received: 0 }),
        }
    }

    /// The size of the parts of this payload.
    pub(super) fn part_size(&self) -> u64 {
        match self.announced {
            Some(size) => size.div_ceil(MAX_PARTS).next_multiple_of(MEMORY_UNIT).clamp(PART_SIZE, MAX_PART_SIZE),
            None => UNKNOWN_PART_SIZE,
        }
    }

    /// Reads a payload that fits into one PUT, or its first part.
    pub(super) async fn gather(&mut self, inner: &Inner, is_conditional: bool) -> Result<Body, StoreError> {
        let limit = MAX_CONDITIONAL;
        let expected = self.announced.unwrap_or(limit);
        if is_conditional && expected > limit {
            return Err(UploadError::TooLarge { limit }.into());
        }
        let mut pieces = self.read(PART_SIZE).await?;
        if self.is_complete(&mut pieces).await? {
            return Ok(Body::Whole(PutPayload::from_iter(pieces), None));
        }
        if !is_conditional {
            return Ok(Body::Begun(pieces));
        }
        let permit = inner.conditional_memory(expected.div_ceil(MEMORY_UNIT)).await;
        pieces.extend(self.read(limit.saturating_sub(self.received)).await?);
        match self.is_complete(&mut pieces).await? {
            true => Ok(Body::Whole(PutPayload::from_iter(pieces), permit)),
            false => Err(UploadError::TooLarge { limit }.into()),
        }
    }

    /// Reads at least this many bytes, up to the end of a chunk, or all that are left.
    pub(super) async fn read(&mut self, len: u64) -> Result<Vec<Bytes>, StoreError> {
        let (mut pieces, mut read) = (Vec::new(), 0_u64);
        while read < len {
            let Some(piece) = self.next().await? else { break };
            read = read.saturating_add(piece.len() as u64);
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// True if nothing follows; otherwise adds what does.
    async fn is_complete(&mut self, pieces: &mut Vec<Bytes>) -> Result<bool, StoreError> {
        match self.next().await? {
            None => Ok(true),
            Some(piece) => {
                pieces.push(piece);
                Ok(false)
            }
        }
    }

    /// The next bytes, of which there are some. Fails if the payload is not as long as announced.
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        loop {
            let piece = self.stream.try_next().await?;
            self.received = self.received.saturating_add(piece.as_ref().map_or(0, Bytes::len) as u64);
            let received = self.received;
            let is_wrong = |announced: &u64| received > *announced || piece.is_none() && received < *announced;
            if let Some(announced) = self.announced.filter(is_wrong) {
                return Err(UploadError::LengthMismatch { announced, received }.into());
            }
            if piece.as_ref().is_none_or(|piece| !piece.is_empty()) {
                return Ok(piece);
            }
        }
    }
}
