//! Fetching, decoding, and putting into place.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use codec::{Access, Chain, CodecError, Elements};

use super::{
    context::ReadContext,
    encoded_chunk::EncodedChunk,
    scatter,
    slab_buffer::{ScatterError, SlabBuffer},
};
use crate::{
    cache::{CacheKind, Cached},
    error::ArrayError,
    grid::{projection::ElementSelection, strided::Strides},
};

/// How many bytes are put into place on the async thread: what takes less time than the way to another thread.
const INLINE_COPY_LIMIT: u64 = 64 << 10;

/// How many uncompressed bytes are put into place there, where they are all that is asked for.
const INLINE_SINGLE_COPY_LIMIT: u64 = 2 << 20;

/// One thing to do for a slab.
#[derive(Debug)]
pub(crate) enum Job {
    /// Put the fill value into the places of a chunk that is not there.
    Fill(ElementSelection),
    /// Fetch a part of a value, decode what is in it and put it into place.
    Decode {
        /// What is fetched.
        part: EncodedChunk,
        /// What is in it, by its place there.
        units: Vec<DecodeUnit>,
    },
}

/// Something that is decoded as one.
#[derive(Debug)]
pub(crate) struct DecodeUnit {
    pub(crate) kind: DecodeKind,
    /// Where it is in the value.
    pub(crate) range: Range<u64>,
    pub(crate) shape: Vec<u64>,
    pub(crate) selection: ElementSelection,
}

#[derive(Debug)]
pub(crate) enum DecodeKind {
    /// A chunk, decoded by its chain.
    Chunk(Arc<Chain>),
    /// A run of elements of an uncompressed chunk.
    Elements(Arc<Chain>),
}

/// The slab that is painted, and how places in it are counted.
#[derive(Debug)]
pub(crate) struct SlabWriter {
    pub(crate) buffer: SlabBuffer,
    pub(crate) strides: Strides,
}

impl DecodeUnit {
    /// How many bytes it has when it is decoded; of variable length, what is stored.
    pub(crate) fn decoded_len(&self) -> u64 {
        let stored = self.range.end - self.range.start;
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.array().fixed_len().unwrap_or(stored),
            DecodeKind::Elements(_) => stored,
        }
    }

    /// How many steps it takes at the most to decode it.
    fn decode_work(&self) -> u64 {
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.decode_work(self.range.end - self.range.start),
            DecodeKind::Elements(_) => self.range.end - self.range.start,
        }
    }

    fn chain(&self) -> &Arc<Chain> {
        match &self.kind {
            DecodeKind::Chunk(chain) | DecodeKind::Elements(chain) => chain,
        }
    }

    /// What is kept of it.
    fn cached(&self, source: &ReadContext, part: &EncodedChunk) -> Option<Elements> {
        match (&self.kind, source.cache().get(&source.cache_key(part, self.range.start, CacheKind::Chunk))?) {
            (DecodeKind::Chunk(_), Cached::Chunk(elements)) => Some(elements),
            _ => None,
        }
    }

    fn is_cacheable(&self, source: &ReadContext) -> bool {
        source.caching && matches!(&self.kind, DecodeKind::Chunk(_))
    }

    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.decode(encoded, budget),
            DecodeKind::Elements(chain) => chain.decode_elements(encoded).map(Elements::Fixed),
        }
    }
}

impl Job {
    /// Does it at once, where it is small and nothing has to be waited for.
    pub(crate) fn try_run_inline(&self, source: &ReadContext, writer: &SlabWriter) -> Option<Result<(), ArrayError>> {
        match self {
            Self::Fill(selection) => {
                (source.bytes_of(selection) <= INLINE_COPY_LIMIT).then(|| writer.write_fill_value(source, selection))
            }
            Self::Decode { part, units: leaves } => {
                let [leaf] = leaves.as_slice() else { return None };
                if source.bytes_of(&leaf.selection) > INLINE_COPY_LIMIT {
                    return None;
                }
                let elements = leaf.cached(source, part)?;
                source.metrics.cached();
                Some(writer.write(source, leaf, &elements))
            }
        }
    }

    /// Whether it waits for nothing that others wait for too, and takes little. Anything else needs a task of its own: while this answer's reader
    /// is slow, it would keep a thread's permit or a place in the cache from those who are not.
    pub(crate) fn is_cheap(&self, source: &ReadContext) -> bool {
        match self {
            Self::Fill(_) => false,
            Self::Decode { units: leaves, .. } => is_cheap(source, leaves),
        }
    }

    /// Does it.
    pub(crate) async fn run(self, source: Arc<ReadContext>, writer: Arc<SlabWriter>) -> Result<(), ArrayError> {
        match self {
            Self::Fill(selection) => {
                let work = source.clone();
                source
                    .context
                    .run_blocking(source.bytes_of(&selection), move || writer.write_fill_value(&work, &selection))
                    .await
            }
            Self::Decode { part, units: leaves } => match <[DecodeUnit; 1]>::try_from(leaves) {
                Ok([leaf]) if leaf.is_cacheable(&source) => decode_cached(source, writer, part, leaf).await,
                Ok(one) => decode_all(source, writer, part, one.into()).await,
                Err(leaves) => decode_all(source, writer, part, leaves).await,
            },
        }
    }
}

/// Whether all are elements that only have to be copied, and few; where there is nothing to do beside, more of them.
fn is_cheap(source: &ReadContext, leaves: &[DecodeUnit]) -> bool {
    let bytes: u64 = leaves.iter().map(DecodeUnit::decoded_len).sum();
    let few = if source.chunks <= 2 { INLINE_SINGLE_COPY_LIMIT } else { INLINE_COPY_LIMIT * 2 };
    bytes <= few && leaves.iter().all(|leaf| matches!(leaf.chain().access(), Access::Elements(_)))
}

/// Decodes one chunk and keeps it; where somebody else is doing that, waits for it.
async fn decode_cached(
    source: Arc<ReadContext>,
    writer: Arc<SlabWriter>,
    part: EncodedChunk,
    leaf: DecodeUnit,
) -> Result<(), ArrayError> {
    let key = source.cache_key(&part, leaf.range.start, CacheKind::Chunk);
    let chain = leaf.chain().clone();
    let steps = leaf.decode_work();
    let work = source.clone();
    let decoded = source.cached(key, async move {
        let encoded = work.fetch(&part.key, part.range.clone()).await?;
        let decoder = work.clone();
        let decode = move || {
            let elements = decoder.measure_decode(|| chain.decode(encoded.clone(), decoder.variable_length_budget()));
            let elements = elements.map_err(|error| decoder.chunk_error(&part, error))?;
            decoder.spend_decode(&chain, &elements)?;
            Ok(Cached::Chunk(detach(&elements, &encoded)))
        };
        work.context.run_blocking(steps, decode).await
    });
    let Cached::Chunk(elements) = decoded.await? else { return Err(ArrayError::ShuttingDown) };
    if source.bytes_of(&leaf.selection) <= INLINE_COPY_LIMIT {
        return writer.write(&source, &leaf, &elements);
    }
    let work = source.clone();
    source.context.run_blocking(source.bytes_of(&leaf.selection), move || writer.write(&work, &leaf, &elements)).await
}

/// Decodes everything in a part of a value.
async fn decode_all(
    source: Arc<ReadContext>,
    writer: Arc<SlabWriter>,
    part: EncodedChunk,
    leaves: Vec<DecodeUnit>,
) -> Result<(), ArrayError> {
    let leaves = write_cached(&source, &writer, &part, leaves)?;
    let Some(range) = span(&leaves) else { return Ok(()) };
    let encoded = source.fetch(&part.key, range.clone()).await?;
    let light = is_cheap(&source, &leaves);
    let steps = leaves.iter().map(DecodeUnit::decode_work).fold(0, u64::saturating_add);
    let work = source.clone();
    let all = move || {
        leaves.iter().try_for_each(|leaf| {
            let undecodable = |error| work.chunk_error(&part, error);
            let stored = slice_fetched(&encoded, &range, &leaf.range).ok_or_else(|| undecodable(out_of_bounds()))?;
            let elements =
                work.measure_decode(|| leaf.decode(stored, work.variable_length_budget())).map_err(undecodable)?;
            work.spend_decode(leaf.chain(), &elements)?;
            if leaf.is_cacheable(&work) {
                work.cache().insert(
                    work.cache_key(&part, leaf.range.start, CacheKind::Chunk),
                    Cached::Chunk(detach(&elements, &encoded)),
                );
            }
            writer.write(&work, leaf, &elements)
        })
    };
    if light { all() } else { source.context.run_blocking(steps, all).await }
}

/// Puts into place what is in the cache; the rest is left.
fn write_cached(
    source: &ReadContext,
    writer: &SlabWriter,
    part: &EncodedChunk,
    leaves: Vec<DecodeUnit>,
) -> Result<Vec<DecodeUnit>, ArrayError> {
    let mut left = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        match leaf.cached(source, part) {
            Some(elements) => {
                source.metrics.cached();
                writer.write(source, &leaf, &elements)?;
            }
            None => left.push(leaf),
        }
    }
    Ok(left)
}

fn span(leaves: &[DecodeUnit]) -> Option<Range<u64>> {
    let start = leaves.iter().map(|leaf| leaf.range.start).min()?;
    let end = leaves.iter().map(|leaf| leaf.range.end).max()?;
    Some(start..end)
}

fn slice_fetched(encoded: &Bytes, whole: &Range<u64>, range: &Range<u64>) -> Option<Bytes> {
    let start = usize::try_from(range.start.checked_sub(whole.start)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(whole.start)?).ok()?;
    (start <= end && end <= encoded.len()).then(|| encoded.slice(start..end))
}

/// The elements in memory of their own, where they would keep all that was fetched with them.
fn detach(elements: &Elements, fetched: &Bytes) -> Elements {
    match elements {
        Elements::Fixed(bytes) if fetched.as_ptr_range().contains(&bytes.as_ptr()) => {
            Elements::Fixed(Bytes::copy_from_slice(bytes))
        }
        _ => elements.clone(),
    }
}

fn out_of_bounds() -> CodecError {
    CodecError::Malformed { codec: "sharding_indexed", reason: "a part lies outside what was fetched" }
}

impl SlabWriter {
    fn write(&self, source: &ReadContext, leaf: &DecodeUnit, elements: &Elements) -> Result<(), ArrayError> {
        let from = scatter::CopySource::Elements { elements, shape: &leaf.shape };
        scatter::scatter(&self.buffer, &self.strides, &leaf.selection, from)
            .map_err(|error| source.scatter_error(error))
    }

    fn write_fill_value(&self, source: &ReadContext, selection: &ElementSelection) -> Result<(), ArrayError> {
        let fill = scatter::CopySource::Fill(&source.array.model().fill_value);
        scatter::scatter(&self.buffer, &self.strides, selection, fill).map_err(|error| source.scatter_error(error))
    }
}

impl ReadContext {
    /// Counts the work that was done to decode something; fails where that makes it too much, which an estimate cannot tell of elements of variable length, or where there is too
    /// little memory to decode everything once.
    fn spend_decode(&self, chain: &Chain, elements: &Elements) -> Result<(), ArrayError> {
        match (chain.access(), elements) {
            (Access::Elements(_), Elements::Fixed(bytes)) => self.work_budget.spend(bytes.len() as u64),
            _ => self.work_budget.spend(chain.decode_work(elements.memory())),
        }
    }

    pub(crate) fn scatter_error(&self, error: ScatterError) -> ArrayError {
        match error {
            ScatterError::Internal => ArrayError::Misplaced { path: self.array.path().clone() },
            ScatterError::OverBudget => ArrayError::OverBudget { budget: self.variable_length_budget() },
        }
    }
}
