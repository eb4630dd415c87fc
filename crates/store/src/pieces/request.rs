//! Requests for adjacent pieces of a value.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use futures::TryStreamExt;

use super::{PIECE_LEN, StorePieces, claims::Claim};
use crate::{ByteStream, Key, StoreError, Version};

/// A value at a version.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) size: u64,
}

/// The bytes of adjacent pieces, as they arrive.
pub(super) struct Request {
    /// The pieces that have not arrived.
    pub(super) pieces: Range<u64>,
    stream: ByteStream,
    /// The part of them that has arrived.
    rest: Bytes,
}

impl Value {
    /// The bytes of pieces.
    pub(super) fn bytes_of(&self, pieces: &Range<u64>) -> Range<u64> {
        let position = |index: u64| index.saturating_mul(PIECE_LEN).min(self.size);
        position(pieces.start)..position(pieces.end)
    }

    /// The pieces that have bytes of a range.
    pub(super) fn pieces_of(range: &Range<u64>) -> Range<u64> {
        range.start / PIECE_LEN..range.end.div_ceil(PIECE_LEN)
    }
}

impl Request {
    /// The pieces whose bytes a stream yields, and no more.
    pub(super) fn new(pieces: Range<u64>, stream: ByteStream) -> Self {
        Self { pieces, stream, rest: Bytes::new() }
    }

    /// Reads the pieces of a claim, passes them on, and caches them. Returns what is left of the request; `None` after a
    /// failure, or at its end.
    pub(super) async fn read(mut self, value: Value, mut claim: Claim, cached: StorePieces) -> Option<Self> {
        while let Some(index) = claim.next() {
            // After a failure, those who wait ask for themselves, and get an error of their own.
            let bytes = self.piece(&value).await.ok().flatten()?;
            claim.pass(bytes.clone());
            cached.pieces.cache.insert(cached.id(&value.key, value.version, index), bytes).await;
            claim.release();
        }
        (!self.pieces.is_empty()).then_some(self)
    }

    /// Reads the next piece; `None` if the stream ends before it does.
    async fn piece(&mut self, value: &Value) -> Result<Option<Bytes>, StoreError> {
        let Some(index) = self.pieces.next() else { return Ok(None) };
        let bytes = value.bytes_of(&(index..index.saturating_add(1)));
        let len = usize::try_from(bytes.end.saturating_sub(bytes.start)).unwrap_or(usize::MAX);
        if self.rest.is_empty() {
            self.rest = self.stream.try_next().await?.unwrap_or_default();
        }
        if self.rest.len() >= len {
            return Ok(Some(self.rest.split_to(len)));
        }
        // A piece has at most a MiB.
        let mut piece = BytesMut::with_capacity(len);
        loop {
            let part = self.rest.split_to(self.rest.len().min(len.saturating_sub(piece.len())));
            piece.extend_from_slice(&part);
            if piece.len() == len {
                return Ok(Some(piece.freeze()));
            }
            match self.stream.try_next().await? {
                Some(bytes) => self.rest = bytes,
                None => return Ok(None),
            }
        }
    }
}

/// The part of a piece that a range has.
pub(super) fn part_of(piece: Bytes, index: u64, range: &Range<u64>) -> Bytes {
    let start = index.saturating_mul(PIECE_LEN);
    let mut piece = piece;
    let len = usize::try_from(range.end.saturating_sub(start)).unwrap_or(usize::MAX);
    piece.truncate(len);
    let skipped = usize::try_from(range.start.saturating_sub(start)).unwrap_or(usize::MAX);
    piece.advance(skipped.min(piece.len()));
    piece
}
