//! Jobs: fetch, decode, and write into a slab.

use std::sync::Arc;

use tracing::trace_span;
use zarrd_codec::Elements;
use zarrd_executor::{Cost, STEPS, Work};
use zarrd_store::{ByteRange, CachedMeta, Prefetch, StoreError};

use super::{
    context::ReadContext,
    decode::{decode, is_cheap},
    encoded_chunk::EncodedChunk,
    scatter,
    sink::ElementSink,
    slab_buffer::{ScatterError, SlabBuffer},
    unit::{DecodeKind, DecodeUnit},
};
use crate::{
    error::ArrayError,
    grid::{projection::ElementSelection, strided::Strides},
};

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

/// A slab being written, with its strides.
#[derive(Debug)]
pub(crate) struct SlabWriter {
    pub(crate) buffer: SlabBuffer,
    pub(crate) strides: Strides,
}

impl Job {
    /// Runs the job at once, if it is small and waits for nothing.
    pub(crate) fn try_run_inline(
        &self,
        source: &ReadContext,
        sink: &dyn ElementSink,
    ) -> Option<Result<(), ArrayError>> {
        match self {
            Self::Fill(selection) => Cost::of(Work::Copy, sink.fill_work(source, selection))
                .is_at_once()
                .then(|| sink.write_fill_value(source, selection)),
            Self::Decode { part, units: leaves } => {
                let [leaf] = leaves.as_slice() else { return None };
                if !Cost::of(Work::Copy, sink.write_work(source, &leaf.selection)).is_at_once() {
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
    let cost = Cost::of(Work::Copy, sink.fill_work(&source, &selection));
    if cost.is_at_once() {
        return sink.write_fill_value(&source, &selection);
    }
    let work = source.clone();
    source.context.run(cost, move || sink.write_fill_value(&work, &selection)).await?
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

impl ElementSink for SlabWriter {
    fn write(
        &self,
        source: &ReadContext,
        shape: &[u64],
        selection: &ElementSelection,
        elements: &Elements,
    ) -> Result<(), ArrayError> {
        let _step = trace_span!(target: STEPS, "scatter").entered();
        let from = scatter::CopySource::Elements { elements, shape };
        scatter::scatter(&self.buffer, &self.strides, selection, from).map_err(|error| source.scatter_error(error))
    }

    fn write_fill_value(&self, source: &ReadContext, selection: &ElementSelection) -> Result<(), ArrayError> {
        let _step = trace_span!(target: STEPS, "scatter").entered();
        let fill = scatter::CopySource::Fill(&source.array.model().fill_value);
        scatter::scatter(&self.buffer, &self.strides, selection, fill).map_err(|error| source.scatter_error(error))
    }
}

impl ReadContext {
    pub(crate) fn scatter_error(&self, error: ScatterError) -> ArrayError {
        match error {
            ScatterError::Internal => ArrayError::Misplaced { path: self.array.path().clone() },
            ScatterError::OverBudget => ArrayError::OverBudget { budget: self.variable_length_budget() },
        }
    }
}
