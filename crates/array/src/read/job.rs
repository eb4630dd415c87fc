//! Jobs: fetch, decode, and write into a slab.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use zarrd_codec::{CodecChain, CodecError, Elements, PartialAccess};
use zarrd_store::{ByteRange, CachedMeta, GetResult, Prefetch, StoreError};

use super::{
    context::ReadContext,
    encoded_chunk::EncodedChunk,
    scatter,
    sink::ElementSink,
    slab_buffer::{ScatterError, SlabBuffer},
};
use crate::{
    cache::{CacheKind, Cached},
    error::ArrayError,
    grid::{projection::ElementSelection, strided::Strides},
};

/// The bytes up to which elements are written on the runtime's own thread, since that takes less time than a switch.
const INLINE_COPY_LIMIT: u64 = 64 << 10;

/// The same limit for uncompressed bytes that are all a read has to copy.
const INLINE_SINGLE_COPY_LIMIT: u64 = 2 << 20;

/// A job for one slab.
#[derive(Debug)]
pub(crate) enum Job {
    /// Write the fill value for a missing chunk.
    Fill(ElementSelection),
    /// Fetch a range of a value, decode the units in it and write them. If its version is unknown, the value may be
    /// missing; a chunk that is decoded in full then has no range.
    Decode {
        /// The range to fetch.
        part: EncodedChunk,
        /// The units, in the order of their ranges.
        units: Vec<DecodeUnit>,
    },
}

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

/// A slab being written, with its strides.
#[derive(Debug)]
pub(crate) struct SlabWriter {
    pub(crate) buffer: SlabBuffer,
    pub(crate) strides: Strides,
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
    fn decode_work(&self) -> u64 {
        match &self.kind {
            DecodeKind::Chunk(chain) => chain.decode_work(self.range.end - self.range.start),
            DecodeKind::Elements(_) => self.range.end - self.range.start,
        }
    }

    fn chain(&self) -> &Arc<CodecChain> {
        match &self.kind {
            DecodeKind::Chunk(chain) | DecodeKind::Elements(chain) => chain,
        }
    }

    /// The cached elements.
    fn cached(&self, source: &ReadContext, part: &EncodedChunk) -> Option<Elements> {
        let DecodeKind::Chunk(_) = &self.kind else { return None };
        match source.cache().get(&source.cache_key(part, self.range.start, CacheKind::Chunk)?)? {
            Cached::Chunk(elements) => Some(elements),
            Cached::Index(_) => None,
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
    /// Runs the job at once, if it is small and waits for nothing.
    pub(crate) fn try_run_inline(
        &self,
        source: &ReadContext,
        sink: &dyn ElementSink,
    ) -> Option<Result<(), ArrayError>> {
        match self {
            Self::Fill(selection) => (sink.fill_work(source, selection) <= INLINE_COPY_LIMIT)
                .then(|| sink.write_fill_value(source, selection)),
            Self::Decode { part, units: leaves } => {
                let [leaf] = leaves.as_slice() else { return None };
                if sink.write_work(source, &leaf.selection) > INLINE_COPY_LIMIT {
                    return None;
                }
                let elements = leaf.cached(source, part)?;
                source.metrics.cached();
                Some(sink.write(source, &leaf.shape, &leaf.selection, &elements))
            }
        }
    }

    /// The unit of the job, if it is the only one, with its elements, if they are cached; else the job.
    pub(crate) fn into_cached(self, source: &ReadContext) -> Result<(DecodeUnit, Elements), Self> {
        let Self::Decode { part, mut units } = self else { return Err(self) };
        let elements = match units.as_slice() {
            [unit] => unit.cached(source, &part),
            _ => None,
        };
        match elements.and_then(|elements| Some((units.pop()?, elements))) {
            Some(cached) => {
                source.metrics.cached();
                Ok(cached)
            }
            None => Err(Self::Decode { part, units }),
        }
    }

    /// True if the job waits for nothing that other reads wait for, and takes little. Any other job gets a task of its
    /// own, or it would hold a permit or a cache entry for as long as this read's client is slow. So would a request to
    /// a distant store, which serves few at a time.
    pub(crate) fn is_cheap(&self, source: &ReadContext) -> bool {
        match self {
            Self::Fill(_) => false,
            Self::Decode { units: leaves, .. } => source.store.near && is_cheap(source, leaves),
        }
    }

    /// The memory that the job takes in addition to the slab, in bytes, at most: what it fetches, and what it decodes
    /// at a time. `most` is that of a chunk whose encoded size is not known.
    pub(crate) fn memory(&self, most: u64) -> u64 {
        let Self::Decode { part, units } = self else { return 0 };
        if part.version.is_none() && is_whole(units) {
            return most;
        }
        let decoded = |unit: &DecodeUnit| match &unit.kind {
            DecodeKind::Chunk(chain) => chain.working_memory().unwrap_or(most),
            DecodeKind::Elements(_) => unit.decoded_len(),
        };
        // An encoded chunk counts as much as a decoded one at most, as in the memory that is reserved.
        part.len().saturating_add(units.iter().map(decoded).max().unwrap_or(0)).min(most)
    }

    /// Runs the job.
    pub(crate) async fn run(self, source: Arc<ReadContext>, sink: Arc<dyn ElementSink>) -> Result<(), ArrayError> {
        match self {
            Self::Fill(selection) => fill(source, sink, selection).await,
            Self::Decode { part, units } if part.version.is_none() => {
                Box::pin(decode_unknown(source, sink, part, units)).await
            }
            Self::Decode { part, units } => decode(source, sink, part, units, None).await,
        }
    }
}

async fn fill(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    selection: ElementSelection,
) -> Result<(), ArrayError> {
    let steps = sink.fill_work(&source, &selection);
    if steps <= INLINE_COPY_LIMIT {
        return sink.write_fill_value(&source, &selection);
    }
    let work = source.clone();
    source.context.run_blocking(steps, move || sink.write_fill_value(&work, &selection)).await
}

/// Decodes the units of a value of unknown version, which the request for the value returns as well, or finds that
/// there is none.
async fn decode_unknown(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    mut part: EncodedChunk,
    mut units: Vec<DecodeUnit>,
) -> Result<(), ArrayError> {
    // Held until the chunk is cached.
    let _turn = match units.iter().any(|unit| unit.is_cacheable(&source)) {
        true => source.first_request(&part.key).await,
        false => None,
    };
    let range = if is_whole(&units) { None } else { ByteRange::bounded(part.range.start, part.range.end).ok() };
    let mut known = source.snapshot.cached(&part.key)?;
    // A stat of a near value costs little, and reading one whose chunk is cached costs more.
    if known == CachedMeta::Unknown && source.store.near && units.iter().any(|unit| unit.is_cacheable(&source)) {
        known = CachedMeta::Known(source.snapshot.stat(&part.key, Prefetch::Nothing).await?);
    }
    let (meta, opened) = match known {
        CachedMeta::Known(Some(meta)) => (meta, None),
        CachedMeta::Known(None) => return fill_all(source, sink, units).await,
        CachedMeta::Unknown => match source.open(&part.key, range).await {
            Ok(Some(value)) => (value.meta.clone(), Some(value)),
            Ok(None) => return fill_all(source, sink, units).await,
            Err(StoreError::RangeNotSatisfiable { meta }) => (meta, None),
            Err(error) => return Err(error.into()),
        },
    };
    part.version = Some(meta.version);
    let value = EncodedChunk::of_value(part.key.clone(), meta);
    for unit in &mut units {
        source.check_uncompressed_size(&value, unit.chain())?;
        if let DecodeKind::Chunk(chain) = &unit.kind {
            source.check_chunk_size(&value, chain)?;
            (unit.range, part.range) = (value.range.clone(), value.range.clone());
        }
    }
    decode(source, sink, part, units, opened).await
}

/// True if one of the units of a value is all of it.
fn is_whole(units: &[DecodeUnit]) -> bool {
    units.iter().any(|unit| matches!(unit.kind, DecodeKind::Chunk(_)))
}

async fn fill_all(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    units: Vec<DecodeUnit>,
) -> Result<(), ArrayError> {
    for unit in units {
        fill(source.clone(), sink.clone(), unit.selection).await?;
    }
    Ok(())
}

/// Decodes the units of a range, of which `opened` is the value if it is being fetched already.
async fn decode(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    part: EncodedChunk,
    units: Vec<DecodeUnit>,
    opened: Option<GetResult>,
) -> Result<(), ArrayError> {
    match <[DecodeUnit; 1]>::try_from(units) {
        Ok([unit]) if unit.is_cacheable(&source) => decode_cached(source, sink, (part, opened), unit).await,
        Ok(one) => decode_all(source, sink, (part, opened), one.into()).await,
        Err(units) => decode_all(source, sink, (part, opened), units).await,
    }
}

/// True if these units only have to be copied, and are small; larger ones if the read has nothing else to do.
fn is_cheap(source: &ReadContext, leaves: &[DecodeUnit]) -> bool {
    let bytes: u64 = leaves.iter().map(DecodeUnit::decoded_len).sum();
    let limit = if source.chunks <= 2 { INLINE_SINGLE_COPY_LIMIT } else { INLINE_COPY_LIMIT * 2 };
    bytes <= limit && leaves.iter().all(|leaf| matches!(leaf.chain().partial_access(), PartialAccess::Elements(_)))
}

/// Decodes a chunk and caches it; waits for another read that is decoding it already.
async fn decode_cached(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    (part, opened): (EncodedChunk, Option<GetResult>),
    leaf: DecodeUnit,
) -> Result<(), ArrayError> {
    let key = source.cache_key(&part, leaf.range.start, CacheKind::Chunk);
    let chain = leaf.chain().clone();
    let steps = leaf.decode_work();
    let work = source.clone();
    let decoded = source.cached(key, async move {
        let encoded = match opened {
            Some(value) => work.receive(value).await?,
            None => work.fetch(&part.key, part.range.clone()).await?,
        };
        let decoder = work.clone();
        let decode = move || {
            let (encoded, in_use) = watched(encoded);
            let elements = decoder.measure_decode(|| chain.decode(encoded, decoder.variable_length_budget()));
            let elements = elements.map_err(|error| decoder.chunk_error(&part, error))?;
            decoder.spend_decode(&chain, &elements)?;
            Ok(Cached::Chunk(if in_use() { copied(&elements) } else { elements }))
        };
        work.context.run_blocking(steps, decode).await
    });
    let Cached::Chunk(elements) = decoded.await? else { return Err(ArrayError::ShuttingDown) };
    let steps = sink.write_work(&source, &leaf.selection);
    if steps <= INLINE_COPY_LIMIT {
        return sink.write(&source, &leaf.shape, &leaf.selection, &elements);
    }
    let work = source.clone();
    source.context.run_blocking(steps, move || sink.write(&work, &leaf.shape, &leaf.selection, &elements)).await
}

/// Decodes all units of a range.
async fn decode_all(
    source: Arc<ReadContext>,
    sink: Arc<dyn ElementSink>,
    (part, opened): (EncodedChunk, Option<GetResult>),
    leaves: Vec<DecodeUnit>,
) -> Result<(), ArrayError> {
    let leaves = write_cached(&source, &sink, &part, leaves).await?;
    let Some(range) = span(&leaves) else { return Ok(()) };
    let encoded = match opened {
        Some(value) => source.receive(value).await?,
        None => source.fetch(&part.key, range.clone()).await?,
    };
    let write_work = leaves.iter().map(|leaf| sink.write_work(&source, &leaf.selection)).fold(0, u64::saturating_add);
    let light = is_cheap(&source, &leaves) && write_work <= INLINE_SINGLE_COPY_LIMIT;
    let steps = leaves.iter().map(DecodeUnit::decode_work).fold(0, u64::saturating_add);
    let work = source.clone();
    let all = move || {
        let last = leaves.len().saturating_sub(1);
        let shared = leaves.iter().any(|leaf| leaf.is_cacheable(&work)).then(|| encoded.clone());
        let mut encoded = Some(encoded);
        leaves.iter().enumerate().try_for_each(|(index, leaf)| {
            let undecodable = |error| work.chunk_error(&part, error);
            let all = if index == last { encoded.take() } else { encoded.clone() };
            let stored = all.and_then(|all| slice_fetched(&all, &range, &leaf.range));
            let stored = stored.ok_or_else(|| undecodable(out_of_bounds()))?;
            // The decoder of the last unit frees what it no longer needs.
            let elements =
                work.measure_decode(|| leaf.decode(stored, work.variable_length_budget())).map_err(undecodable)?;
            work.spend_decode(leaf.chain(), &elements)?;
            if leaf.is_cacheable(&work)
                && let Some(key) = work.cache_key(&part, leaf.range.start, CacheKind::Chunk)
            {
                let shared = shared.as_ref().is_some_and(|fetched| is_part_of(&elements, fetched));
                work.cache().insert(key, Cached::Chunk(if shared { copied(&elements) } else { elements.clone() }));
            }
            sink.write(&work, &leaf.shape, &leaf.selection, &elements)
        })
    };
    if light { all() } else { source.context.run_blocking(steps, all).await }
}

/// Writes the units that are cached; returns the others.
async fn write_cached(
    source: &Arc<ReadContext>,
    sink: &Arc<dyn ElementSink>,
    part: &EncodedChunk,
    leaves: Vec<DecodeUnit>,
) -> Result<Vec<DecodeUnit>, ArrayError> {
    let (mut left, mut cached, mut steps) = (Vec::with_capacity(leaves.len()), Vec::new(), 0_u64);
    for leaf in leaves {
        match leaf.cached(source, part) {
            Some(elements) => {
                source.metrics.cached();
                steps = steps.saturating_add(sink.write_work(source, &leaf.selection));
                cached.push((leaf, elements));
            }
            None => left.push(leaf),
        }
    }
    let (work, sink) = (source.clone(), sink.clone());
    let write = move || {
        cached.iter().try_for_each(|(leaf, elements)| sink.write(&work, &leaf.shape, &leaf.selection, elements))
    };
    if steps <= INLINE_SINGLE_COPY_LIMIT {
        write()?
    } else {
        source.context.run_blocking(steps, write).await?
    }
    Ok(left)
}

fn span(leaves: &[DecodeUnit]) -> Option<Range<u64>> {
    let start = leaves.iter().map(|leaf| leaf.range.start).min()?;
    let end = leaves.iter().map(|leaf| leaf.range.end).max()?;
    Some(start..end)
}

fn slice_fetched(encoded: &Bytes, fetched: &Range<u64>, range: &Range<u64>) -> Option<Bytes> {
    let start = usize::try_from(range.start.checked_sub(fetched.start)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(fetched.start)?).ok()?;
    (start <= end && end <= encoded.len()).then(|| encoded.slice(start..end))
}

/// A copy of elements that are a part of what was fetched, all of which they would keep in memory.
fn copied(elements: &Elements) -> Elements {
    match elements {
        Elements::Fixed(bytes) => Elements::Fixed(Bytes::copy_from_slice(bytes)),
        Elements::Variable(_) => elements.clone(),
    }
}

/// True if elements are a part of what was fetched.
fn is_part_of(elements: &Elements, fetched: &Bytes) -> bool {
    matches!(elements, Elements::Fixed(bytes) if fetched.as_ptr_range().contains(&bytes.as_ptr()))
}

/// The bytes, and a function that tells whether any of them are still in use.
fn watched(bytes: Bytes) -> (Bytes, impl Fn() -> bool) {
    struct Watched {
        bytes: Bytes,
        _user: Arc<()>,
    }
    impl AsRef<[u8]> for Watched {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    let users = Arc::new(());
    let watched = Watched { bytes, _user: users.clone() };
    (Bytes::from_owner(watched), move || Arc::strong_count(&users) > 1)
}

fn out_of_bounds() -> CodecError {
    CodecError::Malformed { codec: "sharding_indexed", reason: "a part lies outside what was fetched" }
}

impl ElementSink for SlabWriter {
    fn write(
        &self,
        source: &ReadContext,
        shape: &[u64],
        selection: &ElementSelection,
        elements: &Elements,
    ) -> Result<(), ArrayError> {
        let from = scatter::CopySource::Elements { elements, shape };
        scatter::scatter(&self.buffer, &self.strides, selection, from).map_err(|error| source.scatter_error(error))
    }

    fn write_fill_value(&self, source: &ReadContext, selection: &ElementSelection) -> Result<(), ArrayError> {
        let fill = scatter::CopySource::Fill(&source.array.model().fill_value);
        scatter::scatter(&self.buffer, &self.strides, selection, fill).map_err(|error| source.scatter_error(error))
    }
}

impl ReadContext {
    /// Counts the work of a decoded unit, and fails if the budget is exceeded: an estimate does not know the size of
    /// elements of variable length, nor that a chunk is decoded twice for lack of memory.
    fn spend_decode(&self, chain: &CodecChain, elements: &Elements) -> Result<(), ArrayError> {
        match (chain.partial_access(), elements) {
            (PartialAccess::Elements(_), Elements::Fixed(bytes)) => self.work_budget.spend(bytes.len() as u64),
            _ => self.work_budget.spend(chain.decode_work(elements.memory_size())),
        }
    }

    pub(crate) fn scatter_error(&self, error: ScatterError) -> ArrayError {
        match error {
            ScatterError::Internal => ArrayError::Misplaced { path: self.array.path().clone() },
            ScatterError::OverBudget => ArrayError::OverBudget { budget: self.variable_length_budget() },
        }
    }
}
