//! Arrays whose copies have other chunks: their elements are read as of the commit that is copied, and written anew.
//!
//! Only what stored chunks cover is read. It is divided into boxes of chunks of the copy, each of which is assembled
//! within the memory of one write.

use std::{collections::HashSet, ops::Range, sync::Arc};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use zarrd_codec::{Elements, VariableBuilder};
use zarrd_meta::{
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, ReadRequest, Region},
};
use zarrd_store::{
    BackendErrorKind, ByteRange, CachedMeta, Change, GetResult, Key, KeySource, Prefetch, Snapshot, StoreError,
    ValueMeta,
};

use super::{copy_commits::CopyCommits, shrink::StoredChunks};
use crate::{
    context::Context,
    error::ArrayError,
    memory::claim::Permit,
    metadata::error::NodeError,
    node::array::Array,
    options::EmptyChunks,
    read::{array_read::ArrayRead, consumer::ElementLimit, current::read_of_snapshot, plan::ReadPlan},
    write::{
        encode::{StagedChunk, WriteContext},
        error::WriteError,
        layout::ChunkedRegion,
        merge::merge_partial_chunks,
        receive::{ReceivedChunks, receive},
        source::ElementSource,
    },
};

/// The most bytes of elements in a box of several chunks.
const BOX_SIZE: u64 = 16 << 20;

/// The most chunks in a box.
const BOX_CHUNKS: u64 = 1024;

/// The memory of a chunk's position in the copy, in bytes, for each dimension and in addition.
const POSITION_SIZE: u64 = 8;
const PER_POSITION: u64 = 64;

/// An array of which a copy has other chunks.
pub(super) struct RewrittenArray {
    pub(super) from: Array,
    pub(super) to: Array,
    /// Decodes the keys.
    pub(super) chunks: StoredChunks,
    /// The keys of the stored chunks, in order.
    pub(super) keys: Arc<[Key]>,
}

/// A range of chunks along each dimension.
type ChunkBox = Vec<Range<u64>>;

impl RewrittenArray {
    /// Writes and commits the chunks of the copy.
    pub(super) async fn write(
        &self,
        context: &Arc<Context>,
        snapshot: &Arc<dyn Snapshot>,
        reserved: &[Permit],
        commits: &mut CopyCommits<'_>,
    ) -> Result<(), NodeError> {
        let most = self.chunks_in_a_box();
        let _elements = match self.from.model().data_type.fixed_size() {
            Some(_) => None,
            None => Some(context.reserve_memory(reserved, variable_budget(context)).await?),
        };
        let snapshot = || Box::new(SnapshotOfChunks { chunks: self.keys.clone(), values: snapshot.clone() });
        if self.is_subdivision() {
            for key in &*self.keys {
                let position = self.chunks.position(key).unwrap_or_default();
                for chunks in split(self.covered(&position), most) {
                    commits.add(self.write_box(context, snapshot(), &chunks).await?).await?;
                }
            }
            return Ok(());
        }
        let positions = self.keys.iter().filter_map(|key| self.chunks.position(key));
        let touched = positions.map(|position| num_chunks(&self.covered(&position))).fold(0, u64::saturating_add);
        let rank = self.to.model().shape.len() as u64;
        let memory = touched.saturating_mul(POSITION_SIZE.saturating_mul(rank).saturating_add(PER_POSITION));
        let _memory = context.reserve_memory(reserved, memory).await?;
        let mut written = HashSet::new();
        for key in &*self.keys {
            let position = self.chunks.position(key).unwrap_or_default();
            for chunk in split(self.covered(&position), 1) {
                let start = chunk.iter().map(|range| range.start).collect::<Vec<_>>();
                if written.insert(start) {
                    commits.add(self.write_box(context, snapshot(), &chunk).await?).await?;
                }
            }
        }
        Ok(())
    }

    /// True if each chunk of the copy lies in one chunk of the original.
    fn is_subdivision(&self) -> bool {
        let lengths = self.to.model().grid.regular_shape().unwrap_or_default();
        let divides = |(length, grid): (&u64, &DimensionGrid)| match grid {
            DimensionGrid::Regular { length: outer } => outer.is_multiple_of(*length),
            DimensionGrid::Rectilinear { ends } => ends.iter().all(|end| end.is_multiple_of(*length)),
        };
        lengths.iter().zip(self.from.grid().dimensions()).all(divides)
    }

    /// The most chunks of the copy that are written at a time.
    fn chunks_in_a_box(&self) -> u64 {
        let model = self.to.model();
        let shape = model.grid.regular_shape().unwrap_or_default();
        let elements = shape.iter().fold(1, |product: u64, extent| product.saturating_mul(*extent));
        match model.data_type.fixed_size() {
            Some(size) => (BOX_SIZE / elements.saturating_mul(size as u64).max(1)).clamp(1, BOX_CHUNKS),
            // All elements of a box are in memory.
            None => 1,
        }
    }

    /// The chunks of the copy that a chunk of the original overlaps.
    fn covered(&self, position: &[u64]) -> ChunkBox {
        let (from, to) = (self.from.grid().dimensions(), self.to.grid().dimensions());
        let dimensions = position.iter().zip(from.iter().zip(to)).zip(&self.from.model().shape);
        let covered = dimensions.map(|((index, (from, to)), extent)| {
            let bounds = from.chunk_bounds(*index)?;
            let last = bounds.end.min(*extent).checked_sub(1)?;
            Some(to.chunk_index(bounds.start)?..to.chunk_index(last)?.saturating_add(1))
        });
        // A position within the grid covers some.
        covered.collect::<Option<_>>().unwrap_or_default()
    }

    /// Writes the chunks of a box; returns the changes that set them.
    async fn write_box(
        &self,
        context: &Arc<Context>,
        snapshot: Box<dyn Snapshot>,
        chunks: &ChunkBox,
    ) -> Result<Vec<Change>, NodeError> {
        let Some(region) = region(self.to.grid(), chunks, &self.to.model().shape) else { return Ok(Vec::new()) };
        let Some(layout) = ChunkedRegion::new(&region, self.to.model()) else { return Ok(Vec::new()) };
        let elements = self.read(context, snapshot, &region).await?;
        // What is not stored stays so, unless it means something else there.
        let empty = if self.to.model().fill_value_is_agreed() { EmptyChunks::Omit } else { EmptyChunks::Store };
        let target = Arc::new(WriteContext::new(context.clone(), self.to.clone(), empty, layout)?);
        let written = async {
            let ReceivedChunks { chunks, pending, memory } = receive(&target, context.account(), elements).await?;
            // Chunks that came in several windows.
            let merged = merge_partial_chunks(&target, &pending, memory).await?;
            Ok::<_, WriteError>((chunks, merged))
        };
        let (received, merged) = written.await.map_err(|error| self.error(error))?;
        let stored = received.iter().chain(&merged.chunks).filter(|chunk| chunk.is_stored());
        Ok(stored.flat_map(StagedChunk::changes).collect())
    }

    /// The elements of a region of the original.
    async fn read(
        &self,
        context: &Arc<Context>,
        snapshot: Box<dyn Snapshot>,
        region: &Region,
    ) -> Result<ElementSource, NodeError> {
        let request = ReadRequest::Select(region.to_selection());
        let plan = ReadPlan::new(context, &self.from, &request, &ElementLimit(u64::MAX)).await?;
        let read: ArrayRead = read_of_snapshot(context, &self.from, plan, snapshot, None).await?;
        if self.from.model().data_type.fixed_size().is_some() {
            let bytes = read.into_stream().map(|piece| match piece {
                Ok(Elements::Fixed(bytes)) => Ok(bytes),
                Ok(Elements::Variable(_)) => Ok(bytes::Bytes::new()),
                Err(error) => Err(as_store_error(error)),
            });
            return Ok(ElementSource::Fixed(bytes.boxed()));
        }
        let budget = variable_budget(context);
        let mut elements = VariableBuilder::new(budget);
        let mut pieces = std::pin::pin!(read.into_stream());
        while let Some(piece) = pieces.try_next().await? {
            let Elements::Variable(piece) = piece else { continue };
            for element in piece.iter() {
                elements.push(element).map_err(|_| ArrayError::OverBudget { budget })?;
            }
        }
        Ok(ElementSource::Variable(elements.finish()))
    }

    fn error(&self, error: WriteError) -> NodeError {
        match error {
            WriteError::Array(error) => error.into(),
            WriteError::Node(error) => error,
            WriteError::Encode { key, source } => NodeError::Encode { key, source },
            WriteError::Store(StoreError::Backend { kind, source }) => match source.downcast::<ArrayError>() {
                Ok(error) => (*error).into(),
                Err(source) => StoreError::Backend { kind, source }.into(),
            },
            WriteError::Store(error) => error.into(),
            // What was read is as long as the region.
            _ => ArrayError::Misplaced { path: self.from.path().clone() }.into(),
        }
    }
}

/// The chunks of one array in a snapshot of many keys: those that were not listed are missing.
struct SnapshotOfChunks {
    chunks: Arc<[Key]>,
    values: Arc<dyn Snapshot>,
}

impl SnapshotOfChunks {
    fn has(&self, key: &Key) -> bool {
        self.chunks.binary_search(key).is_ok()
    }
}

#[async_trait]
impl Snapshot for SnapshotOfChunks {
    fn cached(&self, key: &Key) -> Result<CachedMeta, StoreError> {
        if self.has(key) { self.values.cached(key) } else { Ok(CachedMeta::Known(None)) }
    }

    async fn stat(&self, key: &Key, prefetch: Prefetch) -> Result<Option<ValueMeta>, StoreError> {
        if self.has(key) { self.values.stat(key, prefetch).await } else { Ok(None) }
    }

    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        if self.has(key) { self.values.get(key, range).await } else { Ok(None) }
    }

    fn load_cached(&self, keys: &dyn KeySource) -> Result<(), StoreError> {
        self.values.load_cached(keys)
    }
}

/// The memory for elements of variable length that are written at a time, in bytes.
fn variable_budget(context: &Context) -> u64 {
    context.options.slab_memory / 2
}

/// An error of reading, as the error of a stream of bytes.
fn as_store_error(error: ArrayError) -> StoreError {
    match error {
        ArrayError::Store(error) => error,
        error => StoreError::Backend { kind: BackendErrorKind::Internal, source: Box::new(error) },
    }
}

/// The elements of a box of chunks, within a shape; `None` if there are none.
fn region(grid: &ChunkGrid, chunks: &ChunkBox, shape: &[u64]) -> Option<Region> {
    let dimensions = chunks.iter().zip(grid.dimensions()).zip(shape).map(|((chunks, grid), extent)| {
        let start = grid.chunk_bounds(chunks.start)?.start;
        let end = grid.chunk_bounds(chunks.end.checked_sub(1)?)?.end.min(*extent);
        Some(DimensionSelection::Range { start, step: 1, len: end.checked_sub(start)? })
    });
    Some(Region { dimensions: dimensions.collect::<Option<_>>()? })
}

fn num_chunks(chunks: &ChunkBox) -> u64 {
    chunks.iter().fold(1, |product, range| product.saturating_mul(range.end.saturating_sub(range.start)))
}

/// Divides a box into parts of at most `most` chunks each.
fn split(chunks: ChunkBox, most: u64) -> impl Iterator<Item = ChunkBox> {
    let mut left = vec![chunks];
    std::iter::from_fn(move || {
        loop {
            let part = left.pop()?;
            let longest = part.iter().position(|range| range.end.saturating_sub(range.start) > 1);
            let (true, Some(dimension)) = (num_chunks(&part) > most.max(1), longest) else { return Some(part) };
            let (mut first, mut rest) = (part.clone(), part);
            if let (Some(first), Some(rest)) = (first.get_mut(dimension), rest.get_mut(dimension)) {
                let middle = first.start.midpoint(first.end);
                (first.end, rest.start) = (middle, middle);
            }
            left.extend([rest, first]);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_split_into_parts_that_cover_each_chunk_once() {
        for (chunks, most) in [(vec![0..5, 2..9], 4), (vec![3..4, 7..8], 1), (vec![], 1), (vec![0..1, 0..17, 0..3], 7)]
        {
            let mut found = Vec::new();
            for part in split(chunks.clone(), most) {
                assert!(num_chunks(&part) <= most, "{part:?}");
                found.extend(split(part, 1).map(|one| one.iter().map(|range| range.start).collect::<Vec<_>>()));
            }
            let mut distinct = found.clone();
            distinct.sort();
            distinct.dedup();
            assert_eq!((found.len() as u64, distinct.len() as u64), (num_chunks(&chunks), num_chunks(&chunks)));
        }
    }
}
