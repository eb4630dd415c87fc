//! Units: what is decoded on its own.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use zarrd_codec::{CodecChain, CodecError, Elements, PartialAccess};

use super::{context::ReadContext, encoded_chunk::EncodedChunk};
use crate::{
    cache::{CacheKind, Cached},
    grid::projection::ElementSelection,
    running_decodes::Interest,
};

/// The work of decoding a chunk from which on reads share it, in steps.
const MIN_SHARED_WORK: u64 = 32 << 10;

/// The smallest unit that is decoded on its own.
#[derive(Debug)]
pub(crate) struct DecodeUnit {
    pub(crate) kind: DecodeKind,
    /// The range of the unit in the value.
    pub(crate) range: Range<u64>,
    pub(crate) shape: Vec<u64>,
    pub(crate) selection: ElementSelection,
}

#[derive(Debug)]
pub(crate) enum DecodeKind {
    /// A chunk, decoded by its codec chain.
    Chunk(Arc<CodecChain>),
    /// Consecutive elements of an uncompressed chunk.
    Elements(Arc<CodecChain>),
}

impl DecodeUnit {
    /// The decoded size in bytes; for variable length, the stored size.
    pub(crate) fn decoded_len(&self) -> u64 {
        let stored = self.range.end - self.range.start;
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.representation().fixed_size().unwrap_or(stored),
            DecodeKind::Elements(_) => stored,
        }
    }

    /// The work of decoding it at most, in steps.
    pub(super) fn decode_work(&self) -> u64 {
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.decode_work(self.range.end - self.range.start),
            DecodeKind::Elements(_) => self.range.end - self.range.start,
        }
    }

    pub(super) fn chain(&self) -> &Arc<CodecChain> {
        match &self.kind {
            DecodeKind::Chunk(chain) | DecodeKind::Elements(chain) => chain,
        }
    }

    /// The cached elements.
    pub(super) fn cached(&self, source: &ReadContext, part: &EncodedChunk) -> Option<Elements> {
        let DecodeKind::Chunk(_) = &self.kind else { return None };
        match source.cache().get(&source.cache_key(part, self.range.start, CacheKind::Chunk)?)? {
            Cached::Chunk(elements) => Some(elements),
            Cached::Index(_) => None,
        }
    }

    pub(super) fn is_cacheable(&self, source: &ReadContext) -> bool {
        source.caches() && matches!(&self.kind, DecodeKind::Chunk(_))
    }

    pub(super) fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.decode(encoded, budget),
            DecodeKind::Elements(chain) => chain.decode_elements(encoded).map(Elements::Fixed),
        }
    }

    /// An interest in the chunk, which other reads may be decoding; `None` if sharing takes longer than decoding.
    pub(super) fn interest(&self, source: &ReadContext, part: &EncodedChunk) -> Option<Arc<Interest>> {
        let is_shared = match &self.kind {
            DecodeKind::Chunk(_) => !self.is_uncompressed() && self.decode_work() >= MIN_SHARED_WORK,
            DecodeKind::Elements(_) => false,
        };
        let key = is_shared.then(|| source.cache_key(part, self.range.start, CacheKind::Chunk)).flatten()?;
        Some(source.context.decodes.join(key))
    }

    /// True if the unit only has to be copied.
    pub(super) fn is_uncompressed(&self) -> bool {
        matches!(self.chain().partial_access(), PartialAccess::Elements(_))
    }
}
